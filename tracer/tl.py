"""The kernel language: what a kernel calls. Import it as ``from kernscope import tl``.

Functions that only compute (``tl.exp``, ``tl.maximum``, ``tl.sum``, ``tl.softmax``, ...) are made from the operation
table: declaring an operation there is all it takes. Those that move data, send messages or open scopes are written out
below. Every function records what it does in the trace that is running and returns at once; called outside a trace it
raises ``NotTracingError``. Mistakes raise at the kernel's line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..ir import dtypes
from ..ir import layout as layouts
from ..ir.dtypes import DType
from ..ir.errors import (
    ArgumentError,
    NodeLimitError,
    ScopeError,
    ShapeError,
    UnknownNameError,
    did_you_mean,
    shown,
)
from ..ir.layout import Layout
from ..ir.ops import Scalar
from ..ir.ops.philox import ROUNDS
from .language import composites, folding, indirect, transfers
from .language.calls import as_destination, as_handle, at_the_call, located, whole
from .language.declared import declared, declared_operations, record_into
from .recording.current import CURRENT, current
from .recording.plans import plain_scalar
from .recording.recorder import Recorder
from .values.foreign_names import answer
from .values.handles import RecvFuture, TensorHandle
from .values.hbm import HbmRegion, HbmTensor, Pointer, Ref
from .values.scratch import Scope

Source = HbmTensor | HbmRegion | Pointer

float32, float16, bfloat16, float8e4m3, float8e5m2 = dtypes.ALL[:5]
int32, int16, int8, uint8 = dtypes.ALL[5:9]
float64, int64, uint16, uint32, uint64 = dtypes.ALL[10:]
f32, f16, bf16, f8e4m3, f8e5m2 = float32, float16, bfloat16, float8e4m3, float8e5m2
i32, i16, i8, u8 = int32, int16, int8, uint8
f64, i64, u16, u32, u64 = float64, int64, uint16, uint32, uint64


# --- the program ----------------------------------------------------------------------------------------------------


@located
def program_id(axis: int = 0) -> int:
    """The program's place along an axis of the launch grid. Where there is none each rank is one: on a ring axis 0 is
    the rank, on a mesh the axes are row, column."""
    recorder = current()
    if recorder.grid:
        return _along(axis, recorder.program, 0)
    return _along(axis, recorder.target.coordinates(recorder.rank, recorder.ranks), 0)


@located
def num_programs(axis: int = 0) -> int:
    """How many programs there are along an axis of the launch grid; where there is none, ranks."""
    recorder = current()
    if recorder.grid:
        return _along(axis, recorder.grid, 1)
    return _along(axis, recorder.target.grid(recorder.ranks), 1)


def _along(axis: int, values: Sequence[int], beyond: int) -> int:
    number = whole("axis", axis)
    if not 0 <= number <= 2:
        raise ArgumentError(f"axis {number} of the grid", help="use 0, 1 or 2")
    return values[number] if number < len(values) else beyond


@located
def cdiv(a: int, b: int) -> int:
    """``a / b`` of Python integers, rounded up. Works outside a trace, too."""
    divisor = whole("cdiv: b", b)
    if divisor == 0:
        raise ArgumentError(f"cdiv of {a!r} by 0", help="the divisor is most often a tile size: at least 1")
    return -(-whole("cdiv: a", a) // divisor)


static_range = range


# --- memory ---------------------------------------------------------------------------------------------------------


@located
def load(
    src: Source,
    shape: Sequence[int] | int | None = None,
    dtype: DType | str | None = None,
    *,
    out: TensorHandle | None = None,
    pad: Scalar | None = None,
    space: str | None = None,
) -> TensorHandle:
    """Read a region of HBM, or ``shape`` elements from a pointer on, into scratch. Returns at once; the first use
    waits.

    ``out`` names a handle of the same shape and dtype to fill instead of fresh bytes; ``space`` the memory that these
    are taken of, where a rank has several. ``pad`` fills what lies outside
    the tensor; without it, leaving the tensor is a ``BoundsError``. Only what lies inside is moved and paid for.
    """
    return transfers.load(current(), src, shape, dtype, out=out, pad=pad, space=space)


@located
def store(dst: Source, src: TensorHandle, *, clip: bool = False) -> None:
    """Write a handle to a region of the same shape and dtype, or to the elements from a pointer on.

    ``clip`` leaves out what lies outside the tensor; without it that is a ``BoundsError``.
    """
    transfers.store(current(), dst, src, clip=clip)


@located
def take(
    src: HbmTensor | HbmRegion,
    index: TensorHandle,
    axis: int = 0,
    *,
    out: TensorHandle | None = None,
    space: str | None = None,
) -> TensorHandle:
    """Read those rows of a region of HBM into scratch that an index tile names (indirect DMA), as ``numpy.take`` does:
    the result has the index's shape in the place of the region's ``axis``. Returns at once, as :func:`load` does.

    The index is data: that all of the region may be read is known while tracing, which rows when the kernel is
    executed; only these are paid for. They count from 0, and one that the region does not have is then an
    ``IndexTileError``. Elements of a tile that is in scratch are looked up by :func:`gather`.
    """
    return indirect.take(current(), src, index, axis, out=out, space=space)


@located
def scatter(dst: HbmTensor | HbmRegion, index: TensorHandle, src: TensorHandle, axis: int = 0) -> None:
    """Write a tile over those rows of a region of HBM that an index tile names (indirect DMA): ``t[index] = tile``, of
    a tile with the index's shape in the place of the region's ``axis``.

    The rows that the index does not name keep what they hold; of equal ones the last one stays. As with :func:`take`
    the index is data.
    """
    indirect.scatter(current(), dst, index, src, axis)


@located
def atomic_add(
    dst: HbmTensor | HbmRegion,
    src: TensorHandle,
    *,
    index: TensorHandle | None = None,
    axis: int = 0,
    fetch: bool = False,
) -> TensorHandle | None:
    """Add a tile to a region of HBM, each element as one step: what several ranks (or programs) add there at any time
    is all in it. In which order is not said, so that the last bits of a sum of floats may differ.

    With ``index`` to those rows that an index tile names, as of :func:`scatter`; equal ones in turn. With ``fetch`` the
    handle of what was there before is returned: on one rank only, and not with an ``index``.
    """
    return indirect.atomic(current(), "add", dst, src, index, axis, fetch=fetch)


@located
def atomic_max(
    dst: HbmTensor | HbmRegion,
    src: TensorHandle,
    *,
    index: TensorHandle | None = None,
    axis: int = 0,
    fetch: bool = False,
) -> TensorHandle | None:
    """Keep the larger of a region's elements and a tile's in HBM; as :func:`atomic_add`."""
    return indirect.atomic(current(), "max", dst, src, index, axis, fetch=fetch)


@located
def atomic_min(
    dst: HbmTensor | HbmRegion,
    src: TensorHandle,
    *,
    index: TensorHandle | None = None,
    axis: int = 0,
    fetch: bool = False,
) -> TensorHandle | None:
    """Keep the smaller of a region's elements and a tile's in HBM; as :func:`atomic_add`."""
    return indirect.atomic(current(), "min", dst, src, index, axis, fetch=fetch)


@located
def copy_to(dst: TensorHandle, src: TensorHandle) -> None:
    """Write the values of ``src`` over those of ``dst``, both in scratch. Same shape and dtype, no broadcasting."""
    transfers.copy_to(current(), dst, src)


@located
def move(x: TensorHandle, space: str | None = None, *, out: TensorHandle | None = None) -> TensorHandle:
    """The values in another of the rank's memories, in fresh bytes: ``tl.move(s, "sbuf")``. With ``out`` in place of
    its name they go into that handle of their shape and dtype, which lies there and is returned."""
    handle = as_handle("move", x)
    if (space is None) == (out is None):
        raise ArgumentError(
            "move takes the name of a memory or out=, one of the two", help='tl.move(s, "sbuf"), or tl.move(s, out=h)'
        )
    if out is None:
        return current().move(handle, space)
    transfers.check_destination(current(), "move(out=)", out, handle.shape, handle.dtype)
    return current().move(handle, out.space, out)


@located
def ref(src: Source, shape: Sequence[int] | int | None = None, dtype: DType | str | None = None) -> Ref:
    """A matrix that stays in HBM, as operand of a composite: a region, or ``shape`` elements from a pointer on."""
    return composites.ref(current(), src, shape, dtype)


@located
def composite(
    op: str,
    a: TensorHandle | Ref,
    b: TensorHandle | Ref,
    *,
    trans_a: bool = False,
    trans_b: bool = False,
    stages: int = 2,
    tile: tuple[int, int, int] = (128, 128, 128),
    out_dtype: DType | str = float32,
    epilogue: Sequence[str | tuple[str, Scalar | TensorHandle]] | None = None,
    acc: TensorHandle | None = None,
) -> TensorHandle:
    """One command for a tiled GEMM: ``a @ b`` (of ``a.T`` with ``trans_a``, ``b.T`` with ``trans_b``), in tiles of
    (m, n, k).

    ``ref`` operands are streamed through ``stages`` buffers each, handles are read in place. ``epilogue`` lists
    elementwise steps that each tile of the result goes through in f32: an operation's name (``"exp"``), or the name of
    one of two operands and its right operand: a number (``("mul", 0.125)``) or a tile that broadcasts to the result
    (``("add", bias)``). ``acc`` is a handle of the result's shape in which the product accumulates in place (f32, of
    integers i32); then the epilogue goes over it, and it is returned. Otherwise the result is fresh bytes.
    """
    return composites.gemm(
        current(),
        op,
        a,
        b,
        trans_a=trans_a,
        trans_b=trans_b,
        stages=stages,
        tile=tile,
        out_dtype=out_dtype,
        epilogue=epilogue,
        acc=acc,
    )


# --- creation -------------------------------------------------------------------------------------------------------


@located
def full(shape: Sequence[int] | int, value: Scalar, dtype: DType | str, *, space: str | None = None) -> TensorHandle:
    """A tensor of one value. ``space``: the memory that it is made in, where a rank has several."""
    number = plain_scalar(value)
    if not isinstance(number, bool | int | float):
        raise ArgumentError(f"full: value {shown(value)} is no Python number", help="pass a bool, int or float")
    static = (("shape", layouts.check_shape(shape)), ("value", number), ("dtype", dtypes.of(dtype)))
    recorder = current()
    return recorder.record(recorder.plan("fill", (), static), (), space=space)


@located
def zeros(shape: Sequence[int] | int, dtype: DType | str, *, space: str | None = None) -> TensorHandle:
    """A tensor of zeros. ``space`` as of :func:`full`."""
    return full(shape, 0, dtype, space=space)


@located
def empty(shape: Sequence[int] | int, dtype: DType | str, *, space: str | None = None) -> TensorHandle:
    """Bytes that hold nothing yet: allocates, records no node. Reading them before they are written is a finding.

    ``space``: the memory that they are taken of, where a rank has several."""
    recorder = current()
    place = None if space is None else recorder.place(space)
    return recorder.allocate(Layout.dense(layouts.check_shape(shape), dtypes.of(dtype)), memory=place)


@located
def arange(start: int, end: int, *, space: str | None = None) -> TensorHandle:
    """The i32 numbers from ``start`` up to but not including ``end``. ``space`` as of :func:`full`."""
    static = (("start", whole("arange: start", start)), ("end", whole("arange: end", end)))
    recorder = current()
    return recorder.record(recorder.plan("arange", (), static), (), space=space)


@located
def cast(
    x: TensorHandle,
    dtype: DType | str,
    *,
    bitcast: bool = False,
    out: TensorHandle | None = None,
    space: str | None = None,
) -> TensorHandle:
    """The values in another dtype, in fresh bytes (also ``x.to(dtype)``).

    To a float, rounded to nearest even. From a float to an integer, rounded toward zero; what is out of range becomes
    the nearest integer there is, NaN becomes 0. To a narrower integer, the low bits; to bool, whether it is not 0.
    With ``bitcast`` the same bits as another dtype of the same width. With ``out`` the result goes into that handle of
    its shape and dtype, which is returned.
    """
    handle = as_handle("cast", x)
    if out is None:
        return current().cast(handle, dtype, bitcast, space)
    return record_into("bitcast" if bitcast else "cast", (handle,), (("dtype", dtypes.of(dtype)),), out)


# --- by a function of the author's ----------------------------------------------------------------------------------


@located
def associative_scan(
    x: TensorHandle | tuple[TensorHandle, ...], axis: int, combine_fn: Callable[..., Any], reverse: bool = False
) -> Any:
    """Every element along an axis combined with all before it (``reverse``: behind it), in fresh bytes.

    ``combine_fn(a, b)`` gets two tiles of one shape, of the earlier elements and of the later ones, and returns one of
    that shape and dtype, computed element by element; it is associative, and called ceil(log2 n) times. ``x`` may be a
    tuple of tiles of one shape: then it gets those of the earlier elements, then those of the later ones, and returns
    as many. Raises ``ShapeError``, ``DTypeError`` or ``ArgumentError`` for what it returns instead.
    """
    return folding.associative_scan(x, axis, combine_fn, bool(reverse))


@located
def reduce(
    x: TensorHandle | tuple[TensorHandle, ...], axis: int, combine_fn: Callable[..., Any], keep_dims: bool = False
) -> Any:
    """The elements along an axis made one by a function, as in :func:`associative_scan`; it is commutative, too, as
    elements far from each other are combined. It is called about log2 n times, on tiles that halve."""
    return folding.reduce(x, axis, combine_fn, bool(keep_dims))


# --- order ----------------------------------------------------------------------------------------------------------


@located
def sort(x: TensorHandle, dim: int | None = None, descending: bool = False) -> TensorHandle:
    """The elements along a dimension (``None``: the last) in ascending order, in fresh bytes.

    NaN counts as larger than every number; equal elements (0.0 and -0.0) keep their order.
    """
    handle = as_handle("sort", x)
    static = (("axis", _dimension(handle, dim)), ("descending", bool(descending)))
    return current().compute("sort", (handle,), static)


@located
def topk(x: TensorHandle, k: int, dim: int | None = None) -> TensorHandle:
    """The ``k`` largest elements along a dimension (``None``: the last), the largest first: the beginning of a
    descending :func:`sort`."""
    handle = as_handle("topk", x)
    return current().compute("topk", (handle,), (("k", whole("topk: k", k)), ("axis", _dimension(handle, dim))))


@located
def flip(x: TensorHandle, dim: int | None = None) -> TensorHandle:
    """The elements along a dimension (``None``: the last) in reverse, in fresh bytes."""
    handle = as_handle("flip", x)
    return current().compute("flip", (handle,), (("axis", _dimension(handle, dim)),))


@located
def gather(src: TensorHandle, index: TensorHandle, axis: int) -> TensorHandle:
    """Elements of a tile by an index tile of its shape, but for ``axis``: along it the place that the index names.

    Places count from 0; one outside gives all bits set (NaN, -1 or the largest number), as bytes that nothing wrote.
    """
    source, places = as_handle("gather", src), as_handle("gather", index)
    return current().compute("gather", (source, places), (("axis", layouts.resolve_axis(axis, source.ndim)),))


@located
def join(a: TensorHandle, b: TensorHandle) -> TensorHandle:
    """Two tiles of one dtype side by side in a new last dimension of size 2, in fresh bytes. Shapes broadcast."""
    return current().compute("join", (as_handle("join", a), as_handle("join", b)))


@located
def interleave(a: TensorHandle, b: TensorHandle) -> TensorHandle:
    """The elements of two tiles in turn along the last dimension: a :func:`join`, seen as one tile twice as long."""
    both = join(a, b)
    *others, last, two = both.shape if both.ndim > 1 else (1, 2)
    return reshape(both, (*others, last * two))


@located
def split(x: TensorHandle) -> tuple[TensorHandle, TensorHandle]:
    """The two halves that :func:`join` put together, as views: of a tile whose last dimension has size 2."""
    handle = as_handle("split", x)
    if not handle.shape or handle.shape[-1] != 2:
        raise ShapeError(
            f"split of {handle!r} of shape {handle.shape}",
            help="the last dimension has size 2: tl.reshape(h, (..., 2)); other parts are slices, h[a:b, :]",
        )
    return handle[..., 0], handle[..., 1]


def _dimension(handle: TensorHandle, dim: int | None) -> int:
    return layouts.resolve_axis(-1 if dim is None else dim, handle.ndim)


# --- random numbers -------------------------------------------------------------------------------------------------


@located
def randint(seed: int | TensorHandle, offset: TensorHandle, n_rounds: int = ROUNDS) -> TensorHandle:
    """Random u32, one for each offset (a tile of integers), the same for the same ``seed``: Philox with ``n_rounds``
    rounds, bit for bit as Triton's. (Triton's documentation says i32; its bits are these.)"""
    return _random("randint", seed, offset, n_rounds)


@located
def rand(seed: int | TensorHandle, offset: TensorHandle, n_rounds: int = ROUNDS) -> TensorHandle:
    """Random f32 in [0, 1), one for each offset; see :func:`randint`."""
    return _random("rand", seed, offset, n_rounds)


@located
def randn(seed: int | TensorHandle, offset: TensorHandle, n_rounds: int = ROUNDS) -> TensorHandle:
    """Random f32, normally distributed, one for each offset; see :func:`randint`."""
    return _random("randn", seed, offset, n_rounds)


@located
def randint4x(seed: int | TensorHandle, offset: TensorHandle, n_rounds: int = ROUNDS) -> tuple[TensorHandle, ...]:
    """Four tiles of random u32, for little more than one: all four words of each offset; views of one allocation. The
    first one is what :func:`randint` gives."""
    return _four("randint", seed, offset, n_rounds)


@located
def rand4x(seed: int | TensorHandle, offset: TensorHandle, n_rounds: int = ROUNDS) -> tuple[TensorHandle, ...]:
    """Four tiles of random f32 in [0, 1); see :func:`randint4x`."""
    return _four("rand", seed, offset, n_rounds)


@located
def randn4x(seed: int | TensorHandle, offset: TensorHandle, n_rounds: int = ROUNDS) -> tuple[TensorHandle, ...]:
    """Four tiles of random f32, normally distributed; see :func:`randint4x`."""
    return _four("randn", seed, offset, n_rounds)


def _random(name: str, seed: int | TensorHandle, offset: TensorHandle, n_rounds: int, words: int = 1) -> TensorHandle:
    static = (("rounds", whole(f"{name}: n_rounds", n_rounds)), ("words", words))
    return current().compute(name, (seed, as_handle(name, offset)), static)


def _four(name: str, seed: int | TensorHandle, offset: TensorHandle, n_rounds: int) -> tuple[TensorHandle, ...]:
    made = _random(name, seed, offset, n_rounds, words=4)
    return tuple(made[word] for word in range(4))


# --- contraction ----------------------------------------------------------------------------------------------------


@located
def dot(
    a: TensorHandle,
    b: TensorHandle,
    *,
    acc: TensorHandle | None = None,
    out: TensorHandle | None = None,
    out_dtype: DType | str | None = None,
    space: str | None = None,
) -> TensorHandle:
    """Matrix product (M, K) x (K, N), accumulated in f32 (integers: i32; f64, u32 and 64-bit integers: themselves) and
    rounded once to ``out_dtype``.

    Of a batch, (B, M, K) x (B, K, N), each is multiplied with its own. ``acc`` is a handle of the result's shape and
    dtype that the product is added to in place, ``out`` one that it is written over; either is returned. ``space``: the
    memory that the result is made in, where a rank has several.
    """
    a, b = as_handle("dot", a), as_handle("dot", b)
    operands, wide = [a, b], a.dtype.accumulator
    if acc is not None and out is not None:
        raise ArgumentError(
            "dot: both acc= and out=", help="acc= adds the product to a handle, out= puts it there alone"
        )
    if acc is not None:
        operands.append(as_destination("dot", acc))
        wide = acc.dtype
    elif out is not None:
        wide = as_destination("dot(out=)", out).dtype
        if out.storage in (a.storage, b.storage):
            raise ArgumentError(
                "dot(out=): the product would be written over one of its operands", help="give a handle of its own"
            )
    recorder = current()
    for handle in operands:
        recorder.check_handle(handle)
    plan = recorder.plan(
        "dot",
        tuple(h.layout for h in operands),
        (("out_dtype", wide if out_dtype is None else dtypes.of(out_dtype)),),
    )
    if out is not None:
        transfers.check_destination(recorder, "dot(out=)", out, plan.result.shape, plan.result.dtype)
    into = acc if out is None else out
    return recorder.record(plan, [(h.storage, h.offset, h.layout) for h in operands], into=into, space=space)


@located
def recurrence(
    a: TensorHandle,
    b: TensorHandle,
    initial: TensorHandle | None = None,
    axis: int = -1,
    *,
    out: TensorHandle | None = None,
    space: str | None = None,
) -> TensorHandle:
    """``h[i] = a[i] * h[i - 1] + b[i]`` along an axis, in f32 (f64 in f64): ``tl.recurrence(decay, x, axis=1)``.

    ``initial``, of the same shape with one element along the axis, stands before the first; else 0 does. With ``out``
    the result goes into that handle, which is returned; with ``space`` into the memory of that name, where a rank has
    several.
    """
    operands = tuple(as_handle("recurrence", x) for x in (a, b, *(() if initial is None else (initial,))))
    static = (("axis", layouts.resolve_axis(axis, operands[0].ndim)),)
    if out is not None:
        return record_into("recurrence", operands, static, out)
    return current().compute("recurrence", operands, static, space)


# --- views ----------------------------------------------------------------------------------------------------------


@located
def trans(x: TensorHandle, *axes: int) -> TensorHandle:
    """The view with its last two dimensions swapped, or its dimensions in the order given."""
    order = tuple(axes[0]) if len(axes) == 1 and isinstance(axes[0], Sequence) else axes
    return as_handle("trans", x)._viewed(layouts.transpose, order)


@located
def reshape(x: TensorHandle, *sizes: Any, shape: Sequence[int] | None = None) -> TensorHandle:
    """The view under another shape of as many elements; one size may be -1. Needs a contiguous view.

    The shape is given as one tuple or as sizes: ``tl.reshape(x, (4, -1))``, ``tl.reshape(x, 4, -1)``.
    """
    wanted = tuple(whole("reshape: size", n) for n in _sizes("reshape", sizes, shape))
    return as_handle("reshape", x)._viewed(layouts.reshape, wanted)


def _sizes(name: str, sizes: tuple[Any, ...], shape: Any) -> Any:
    if bool(sizes) == (shape is not None):
        raise ArgumentError(f"{name}: one shape is needed", help=f"tl.{name}(x, (rows, cols))")
    if shape is not None:
        return shape
    return sizes[0] if len(sizes) == 1 and hasattr(sizes[0], "__len__") else sizes


@located
def expand_dims(x: TensorHandle, axis: int) -> TensorHandle:
    """The view with a dimension of size 1 added; ``x[:, None]`` does the same."""
    return as_handle("expand_dims", x)._viewed(layouts.expand_dims, axis)


@located
def broadcast_to(x: TensorHandle, *sizes: Any, shape: Sequence[int] | None = None) -> TensorHandle:
    """The view that repeats dimensions of size 1. Readable everywhere, but no destination. The shape is given as for
    :func:`reshape`."""
    wanted = layouts.check_shape(_sizes("broadcast_to", sizes, shape))
    return as_handle("broadcast_to", x)._viewed(layouts.broadcast_to, wanted)


@located
def broadcast(a: TensorHandle, b: TensorHandle) -> tuple[TensorHandle, TensorHandle]:
    """Both as views of their common shape."""
    a, b = as_handle("broadcast", a), as_handle("broadcast", b)
    shape = layouts.broadcast_shapes(a.shape, b.shape)
    return broadcast_to(a, shape), broadcast_to(b, shape)


# --- messages -------------------------------------------------------------------------------------------------------


@located
def send(direction: str, src: TensorHandle) -> None:
    """Send a tile to the neighbour in a direction (ring: next, prev; mesh: north, south, east, west).

    A channel is a FIFO with the machine's number of slots; a full one holds the sender's link back.
    """
    transfers.send(current(), direction, as_handle("send", src))


@located
def recv(
    direction: str,
    shape: Sequence[int] | int,
    dtype: DType | str,
    *,
    out: TensorHandle | None = None,
    space: str | None = None,
) -> TensorHandle:
    """Receive the next message from a direction, into fresh bytes (of the memory ``space``, where a rank has several)
    or into ``out`` (same shape and dtype)."""
    return transfers.receive(current(), "recv", direction, shape, dtype, out, space)


@located
def recv_async(
    direction: str, shape: Sequence[int] | int, dtype: DType | str, *, out: TensorHandle | None = None
) -> RecvFuture:
    """Post a receive and go on; ``tl.wait(future)`` gives its handle."""
    return RecvFuture(transfers.receive(current(), "recv_async", direction, shape, dtype, out))


@located
def wait(future: RecvFuture) -> TensorHandle:
    """Wait for a posted receive; its handle."""
    return transfers.wait(current(), future)


@located
def notify(direction: str) -> None:
    """Tell the neighbour in a direction that all accesses of HBM before this line are done: a message without bytes,
    which its :func:`wait_for` meets. It goes through the channel of that direction, in order with what is sent there,
    and takes the link's latency."""
    transfers.signal(current(), "notify", direction)


@located
def wait_for(direction: str) -> None:
    """Wait until the neighbour in a direction has told (:func:`notify`): accesses of HBM after this line begin then."""
    transfers.signal(current(), "wait_for", direction)


@located
def barrier() -> None:
    """No rank's accesses of HBM after it begin before those of all ranks before it are done. Made of :func:`notify` and
    :func:`wait_for`: every line of ranks tells its first one, and hears from it."""
    transfers.barrier(current())


# --- scopes ---------------------------------------------------------------------------------------------------------


class scratch_scope:
    """Bytes allocated within the ``with`` block are given back at its end; handles made in it must not be used after
    it."""

    __slots__ = ("_name", "_open")

    def __init__(self, name: str | None = None) -> None:
        self._name = "" if name is None else str(name)
        self._open: list[tuple[Recorder, Scope]] = []  # one object may be entered again within itself
        recorder = CURRENT.get()
        if recorder is not None:
            recorder.never_entered[self] = recorder.sites.remember()

    def __enter__(self) -> Scope:
        recorder = current()
        recorder.never_entered.pop(self, None)
        scope = recorder.open_scope(self._name)
        self._open.append((recorder, scope))
        return scope

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if not self._open:
            raise at_the_call(
                ScopeError(
                    f"scope {self._name!r} is left, but it is not open" if self._name else "a scope is left twice",
                    help="write `with tl.scratch_scope():`, which enters once and leaves once",
                )
            )
        recorder, scope = self._open.pop()
        # A kernel may catch the error and go on, so the exit is recorded all the same; it never hides the error.
        innermost = recorder.allocator.scope is scope
        if kind is None or (innermost and not issubclass(kind, NodeLimitError)):
            recorder.close_scope(scope)


# --- what the operation table declares -----------------------------------------------------------------------------

globals().update({o.function: declared(o, __name__) for o in declared_operations()})

__all__ = sorted(
    {
        *(o.function for o in declared_operations()),
        *(d.name for d in dtypes.ALL),
        *(d.short for d in dtypes.ALL),
        *[
            "program_id",
            "num_programs",
            "cdiv",
            "static_range",
            "load",
            "store",
            "associative_scan",
            "reduce",
            "take",
            "scatter",
            "atomic_add",
            "atomic_max",
            "atomic_min",
            "move",
            "copy_to",
            "ref",
            "composite",
            "full",
            "zeros",
            "empty",
            "arange",
            "cast",
            "sort",
            "topk",
            "flip",
            "gather",
            "join",
            "interleave",
            "split",
        ],
        *["randint", "rand", "randn", "randint4x", "rand4x", "randn4x"],
        *[
            "dot",
            "trans",
            "reshape",
            "expand_dims",
            "broadcast_to",
            "broadcast",
            "send",
            "recv",
            "recv_async",
            "wait",
            "notify",
            "wait_for",
            "barrier",
            "scratch_scope",
        ],
    }
)


#: How alike a name must be to one of tl's to be taken for it misspelt: ``multicast`` is no ``cast``.
_ALIKE = 0.75


#: Where nothing is spelt like a name: not all that there is, of which nothing is meant.
_LISTED = "write it with the operations that there are; `dir(tl)` lists them"


def __getattr__(name: str) -> Any:
    if name == "bool":  # not a global: this module means Python's own
        return dtypes.bool_
    if name.startswith("__"):
        raise AttributeError(name)
    help = answer(name) or did_you_mean(name, __all__, alike=_ALIKE, listed=_LISTED)
    raise at_the_call(UnknownNameError(f"tl has no {name!r}", help=help))
