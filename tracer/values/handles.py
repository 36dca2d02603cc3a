"""What a kernel holds in its hands of scratch: tensor handles, and futures of receives."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, Concatenate, NoReturn, ParamSpec, Protocol, TypeVar

import attrs
import numpy as np

from ...ir import layout as layouts
from ...ir.dtypes import DType
from ...ir.errors import (
    ArgumentError,
    IndexingError,
    KernscopeError,
    ShapeError,
    TracedValueError,
    UnknownNameError,
    did_you_mean,
    shown,
)
from ...ir.forms.text import quote
from ...ir.layout import Layout, Shape
from ...ir.ops import OPERATIONS
from ...ir.source.location import Location
from ...ir.tables import UNPLACED
from .foreign_methods import METHODS
from .foreign_names import answer
from .refusals import NotInScratch, Owner, check_attribute
from .scratch import Scope

__all__ = ["Records", "RecvFuture", "TensorHandle"]

_P = ParamSpec("_P")
_R = TypeVar("_R")


class Records(Owner, Protocol):
    """What a handle asks of the recorder that made it."""

    def compute(
        self,
        name: str,
        operands: tuple[Any, ...],
        static: tuple[tuple[str, Any], ...] = (),
        space: str | None = None,
    ) -> TensorHandle:
        """Record an operation on handles and Python numbers."""

    def cast(self, handle: TensorHandle, dtype: Any, bitcast: bool = False, space: str | None = None) -> TensorHandle:
        """Record a cast, or a bitcast."""

    def told_space(self, storage: int) -> str:
        """What a handle says of the memory that it lies in."""

    def name_of(self, storage: int) -> str:
        """The name of a storage row."""

    def made_at(self, storage: int) -> Location | None:
        """Where a storage was made."""


def _arguments_checked(
    method: Callable[Concatenate[TensorHandle, _P], _R],
) -> Callable[Concatenate[TensorHandle, _P], _R]:
    """A call with arguments that a method does not take is an ``ArgumentError`` at the kernel's line."""
    signature = inspect.signature(method)

    @functools.wraps(method)
    def checked(self: TensorHandle, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return method(self, *args, **kwargs)
        except KernscopeError:
            raise
        except TypeError:
            try:
                signature.bind(self, *args, **kwargs)
            except TypeError as error:
                wanted = f"h.{method.__name__}({', '.join(list(signature.parameters)[1:])})"
                raise self._recorder.located(
                    ArgumentError(f"{method.__name__} of {shown(self)}: {error}", help=f"write {wanted}")
                ) from None
            raise

    return checked


class TensorHandle:
    """A tensor in scratch, or a view of one: what loads, receives, math and creation return.

    ``shape``, ``dtype`` and ``address`` (bytes) are known while tracing, values never are. Operators and the functions
    of ``tl`` return fresh handles; indexing, ``.T``, ``tl.trans``, ``tl.reshape``... return views of the same bytes.
    """

    __slots__ = ("_recorder", "layout", "offset", "scope", "storage", "storage_address")

    def __init__(
        self, recorder: Records, storage: int, storage_address: int, scope: Scope, layout: Layout, offset: int = 0
    ) -> None:
        self._recorder = recorder
        self.storage = storage
        self.storage_address = storage_address
        self.scope = scope
        self.layout = layout
        self.offset = offset

    # --- what is known ----------------------------------------------------------------------------------------------

    @property
    def shape(self) -> Shape:
        return self.layout.shape

    @property
    def ndim(self) -> int:
        return self.layout.ndim

    @property
    def dtype(self) -> DType:
        return self.layout.dtype

    @property
    def nbytes(self) -> int:
        """The bytes it shows, before rounding."""
        return self.layout.nbytes

    @property
    def space(self) -> str:
        """The memory that it lies in, by name: ``"tcm"``."""
        return self._recorder.space_of(self.storage)

    @property
    def address(self) -> int:
        """The first byte, in its memory. (A front end with automatic lifetimes has no addresses to show.)"""
        return self.storage_address + self.offset * self.layout.dtype.itemsize

    @property
    def name(self) -> str:
        """The name it was first assigned to; empty where that cannot be had."""
        return self._recorder.name_of(self.storage)

    @property
    def _in_messages(self) -> str:
        """Its name, as errors call it, or what it is."""
        return f"`{quote(self.name)}` ({self.layout!r})" if self.name else f"an unnamed {self.layout!r}"

    def __repr__(self) -> str:
        place = "" if self.storage_address == UNPLACED else f" at {self.address:#x}"
        return f"<handle {self.name or 'unnamed'} {self.layout!r}{place}{self._recorder.told_space(self.storage)}>"

    # --- views ------------------------------------------------------------------------------------------------------

    def _view(self, layout: Layout, offset: int = 0) -> TensorHandle:
        return TensorHandle(
            self._recorder, self.storage, self.storage_address, self.scope, layout, self.offset + offset
        )

    def _viewed(self, make: Callable[..., Layout], *arguments: Any) -> TensorHandle:
        """A view of the same bytes under the layout that a function of ``ir.layout`` makes of this one."""
        try:
            return self._view(make(self.layout, *arguments))
        except KernscopeError as error:
            raise self._recorder.located(error) from None

    def __getitem__(self, items: Any) -> TensorHandle:
        """A view: slices of step 1, integers, ``None`` (a dimension of size 1), ``...``."""
        try:
            offset, layout = layouts.index(self.layout, items)
        except KernscopeError as error:
            raise self._recorder.located(error) from None
        return self._view(layout, offset)

    def __setitem__(self, items: Any, value: Any) -> NoReturn:
        raise self._recorder.located(
            IndexingError("a handle's elements cannot be assigned", help="write tl.copy_to(handle[...], value)")
        )

    @property
    def T(self) -> TensorHandle:
        """The view with the last two dimensions swapped."""
        return self._viewed(layouts.transpose, ())

    @_arguments_checked
    def to(self, dtype: DType | str, *, bitcast: bool = False, space: str | None = None) -> TensorHandle:
        """The values in another dtype, or with ``bitcast`` their bits: a cast, in fresh bytes, of the memory of a
        name."""
        return self._recorder.cast(self, dtype, bitcast, space)

    def __len__(self) -> int:
        if not self.layout.shape:
            raise self._recorder.located(ShapeError("len() of a tensor without dimensions", help="use .shape"))
        return self.layout.shape[0]

    # --- copies: of numpy and torch fresh bytes, which this module of Python's cannot record --------------------------

    def _no_copy(self, *_: object) -> NoReturn:
        raise self._recorder.located(
            ArgumentError(
                f"copy, deepcopy or pickle of {shown(self)}: a handle is the name of bytes in scratch",
                help="for fresh bytes with the same values write h.to(h.dtype); for another name, m = h",
            )
        )

    __copy__ = __deepcopy__ = __reduce_ex__ = _no_copy

    # --- operators: fresh bytes, always -----------------------------------------------------------------------------

    def __add__(self, other: Any) -> TensorHandle:
        return self._recorder.compute("add", (self, other))

    def __radd__(self, other: Any) -> TensorHandle:
        return self._recorder.compute("add", (other, self))

    def __sub__(self, other: Any) -> TensorHandle:
        return self._recorder.compute("sub", (self, other))

    def __rsub__(self, other: Any) -> TensorHandle:
        return self._recorder.compute("sub", (other, self))

    def __mul__(self, other: Any) -> TensorHandle:
        return self._recorder.compute("mul", (self, other))

    def __rmul__(self, other: Any) -> TensorHandle:
        return self._recorder.compute("mul", (other, self))

    def __truediv__(self, other: Any) -> TensorHandle:
        return self._recorder.compute("div", (self, other))

    def __rtruediv__(self, other: Any) -> TensorHandle:
        return self._recorder.compute("div", (other, self))

    def __floordiv__(self, other: Any) -> TensorHandle:
        return self._recorder.compute("floordiv", (self, other))

    def __rfloordiv__(self, other: Any) -> TensorHandle:
        return self._recorder.compute("floordiv", (other, self))

    def __mod__(self, other: Any) -> TensorHandle:
        return self._recorder.compute("mod", (self, other))

    def __rmod__(self, other: Any) -> TensorHandle:
        return self._recorder.compute("mod", (other, self))

    def __pow__(self, other: Any) -> TensorHandle:
        return self._recorder.compute("pow", (self, other))

    def __rpow__(self, other: Any) -> TensorHandle:
        return self._recorder.compute("pow", (other, self))

    def __and__(self, other: Any) -> TensorHandle:
        return self._recorder.compute("and", (self, other))

    def __rand__(self, other: Any) -> TensorHandle:
        return self._recorder.compute("and", (other, self))

    def __or__(self, other: Any) -> TensorHandle:
        return self._recorder.compute("or", (self, other))

    def __ror__(self, other: Any) -> TensorHandle:
        return self._recorder.compute("or", (other, self))

    def __xor__(self, other: Any) -> TensorHandle:
        return self._recorder.compute("xor", (self, other))

    def __rxor__(self, other: Any) -> TensorHandle:
        return self._recorder.compute("xor", (other, self))

    def __lshift__(self, other: Any) -> TensorHandle:
        return self._recorder.compute("shl", (self, other))

    def __rlshift__(self, other: Any) -> TensorHandle:
        return self._recorder.compute("shl", (other, self))

    def __rshift__(self, other: Any) -> TensorHandle:
        return self._recorder.compute("shr", (self, other))

    def __rrshift__(self, other: Any) -> TensorHandle:
        return self._recorder.compute("shr", (other, self))

    def __lt__(self, other: Any) -> TensorHandle:
        return self._recorder.compute("lt", (self, other))

    def __le__(self, other: Any) -> TensorHandle:
        return self._recorder.compute("le", (self, other))

    def __gt__(self, other: Any) -> TensorHandle:
        return self._recorder.compute("gt", (self, other))

    def __ge__(self, other: Any) -> TensorHandle:
        return self._recorder.compute("ge", (self, other))

    def __eq__(self, other: Any) -> TensorHandle:  # type: ignore[override]  # a tensor of bool
        return self._recorder.compute("eq", (self, other))

    def __ne__(self, other: Any) -> TensorHandle:  # type: ignore[override]  # as above
        return self._recorder.compute("ne", (self, other))

    __hash__ = object.__hash__

    def __neg__(self) -> TensorHandle:
        return self._recorder.compute("neg", (self,))

    def __pos__(self) -> TensorHandle:
        return self

    def __invert__(self) -> TensorHandle:
        return self._recorder.compute("not", (self,))

    def __abs__(self) -> TensorHandle:
        return self._recorder.compute("abs", (self,))

    def __matmul__(self, other: Any) -> NoReturn:
        raise self._recorder.located(ArgumentError(f"{shown(self)} @ {shown(other)}", help="write tl.dot(a, b)"))

    __rmatmul__ = __matmul__

    def __divmod__(self, other: Any) -> NoReturn:
        raise self._recorder.located(ArgumentError(f"divmod of {shown(self)}", help="write a // b and a % b"))

    __rdivmod__ = __divmod__

    def __round__(self, digits: int | None = None) -> NoReturn:
        raise self._recorder.located(ArgumentError(f"round() of {shown(self)}", help="write tl.round(h)"))

    # --- what a trace cannot know -----------------------------------------------------------------------------------

    def _unknown(self, what: str, help: str) -> NoReturn:
        raise self._recorder.located(
            TracedValueError(f"{what} of {shown(self)}: its values are not known while tracing", help=help)
        )

    def __bool__(self) -> bool:
        self._unknown(
            "the truth",
            "choose with tl.where(condition, a, b), tl.maximum or tl.minimum; branch on shapes or program_id",
        )

    def __int__(self) -> int:
        self._unknown("int()", "convert with h.to(tl.int32); take sizes from h.shape")

    def __float__(self) -> float:
        self._unknown(
            "float()",
            "keep it a tensor (a (1, 1) handle broadcasts); tl.exp, tl.sqrt, ... take the place of math's functions",
        )

    def __format__(self, specification: str) -> str:
        if not specification:
            return repr(self)
        self._unknown(f"format {specification!r}", "print what is known: {h}, {h.shape}; values are there after ks.run")

    def __index__(self) -> int:
        self._unknown("use as an index or size", "loop over Python ranges and slice by the loop variable")

    def __iter__(self) -> Iterator[TensorHandle]:
        self._unknown("iteration", "loop over range(h.shape[0]) and take views h[i]")

    def __contains__(self, item: object) -> bool:
        self._unknown("`in`", "compare with == and reduce with tl.max")

    def __array__(self, *arguments: Any, **keywords: Any) -> NoReturn:
        self._unknown("conversion to a numpy array", "numpy sees values only after ks.run")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> TensorHandle:
        # A numpy scalar on the left of an operator (`np.sqrt(128) * h`) comes here rather than to `__rmul__`.
        recorder = self._recorder
        operation = _OPERATION_OF.get(ufunc.__name__) if method == "__call__" and not keywords else None
        if operation and isinstance(inputs[0], np.generic | np.ndarray) and inputs[0].ndim == 0 and inputs[1] is self:
            return recorder.compute(operation, (inputs[0].item(), self))
        name = getattr(ufunc, "__name__", str(ufunc))
        with_array = any(isinstance(operand, np.ndarray) and operand.ndim for operand in inputs)
        raise self._recorder.located(
            TracedValueError(
                f"numpy.{name} on {shown(self)}: numpy cannot compute while tracing",
                help="pass arrays to the kernel as arguments and tl.load them"
                if with_array
                else _instead_of(name, method),
            )
        )

    def __array_function__(self, function: Any, types: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        # What is known needs no values: `np.shape(h)`. All others would ask for an array, and say so of no function.
        if function in (np.shape, np.ndim):
            return self.shape if function is np.shape else self.ndim
        name = function.__name__
        raise self._recorder.located(
            TracedValueError(
                f"numpy.{name} on {shown(self)}: numpy cannot compute while tracing", help=_instead_of(name, "__call__")
            )
        )

    def __getattr__(self, name: str) -> Any:
        check_attribute(self, name)
        help = METHODS.get(name) or _function_of(name) or did_you_mean(name, _ATTRIBUTES, what="it has")
        raise self._recorder.located(UnknownNameError(f"{shown(self)} has no attribute {name!r}", help=help))


def _instead_of(ufunc: str, method: str) -> str:
    """The ``help:`` text for a function of numpy on a handle."""
    name = _REDUCTION_OF.get(ufunc, ufunc) if method == "reduce" else ufunc
    return _function_of(name) or "use the functions and operators of tl"


def _function_of(name: str) -> str | None:
    """The ``help:`` text for a function that is none of a handle's: tl's own, or what stands for a foreign one."""
    own = name in OPERATIONS or name in _VIEWS
    return answer(name) or (f"write tl.{name}(h, ...)" if own else None)


#: Functions of numpy by the ufunc whose ``reduce`` they call.
_REDUCTION_OF = {
    "add": "sum",
    "multiply": "prod",
    "maximum": "max",
    "minimum": "min",
    "logical_and": "all",
    "logical_or": "any",
}
_VIEWS = ("reshape", "trans", "expand_dims", "broadcast_to")
_ATTRIBUTES = ("shape", "ndim", "dtype", "nbytes", "space", "address", "name", "scope", "T", "to")
#: Operations by the names of numpy's ufuncs for Python's operators.
_OPERATION_OF = {
    "add": "add",
    "subtract": "sub",
    "multiply": "mul",
    "divide": "div",
    "floor_divide": "floordiv",
    "remainder": "mod",
    "power": "pow",
    "bitwise_and": "and",
    "bitwise_or": "or",
    "bitwise_xor": "xor",
    "left_shift": "shl",
    "right_shift": "shr",
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
    "equal": "eq",
    "not_equal": "ne",
}


@attrs.frozen(eq=False, repr=False)
class RecvFuture(NotInScratch):
    """A receive that was posted; ``tl.wait`` gives its handle."""

    handle: TensorHandle
    _first = "wait for it first: h = tl.wait(future)"

    @property
    def _owner(self) -> Owner:
        return self.handle._recorder

    @property
    def _in_messages(self) -> str:
        return f"the future of {shown(self.handle)}"

    def __repr__(self) -> str:
        return f"<future of {self.handle!r}>"
