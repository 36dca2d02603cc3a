"""Places in HBM as text."""

from __future__ import annotations

from ...ir.dependence.regions import box_of_view
from ...ir.forms.text import quote
from ...ir.graph import Access

__all__ = ["region_text"]


def region_text(access: Access) -> str:
    """An access of HBM for a reader: ``o[0:128, 64:128]``, or the elements that it spans, in backticks."""
    name, layout = quote(access.storage.name), access.storage.layout
    if access.kind.is_indexed:
        what = f"{access.graph[int(access.graph.accesses.node[access.row])].attributes['index'].count:,} elements among"
        return f"{what} {access.offset:,} to {access.offset + access.layout.span:,} of `{name}`"
    extents, corner, rest = box_of_view(layout, access.layout), [], access.offset
    for stride in layout.strides:
        at, rest = divmod(rest, stride) if stride else (0, rest)
        corner.append(at)
    # What begins near the end of a row goes on in the next one.
    if extents is None or any(at + n > of for at, n, of in zip(corner, extents, layout.shape, strict=True)):
        return f"elements {access.offset:,} to {access.offset + access.layout.span:,} of `{name}`"
    return f"`{name}[{', '.join(f'{a}:{a + n}' for a, n in zip(corner, extents, strict=True))}]`"
