"""Rows of HBM by an index tile, and what is changed there as one step: checks on their operands, then one node each."""

from __future__ import annotations

from typing import Any

from ...ir.errors import ArgumentError, shown
from ...ir.layout import Layout
from ..recording.plans import Static
from ..recording.recorder import Read, Recorder
from ..values.handles import TensorHandle
from ..values.hbm import HbmRegion, HbmTensor, Pointer
from .calls import whole
from .transfers import check_destination, check_source, region_of

__all__ = ["atomic", "scatter", "take"]


def take(
    recorder: Recorder, src: Any, index: Any, axis: Any, *, out: TensorHandle | None = None, space: str | None = None
) -> TensorHandle:
    """Record a ``take``: see ``tl.take``."""
    places = check_source(recorder, "take", index)
    tensor, wanted, source, at = _region(recorder, "take", src)
    asked = Layout.dense(wanted, tensor.dtype)
    plan = recorder.plan("take", (asked if source is None else source[2], places.layout), _along(axis, asked))
    if out is not None:
        check_destination(recorder, "take(out=)", out, plan.result.shape, plan.result.dtype)
    if at is None and source is not None:
        return recorder.record(plan, (source, _read(places)), into=out, space=space)
    # It leaves its tensor, which is recorded rather than raised: the fault belongs to a node that reads nothing.
    static = (("shape", plan.result.shape), ("dtype", tensor.dtype), ("pad", 0), ("at", None))
    return recorder.record(recorder.plan("load", (), static), (), into=out, space=space)


def scatter(recorder: Recorder, dst: Any, index: Any, src: Any, axis: Any, how: str = "") -> None:
    """Record a ``scatter``, or, where ``how`` says how, a ``scatter_atomic``: see ``tl.scatter``."""
    name = f"atomic_{how}" if how else "scatter"
    if isinstance(dst, TensorHandle) and isinstance(src, HbmRegion | HbmTensor | Pointer):
        raise ArgumentError(
            f"{name}: {shown(dst)} is a tile in scratch, {shown(src)} a place in HBM",
            help="the place in HBM comes first: tl.scatter(o[:, :], index, tile)",
        )
    tile, places = check_source(recorder, name, src), check_source(recorder, name, index)
    _, wanted, target, at = _region(recorder, name, dst)
    static = _along(axis, Layout.dense(wanted, tile.dtype))
    if target is None or at is not None:
        _lost(recorder, tile)
        return
    operation, static = ("scatter_atomic", (*static, ("how", how))) if how else ("scatter", static)
    plan = recorder.plan(operation, (tile.layout, target[2], places.layout), static)
    recorder.record(plan, (_read(tile), target, _read(places)), into=target)


def atomic(
    recorder: Recorder, how: str, dst: Any, src: Any, index: Any, axis: Any, *, fetch: bool
) -> TensorHandle | None:
    """Record an atomic: see ``tl.atomic_add``."""
    name = f"atomic_{how}"
    if fetch and index is not None:
        raise ArgumentError(
            f"{name}: fetch with an index", help="leave one away: tl.take(o[:, :], index) before it reads what is there"
        )
    if fetch and recorder.ranks > 1:
        raise ArgumentError(
            f"{name}: fetch on {recorder.ranks} ranks",
            help="what is found depends on which rank comes first, and a trace knows no such thing: leave fetch away, "
            "or let one rank do it and tl.send what it finds",
        )
    if index is not None:
        scatter(recorder, dst, index, src, axis, how)
        return None
    tile = check_source(recorder, name, src)
    _, _, target, at = _region(recorder, name, dst)
    if target is None or at is not None:
        _lost(recorder, tile)
        return tile if fetch else None
    static = (("how", how),)
    plan = recorder.plan("atomic", (tile.layout, target[2]), static)
    found = None
    if fetch:
        asked = recorder.plan("fetch", (target[2], tile.layout), static)
        found = recorder.record(asked, (target, _read(tile)))
    recorder.record(plan, (_read(tile), target), into=target)
    return found


def _region(recorder: Recorder, name: str, place: Any) -> tuple[HbmTensor, Any, Read | None, Any]:
    if isinstance(place, Pointer):
        raise ArgumentError(
            f"{name}: {shown(place)} is a pointer",
            help=f"name a region: {place.tensor.name}[a:b, :], or [:, :] for all",
        )
    if isinstance(place, TensorHandle):
        raise ArgumentError(
            f"{name}: {shown(place)} is a tile in scratch, no place in HBM",
            help="name a region, t[a:b, :]; within a tile tl.gather(h, index, axis) looks up elements",
        )
    return region_of(recorder, name, place, None, None, ragged=False)


def _along(axis: Any, region: Layout) -> Static:
    number = whole("axis", axis)
    return (("axis", number + region.ndim if -region.ndim <= number < 0 else number),)


def _lost(recorder: Recorder, tile: TensorHandle) -> None:
    """What leaves its tensor writes nothing, but the fault that was recorded belongs to a node."""
    recorder.record_only(recorder.plan("store", (tile.layout,), ()), (_read(tile),))


def _read(handle: TensorHandle) -> Read:
    return handle.storage, handle.offset, handle.layout
