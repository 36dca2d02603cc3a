"""Operations that move bytes or multiply tiles: memory, contraction, messages, and the two scope markers.

The kernel language calls these through functions of its own (their destinations and forms differ); what they compute,
cost and check is declared here all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from .. import dtypes
from ..dtypes import DType
from ..errors import DTypeError, ShapeError
from ..layout import Layout, Shape
from .elementwise import TABLE, Array, cast_array
from .operation import NO_WORK, End, Engine, Family, Operand, Operation, Scalar, Space, Work

__all__: list[str] = []


def _moved(operands: Sequence[Operand], result: Layout) -> Work:
    """Bytes of the box moved: of the source (a ragged load moves less than it fills; one wholly outside, nothing)."""
    return (sum(o.nbytes for o in operands if isinstance(o, Layout)), 0, 0)


def _copied(operands: Sequence[Operand], result: Layout) -> Work:
    return (result.size, 0, 0)


def _nothing(operands: Sequence[Operand], result: Layout) -> Work:
    return NO_WORK


def _move_rule(operands: Sequence[Operand]) -> tuple[Shape, DType]:
    (source,) = operands
    assert isinstance(source, Layout)
    return source.shape, source.dtype


def _move(x: Array, *, result: DType, operands: Sequence[Operand]) -> Array:
    return x


def _load_rule(
    operands: Sequence[Operand], *, shape: Shape, dtype: DType, pad: Scalar | None = None, at: Shape | None = None
) -> tuple[Shape, DType]:
    return shape, dtype


def _load(
    *sources: Array,
    shape: Shape,
    dtype: DType,
    result: DType,
    operands: Sequence[Operand],
    pad: Scalar | None = None,
    at: Shape | None = None,
) -> Array:
    if pad is None:
        return sources[0].reshape(shape)
    tile = np.full(shape, cast_array(pad, dtype), dtype=dtype.numpy)
    if sources:
        assert at is not None
        (inside,) = sources
        tile[tuple(slice(a, a + n) for a, n in zip(at, inside.shape, strict=True))] = inside
    return tile


def _dot_rule(operands: Sequence[Operand], *, out_dtype: DType) -> tuple[Shape, DType]:
    a, b, *accumulator = operands
    assert isinstance(a, Layout) and isinstance(b, Layout)
    if a.ndim != 2 or b.ndim != 2:
        raise ShapeError(
            f"dot of shapes {a.shape} and {b.shape}", help="dot takes two matrices, (M, K) and (K, N); reshape or loop"
        )
    if a.shape[1] != b.shape[0]:
        raise ShapeError(
            f"dot of {a.shape} and {b.shape}: inner sizes {a.shape[1]} and {b.shape[0]} differ",
            help="(M, K) times (K, N); tl.trans swaps a matrix's sides",
        )
    if a.dtype is not b.dtype:
        raise DTypeError(f"dot of {a.dtype} and {b.dtype}", help="bring both to one dtype: h.to(tl.float16)")
    if a.dtype.kind == "bool":
        raise DTypeError("dot of bool", help="convert both first: h.to(tl.int8)")
    if a.dtype.is_float != out_dtype.is_float:
        raise DTypeError(f"dot of {a.dtype} into {out_dtype}", help=f"out_dtype can be {a.dtype.accumulator}")
    shape = (a.shape[0], b.shape[1])
    for given in accumulator:
        assert isinstance(given, Layout)
        if given.shape != shape:
            raise ShapeError(
                f"dot of {a.shape} and {b.shape} into acc of shape {given.shape}", help=f"acc must be {shape}"
            )
        if given.dtype is not out_dtype:
            raise DTypeError(f"acc is {given.dtype}, out_dtype is {out_dtype}", help="make both the same")
    return shape, out_dtype


def _dot(a: Array, b: Array, *acc: Array, out_dtype: DType, result: DType, operands: Sequence[Operand]) -> Array:
    wide = dtypes.of_numpy(a.dtype).accumulator
    with np.errstate(all="ignore"):
        product = np.matmul(cast_array(a, wide), cast_array(b, wide))
        for start in acc:
            product = cast_array(start, wide) + product
        return cast_array(product, out_dtype)


def _mnk(operands: Sequence[Operand], result: Layout) -> Work:
    a, b, *_ = operands
    assert isinstance(a, Layout) and isinstance(b, Layout)
    return (a.shape[0], b.shape[1], a.shape[1])


def _marker_rule(operands: Sequence[Operand]) -> tuple[Shape, DType]:
    return (), dtypes.bool_


def _nothing_to_do(*operands_: Any, result: DType, operands: Sequence[Operand]) -> None:
    return None


def _receive_rule(operands: Sequence[Operand], *, shape: Shape, dtype: DType) -> tuple[Shape, DType]:
    return shape, dtype


def _receive(message: Array, *, shape: Shape, dtype: DType, result: DType, operands: Sequence[Operand]) -> Array:
    return message


_LOAD = "Read a region of HBM, or elements from a pointer, into scratch. Example: ``q = tl.load(t[0:128, :])``."
_STORE = "Write a tile to HBM. Example: ``tl.store(o[0:128, :], acc / l)``."
_COPY = "Write a tile's values over another's, both in scratch. Example: ``tl.copy_to(m, m_new)``."
_DOT = "Matrix product, accumulated in f32 (i32 for integers). Example: ``s = tl.dot(q, tl.trans(k))``."
_SEND = 'Send a tile to the neighbour in a direction. Example: ``tl.send("next", kv)``.'
_RECV = 'Receive a tile from a direction. Example: ``kv = tl.recv("prev", (2, 64, 128), tl.float16)``.'
_RECV_ASYNC = 'Post a receive and go on. Example: ``future = tl.recv_async("prev", (64, 128), "f16")``.'
_ENTER, _EXIT = "A scratch scope opens.", "A scratch scope closes."
_WAIT = "Wait for a posted receive; gives its tile. Example: ``kv = tl.wait(future)``."

_DMA_READ, _DMA_WRITE, _LINK, _NONE = Engine.DMA_READ, Engine.DMA_WRITE, Engine.LINK, Engine.NONE
_MEMORY, _MESSAGE, _MARKER = Family.MEMORY, Family.MESSAGE, Family.MARKER
_FROM_GLOBAL: dict[str, Any] = {"reads_from": Space.GLOBAL}
_TO_GLOBAL: dict[str, Any] = {"writes_to": Space.GLOBAL}
_WRITES_NOTHING: dict[str, Any] = {"writes_to": Space.NOWHERE}
_SENDS: dict[str, Any] = {"end": End.SENDS, **_WRITES_NOTHING}
_RECEIVES: dict[str, Any] = {"end": End.RECEIVES}
_LETS_GO_ON: dict[str, Any] = {"asynchronous": True}

for _operation in (
    Operation(
        "load", _MEMORY, _DMA_READ, "memory/dma_read", _load_rule, _load, _moved, _LOAD, **_FROM_GLOBAL, **_LETS_GO_ON
    ),
    Operation("store", _MEMORY, _DMA_WRITE, "memory/dma_write", _move_rule, _move, _moved, _STORE, **_TO_GLOBAL),
    Operation("copy_to", _MEMORY, Engine.MATH, "math/copy", _move_rule, _move, _copied, _COPY),
    Operation("dot", Family.CONTRACTION, Engine.GEMM, "gemm/dot", _dot_rule, _dot, _mnk, _DOT),
    Operation("send", _MESSAGE, _LINK, "ipcq/ipcq_copy", _move_rule, _move, _moved, _SEND, **_SENDS, **_LETS_GO_ON),
    Operation("recv", _MESSAGE, _NONE, "", _receive_rule, _receive, _nothing, _RECV, **_RECEIVES),
    Operation(
        "recv_async", _MESSAGE, _NONE, "", _receive_rule, _receive, _nothing, _RECV_ASYNC, **_RECEIVES, **_LETS_GO_ON
    ),
    Operation("wait", _MESSAGE, _NONE, "", _move_rule, _nothing_to_do, _nothing, _WAIT, **_WRITES_NOTHING),
    Operation("scope_enter", _MARKER, _NONE, "", _marker_rule, _nothing_to_do, _nothing, _ENTER, **_WRITES_NOTHING),
    Operation("scope_exit", _MARKER, _NONE, "", _marker_rule, _nothing_to_do, _nothing, _EXIT, **_WRITES_NOTHING),
):
    TABLE.add(attrs.evolve(_operation, public=False))
