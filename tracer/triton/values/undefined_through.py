"""Which elements of a result are undefined where some of its operands' are: of what works on whole tiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ....ir.ops import OPERATIONS, Family
from .undefined import Array, Undefined
from .value import Value, under_rank

__all__ = ["undefined_through"]


def undefined_through(
    name: str, operands: Sequence[Value], arrays: Sequence[Array], static: Mapping[str, Any], shape: tuple[int, ...]
) -> Undefined | None:
    """Of an operation on ``arrays (lanes, *shape)``, with the axis of lanes in front and among its ``static`` values,
    whose result has a ``shape (lanes, ...)``. What is not known to be well is undefined."""
    loads = {load: None for value in operands if value.undefined is not None for load in value.undefined.by_load}
    found: dict[int, Array] = {}
    for load in loads:
        masks = [_whole(value, load) for value in operands]
        mask = _through(name, masks, arrays, static)
        if mask is None:
            lanes = np.logical_or.reduce(np.broadcast_arrays(*(m.reshape(len(m), -1).any(1) for m in masks)))
            mask = lanes.reshape(-1, *(1 for _ in shape[1:]))
        found[load] = np.broadcast_to(mask, (len(mask), *shape[1:]))
    return Undefined.of([Undefined(found)])


def _whole(value: Value, load: int) -> Array:
    """The elements of a value that a load left undefined, ``(lanes or 1, *shape)``; sizes of 1 where there are none."""
    mask = None if value.undefined is None else value.undefined.by_load.get(load)
    if mask is None:
        return np.zeros((1, *(1 for _ in value.shape)), np.bool_)
    mask = under_rank(mask, len(value.shape))
    return np.broadcast_to(mask, (len(mask), *value.shape))


def _through(name: str, masks: Sequence[Array], arrays: Sequence[Array], static: Mapping[str, Any]) -> Array | None:
    """The elements of the result; None: all of a lane that has some."""
    first, axis = masks[0], static.get("axis", 0)
    found: Any = None
    if name == "bitcast":
        found = first
    elif name == "dot":  # a row of the one, and a column of the other, with all that they are multiplied with
        found = first.any(-1, keepdims=True) | masks[1].any(-2, keepdims=True)
        found = found if len(masks) == 2 else found | masks[2]
    elif name == "flip":
        found = np.flip(first, axis)
    elif name in ("cumsum", "cumprod"):
        found = np.logical_or.accumulate(first, axis)
    elif name in ("sort", "topk"):
        found = first.any(axis, keepdims=True)
    elif name == "gather":
        index, source = arrays[1], np.broadcast_to(first, (len(arrays[1]), *arrays[0].shape[1:]))
        found = np.take_along_axis(source, index.astype(np.int64) % source.shape[axis], axis) | masks[1]
    elif name == "histogram" and len(masks) > 1:  # what it leaves out counts for nothing
        lanes = (first & (arrays[1] != 0) | masks[1]).reshape(len(arrays[1]), -1).any(1)
        found = lanes[:, None]
    elif OPERATIONS[name].family is Family.REDUCTION:
        found = first.any(axis, keepdims=bool(static.get("keep_dims")))
    made: Array | None = found
    return made
