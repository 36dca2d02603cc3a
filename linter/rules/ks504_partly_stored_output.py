"""KS504: outputs of which a part is never stored."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ...ir.forms.text import quote
from ...ir.graph import Graph
from ...ir.tables import IntArray, Mode
from ...ir.unstored import Unstored, access_boxes, cover_counts, find_unstored
from ..rule import Finding, LintContext, Rule
from ..wording.counts import times

__all__ = ["RULE"]

_LINES_SHOWN = 4
#: Of a tensor whose accesses cut it into more cells it is not worked out whether it is an output: nothing is reported.
_MOST_CELLS = 1 << 24


def _partly_stored(context: LintContext, options: Mapping[str, Any]) -> Iterator[Finding]:
    graph = context.graph
    for unstored in find_unstored(graph):
        if not _is_output(graph, unstored) or _races(context, unstored.storage):
            continue
        name = quote(unstored.name)
        stacks = graph.nodes.stack[unstored.stores]
        lines, first, counts = np.unique(stacks, return_index=True, return_counts=True)
        places = [
            (f"stores the rest here{times(int(counts[i]))}", int(lines[i])) for i in np.argsort(first, kind="stable")
        ]
        yield Finding(
            message=str(unstored),
            places=context.places(*places[:_LINES_SHOWN]),
            nodes=tuple(np.unique(unstored.stores).tolist()),
            help="store the rest, too (a ragged edge with `clip=True`), or, if it is meant to keep what it holds, give "
            f"`{name}` its initial values: in the launch an array of shape {unstored.shape} in the place of ks.hbm",
        )


def _races(context: LintContext, storage: int) -> bool:
    """Whether KS502 speaks of the tensor: stores that miss their place are one fault."""
    return any(race.storage == storage for race in context.races)


def _is_output(graph: Graph, unstored: Unstored) -> bool:
    """Whether a tensor begins without values, and is more than the kernel's own notes: it was traced without an array,
    nothing is loaded from it that was not stored before, and not all that is stored is loaded again. Another rank's
    stores may come before any load. KS501 speaks of what is lost beyond its edge."""
    row, accesses, ranks = unstored.storage, graph.accesses, graph.nodes.rank
    if unstored.name in graph.initial:
        return False
    if any(fault.storage == row and graph[fault.node].op == "store" for fault in graph.bounds_faults):
        return False
    mine = np.flatnonzero(accesses.storage == row)
    reads = accesses.mode[mine] == Mode.READ
    if not reads.any():
        return True
    access, lower, upper = access_boxes(graph, mine)
    order = np.argsort(access, kind="stable")
    access, lower, upper = access[order], lower[order], upper[order]
    edges = tuple(np.unique(np.concatenate((a, b))) for a, b in zip(lower.T, upper.T, strict=True))
    if math.prod(map(len, edges)) > _MOST_CELLS:
        return False
    first = np.stack([np.searchsorted(e, a) for e, a in zip(edges, lower.T, strict=True)], axis=1)
    last = np.stack([np.searchsorted(e, b) for e, b in zip(edges, upper.T, strict=True)], axis=1)
    reading, rank = accesses.mode[access] == Mode.READ, ranks[accesses.node[access]]
    stored = cover_counts(edges, lower[~reading], upper[~reading])
    if not np.any((stored > 0) & (cover_counts(edges, lower[reading], upper[reading]) == 0)):
        return False
    for one in np.unique(rank[reading]).tolist():
        own = rank == one
        known = stored > cover_counts(edges, lower[own & ~reading], upper[own & ~reading])
        if not _loads_what_it_stored(known, reading[own], first[own], last[own]):
            return False
    return True


def _loads_what_it_stored(known: IntArray, reading: IntArray, first: IntArray, last: IntArray) -> bool:
    """Whether the boxes of cells that are read, in this order, were all ``known`` or written before."""
    for reads, low, high in zip(reading.tolist(), first.tolist(), last.tolist(), strict=True):
        box = tuple(slice(a, b) for a, b in zip(low, high, strict=True))
        if not reads:
            known[box] = True
        elif not known[box].all():
            return False
    return True


RULE = Rule(
    code="KS504",
    name="partly-stored-output",
    severity="warning",
    summary="a part of an output is stored, and the rest of it never, by any rank",
    what="""
Takes the boxes of all stores to a tensor, those of all ranks together, and reports what none of them covers. A tensor
that was traced with an array holds values from the beginning, and so does one of which something is loaded before it is
stored: they are left alone. So is one from which all that is stored is loaded again (the kernel's own notes), and one
of which KS501 or KS502 reports a store.
""",
    why="""
What is never stored is whatever lay in HBM before. In a test that may be zeros, which a reference of zeros agrees with;
on a device it is another kernel's data. Executing a graph fills outputs with NaN (all bits set) before it begins, for
that reason.
""",
    example="""
import kernscope as ks
from kernscope import tl


@ks.launch("small", x=ks.hbm((512, 128), "f32"), o=ks.hbm((512, 128), "f32"))
@ks.kernel
def double(x, o):
    for i in range(3):
        with tl.scratch_scope():
            rows = slice(i * 128, (i + 1) * 128)
            tl.store(o[rows, :], tl.load(x[rows, :]) * 2.0)
""",
    fix="""
import kernscope as ks
from kernscope import tl


@ks.launch("small", x=ks.hbm((512, 128), "f32"), o=ks.hbm((512, 128), "f32"))
@ks.kernel
def double(x, o):
    for i in range(4):
        with tl.scratch_scope():
            rows = slice(i * 128, (i + 1) * 128)
            tl.store(o[rows, :], tl.load(x[rows, :]) * 2.0)
""",
    check=_partly_stored,
)
