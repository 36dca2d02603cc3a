"""KS502: ranks that touch the same bytes of HBM, one writing, in no order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...ir.forms.text import quote
from ...ir.grid import PROGRAM, program_text
from ...ir.tables import Mode
from ..analyses.hbm_boxes import region_text
from ..rule import Finding, LintContext, Rule

__all__ = ["RULE"]


def _race(context: LintContext, options: Mapping[str, Any]) -> Iterator[Finding]:
    graph = context.graph
    for race in context.races:
        name = quote(graph.names[graph.storages.name[race.storage]])
        roles = [
            (_access_role(context, node, race.storage), context.stack_of(node)) for node in (race.first, race.second)
        ]
        column = graph.program if graph.grid else graph.nodes.rank
        units = sorted({int(unit) for unit in column[list(race.nodes)]})
        each = [
            program_text(graph.grid, unit).removeprefix(f"{PROGRAM} ") if graph.grid else str(unit) for unit in units
        ]
        what = PROGRAM if graph.grid else "rank"
        axis = "tl.program_id" if graph.grid else "tl.program_id(0)"
        yield Finding(
            message=f"{what}s {_listed(each)} touch the same bytes of `{name}`, one writes, and nothing orders them"
            + (f" ({len(race.nodes):,} accesses)" if len(race.nodes) > 2 else ""),
            places=context.places(*roles),
            nodes=race.nodes,
            help=f"give each {what} a part of `{name}` of its own (slice by {axis}), or send the data to the "
            "rank that needs it, or tl.notify it and tl.wait_for there; any other "
            "message orders an access of HBM only where it depends on it through scratch",
        )


def _access_role(context: LintContext, node: int, storage: int) -> str:
    graph = context.graph
    accesses = [a for a in graph[node].accesses if a.storage.row == storage]
    verb = "writes" if any(a.mode is Mode.WRITE for a in accesses) else "reads"
    return f"{graph.describe_program(node)} {verb} {region_text(accesses[0])} here"


def _listed(ranks: list[str]) -> str:
    shown = ", ".join(ranks[:-1]) if len(ranks) <= 4 else f"{ranks[0]}, {ranks[1]}, ..."
    return f"{shown} and {ranks[-1]}"


RULE = Rule(
    code="KS502",
    name="hbm-race",
    severity="error",
    summary="two ranks touch the same HBM bytes, one writing, and no path of edges joins them either way",
    what="""
Compares, element by element, what the ranks load from and store to each HBM tensor. Where two ranks touch the same
bytes and one of them writes, a path of edges must lead from one access to the other: through data in scratch, and
messages, or a `tl.notify` after the one and a `tl.wait_for` before the other. HBM itself makes nobody wait, and neither
does the order of lines. The programs of a launch grid are compared as ranks are, also those that one rank happens to
run one after the other: dealt to more ranks, they run side by side. Atomics of one kind, such as `tl.atomic_add`, may
meet: their order changes nothing.
""",
    why="""
Ranks run side by side. Whichever comes first decides what is read, or what stays in memory, and that can differ from
run to run.
""",
    example="""
import kernscope as ks
from kernscope import tl


@ks.launch("two", ranks=2, x=ks.hbm((256, 64), "f32"), o=ks.hbm((256, 64), "f32"))
@ks.kernel
def double(x, o):
    rank = tl.program_id(0)
    h = tl.load(x[rank * 128 : (rank + 1) * 128, :])
    tl.store(o[0:128, :], h * 2.0)
""",
    fix="""
import kernscope as ks
from kernscope import tl


@ks.launch("two", ranks=2, x=ks.hbm((256, 64), "f32"), o=ks.hbm((256, 64), "f32"))
@ks.kernel
def double(x, o):
    rank = tl.program_id(0)
    h = tl.load(x[rank * 128 : (rank + 1) * 128, :])
    tl.store(o[rank * 128 : (rank + 1) * 128, :], h * 2.0)
""",
    check=_race,
)
