"""KS6xx: are numbers kept precisely enough."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from ...ir.forms.text import quote
from ..analyses.accumulation import Accumulation, find_narrow_accumulations
from ..fixes.syntax import syntax_of
from ..fixes.widening import widen_accumulator
from ..rule import Finding, LintContext, Option, Rule
from ..wording.counts import times

__all__ = ["RULE"]


def _narrow_accumulation(context: LintContext, options: Mapping[str, Any]) -> Iterator[Finding]:
    graph = context.graph
    for found in find_narrow_accumulations(graph, int(options["iterations"])):
        made = int(graph.storages.stack[found.storage])
        added = context.stack_of(found.node)
        places = [("accumulated here", added)]
        if found.keeper is not None:
            places.append((f"kept in {found.dtype} from here on", context.stack_of(found.keeper)))
        if made != added:
            places.append((f"made here, in {found.dtype}", made))
        text = _help(context, found, made, added)
        keeper = () if found.keeper is None else (context.stack_of(found.keeper),)
        fix = widen_accumulator(context, made, (added, *keeper), found.dtype, text) if found.in_place else None
        yield Finding(
            message=f"{context.name_of(found.storage)} is accumulated in {found.dtype} across iterations"
            f"{times(len(found.nodes))}",
            places=context.places(*places),
            nodes=found.nodes,
            help=text,
            fixes=() if fix is None else (fix,),
        )


def _help(context: LintContext, found: Accumulation, made: int, added: int) -> str:
    graph = context.graph
    name = quote(graph.names[graph.storages.name[found.storage]])
    plain = name if name.isidentifier() else "value"
    once = f"convert once, after the loop: `{plain}.to({found.dtype!r})`"
    if graph[found.node].op == "dot":
        shape = graph.layouts[graph.storages.layout[found.storage]].shape
        return (
            f"make `{plain}` at {context.line(made)} in tl.float32, `tl.zeros({shape}, tl.float32)`, "
            f"{_without_out_dtype(context, added)}and {once}"
        )
    if found.in_place and made != added:
        return f"make `{plain}` at {context.line(made)} in tl.float32, add in it at {context.line(added)}, and {once}"
    return f"start the loop from a tl.float32 value, so that {context.line(added)} adds in it, and {once}"


def _without_out_dtype(context: LintContext, added: int) -> str:
    """What to leave out of the `tl.dot` at a line: nothing where its source has no such word."""
    place = context.location(added)
    syntax = syntax_of(place) if place is not None else None
    call = syntax.node_at(place) if syntax is not None and place is not None else None
    if isinstance(call, ast.Call) and all(keyword.arg not in ("out_dtype", None) for keyword in call.keywords):
        return ""
    return f"leave out `out_dtype=` at {context.line(added)}, "


RULE = Rule(
    code="KS601",
    name="narrow-accumulation",
    severity="warning",
    summary="a persistent value is accumulated (add, sub, fma, dot; not a running max) in f16, bf16 or f8 across "
    "iterations",
    what="""
Follows what a sum of one line takes in: where that is the sum of the same line in the iteration before, through
`copy_to`, scaling, selection and conversion, and the value is a float of 16 bits or fewer on the way around, its
rounding errors add up. A running maximum or minimum loses nothing and is no fault; nor is a sum inside one operation.
""",
    why="""
f16 has 11 significant bits, bf16 has 8, f8 has 3 or 4. Once the sum is a few hundred times larger than what is added,
the addition changes nothing at all. Long contexts get worse results than short ones, and no small test shows it.
""",
    example="""
import kernscope as ks
from kernscope import tl


@ks.launch("small", x=ks.hbm((128, 512), "f16"), o=ks.hbm((128, 128), "f16"))
@ks.kernel
def row_sum(x, o):
    total = tl.zeros((128, 128), tl.float16)
    for j in range(4):
        with tl.scratch_scope():
            tl.copy_to(total, total + tl.load(x[:, j * 128 : (j + 1) * 128]))
    tl.store(o[:, :], total)
""",
    fix="""
import kernscope as ks
from kernscope import tl


@ks.launch("small", x=ks.hbm((128, 512), "f16"), o=ks.hbm((128, 128), "f16"))
@ks.kernel
def row_sum(x, o):
    total = tl.zeros((128, 128), tl.float32)
    for j in range(4):
        with tl.scratch_scope():
            tl.copy_to(total, total + tl.load(x[:, j * 128 : (j + 1) * 128]))
    tl.store(o[:, :], total.to(tl.float16))
""",
    check=_narrow_accumulation,
    options=(Option("iterations", 2, "from how many sums of one line on it is reported", lower=2),),
)
