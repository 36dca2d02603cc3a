"""KS505: kernels that store nothing, and tensors that are neither loaded nor stored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ...ir.forms.text import quote
from ...ir.graph import Graph
from ...ir.ops import OPERATIONS
from ..fixes.sites import parameter_places
from ..rule import Finding, LintContext, Rule

__all__ = ["RULE"]


def _never_stored(context: LintContext, options: Mapping[str, Any]) -> Iterator[Finding]:
    """One finding for a kernel without a store, which names the tensors that it leaves alone; else one for each of
    these. A store outside its tensor, which is recorded as a fault, is one."""
    graph = context.graph
    stores = np.flatnonzero(OPERATIONS.stores[graph.nodes.op])
    unused = _untouched(graph)
    if not len(stores):
        yield from _no_store(context, unused)
        return
    last = int(stores[-1])
    for name in unused:
        yield Finding(
            message=f"`{name}` is never loaded and never stored",
            places=(
                *context.places(("the last store is here", context.stack_of(last))),
                *parameter_places(context, context.stack_of(last), [name], "the parameter"),
            ),
            help=f"if `{name}` is an output, store to it: `tl.store({name}[...], ...)`; if nothing needs it, leave the "
            "parameter out",
        )


def _no_store(context: LintContext, unused: list[str]) -> Iterator[Finding]:
    graph = context.graph
    working = np.flatnonzero(~OPERATIONS.markers[graph.nodes.op])
    if not graph.tensors or not len(working):
        return
    last = int(working[-1])
    verb = "stays" if len(unused) == 1 else "stay"
    meant = f": {', '.join(f'`{name}`' for name in unused)} {verb} as before" if unused else ""
    # Outputs stand last in most signatures; which one is meant cannot be known where several are unused.
    outputs = [f"`tl.store({name}[...], ...)`" for name in reversed(unused)] or ["`tl.store(o[...], ...)`"]
    yield Finding(
        message=f"{quote(graph.kernel)} stores nothing{meant}",
        places=(
            *context.places(("the last thing that it does", context.stack_of(last))),
            *parameter_places(context, context.stack_of(last), unused, "never used"),
        ),
        nodes=(last,),
        help=f"write the result to HBM: {' or '.join(outputs)}",
    )


def _untouched(graph: Graph) -> list[str]:
    """The tensors that no node accesses, and no fault that was recorded in the place of an access."""
    used = np.zeros(len(graph.storages), dtype=np.bool_)
    used[graph.accesses.storage] = True
    used[[fault.storage for fault in graph.bounds_faults]] = True
    return [quote(name) for name, row in graph.tensors.items() if not used[row]]


RULE = Rule(
    code="KS505",
    name="never-stored",
    severity="warning",
    summary="the kernel has no store at all, or a tensor is neither loaded nor stored",
    what="""
Reports a kernel of which no rank stores anything, and tensors that are passed and never used. A tensor that is only
loaded is an input and no fault; of one that is stored in part KS504 speaks.
""",
    why="""
What a kernel does not store is lost when it ends: a `tl.store` is missing, or goes to another tensor than was meant.
The caller finds in the output what was there before.
""",
    example="""
import kernscope as ks
from kernscope import tl


@ks.launch("small", x=ks.hbm((128, 64), "f32"), low=ks.hbm((128, 64), "f32"), high=ks.hbm((128, 64), "f32"))
@ks.kernel
def split(x, low, high):
    h = tl.load(x[:, :])
    tl.store(low[:, :], tl.minimum(h, 0.0))
    tl.store(low[:, :], tl.maximum(h, 0.0))
""",
    fix="""
import kernscope as ks
from kernscope import tl


@ks.launch("small", x=ks.hbm((128, 64), "f32"), low=ks.hbm((128, 64), "f32"), high=ks.hbm((128, 64), "f32"))
@ks.kernel
def split(x, low, high):
    h = tl.load(x[:, :])
    tl.store(low[:, :], tl.minimum(h, 0.0))
    tl.store(high[:, :], tl.maximum(h, 0.0))
""",
    check=_never_stored,
)
