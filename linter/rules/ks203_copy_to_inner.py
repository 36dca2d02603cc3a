"""KS203: copies into a handle that the same scope exit frees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...ir.arrays.distinct import distinct_rows
from ..analyses.unread import destination, find_unread
from ..fixes.deleting import delete_lines
from ..rule import Finding, LintContext, Rule
from ..wording.counts import times

__all__ = ["RULE"]


def _copy_to_inner(context: LintContext, options: Mapping[str, Any]) -> Iterator[Finding]:
    graph = context.graph
    copies = find_unread(context.graph, context.liveness, context.overwritten_loads, messages=False).copies
    target = destination(graph, copies)
    for group in distinct_rows(graph.nodes.stack[copies], graph.storages.stack[target]).in_order_met():
        node, storage = int(copies[group[0]]), int(target[group[0]])
        made = int(graph.storages.stack[storage])
        opened = context.line(int(graph.scopes.stack[graph.storages.scope[storage]]))
        advice = f"leave out this copy and {context.name_of(storage)}"
        fix = delete_lines(context, [context.stack_of(node), made], advice)
        yield Finding(
            message=f"nothing reads {context.name_of(storage)} between this copy_to and the scope exit that frees it"
            f"{times(len(group))}",
            places=context.places(
                ("copied here", context.stack_of(node)),
                ("made here, in the same scope", made),
                ("freed here, with what was copied", context.stack_of(int(graph.storages.freed[storage]))),
            ),
            nodes=tuple(copies[group].tolist()),
            help=f"to keep the value, copy it to a handle that is made above {opened} and read after the scope; else "
            f"{advice}",
            fixes=() if fix is None else (fix,),
        )


RULE = Rule(
    code="KS203",
    name="copy-to-inner",
    severity="warning",
    summary="`copy_to` writes a handle that the very same scope exit frees, and nothing reads it before",
    what="""
Looks at every `copy_to` into a handle that was made in the scope in which the copy stands. If nothing reads the handle
between the copy and the exit of that scope, nothing of the copy persists. A line whose copies are read in some
iteration is left alone, and so is a handle of which KS201 or KS202 speaks.
""",
    why="""
`copy_to` is how a value outlives a scope. Into a handle of the same scope it saves nothing: the exit frees source and
destination alike, and the next iteration starts from bytes that belong to nobody.
""",
    example="""
import kernscope as ks
from kernscope import tl


@ks.launch("small", x=ks.hbm((128, 512), "f32"), o=ks.hbm((128, 128), "f32"))
@ks.kernel
def row_sum(x, o):
    total = tl.zeros((128, 128), tl.float32)
    for j in range(4):
        with tl.scratch_scope():
            kept = tl.empty((128, 128), tl.float32)
            tl.copy_to(kept, total + tl.load(x[:, j * 128 : (j + 1) * 128]))
    tl.store(o[:, :], total)
""",
    fix="""
import kernscope as ks
from kernscope import tl


@ks.launch("small", x=ks.hbm((128, 512), "f32"), o=ks.hbm((128, 128), "f32"))
@ks.kernel
def row_sum(x, o):
    total = tl.zeros((128, 128), tl.float32)
    for j in range(4):
        with tl.scratch_scope():
            tl.copy_to(total, total + tl.load(x[:, j * 128 : (j + 1) * 128]))
    tl.store(o[:, :], total)
""",
    check=_copy_to_inner,
)
