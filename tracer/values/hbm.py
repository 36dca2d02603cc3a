"""What a kernel holds of HBM: tensors, regions and pointers of them, and references that a composite streams."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import attrs

from ...ir import layout as layouts
from ...ir.dtypes import DType
from ...ir.errors import ArgumentError, IndexingError, KernscopeError, ShapeError, TracedValueError, shown
from ...ir.layout import Layout, Shape
from .refusals import NotInScratch, Owner

__all__ = ["HbmRegion", "HbmTensor", "Pointer", "Ref"]


@attrs.frozen(eq=False, repr=False, slots=False)
class HbmTensor(NotInScratch):
    """A kernel's tensor argument: ``t[a:b, c:d]`` is a region, ``t + n`` a pointer ``n`` elements past its start."""

    name: str
    storage: int
    layout: Layout
    _recorder: Owner = attrs.field(repr=False)

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
    def space(self) -> str:
        """The memory that it lies in, by name: ``"hbm"``."""
        return self._recorder.space_of(self.storage)

    def region(self) -> HbmRegion:
        """The whole tensor as a region."""
        return HbmRegion(self, (0,) * self.ndim, self.shape, (True,) * self.ndim)

    @cached_property
    def _whole(self) -> HbmRegion:
        return self.region()

    def __getitem__(self, items: Any) -> HbmRegion:
        return self._whole[items]

    def __add__(self, elements: int) -> Pointer:
        return Pointer(self, 0) + elements

    __radd__ = __add__

    def __len__(self) -> int:
        if not self.shape:
            raise self._refuse(ShapeError("len() of a tensor without dimensions", help="use .shape"))
        return self.shape[0]

    def __repr__(self) -> str:
        return f"HBM tensor {self.name} {self.layout!r}"

    @property
    def _owner(self) -> Owner:
        return self._recorder


@attrs.frozen(eq=False, repr=False)
class HbmRegion(NotInScratch):
    """A box of an HBM tensor: ``lower`` corner and ``extents`` in the tensor's dimensions; ``kept`` says which of them
    the region's shape shows (an integer index drops one). With ``steps`` every so manieth element of each dimension
    (empty: each), ``extents`` of them. It may leave its tensor until it is loaded or stored."""

    tensor: HbmTensor
    lower: Shape
    extents: Shape
    kept: tuple[bool, ...]
    steps: Shape = ()

    @property
    def upper(self) -> Shape:
        """One past the last element in each dimension."""
        steps = self.steps or (1,) * len(self.lower)
        return tuple(lo + (n - 1) * by + 1 for lo, n, by in zip(self.lower, self.extents, steps, strict=True))

    @property
    def shape(self) -> Shape:
        return tuple(n for n, keep in zip(self.extents, self.kept, strict=True) if keep)

    @property
    def dtype(self) -> DType:
        return self.tensor.dtype

    def __getitem__(self, items: Any) -> HbmRegion:
        """A region of the region. Numbers are offsets, and a negative one lies outside; but of a slice with an open end
        it counts from the end, as in ``t[-64:]`` and ``t[:-1]``."""
        entries = list(items) if isinstance(items, tuple) else [items]
        axes = [axis for axis, keep in enumerate(self.kept) if keep]
        dots = [i for i, entry in enumerate(entries) if entry is Ellipsis]  # `in` would compare handles with ==
        if dots:
            entries[dots[0] : dots[0] + 1] = [slice(None)] * (len(axes) - len(entries) + 1)
        if len(entries) > len(axes):
            raise self._refuse(
                IndexingError(f"{len(entries)} indices for {self!r}", help=f"it has {len(axes)} dimensions")
            )
        lower, extents, kept, steps = list(self.lower), list(self.extents), self.kept, self.steps
        for axis, entry in zip(axes, entries, strict=False):
            if entry.__class__ is slice and entry.step is None:
                start = 0 if entry.start is None else entry.start
                stop = extents[axis] if entry.stop is None else entry.stop
                by = 1
                if start.__class__ is not int or stop.__class__ is not int or start < 0 or stop < 0:
                    start, stop, by, _ = self._bounds(entry, extents[axis])
            else:
                start, stop, by, keep = self._bounds(entry, extents[axis])
                if not keep:
                    kept = (*kept[:axis], False, *kept[axis + 1 :])
            if stop <= start:
                raise self._refuse(
                    ShapeError(
                        f"slice {start}:{stop} of dimension {axis} of {self!r} has no elements",
                        help="the stop must be above the start (negative numbers count from the end only where the "
                        "other end is open: t[-64:], t[:-1])",
                    )
                )
            if by == 1 and not steps:
                lower[axis] += start
                extents[axis] = stop - start
                continue
            steps = steps or (1,) * len(lower)
            lower[axis] += start * steps[axis]
            extents[axis] = -(-(stop - start) // by)
            steps = (*steps[:axis], steps[axis] * by, *steps[axis + 1 :])
        return HbmRegion(self.tensor, tuple(lower), tuple(extents), kept, steps)

    def _bounds(self, entry: Any, size: int) -> tuple[int, int, int, bool]:
        """Start, stop and step, and whether the dimension is kept."""
        if entry is None:
            raise self._refuse(IndexingError("None in an HBM region", help="load it, then h[:, None]"))
        try:
            if not isinstance(entry, slice):
                start = layouts.as_index(entry)
                return start, start + 1, 1, False
            by = 1 if entry.step is None else layouts.as_index(entry.step)
            if by < 1:
                raise IndexingError(
                    f"slice step {by}",
                    help="regions go forward, by 1 or more: load it, then tl.flip(h, dim) reverses it",
                )
            start = 0 if entry.start is None else layouts.as_index(entry.start)
            stop = size if entry.stop is None else layouts.as_index(entry.stop)
            if entry.stop is None and start < 0:
                start += size
            if entry.start is None and stop < 0:
                stop += size
            return start, stop, by, True
        except KernscopeError as error:
            raise self._refuse(error) from None

    @property
    def _owner(self) -> Owner:
        return self.tensor._recorder

    def __repr__(self) -> str:
        steps = self.steps or (1,) * len(self.lower)
        parts = ", ".join(
            (f"{lo}:{up}" if by == 1 else f"{lo}:{up}:{by}") if keep else str(lo)
            for lo, up, by, keep in zip(self.lower, self.upper, steps, self.kept, strict=True)
        )
        return f"{self.tensor.name}[{parts}]"


@attrs.frozen(eq=False, repr=False)
class Pointer(NotInScratch):
    """A place in an HBM tensor, ``offset`` elements past its start."""

    tensor: HbmTensor
    offset: int

    @property
    def dtype(self) -> DType:
        return self.tensor.dtype

    def _moved(self, elements: int) -> int:
        """By how many elements. Raises ``IndexingError``, and for a handle, of which Triton makes a tile of pointers,
        ``TracedValueError``."""
        try:
            return layouts.as_index(elements)
        except TracedValueError as error:
            error.help = (
                "there are no tiles of pointers: loop over Python ranges and load a region, "
                f"tl.load({self.tensor.name}[start : start + n]), at a ragged edge with pad= (tl.store: clip=True) in "
                "the place of a mask; from a pointer on, tl.load(pointer, (n,))"
            )
            raise

    def __add__(self, elements: int) -> Pointer:
        try:
            return Pointer(self.tensor, self.offset + self._moved(elements))
        except IndexingError:
            raise self._refuse(
                ArgumentError(
                    f"{self!r} + {shown(elements)}",
                    help="a pointer moves by a Python integer of elements; to compute with its values, tl.load them",
                )
            ) from None

    __radd__ = __add__

    def __sub__(self, elements: int) -> Pointer:
        try:
            return self + -self._moved(elements)
        except IndexingError:
            raise self._refuse(
                ArgumentError(f"{self!r} - {shown(elements)}", help="a pointer moves by a Python integer of elements")
            ) from None

    @property
    def _owner(self) -> Owner:
        return self.tensor._recorder

    def __repr__(self) -> str:
        return f"{self.tensor.name}+{self.offset}"


@attrs.frozen(eq=False, repr=False)
class Ref(NotInScratch):
    """An operand of a composite that stays in HBM and is streamed tile by tile: a matrix at ``offset`` elements."""

    tensor: HbmTensor
    offset: int
    layout: Layout
    _first = "pass it to tl.composite, or tl.load the region"

    @property
    def _owner(self) -> Owner:
        return self.tensor._recorder

    def __repr__(self) -> str:
        return f"ref of {self.tensor.name}+{self.offset} {self.layout!r}"

    @property
    def shape(self) -> Shape:
        return self.layout.shape

    @property
    def dtype(self) -> DType:
        return self.layout.dtype
