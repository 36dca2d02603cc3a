"""KS701: kernels that do something else when they are traced again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...ir.difference import Difference, first_difference
from ...ir.errors import KernscopeError
from ...ir.graph import Graph
from ...ir.source.frames import author_place
from ..findings import Place
from ..rule import Finding, LintContext, Rule

__all__ = ["RULE"]

_HELP = (
    "a kernel is called once a rank and again for every trace: let what it does depend on its arguments alone, on no "
    "default that it changes, no global, no cache, no random number"
)


def _not_repeated(context: LintContext, options: Mapping[str, Any]) -> Iterator[Finding]:
    again = context.again
    if isinstance(again, Graph):
        difference = first_difference(context.graph, again)
        if difference is not None:
            yield _differs(context.graph, again, difference)
    elif again is not None:
        yield _raised(again)


def _differs(one: Graph, other: Graph, difference: Difference) -> Finding:
    sides = [(one, difference.first), (other, difference.second)]
    said = ["nothing more" if row is None else _said(graph, difference.table, row) for graph, row in sides]
    places = []
    for (graph, row), time in zip(sides, ("first", "second"), strict=True):
        stack = -1 if row is None else int(getattr(graph, difference.table).stack[row])
        location = graph.location(stack)
        if location is not None:
            places.append(Place(f"the {time} time: {said[0 if time == 'first' else 1]}", location))
    return Finding(
        message=f"traced twice, the kernel does not do the same: {said[0]} the first time, {said[1]} the second",
        places=tuple(places),
        nodes=() if difference.table != "nodes" or difference.first is None else (difference.first,),
        help=_HELP,
    )


def _said(graph: Graph, table: str, row: int) -> str:
    """A node or allocation in a few words, without its number and its place."""
    if table == "storages":
        return f"an allocation of {graph.layouts[graph.storages.layout[row]]!r}"
    return str(graph[row]).partition(" = ")[2].partition("  # ")[0]


def _raised(error: Exception) -> Finding:
    text = f"{type(error).__name__}: {error.message if isinstance(error, KernscopeError) else error}"
    places = tuple(Place(role, place) for role, place in error.places) if isinstance(error, KernscopeError) else ()
    if not places and (place := author_place(error.__traceback__)) is not None:
        places = (Place("raised here", place),)
    return Finding(
        message=f"traced a second time, the kernel raises {_first_line(text)}",
        places=places,
        help=_HELP,
    )


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0] if text.strip() else ""


RULE = Rule(
    code="KS701",
    name="not-repeated",
    severity="warning",
    summary="the kernel does something else when it is traced a second time",
    what="""
`kernscope lint` and `ks.lint` trace a kernel a second time where the first took less than a second (always with
`--trace-twice` or `trace_twice=True`), and compare what was recorded: operations, operands, values, places. The first
difference is shown, or what the kernel raised the second time. Names of scopes and tensors may differ.
""",
    why="""
What the tool says holds for the trace that it saw. A default argument that the kernel changes, a global counter, a
cache that keeps handles, or a random number make every call another kernel: also the ranks of one trace, which are
calls.
""",
    example="""
import kernscope as ks
from kernscope import tl


@ks.launch("small", x=ks.hbm((128, 64), "f32"), o=ks.hbm((128, 64), "f32"))
@ks.kernel
def halved(x, o, *, steps=[]):
    steps.append(0.5)
    h = tl.load(x[:, :])
    for step in steps:
        h = h * step
    tl.store(o[:, :], h)
""",
    fix="""
import kernscope as ks
from kernscope import tl


@ks.launch("small", x=ks.hbm((128, 64), "f32"), o=ks.hbm((128, 64), "f32"))
@ks.kernel
def halved(x, o, *, steps=(0.5,)):
    h = tl.load(x[:, :])
    for step in steps:
        h = h * step
    tl.store(o[:, :], h)
""",
    check=_not_repeated,
)
