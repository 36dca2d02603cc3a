"""Operations that move rows of HBM by an index tile, whose values are data: indirect DMA.

What they access is known while tracing as the region that the index points into: that covers it, for dependence and for
lint. Which rows of it are moved is known when they are executed; how many, from the shape of the index.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..dtypes import DType
from ..errors import DTypeError, IndexTileError, ShapeError
from ..layout import Layout, Shape
from .atomics import combined, expect_numbers
from .elementwise import TABLE
from .numbers import Array
from .operation import Family, Kind, Operand, Operation, Space, Work

__all__: list[str] = []


def _tile_shape(region: Operand, index: Operand, axis: int) -> Shape:
    """As of ``numpy.take``: the index's shape in the place of the region's axis."""
    assert isinstance(region, Layout) and isinstance(index, Layout)
    if not index.dtype.is_integer:
        raise DTypeError(f"an index of {index.dtype}", help="an index tile holds integers: i.to(tl.int32)")
    if not 0 <= axis < region.ndim:
        raise ShapeError(f"axis {axis} of a region of shape {region.shape}", help="name one of its axes, from 0 on")
    return region.shape[:axis] + index.shape + region.shape[axis + 1 :]


def _places(index: Array, size: int) -> Array:
    """The index as numbers of rows. Raises ``IndexTileError`` for one that is none of them: none counts from the
    end."""
    places = index.astype(np.int64)
    wrong = np.argwhere((places < 0) | (places >= size))
    if len(wrong):
        at = ", ".join(map(str, wrong[0].tolist()))
        more = f" (and {len(wrong) - 1:,} more)" if len(wrong) > 1 else ""
        raise IndexTileError(
            f"element [{at}] of the index is {int(index[tuple(wrong[0])])}, and the region has {size:,} rows{more}",
            help=f"keep the index in 0 to {size - 1}: tl.clamp(i, 0, {size - 1}) does; no number counts from the end",
        )
    return places


def _take_rule(operands: Sequence[Operand], *, axis: int) -> tuple[Shape, DType]:
    region, index = operands
    assert isinstance(region, Layout)
    return _tile_shape(region, index, axis), region.dtype


def _take(region: Array, index: Array, *, axis: int, result: DType, operands: Sequence[Operand]) -> Array:
    return np.take(region, _places(index, region.shape[axis]), axis=axis)


def _scatter_rule(operands: Sequence[Operand], *, axis: int, how: str = "") -> tuple[Shape, DType]:
    tile, region, index = operands
    assert isinstance(tile, Layout) and isinstance(region, Layout)
    shape = _tile_shape(region, index, axis)
    if tile.shape != shape:
        raise ShapeError(
            f"a tile of shape {tile.shape}, where a region of {region.shape} and an index of {operands[2]!r} take "
            f"{shape}",
            help="the tile has the index's shape in the place of the region's axis",
        )
    if tile.dtype is not region.dtype:
        raise DTypeError(
            f"a tile of {tile.dtype} into a tensor of {region.dtype}",
            help=f'convert the tile, with .to("{region.dtype}")',
        )
    if how:
        expect_numbers(how, region.dtype)
    return region.shape, region.dtype


def _by_row(tile: Array, index: Array, axis: int) -> Array:
    """The tile as ``(rows, ...)``: one entry for each element of the index, in its order."""
    ahead = np.moveaxis(tile, range(axis, axis + index.ndim), range(index.ndim))
    return ahead.reshape(index.size, *ahead.shape[index.ndim :])


def _scatter(
    tile: Array, region: Array, index: Array, *, axis: int, result: DType, operands: Sequence[Operand]
) -> Array:
    left = region.copy()
    rows, places = np.moveaxis(left, axis, 0), _places(index, region.shape[axis]).reshape(-1)
    # Of equal places the last one stays: numpy promises no order, so the others are left out.
    _, first = np.unique(places[::-1], return_index=True)
    last = len(places) - 1 - first
    rows[places[last]] = _by_row(tile, index, axis)[last]
    return left


def _scatter_atomic(
    tile: Array, region: Array, index: Array, *, axis: int, how: str, result: DType, operands: Sequence[Operand]
) -> Array:
    left = region.copy()
    rows, places = np.moveaxis(left, axis, 0), _places(index, region.shape[axis]).reshape(-1)
    for place, row in zip(places.tolist(), _by_row(tile, index, axis), strict=True):
        one = slice(place, place + 1)
        rows[one] = combined(how, np.ascontiguousarray(rows[one]), row[None])
    return left


def _result_moved(operands: Sequence[Operand], result: Layout) -> Work:
    return (result.nbytes, 0, 0)


def _tile_moved(operands: Sequence[Operand], result: Layout) -> Work:
    (tile, *_) = operands
    assert isinstance(tile, Layout)
    return (tile.nbytes, 0, 0)


TABLE.add(
    Operation(
        name="take",
        family=Family.MEMORY,
        kind=Kind.TRANSFER,
        log="memory/dma_gather",
        rule=_take_rule,
        evaluate=_take,
        work=_result_moved,
        doc="Read those rows of a region of HBM that an index tile names into scratch; the bytes of these are paid "
        "for. Example: ``tokens = tl.take(table[:, :], ids)``.",
        reads_from=Space.GLOBAL,
        then_from=(Space.SCRATCH,),
        asynchronous=True,
        by_index=True,
        like="load",
        public=False,
    )
)
TABLE.add(
    Operation(
        name="scatter",
        family=Family.MEMORY,
        kind=Kind.TRANSFER,
        log="memory/dma_scatter",
        rule=_scatter_rule,
        evaluate=_scatter,
        work=_tile_moved,
        doc="Write a tile's rows over those rows of a region of HBM that an index tile names; the others keep what "
        "they hold, and of equal places the last one stays. Example: ``tl.scatter(o[:, :], ids, tile)``.",
        then_from=(Space.GLOBAL, Space.SCRATCH),
        writes_to=Space.GLOBAL,
        by_index=True,
        like="store",
        public=False,
    )
)
TABLE.add(
    Operation(
        name="scatter_atomic",
        family=Family.MEMORY,
        kind=Kind.TRANSFER,
        log="memory/scatter_atomic",
        rule=_scatter_rule,
        evaluate=_scatter_atomic,
        work=_tile_moved,
        doc="Change those rows of a region of HBM that an index tile names by a tile's rows (``how``: add, max, min), "
        "each element as one step; equal places in turn. Example: ``tl.atomic_add(o[:, :], tile, index=ids)``.",
        then_from=(Space.GLOBAL, Space.SCRATCH),
        writes_to=Space.GLOBAL,
        by_index=True,
        atomic=True,
        like="store",
        public=False,
    )
)
