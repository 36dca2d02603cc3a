"""KS503: loads of what scratch already holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ...ir.forms.text import quote
from ...ir.ops import OPERATIONS
from ..analyses.hbm_boxes import region_text
from ..analyses.reloads import Reload, find_reloads
from ..edits import Fix
from ..fixes.moving import load_before_loop, use_held
from ..rule import Finding, LintContext, Rule
from ..wording.counts import times

__all__ = ["RULE"]


def _redundant_load(context: LintContext, options: Mapping[str, Any]) -> Iterator[Finding]:
    graph = context.graph
    groups: dict[tuple[int, int], list[Reload]] = {}
    for reload in find_reloads(graph):
        groups.setdefault((context.stack_of(reload.node), context.stack_of(reload.held_by)), []).append(reload)
    for (again, before), group in groups.items():
        first = group[0]
        source, target = graph[first.node].reads[0], graph[first.held_by].writes[0]
        moved = int(graph.nodes.work0[[reload.node for reload in group]].sum())
        same = again == before
        pairs = [(reload.node, reload.held_by) for reload in group]
        fix = load_before_loop(context, again, len(group)) if same else use_held(context, again, before, pairs)
        holder = "the handle of an earlier iteration" if same else context.name_of(target.storage.row)
        yield Finding(
            message=f"{region_text(source)} is loaded again although {holder} still holds it unchanged"
            f"{times(len(group))}, {moved:,} B in all",
            places=context.places(
                ("loaded again here", again),
                *([] if same else [("loaded here, into a handle that is still there", before)]),
            ),
            nodes=tuple(reload.node for reload in group),
            help=_help(context, quote(target.storage.name), again, before, len(group), fix),
            fixes=() if fix is None else (fix,),
        )


def _help(context: LintContext, name: str, again: int, before: int, repeats: int, fix: Fix | None) -> str:
    if fix is not None:
        return fix.title
    graph = context.graph
    every = int(np.count_nonzero((graph.nodes.stack == again) & OPERATIONS.loads[graph.nodes.op]))
    line = context.line(again)
    if again == before:
        keep = "keep its handles in a list, by what they hold"
        return f"{repeats:,} of the {every:,} loads of {line} bring what an earlier one did: {keep}"
    plain = f"`{name}`" if name.isidentifier() else "the handle"
    held = f"{plain} of {context.line(before)}"
    if repeats < every:
        return (
            f"{repeats:,} of the {every:,} loads of {line} bring what {held} holds: use it for these, and load the rest"
        )
    return f"hand {held} on to {line}, and use it there"


RULE = Rule(
    code="KS503",
    name="redundant-load",
    severity="info",
    summary="the same region is loaded again although a live handle holds it unchanged",
    what="""
Compares each load with those before it on its rank: the same region of the same tensor, with the same padding, in a
handle whose scope is still open and that nothing has written to since. A region that is stored to in between, or by
another rank at any time, is left alone; so are the loads of composites, which stream on purpose.
""",
    why="""
Scratch is there to spare HBM traffic. The second load takes DMA time and bytes of its own, for a value that is at hand.
It is a hint: where the first handle is far away in the source, loading again can be the clearer way.
""",
    example="""
import kernscope as ks
from kernscope import tl


@ks.launch("small", w=ks.hbm((1, 128), "f32"), x=ks.hbm((512, 128), "f32"), o=ks.hbm((512, 128), "f32"))
@ks.kernel
def scale(w, x, o):
    weight = tl.load(w[:, :])
    for i in range(4):
        with tl.scratch_scope():
            rows = slice(i * 128, (i + 1) * 128)
            tl.store(o[rows, :], tl.load(x[rows, :]) * weight + tl.load(w[:, :]))
""",
    fix="""
import kernscope as ks
from kernscope import tl


@ks.launch("small", w=ks.hbm((1, 128), "f32"), x=ks.hbm((512, 128), "f32"), o=ks.hbm((512, 128), "f32"))
@ks.kernel
def scale(w, x, o):
    weight = tl.load(w[:, :])
    for i in range(4):
        with tl.scratch_scope():
            rows = slice(i * 128, (i + 1) * 128)
            tl.store(o[rows, :], tl.load(x[rows, :]) * weight + weight)
""",
    check=_redundant_load,
)
