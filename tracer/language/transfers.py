"""Loads, stores, copies and messages: checks on their operands, then one node each."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir import dtypes
from ...ir.dtypes import DType
from ...ir.errors import ArgumentError, BoundsError, DTypeError, ShapeError, shown
from ...ir.layout import Layout, Shape, check_shape
from ...ir.ops import OPERATIONS, End, Scalar, check_scalar
from ..recording.plans import plain_scalar
from ..recording.recorder import Read, Recorder
from ..recording.written import written_argument
from ..values.handles import RecvFuture, TensorHandle
from ..values.hbm import HbmRegion, HbmTensor, Pointer
from ..values.refusals import first_step

__all__ = ["barrier", "copy_to", "load", "receive", "region_of", "send", "signal", "store", "wait"]

#: By topology, for each axis of its ranks, the ways along it: onward and backward.
_LINES = {"ring": (("next", "prev"),), "mesh2d": (("south", "north"), ("east", "west"))}


def load(
    recorder: Recorder,
    src: Any,
    shape: Any = None,
    dtype: Any = None,
    *,
    out: TensorHandle | None = None,
    pad: Scalar | None = None,
    space: str | None = None,
) -> TensorHandle:
    """Record a load: see ``tl.load``."""
    tensor, wanted, source, at = region_of(recorder, "load", src, shape, dtype, ragged=pad is not None)
    pad = plain_scalar(pad)
    if pad is not None:
        _check_pad(pad, tensor.dtype)
    if out is not None:
        check_destination(recorder, "load(out=)", out, wanted, tensor.dtype)
    if at is None and source is not None:
        plan = recorder.plan("load", (source[2],), (("shape", wanted), ("dtype", tensor.dtype)))
        return recorder.record(plan, (source,), into=out, space=space)
    static = (("shape", wanted), ("dtype", tensor.dtype), ("pad", 0 if pad is None else pad), ("at", at))
    reads = () if source is None else (source,)
    plan = recorder.plan("load", tuple(view for _, _, view in reads), static)
    return recorder.record(plan, reads, into=out, space=space)


def store(recorder: Recorder, dst: Any, src: Any, *, clip: bool = False) -> None:
    """Record a store: see ``tl.store``. One that clips everything away records nothing: nothing is moved."""
    if isinstance(dst, TensorHandle) and isinstance(src, HbmRegion | HbmTensor | Pointer):
        raise ArgumentError(
            f"store: {shown(dst)} is a tile in scratch, {shown(src)} a place in HBM",
            help="the place comes first, then the tile: tl.store(o[a:b, :], tile)",
        )
    handle = check_source(recorder, "store", src)
    pointed = isinstance(dst, Pointer)
    tensor, wanted, target, at = region_of(recorder, "store", dst, handle.shape if pointed else None, None, ragged=clip)
    if wanted != handle.shape:
        raise ShapeError(
            f"store of shape {handle.shape} into {dst!r} of shape {wanted}",
            help="slice the region, or reshape the handle",
        )
    if handle.dtype is not tensor.dtype:
        stored = written_argument(recorder.location(), 1, "src")
        how = f'convert what is stored, with .to("{tensor.dtype}")'
        raise DTypeError(
            f"store of {handle.dtype} into {tensor.name}, which is {tensor.dtype}",
            help=how if stored is None else f'convert it: {stored}.to("{tensor.dtype}")',
        )
    offset, layout = handle.offset, handle.layout
    if target is None:
        if not clip:  # a fault that is recorded rather than raised belongs to a node, though nothing is written
            recorder.record_only(recorder.plan("store", (layout,), ()), ((handle.storage, offset, layout),))
        return
    if at is not None:
        offset += sum(a * s for a, s in zip(at, layout.strides, strict=True))
        layout = Layout.of(target[2].shape, layout.strides, layout.dtype)
    recorder.record(recorder.plan("store", (layout,), ()), ((handle.storage, offset, layout),), into=target)


def copy_to(recorder: Recorder, dst: Any, src: Any) -> None:
    """Record a copy: see ``tl.copy_to``."""
    source = check_source(recorder, "copy_to", src)
    check_destination(recorder, "copy_to", dst, source.shape, source.dtype)
    plan = recorder.plan("copy_to", (source.layout,), ())
    recorder.record(plan, ((source.storage, source.offset, source.layout),), into=dst)


def send(recorder: Recorder, direction: str, src: TensorHandle) -> None:
    """Record a send: see ``tl.send``."""
    recorder.check_handle(src)
    channel = recorder.channel(direction, sending=True)
    recorder.record_only(
        recorder.plan("send", (src.layout,), ()), [(src.storage, src.offset, src.layout)], channel=channel
    )


def signal(recorder: Recorder, name: str, direction: str) -> None:
    """Record a ``notify`` or a ``wait_for``: see ``tl.notify``."""
    channel = recorder.channel(direction, sending=OPERATIONS[name].end is End.SENDS)
    recorder.record_only(recorder.plan(name, (), ()), (), channel=channel)


def barrier(recorder: Recorder) -> None:
    """Record a rank's part of a barrier: see ``tl.barrier``."""
    target, ranks = recorder.target, recorder.ranks
    lines = zip(target.coordinates(recorder.rank, ranks), target.grid(ranks), _LINES[target.topology], strict=False)
    # The last axis first: each line tells its first rank, these tell theirs; then the word goes back the same way.
    along = [(place, size, *ways) for place, size, ways in lines][::-1]
    told = next((i for i, (place, *_) in enumerate(along) if place > 0), len(along) - 1)
    for place, size, onward, backward in along[: told + 1]:
        if place < size - 1:
            signal(recorder, "wait_for", onward)
        if place > 0:
            signal(recorder, "notify", backward)
    for place, size, onward, backward in along[: told + 1][::-1]:
        if place > 0:
            signal(recorder, "wait_for", backward)
        if place < size - 1:
            signal(recorder, "notify", onward)


def receive(
    recorder: Recorder,
    name: str,
    direction: str,
    shape: Any,
    dtype: Any,
    out: TensorHandle | None,
    space: str | None = None,
) -> TensorHandle:
    """Record a ``recv`` or ``recv_async``: see ``tl.recv``."""
    wanted, kind = check_shape(shape), dtypes.of(dtype)
    channel = recorder.channel(direction, sending=False)
    if out is not None:
        check_destination(recorder, f"{name}(out=)", out, wanted, kind)
    plan = recorder.plan(name, (), (("shape", wanted), ("dtype", kind)))
    return recorder.record(plan, (), into=out, channel=channel, space=space)


def wait(recorder: Recorder, future: Any) -> TensorHandle:
    """Record a wait: see ``tl.wait``."""
    if not isinstance(future, RecvFuture):
        raise ArgumentError(f"wait: {future!r} is no future", help="pass what tl.recv_async returned")
    handle = future.handle
    recorder.check_handle(handle)
    recorder.record_only(recorder.plan("wait", (handle.layout,), ()), [(handle.storage, handle.offset, handle.layout)])
    return handle


# --- operands -------------------------------------------------------------------------------------------------------


def check_source(recorder: Recorder, name: str, value: Any) -> TensorHandle:
    """A handle of this trace, or an error."""
    if not isinstance(value, TensorHandle):
        raise ArgumentError(f"{name}: {shown(value)} is no handle in scratch", help=first_step(value))
    recorder.check_handle(value)
    return value


def check_destination(recorder: Recorder, name: str, value: Any, shape: Shape, dtype: DType) -> None:
    """Refuse what cannot be written over by a tensor of this shape and dtype."""
    handle = check_source(recorder, name, value)
    if handle.shape != shape:
        raise ShapeError(
            f"{name}: shape {shape} into {shown(handle)} of shape {handle.shape}",
            help="both must be equal; nothing broadcasts",
        )
    if handle.dtype is not dtype:
        raise DTypeError(f"{name}: {dtype} into {shown(handle)}", help="convert first: h.to(...)")
    if handle.layout.is_broadcast:
        raise ShapeError(
            f"{name}: {shown(handle)} is a broadcast view, no destination", help="write to what it is a view of"
        )


def _check_pad(pad: Any, dtype: DType) -> None:
    if not isinstance(pad, bool | int | float):
        raise ArgumentError(f"load: pad {shown(pad)} is no Python number", help="pad=0.0 fills with zeros")
    if isinstance(pad, float) and not dtype.is_float:
        raise DTypeError(f"load: pad {pad!r} for {dtype}", help="pad integers with an integer")
    check_scalar(pad, dtype)


def region_of(
    recorder: Recorder, name: str, place: Any, shape: Any, dtype: Any, *, ragged: bool
) -> tuple[HbmTensor, Shape, Read | None, Shape | None]:
    """What a load or store touches: the tensor, the tile's whole shape, the view of HBM that lies inside (None: nothing
    does), and where in the tile it stands (None: it fills the tile).

    Raises ``BoundsError`` where the tile leaves the tensor and is not ``ragged``; under ``on_bounds="record"`` that is
    recorded, and the inside is used.
    """
    if isinstance(place, HbmTensor):
        place = place.region() if shape is None else Pointer(place, 0)
    if isinstance(place, HbmRegion):
        tensor = place.tensor
        recorder.check_tensor(tensor)
        if shape is not None and check_shape(shape) != place.shape:
            raise ShapeError(
                f"{name}: region {place!r} has shape {place.shape}, not {shape}", help="a region carries its own shape"
            )
        _check_dtype(name, tensor, dtype)
        return _region(recorder, name, place, ragged)
    if not isinstance(place, Pointer):
        array = isinstance(place, np.ndarray)
        raise ArgumentError(
            f"{name}: {shown(place)} is no place in HBM",
            help="pass each array to the kernel as an argument of its own, not keyword-only and not in a list"
            if array
            else "pass a region t[a:b, :], or a pointer t + n with a shape",
        )
    if shape is None:
        raise ArgumentError(f"{name}: a pointer needs a shape", help="tl.load(t + n, (rows, cols))")
    if ragged:
        raise ArgumentError(f"{name}: pad and clip need a region", help="slice the tensor: t[a:b, :]")
    recorder.check_tensor(place.tensor)
    _check_dtype(name, place.tensor, dtype)
    return _pointed(recorder, name, place, check_shape(shape))


def _region(
    recorder: Recorder, name: str, region: HbmRegion, ragged: bool
) -> tuple[HbmTensor, Shape, Read | None, Shape | None]:
    tensor = region.tensor
    strides = tensor.layout.strides
    offset = 0
    for lower, upper, size, stride in zip(region.lower, region.upper, tensor.layout.shape, strides, strict=True):
        if lower < 0 or upper > size:
            break
        offset += lower * stride
    else:
        view = recorder.region_view(tensor.layout, region.extents, region.kept, region.steps)
        return tensor, view.shape, (tensor.storage, offset, view), None
    if not ragged:
        _out_of_bounds(recorder, name, repr(region), tensor, region.lower, region.upper)
    steps = region.steps or (1,) * tensor.ndim
    # Of each dimension the first of its elements that lies inside, and one past the last.
    axes = list(zip(region.lower, region.extents, steps, tensor.shape, strict=True))
    first = [max(0, -(lower // by)) for lower, _, by, _ in axes]
    last = [min(n, -((lower - size) // by)) for lower, n, by, size in axes]
    if any(a >= b for a, b in zip(first, last, strict=True)):
        return tensor, region.shape, None, None
    shown = [i for i in range(tensor.ndim) if region.kept[i]]
    view = Layout.of(
        tuple(last[i] - first[i] for i in shown), tuple(strides[i] * steps[i] for i in shown), tensor.dtype
    )
    offset = sum((lower + a * by) * s for (lower, _, by, _), a, s in zip(axes, first, strides, strict=True))
    return tensor, region.shape, (tensor.storage, offset, view), tuple(first[i] for i in shown)


def _pointed(
    recorder: Recorder, name: str, pointer: Pointer, shape: Shape
) -> tuple[HbmTensor, Shape, Read | None, Shape | None]:
    tensor = pointer.tensor
    view = Layout.dense(shape, tensor.dtype)
    stop = pointer.offset + view.size
    if pointer.offset >= 0 and stop <= tensor.layout.size:
        return tensor, shape, (tensor.storage, pointer.offset, view), None
    _out_of_bounds(recorder, name, f"{pointer!r} of {view.size} elements", tensor, (pointer.offset,), (stop,))
    return tensor, shape, None, None


def _out_of_bounds(recorder: Recorder, name: str, what: str, tensor: HbmTensor, lower: Shape, upper: Shape) -> None:
    error = BoundsError(
        f"{name} of {what} leaves {tensor.name} of shape {tensor.shape}"
        + (f" {recorder.whereabouts}" if recorder.program else ""),
        help="for ragged edges load with pad=, store with clip=True; a region never clamps",
    )
    recorder.out_of_bounds(error, tensor, lower, upper)


def _check_dtype(name: str, tensor: HbmTensor, dtype: Any) -> None:
    if dtype is not None and dtypes.of(dtype) is not tensor.dtype:
        raise DTypeError(
            f"{name}: {tensor.name} is {tensor.dtype}, not {dtypes.of(dtype)}",
            help="a load moves bytes as they are; convert after it: h.to(...)",
        )
