"""KS501: loads and stores that leave their HBM tensor."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from ...ir.forms.text import quote
from ...ir.launch_facts import FactKind, LaunchFact
from ...ir.tables import BoundsFault
from ..analyses.padding import reaches_nothing_stored
from ..edits import Fix
from ..fixes.filling import clip_store, pad_load
from ..rule import Finding, LintContext, Rule
from ..wording.counts import times
from ..wording.launches import fact_places

__all__ = ["RULE"]


def _out_of_bounds(context: LintContext, options: Mapping[str, Any]) -> Iterator[Finding]:
    """One finding for each line and tensor: it words the first fault there."""
    groups: dict[tuple[int, int], list[BoundsFault]] = {}
    for fault in context.graph.bounds_faults:
        groups.setdefault((context.stack_of(fault.node), fault.storage), []).append(fault)
    for (stack, storage), group in groups.items():
        first = group[0]
        graph = context.graph
        name = quote(graph.names[graph.storages.name[storage]])
        shape = graph.layouts[graph.storages.layout[storage]].shape
        op = graph[first.node].op
        fix = _fix(context, stack, group) if not _is_flat(shape, first) else None
        verb = "written" if op == "store" else "read"
        yield Finding(
            message=f"{op} leaves `{name}` of shape {shape}: {_asked(name, shape, first)} is {verb}{times(len(group))}"
            + (f", first in {graph.describe_program(first.node)}" if graph.grid else ""),
            places=context.places((_beyond(shape, first), stack)),
            nodes=tuple(sorted({fault.node for fault in group})),
            help=_bounds_help(shape, first, op) if fix is None else f"{fix.title}; else run the loop one tile less",
            fixes=() if fix is None else (fix,),
        )


def _fix(context: LintContext, stack: int, faults: list[BoundsFault]) -> Fix | None:
    """A store is clipped; a load is padded where any value will do for what is outside."""
    graph = context.graph
    if graph[faults[0].node].op == "store":
        return clip_store(context.location(stack))
    if not all(reaches_nothing_stored(graph, fault, context.readers) for fault in faults):
        return None
    dtype = graph[faults[0].node].dtype
    return pad_load(context.location(stack), "0.0" if dtype.is_float else "0" if dtype.is_integer else "False")


def _is_flat(shape: tuple[int, ...], fault: BoundsFault) -> bool:
    """Whether a fault is a pointer's: a range of elements, whatever the tensor's dimensions."""
    return len(fault.lower) != len(shape)


def _asked(name: str, shape: tuple[int, ...], fault: BoundsFault) -> str:
    if _is_flat(shape, fault):
        return f"`{name} + {fault.lower[0]}` up to element {fault.upper[0]:,}"
    return f"`{name}[{', '.join(f'{a}:{b}' for a, b in zip(fault.lower, fault.upper, strict=True))}]`"


def _beyond(shape: tuple[int, ...], fault: BoundsFault) -> str:
    """Which dimension is left, and how far."""
    if _is_flat(shape, fault):
        sizes, what = [math.prod(shape)], ["the tensor"]
    else:
        sizes, what = list(shape), [f"dimension {axis}" for axis in range(len(shape))]
    parts = []
    for part, n, lower, upper in zip(what, sizes, fault.lower, fault.upper, strict=True):
        if lower < 0:
            parts.append(f"{part} begins at 0, this at {lower:,}")
        if upper > n:
            parts.append(f"{part} ends at {n:,}, this at {upper:,}")
    return "; ".join(parts)


def _bounds_help(shape: tuple[int, ...], fault: BoundsFault, op: str) -> str:
    if _is_flat(shape, fault):
        return "a pointer counts elements from the tensor's start; slice a region instead, t[a:b, :], to pad or clip"
    if op == "store":
        return "for a ragged edge give the store `clip=True`; else run the loop one tile less"
    return (
        "for a ragged edge write `tl.load(region, pad=...)`, with what changes nothing (0 of a sum); "
        "else run the loop one tile less"
    )


def _outside(fact: LaunchFact) -> Finding:
    return Finding(
        message=f"element {fact.number:,} of `{quote(fact.what)}` is accessed, which has {fact.size:,}, {fact.where}",
        places=fact_places(fact, "accessed here"),
        help="mask what lies beyond the end: tl.load(pointers, mask=offsets < n, other=...), and so a store",
    )


RULE = Rule(
    code="KS501",
    name="hbm-out-of-bounds",
    severity="error",
    summary="a region or pointer that is loaded or stored leaves its tensor",
    what="""
Reports loads and stores of a region, or of a pointer with a shape, that reach outside their HBM tensor: which
dimension, and how far. A region that is only formed is no fault; nor is a load with `pad=` or a store with
`clip=True`, which move the inside only. (`trace` raises at the line; the linter records the fault and goes on.)
""",
    why="""
A region never clamps. What lies beyond the tensor belongs to somebody else: a load brings foreign values, a store
destroys them.
""",
    example="""
import kernscope as ks
from kernscope import tl


@ks.launch("ragged", x=ks.hbm((300, 64), "f32"), o=ks.hbm((384, 64), "f32"))
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


@ks.launch("ragged", x=ks.hbm((300, 64), "f32"), o=ks.hbm((384, 64), "f32"))
@ks.kernel
def double(x, o):
    for i in range(3):
        with tl.scratch_scope():
            rows = slice(i * 128, (i + 1) * 128)
            tl.store(o[rows, :], tl.load(x[rows, :], pad=0.0) * 2.0)
""",
    check=_out_of_bounds,
    fact=FactKind.OUTSIDE,
    of_fact=_outside,
)
