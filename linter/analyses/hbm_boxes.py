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
    extents = box_of_view(layout, access.layout)
    if extents is None:
        return f"elements {access.offset:,} to {access.offset + access.layout.span:,} of `{name}`"
    corner, rest = [], access.offset
    for stride in layout.strides:
        at, rest = divmod(rest, stride) if stride else (0, rest)
        corner.append(at)
    return f"`{name}[{', '.join(f'{a}:{a + n}' for a, n in zip(corner, extents, strict=True))}]`"
