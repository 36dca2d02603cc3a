"""A value of a running kernel: one array for all lanes (programs), kept as separable parts.

A value is the sum of its parts (integers, pointers) or all of them (truth values: ``how == "and"``). A part is
``(lanes or 1, *shape)``, with size 1 along what it does not depend on: so ``base + rows * stride + cols`` stays three
small arrays, and its shape as a box is read off them. Integers, truth values and constants are *lazy*: they have no
node until something uses them as data, and ``made_by`` says how to make one then, at the line that defined it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np

from ....ir.errors import TritonCompileError
from ..constexpr import bare
from .storage import Storage
from .types import BlockType, PointerType, type_of_numpy
from .undefined import Undefined

__all__ = ["MadeBy", "Running", "Split", "Value", "along_lanes", "constant", "lift", "support", "under_rank"]

Array = np.ndarray[Any, np.dtype[Any]]


class Split(Exception):
    """Lanes differ where one answer is needed. ``values``: by lane."""

    def __init__(self, values: Array) -> None:
        super().__init__()
        self.values = values


@attrs.frozen(eq=False)
class MadeBy:
    """How a lazy value is made: an operation of the table on ``operands`` (values and numbers), brought to ``common``
    first; or, where ``view`` is given, a view of its one operand's result."""

    operation: str
    operands: tuple[Any, ...]
    static: tuple[tuple[str, Any], ...] = ()
    common: np.dtype[Any] | None = None
    view: Callable[[Any], Any] | None = None


class Running:
    """The trace that is running: what values ask for a line, or to be waited for."""

    tracing: Any = None


class Sizes(tuple[int, ...]):
    """A shape, as kernels compare it: with tuples and with lists."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, list | tuple):
            return tuple.__eq__(self, tuple(map(bare, other)))
        return False

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__


class Value:
    """See the module. ``storage`` is what a pointer points into, ``roots`` the values with nodes that a lazy one was
    computed from, ``undefined`` the elements that masked loads left undefined, ``wrapped``
    is where (stack row) an int32 on its way here wrapped around, and in which lanes ``(lanes or 1,)``, ``is_const`` a
    pointer that nothing is written through."""

    __slots__ = (
        "_array",
        "handle",
        "how",
        "is_const",
        "made_by",
        "parts",
        "roots",
        "shape",
        "stack",
        "storage",
        "undefined",
        "wrapped",
    )

    def __init__(
        self,
        parts: Sequence[Array],
        shape: Sequence[int],
        *,
        how: str = "add",
        storage: Storage | None = None,
        made_by: MadeBy | None = None,
        roots: tuple[Value, ...] = (),
        undefined: Undefined | None = None,
        wrapped: tuple[int, Array] | None = None,
        stack: int = -1,
        is_const: bool = False,
    ) -> None:
        self.is_const = is_const
        self.parts, self.shape, self.how, self.storage = list(parts), Sizes(shape), how, storage
        self.made_by, self.roots, self.undefined, self.wrapped, self.stack = made_by, roots, undefined, wrapped, stack
        self.handle: Any = None
        self._array: Array | None = None

    @property
    def numpy(self) -> np.dtype[Any]:
        """The dtype of the elements; of a pointer that of offsets."""
        return self.parts[0].dtype

    @property
    def array(self) -> Array:
        """One array ``(lanes or 1, *shape)``."""
        if self._array is None:
            found = self.parts[0]
            for part in self.parts[1:]:
                found = found & part if self.how == "and" else found + part
            self._array = np.broadcast_to(under_rank(found, len(self.shape)), (*found.shape[:1], *self.shape))
        return self._array

    @property
    def is_known(self) -> bool:
        """Whether it depends on no memory."""
        return not self.roots and self.handle is None

    @property
    def is_splat(self) -> bool:
        """Whether all elements are one number, by construction: what they happen to be must not shape the graph."""
        return not any(support(part) for part in self.parts)

    @property
    def dependencies(self) -> tuple[Value, ...]:
        """The values with nodes that it depends on."""
        return (self,) if self.handle is not None else self.roots

    # --- what kernels ask -------------------------------------------------------------------------------------------

    @property
    def dtype(self) -> Any:
        """``x.dtype``."""
        if self.storage is not None:
            return PointerType(type_of_numpy(self.storage.memory.dtype))
        return type_of_numpy(self.numpy)

    @property
    def type(self) -> Any:
        """``x.type``."""
        return BlockType(self.dtype, self.shape) if self.shape else self.dtype

    @property
    def numel(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape))

    def only(self) -> Any:
        """The one number, the same in all lanes; the CPU waits for it. Raises :class:`Split`."""
        flat = self.array.reshape(len(self.array), -1)
        if flat.shape[1] != 1:
            raise TritonCompileError(
                f"a tensor of shape {self.shape} where Python needs one value",
                help="reduce it first, or use tl.where: a branch is taken by a program as a whole",
            ).at(Running.tracing.location())
        column = flat[:, 0]
        if self.dependencies:
            Running.tracing.decide(self)
        if len(column) > 1 and (column != column[0]).any():
            raise Split(column)
        return column[0]

    def __bool__(self) -> bool:
        return True if self.storage is not None else bool(self.only())

    def __int__(self) -> int:
        return int(self.only())

    __index__ = __int__

    def __float__(self) -> float:
        return float(self.only())

    __hash__ = object.__hash__

    def __iter__(self) -> Any:
        raise TritonCompileError("a tensor cannot be iterated over", help="use tl.split, or index it by None and :")

    def __repr__(self) -> str:
        return f"<{self.dtype}{list(self.shape)}>"


def support(part: Array) -> tuple[int, ...]:
    """The dimensions along which a part varies, lanes left out."""
    return tuple(d for d in range(1, part.ndim) if part.shape[d] > 1)


def under_rank(part: Array, rank: int) -> Array:
    """A part with leading dimensions of size 1 up to a rank."""
    return part.reshape(part.shape[:1] + (1,) * (rank - part.ndim + 1) + part.shape[1:])


def along_lanes(column: Any, lanes: int) -> Array:
    """A column ``(lanes,)`` of one that may have a single row."""
    return np.broadcast_to(column, (lanes, *np.shape(column)[1:]))


def constant(number: Any, dtype: np.dtype[Any] | type | None = None, stack: int = -1) -> Value:
    """A number of Python's, the same in all lanes."""
    array = np.asarray(number)
    if dtype is None and array.dtype == np.float64:
        dtype = np.float32
    if dtype is None and isinstance(number, int) and not isinstance(number, bool):
        fits = -(2**31) <= number < 2**31
        dtype = np.int32 if fits else np.int64 if number < 2**63 else np.uint64
    if dtype is not None and array.dtype != dtype:
        with np.errstate(all="ignore"):
            array = array.astype(dtype)
    return Value([array[None]], array.shape, stack=stack)


def lift(x: Any) -> Value:
    """A value, or a number of Python's as one."""
    x = bare(x)
    if isinstance(x, Value):
        return x
    if isinstance(x, bool | int | float | np.generic):
        return constant(x)
    raise TritonCompileError(f"{x!r} where a tensor or a number belongs", help="pass a tensor or a number").at(
        Running.tracing.location() if Running.tracing is not None else None
    )
