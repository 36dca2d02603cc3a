"""KS205: commands that write over what they read, in another place or order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ...ir.graph import Access, Graph
from ...ir.layout import Layout
from ...ir.ops import OPERATIONS, Kind, Space
from ...ir.tables import IntArray, Mode
from ..analyses.hbm_boxes import region_text
from ..rule import Finding, LintContext, Rule
from ..wording.counts import times

__all__ = ["RULE"]

_BY_ELEMENT = OPERATIONS.mask(
    # An atomic changes each element that it reads, and no other.
    lambda op: op.in_parts or (op.writes_to is Space.GLOBAL and Space.GLOBAL in op.then_from)
)
_PRODUCTS = OPERATIONS.mask(lambda op: op.kind is Kind.MATMUL)


def _overlapping_operands(context: LintContext, options: Mapping[str, Any]) -> Iterator[Finding]:
    """One finding for each line and operand."""
    graph = context.graph
    groups: dict[tuple[int, int], list[int]] = {}
    for read in _overlaps(graph).tolist():
        node = int(graph.accesses.node[read])
        operand = read - int(graph.access_start[node])
        groups.setdefault((context.stack_of(node), operand), []).append(read)
    for (stack, _), found in groups.items():
        nodes = np.unique(graph.accesses.node[found]).tolist()
        first = graph[nodes[0]]
        read, written = Access(graph, found[0]), first.writes[0]
        made = int(graph.storages.stack[read.storage.row])
        yield Finding(
            message=f"{first.op} writes {_place(context, written)} and reads {_place(context, read)}, which shares "
            f"bytes with it, in one command{times(len(nodes))}",
            places=context.places((_difference(first.op, read, written), stack), ("made here", made)),
            nodes=tuple(nodes),
            help=_help(first.op),
        )


def _overlaps(graph: Graph) -> IntArray:
    """The accesses (rows) that read bytes which their own node writes in another place or order."""
    accesses, nodes = graph.accesses, graph.nodes
    reads = np.flatnonzero(accesses.mode == Mode.READ)
    node = accesses.node[reads]
    write = graph.access_start[node + 1] - 1  # what a node writes is its last access
    own = (accesses.mode[write] == Mode.WRITE) & (accesses.storage[write] == accesses.storage[reads])
    reads, write, node = reads[own], write[own], node[own]
    shift = accesses.offset[write] - accesses.offset[reads]
    walks = _walks(graph.layouts)
    same = (shift == 0) & (walks[accesses.layout[reads]] == walks[accesses.layout[write]])
    # The accumulator is added to element by element; the factors are each read for many elements.
    accumulator = _PRODUCTS[nodes.op[node]] & (reads - graph.access_start[node] == 2)
    harmless = same & (_BY_ELEMENT[nodes.op[node]] | accumulator)
    reads, write, shift = reads[~harmless], write[~harmless], shift[~harmless]
    kinds = np.column_stack((accesses.layout[reads], accesses.layout[write], shift))
    kinds, which = np.unique(kinds, axis=0, return_inverse=True)
    meets = np.array([_share(graph.layouts[a], graph.layouts[b], by) for a, b, by in kinds.tolist()], dtype=np.bool_)
    overlapping: IntArray = reads[meets[which.reshape(-1)]]
    return overlapping


def _walks(layouts: tuple[Layout, ...]) -> IntArray:
    """A number for each layout, the same for those that visit the same elements in the same order."""
    numbers: dict[tuple[tuple[int, int], ...], int] = {}
    walks = [tuple((n, s) for n, s in zip(each.shape, each.strides, strict=True) if n > 1) for each in layouts]
    return np.array([numbers.setdefault(walk, len(numbers)) for walk in walks], dtype=np.int64)


def _share(read: Layout, written: Layout, shift: int) -> bool:
    """Whether two views of one storage, the second one so many elements further, have an element in common."""
    if shift >= read.span or -shift >= written.span:
        return False
    return bool(np.intersect1d(_elements(read), _elements(written) + shift).size)


def _elements(layout: Layout) -> IntArray:
    elements = np.zeros(1, dtype=np.int64)
    for n, stride in zip(layout.shape, layout.strides, strict=True):
        if stride:
            elements = (elements[:, None] + np.arange(n) * stride).reshape(-1)
    return elements


def _place(context: LintContext, access: Access) -> str:
    return region_text(access) if access.storage.name else context.name_of(access.storage.row)


def _difference(op: str, read: Access, written: Access) -> str:
    if read.offset == written.offset and read.layout is written.layout:
        what = "a factor" if op == "dot" else "an element"
        return f"{what} is read for many elements of the result, which is written over it"
    if read.offset != written.offset:
        return f"what is written begins {written.offset - read.offset:+,} elements from what is read"
    return f"read as {read.layout!r}, written as {written.layout!r}"


def _help(op: str) -> str:
    if op == "dot":
        return "accumulate into a handle that shares no bytes with the factors, then `tl.copy_to` it over them"
    if op != "copy_to":
        return f"leave `out=` of `tl.{op}` away: the result then has bytes of its own"
    return (
        "go through a handle of its own: `t = tl.empty(src.shape, src.dtype)`, `tl.copy_to(t, src)`, then "
        "`tl.copy_to(dst, t)`"
    )


RULE = Rule(
    code="KS205",
    name="overlapping-operands",
    severity="error",
    summary="one command writes bytes that it reads, at another offset or in another order",
    what="""
Compares, element by element, what a command writes with what it reads of the same allocation. The very same elements in
the same order are fine where each is read only for itself: in elementwise operations, in `copy_to`, and in the
accumulator of `dot`. Parts that share no element are fine, too.
""",
    why="""
An engine reads and writes as it goes. Whether it has read an element before it writes over it depends on its width and
its order, which nothing promises: the result is that of one device, or of none. Executing on numpy reads everything
first, so that the numbers agree with a reference and tell nothing.
""",
    example="""
import kernscope as ks
from kernscope import tl


@ks.launch("small", x=ks.hbm((128, 64), "f32"), o=ks.hbm((128, 64), "f32"))
@ks.kernel
def shift(x, o):
    a = tl.load(x[:, :])
    tl.copy_to(a[1:128, :], a[0:127, :])
    tl.store(o[:, :], a)
""",
    fix="""
import kernscope as ks
from kernscope import tl


@ks.launch("small", x=ks.hbm((128, 64), "f32"), o=ks.hbm((128, 64), "f32"))
@ks.kernel
def shift(x, o):
    a = tl.load(x[:, :])
    kept = tl.empty((127, 64), tl.float32)
    tl.copy_to(kept, a[0:127, :])
    tl.copy_to(a[1:128, :], kept)
    tl.store(o[:, :], a)
""",
    check=_overlapping_operands,
)
