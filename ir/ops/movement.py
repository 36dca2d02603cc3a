"""Operations that move bytes or multiply tiles: memory, contraction, messages, and the two scope markers.

The kernel language calls these through functions of its own (their destinations and forms differ); what they compute,
cost and check is declared here all the same: each is one decorated function, whose body is the numpy evaluation and
whose docstring is the documentation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import dtypes
from ..dtypes import DType
from ..errors import DTypeError, ShapeError
from ..indices import Index
from ..layout import Layout, Shape
from .elementwise import TABLE
from .numbers import Array, cast_array
from .operation import (
    NO_WORK,
    Cost,
    End,
    Family,
    Kind,
    Linear,
    Operand,
    Operation,
    Orders,
    Scalar,
    Space,
    Work,
    output_elements,
)

__all__: list[str] = []


# --- what is moved, and what comes of it ----------------------------------------------------------------------------


def _moved(operands: Sequence[Operand], result: Layout) -> Work:
    """Bytes of the box moved: of the source (a ragged load moves less than it fills; one wholly outside, nothing). What
    its address was computed from, the operands behind it, is waited for and not moved."""
    return (operands[0].nbytes if operands and isinstance(operands[0], Layout) else 0, 0, 0)


def _mnk(operands: Sequence[Operand], result: Layout) -> Work:
    a, b, *_ = operands
    assert isinstance(a, Layout) and isinstance(b, Layout)
    # The products of a batch go through one after the other: as many steps as one that is so much deeper.
    return (a.shape[-2], b.shape[-1], math.prod(a.shape[:-2]) * a.shape[-1])


def _nothing(operands: Sequence[Operand], result: Layout) -> Work:
    return NO_WORK


def _same(operands: Sequence[Operand]) -> tuple[Shape, DType]:
    (source,) = operands
    assert isinstance(source, Layout)
    return source.shape, source.dtype


def _filled(
    operands: Sequence[Operand],
    *,
    shape: Shape,
    dtype: DType,
    pad: Scalar | None = None,
    at: Shape | None = None,
    index: Index | None = None,
) -> tuple[Shape, DType]:
    return shape, dtype


def _stored(operands: Sequence[Operand], *, index: Index | None = None) -> tuple[Shape, DType]:
    shape, dtype = _same(operands[:1])
    if index is not None and index.shape != shape:
        raise ShapeError(f"a tile of shape {shape} by an index of {index.shape}", help="both need one shape")
    return shape, dtype


def _given(operands: Sequence[Operand], *, shape: Shape, dtype: DType) -> tuple[Shape, DType]:
    return shape, dtype


def _none(operands: Sequence[Operand]) -> tuple[Shape, DType]:
    return (), dtypes.bool_


def _declared(
    family: Family,
    kind: Kind,
    log: str,
    rule: Callable[..., tuple[Shape, DType]],
    work: Callable[[Sequence[Operand], Layout], Work],
    **effects: Any,
) -> Callable[[Callable[..., Any]], Operation]:
    """Declare an operation under its function's name; ``effects`` are further fields of :class:`Operation`."""

    def declare(body: Callable[..., Any]) -> Operation:
        doc = " ".join((body.__doc__ or "").split())
        made = Operation(body.__name__, family, kind, log, rule, body, work, doc, public=False, **effects)
        return TABLE.add(made)

    return declare


# --- memory ---------------------------------------------------------------------------------------------------------


@_declared(
    Family.MEMORY,
    Kind.TRANSFER,
    "memory/dma_read",
    _filled,
    _moved,
    reads_from=Space.GLOBAL,
    then_from=(Space.SCRATCH,),
    asynchronous=True,
)
def load(
    *sources: Array,
    shape: Shape,
    dtype: DType,
    result: DType,
    operands: Sequence[Operand],
    pad: Scalar | None = None,
    at: Shape | None = None,
    index: Index | None = None,
) -> Array:
    """Read a region of HBM, or elements from a pointer, into scratch. Example: ``q = tl.load(t[0:128, :])``."""
    if pad is None:
        return sources[0].reshape(shape)
    tile = np.full(shape, cast_array(pad, dtype), dtype=dtype.numpy)
    if sources:
        inside, at = sources[0], (0,) * len(shape) if at is None else at
        if index is not None:  # what is read of elements that it leaves out means nothing
            inside = np.where(index.elements() >= 0, inside, tile.flat[0])
        tile[tuple(slice(a, a + n) for a, n in zip(at, inside.shape, strict=True))] = inside
    return tile


@_declared(Family.MEMORY, Kind.TRANSFER, "memory/dma_write", _stored, _moved, writes_to=Space.GLOBAL)
def store(x: Array, *addresses: Array, result: DType, operands: Sequence[Operand], index: Index | None = None) -> Array:
    """Write a tile to HBM. Example: ``tl.store(o[0:128, :], acc / l)``."""
    return x


def _one(operands: Sequence[Operand], *, automatic: bool = False) -> tuple[Shape, DType]:
    return _same(operands)


@_declared(Family.MEMORY, Kind.TRANSFER, "memory/move", _one, _moved, linear=Linear((0,)), asynchronous=True)
def move(x: Array, *, result: DType, operands: Sequence[Operand], automatic: bool = False) -> Array:
    """Bring a tile into another of the rank's memories, in fresh bytes. Example: ``tl.move(s, "sbuf")``."""
    return x


@_declared(
    Family.MEMORY,
    Kind.ELEMENTWISE,
    "math/copy",
    _same,
    output_elements,
    cost=Cost.MOVE,
    linear=Linear((0,)),
    copies=True,
)
def copy_to(x: Array, *, result: DType, operands: Sequence[Operand]) -> Array:
    """Write a tile's values over another's, both in scratch. Example: ``tl.copy_to(m, m_new)``."""
    return x


# --- contraction ----------------------------------------------------------------------------------------------------


def _dot_rule(operands: Sequence[Operand], *, out_dtype: DType) -> tuple[Shape, DType]:
    a, b, *accumulator = operands
    assert isinstance(a, Layout) and isinstance(b, Layout)
    if a.ndim != b.ndim or a.ndim not in (2, 3) or a.shape[:-2] != b.shape[:-2]:
        raise ShapeError(
            f"dot of shapes {a.shape} and {b.shape}",
            help="dot takes two matrices, (M, K) and (K, N), or as many of each, (B, M, K) and (B, K, N)",
        )
    if a.shape[-1] != b.shape[-2]:
        raise ShapeError(
            f"dot of {a.shape} and {b.shape}: inner sizes {a.shape[-1]} and {b.shape[-2]} differ",
            help="(M, K) times (K, N); tl.trans swaps a matrix's sides",
        )
    if a.dtype is not b.dtype:
        raise DTypeError(f"dot of {a.dtype} and {b.dtype}", help="bring both to one dtype: h.to(tl.float16)")
    if a.dtype.kind == "bool":
        raise DTypeError("dot of bool", help="convert both first: h.to(tl.int8)")
    if a.dtype.is_float != out_dtype.is_float:
        raise DTypeError(f"dot of {a.dtype} into {out_dtype}", help=f"out_dtype can be {a.dtype.accumulator}")
    shape = (*a.shape[:-1], b.shape[-1])
    for given in accumulator:
        assert isinstance(given, Layout)
        if given.shape != shape:
            raise ShapeError(
                f"dot of {a.shape} and {b.shape} into acc of shape {given.shape}", help=f"acc must be {shape}"
            )
        if given.dtype is not out_dtype:
            raise DTypeError(f"acc is {given.dtype}, out_dtype is {out_dtype}", help="make both the same")
    return shape, out_dtype


@_declared(Family.CONTRACTION, Kind.MATMUL, "gemm/dot", _dot_rule, _mnk, linear=Linear((2,), adds=True))
def dot(a: Array, b: Array, *acc: Array, out_dtype: DType, result: DType, operands: Sequence[Operand]) -> Array:
    """Matrix product, or a batch of them, accumulated in f32 (i32 for integers; f64, u32 and 64-bit integers in
    themselves). Example: ``s = tl.dot(q, tl.trans(k))``."""
    matrices = (a, b, *acc)
    count = max(len(x) for x in matrices) if a.ndim > 2 else 1
    at_once = max(1, _AT_ONCE * count // max(1, sum(x.size for x in matrices)))
    if count <= at_once:
        return _product(matrices, out_dtype)
    parts = [[x if len(x) == 1 else x[i : i + at_once] for x in matrices] for i in range(0, count, at_once)]
    found = np.empty((count, *a.shape[1:-1], b.shape[-1]), out_dtype.numpy)
    for i, part in enumerate(parts):
        found[i * at_once : (i + 1) * at_once] = _product(part, out_dtype)
    return found


#: So many elements of a batch are multiplied at once: what they are on the way, in f32, stays in a processor's cache.
_AT_ONCE = 1 << 18


def _product(matrices: Sequence[Array], out_dtype: DType) -> Array:
    a, b, *acc = matrices
    wide = dtypes.of_numpy(a.dtype).accumulator
    with np.errstate(all="ignore"):
        product = np.matmul(cast_array(a, wide), cast_array(b, wide))
        for start in acc:
            product = cast_array(start, wide) + product
        return cast_array(product, out_dtype)


# --- messages -------------------------------------------------------------------------------------------------------


@_declared(
    Family.MESSAGE,
    Kind.LINK,
    "ipcq/ipcq_copy",
    _same,
    _moved,
    end=End.SENDS,
    writes_to=Space.NOWHERE,
    asynchronous=True,
)
def send(x: Array, *, result: DType, operands: Sequence[Operand]) -> Array:
    """Send a tile to the neighbour in a direction. Example: ``tl.send("next", kv)``."""
    return x


@_declared(Family.MESSAGE, Kind.NONE, "", _given, _nothing, end=End.RECEIVES)
def recv(message: Array, *, shape: Shape, dtype: DType, result: DType, operands: Sequence[Operand]) -> Array:
    """Receive a tile from a direction. Example: ``kv = tl.recv("prev", (2, 64, 128), tl.float16)``."""
    return message


@_declared(Family.MESSAGE, Kind.NONE, "", _given, _nothing, end=End.RECEIVES, asynchronous=True)
def recv_async(message: Array, *, shape: Shape, dtype: DType, result: DType, operands: Sequence[Operand]) -> Array:
    """Post a receive and go on. Example: ``future = tl.recv_async("prev", (64, 128), "f16")``."""
    return message


@_declared(Family.MESSAGE, Kind.NONE, "", _same, _nothing, writes_to=Space.NOWHERE)
def wait(x: Array, *, result: DType, operands: Sequence[Operand]) -> None:
    """Wait for a posted receive; gives its tile. Example: ``kv = tl.wait(future)``."""


@_declared(
    Family.MESSAGE,
    Kind.LINK,
    "ipcq/notify",
    _none,
    _moved,
    end=End.SENDS,
    writes_to=Space.NOWHERE,
    orders=Orders.BEFORE,
    asynchronous=True,
)
def notify(*, result: DType, operands: Sequence[Operand]) -> None:
    """Tell the neighbour in a direction that all accesses of HBM before it are done. Example:
    ``tl.notify("next")``."""


@_declared(
    Family.MESSAGE, Kind.NONE, "", _none, _nothing, end=End.RECEIVES, writes_to=Space.NOWHERE, orders=Orders.AFTER
)
def wait_for(signal: None, *, result: DType, operands: Sequence[Operand]) -> None:
    """Wait until the neighbour in a direction tells; accesses of HBM after it begin then. Example:
    ``tl.wait_for("prev")``."""


# --- control --------------------------------------------------------------------------------------------------------


@_declared(Family.CONTROL, Kind.NONE, "", lambda operands: _none(()), _nothing, writes_to=Space.NOWHERE)
def decide(*values: Array, result: DType, operands: Sequence[Operand]) -> None:
    """The program has read values, and decides by them what comes next: all of that waits for it. Example: ``if
    tl.load(flag): ...``."""


# --- markers --------------------------------------------------------------------------------------------------------


@_declared(Family.MARKER, Kind.NONE, "", _none, _nothing, writes_to=Space.NOWHERE)
def scope_enter(*, result: DType, operands: Sequence[Operand]) -> None:
    """A scratch scope opens."""


@_declared(Family.MARKER, Kind.NONE, "", _none, _nothing, writes_to=Space.NOWHERE)
def scope_exit(*, result: DType, operands: Sequence[Operand]) -> None:
    """A scratch scope closes."""
