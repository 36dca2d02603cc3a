"""The kernel language: what a kernel calls. Import it as ``from kernscope import tl``.

Functions that only compute (``tl.exp``, ``tl.maximum``, ``tl.sum``, ``tl.softmax``, ...) are made from the operation table:
declaring an operation there is all it takes. Those that move data, send messages or open scopes are written out below.
Every function records what it does in the trace that is running and returns at once; called outside a trace it raises
``NotTracingError``. Mistakes raise at the kernel's line.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

from ..ir import dtypes
from ..ir import layout as layouts
from ..ir.dtypes import DType, bfloat16, float8e4m3, float8e5m2, float16, float32, int8, int16, int32, uint8
from ..ir.errors import ArgumentError, KernscopeError, ShapeError, did_you_mean
from ..ir.layout import Layout
from ..ir.ops import OPERATIONS, Family, Operation, Scalar
from . import composites, transfers
from .current import current
from .handles import HbmRegion, HbmTensor, Pointer, RecvFuture, Ref, TensorHandle
from .scratch import Scope

_P = ParamSpec("_P")
_R = TypeVar("_R")
Source = HbmTensor | HbmRegion | Pointer

f32, f16, bf16, f8e4m3, f8e5m2 = float32, float16, bfloat16, float8e4m3, float8e5m2
i32, i16, i8, u8 = int32, int16, int8, uint8


def _located(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Errors of the function blame the kernel's line."""

    @functools.wraps(function)
    def wrapper(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return function(*args, **kwargs)
        except KernscopeError as error:
            raise current().located(error) from None

    return wrapper


# --- the program ----------------------------------------------------------------------------------------------------


@_located
def program_id(axis: int = 0) -> int:
    """This rank's place along an axis of the grid: on a ring axis 0 is the rank, on a mesh the axes are row, column."""
    recorder = current()
    return _along(axis, recorder.target.coordinates(recorder.rank, recorder.ranks), 0)


@_located
def num_programs(axis: int = 0) -> int:
    """How many ranks there are along an axis of the grid."""
    recorder = current()
    return _along(axis, recorder.target.grid(recorder.ranks), 1)


def _along(axis: int, values: Sequence[int], beyond: int) -> int:
    if not isinstance(axis, int) or not 0 <= axis <= 2:
        raise ArgumentError(f"axis {axis!r} of the grid", help="use 0, 1 or 2")
    return values[axis] if axis < len(values) else beyond


def cdiv(a: int, b: int) -> int:
    """``a / b`` of Python integers, rounded up."""
    return -(-a // b)


static_range = range


# --- memory ---------------------------------------------------------------------------------------------------------


@_located
def load(
    src: Source,
    shape: Sequence[int] | int | None = None,
    dtype: DType | str | None = None,
    *,
    out: TensorHandle | None = None,
    pad: Scalar | None = None,
) -> TensorHandle:
    """Read a region of HBM, or ``shape`` elements from a pointer on, into scratch. Returns at once; the first use waits.

    ``out`` names a handle of the same shape and dtype to fill instead of fresh bytes. ``pad`` fills what lies outside
    the tensor; without it, leaving the tensor is a ``BoundsError``. Only what lies inside is moved and paid for.
    """
    return transfers.load(current(), src, shape, dtype, out=out, pad=pad)


@_located
def store(dst: Source, src: TensorHandle, *, clip: bool = False) -> None:
    """Write a handle to a region of the same shape and dtype, or to the elements from a pointer on.

    ``clip`` leaves out what lies outside the tensor; without it that is a ``BoundsError``.
    """
    transfers.store(current(), dst, src, clip=clip)


@_located
def copy_to(dst: TensorHandle, src: TensorHandle) -> None:
    """Write the values of ``src`` over those of ``dst``, both in scratch. Same shape and dtype, no broadcasting."""
    transfers.copy_to(current(), dst, src)


@_located
def ref(
    src: Source, shape: Sequence[int] | int | None = None, dtype: DType | str | None = None
) -> Ref:
    """A matrix that stays in HBM, as operand of a composite: a region, or ``shape`` elements from a pointer on."""
    return composites.ref(current(), src, shape, dtype)


@_located
def composite(
    op: str,
    a: TensorHandle | Ref,
    b: TensorHandle | Ref,
    *,
    trans_b: bool = False,
    tile: tuple[int, int, int] = (128, 128, 128),
    out_dtype: DType | str = float32,
    epilogue: Sequence[str | tuple[str, Scalar]] | None = None,
) -> TensorHandle:
    """One command for a tiled GEMM: ``a @ b`` (``a @ b.T`` with ``trans_b``), in tiles of (m, n, k).

    ``ref`` operands are streamed through two buffers each, handles are read in place. ``epilogue`` lists elementwise
    steps that each tile of the result goes through in f32: an operation's name (``"exp"``), or the name of one of two
    operands and its right operand (``("mul", 0.125)``). Returns the result's handle.
    """
    return composites.gemm(
        current(), op, a, b, trans_b=trans_b, tile=tile, out_dtype=out_dtype, epilogue=epilogue
    )


# --- creation -------------------------------------------------------------------------------------------------------


@_located
def full(shape: Sequence[int] | int, value: Scalar, dtype: DType | str) -> TensorHandle:
    """A tensor of one value."""
    if not isinstance(value, bool | int | float):
        raise ArgumentError(f"full: value {value!r} is no Python number", help="pass a bool, int or float")
    static = (("shape", layouts.check_shape(shape)), ("value", value), ("dtype", dtypes.of(dtype)))
    recorder = current()
    return recorder.record(recorder.plan("fill", (), static), ())


def zeros(shape: Sequence[int] | int, dtype: DType | str) -> TensorHandle:
    """A tensor of zeros."""
    return full(shape, 0, dtype)


@_located
def empty(shape: Sequence[int] | int, dtype: DType | str) -> TensorHandle:
    """Bytes that hold nothing yet: allocates, records no node. Reading them before they are written is a finding."""
    return current().allocate(Layout.dense(layouts.check_shape(shape), dtypes.of(dtype)))


@_located
def arange(start: int, end: int) -> TensorHandle:
    """The i32 numbers from ``start`` up to but not including ``end``."""
    static = (("start", layouts.as_index(start)), ("end", layouts.as_index(end)))
    recorder = current()
    return recorder.record(recorder.plan("arange", (), static), ())


@_located
def cast(x: TensorHandle, dtype: DType | str) -> TensorHandle:
    """The values in another dtype, in fresh bytes (also ``x.to(dtype)``)."""
    return current().cast(_handle("cast", x), dtype)


# --- contraction ----------------------------------------------------------------------------------------------------


@_located
def dot(
    a: TensorHandle, b: TensorHandle, *, acc: TensorHandle | None = None, out_dtype: DType | str | None = None
) -> TensorHandle:
    """Matrix product (M, K) x (K, N), accumulated in f32 (integers: i32) and rounded once to ``out_dtype``.

    ``acc`` is a handle of the result's shape and dtype that the product is added to in place; it is returned.
    """
    a, b = _handle("dot", a), _handle("dot", b)
    operands, wide = [a, b], a.dtype.accumulator
    if acc is not None:
        operands.append(_destination("dot", acc))
        wide = acc.dtype
    recorder = current()
    for handle in operands:
        recorder.check_handle(handle)
    plan = recorder.plan(
        "dot",
        tuple(h.layout for h in operands),
        (("out_dtype", wide if out_dtype is None else dtypes.of(out_dtype)),),
    )
    return recorder.record(plan, [(h.storage, h.offset, h.layout) for h in operands], into=acc)


# --- views ----------------------------------------------------------------------------------------------------------


@_located
def trans(x: TensorHandle, *axes: int) -> TensorHandle:
    """The view with its last two dimensions swapped, or its dimensions in the order given."""
    order = tuple(axes[0]) if len(axes) == 1 and isinstance(axes[0], Sequence) else axes
    return _handle("trans", x).view(layouts.transpose, order)


@_located
def reshape(x: TensorHandle, *shape: Any) -> TensorHandle:
    """The view under another shape of as many elements; one size may be -1. Needs a contiguous view."""
    sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
    return _handle("reshape", x).view(layouts.reshape, tuple(layouts.as_index(n) for n in sizes))


@_located
def expand_dims(x: TensorHandle, axis: int) -> TensorHandle:
    """The view with a dimension of size 1 added; ``x[:, None]`` does the same."""
    return _handle("expand_dims", x).view(layouts.expand_dims, axis)


@_located
def broadcast_to(x: TensorHandle, shape: Sequence[int]) -> TensorHandle:
    """The view that repeats dimensions of size 1. Readable everywhere, but no destination."""
    return _handle("broadcast_to", x).view(layouts.broadcast_to, layouts.check_shape(shape))


@_located
def broadcast(a: TensorHandle, b: TensorHandle) -> tuple[TensorHandle, TensorHandle]:
    """Both as views of their common shape."""
    a, b = _handle("broadcast", a), _handle("broadcast", b)
    shape = layouts.broadcast_shapes(a.shape, b.shape)
    return broadcast_to(a, shape), broadcast_to(b, shape)


# --- messages -------------------------------------------------------------------------------------------------------


@_located
def send(direction: str, src: TensorHandle) -> None:
    """Send a tile to the neighbour in a direction (ring: next, prev; mesh: north, south, east, west).

    A channel is a FIFO with the machine's number of slots; a full one holds the sender's link back.
    """
    transfers.send(current(), direction, _handle("send", src))


@_located
def recv(
    direction: str, shape: Sequence[int] | int, dtype: DType | str, *, out: TensorHandle | None = None
) -> TensorHandle:
    """Receive the next message from a direction, into fresh bytes or into ``out`` (same shape and dtype)."""
    return transfers.receive(current(), "recv", direction, shape, dtype, out)


@_located
def recv_async(
    direction: str, shape: Sequence[int] | int, dtype: DType | str, *, out: TensorHandle | None = None
) -> RecvFuture:
    """Post a receive and go on; ``tl.wait(future)`` gives its handle."""
    return RecvFuture(transfers.receive(current(), "recv_async", direction, shape, dtype, out))


@_located
def wait(future: RecvFuture) -> TensorHandle:
    """Wait for a posted receive; its handle."""
    return transfers.wait(current(), future)


# --- scopes ---------------------------------------------------------------------------------------------------------


class scratch_scope:  # noqa: N801  (reads as the `with` statement that it is)
    """Bytes allocated within the ``with`` block are given back at its end; handles made in it must not be used after it."""

    __slots__ = ("_name", "_recorder", "_scope")

    def __init__(self, name: str | None = None) -> None:
        self._name = "" if name is None else str(name)

    def __enter__(self) -> Scope:
        self._recorder = current()
        self._scope = self._recorder.open_scope(self._name)
        return self._scope

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._recorder.close_scope(self._scope)
        elif self._recorder.allocator.scope is self._scope:
            # The trace is lost: rewind, record nothing, and let the error pass.
            self._recorder.allocator.close(self._scope)


# --- what the operation table declares -----------------------------------------------------------------------------


def _handle(name: str, value: Any) -> TensorHandle:
    if isinstance(value, TensorHandle):
        return value
    what = f"HBM tensor {value.name!r}" if isinstance(value, HbmTensor) else repr(value)
    raise ArgumentError(f"{name}: {what} is no handle", help="bring data into scratch first: h = tl.load(...)")


def _destination(name: str, value: Any) -> TensorHandle:
    handle = _handle(name, value)
    if handle.layout.is_broadcast:
        raise ShapeError(f"{name}: {handle!r} is a broadcast view, no destination", help="write to what it is a view of")
    return handle


def _unary(name: str) -> Callable[..., TensorHandle]:
    def function(x: TensorHandle) -> TensorHandle:
        return current().compute(name, (x,))

    return function


def _binary(name: str) -> Callable[..., TensorHandle]:
    def function(a: TensorHandle | Scalar, b: TensorHandle | Scalar) -> TensorHandle:
        return current().compute(name, (a, b))

    return function


def _ternary(name: str) -> Callable[..., TensorHandle]:
    def function(a: TensorHandle | Scalar, b: TensorHandle | Scalar, c: TensorHandle | Scalar) -> TensorHandle:
        return current().compute(name, (a, b, c))

    return function


def _reduction(name: str) -> Callable[..., TensorHandle]:
    def function(
        x: TensorHandle, axis: int | None = None, keep_dims: bool = False, *, keepdims: bool | None = None
    ) -> TensorHandle:
        keep = bool(keep_dims if keepdims is None else keepdims)
        recorder = current()
        try:
            handle = _handle(name, x)
            number = None if axis is None else layouts.resolve_axis(axis, handle.ndim)
        except KernscopeError as error:
            raise recorder.located(error) from None
        return recorder.compute(name, (handle,), (("axis", number), ("keep_dims", keep)))

    return function


def _along_axis(name: str) -> Callable[..., TensorHandle]:
    def function(x: TensorHandle, axis: int = -1) -> TensorHandle:
        recorder = current()
        try:
            handle = _handle(name, x)
            number = layouts.resolve_axis(axis, handle.ndim)
        except KernscopeError as error:
            raise recorder.located(error) from None
        return recorder.compute(name, (handle,), (("axis", number),))

    return function


_MAKERS: dict[Family, Callable[[str], Callable[..., TensorHandle]]] = {
    Family.UNARY: _unary,
    Family.BINARY: _binary,
    Family.TERNARY: _ternary,
    Family.REDUCTION: _reduction,
    Family.SOFTMAX: _along_axis,
}


def _declared(operation: Operation) -> Callable[..., TensorHandle]:
    function = _MAKERS[operation.family](operation.name)
    function.__name__ = function.__qualname__ = operation.name
    function.__doc__ = operation.doc
    function.__module__ = __name__
    return function


globals().update({o.name: _declared(o) for o in OPERATIONS.values() if o.public and o.family in _MAKERS})

__all__ = sorted(  # noqa: PLE0605  (a list of strings: the operations' names are known only now)
    {
        *(o.name for o in OPERATIONS.values() if o.public and o.family in _MAKERS),
        *(d.name for d in dtypes.ALL),
        *"f32 f16 bf16 f8e4m3 f8e5m2 i32 i16 i8 u8".split(),
        *"program_id num_programs cdiv static_range load store copy_to ref composite full zeros empty arange cast".split(),
        *"dot trans reshape expand_dims broadcast_to broadcast send recv recv_async wait scratch_scope".split(),
    }
)


def __getattr__(name: str) -> Any:
    if name == "bool":  # not a global: this module means Python's own
        return dtypes.bool_
    raise AttributeError(f"tl has no {name!r}: {did_you_mean(name, __all__, what='it has')}")

