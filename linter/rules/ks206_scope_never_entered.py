"""KS206: scopes that no ``with`` enters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from ..fixes.deleting import delete_lines
from ..rule import Finding, LintContext, Rule
from ..wording.counts import times

__all__ = ["RULE"]


def _never_entered(context: LintContext, options: Mapping[str, Any]) -> Iterator[Finding]:
    for stack, count in Counter(context.graph.unentered_scopes).items():
        fix = delete_lines(context, [stack], f"delete {context.line(stack)}")
        yield Finding(
            message=f"this scratch_scope is never entered: it gives nothing back{times(count)}",
            places=context.places(("made here", stack)),
            help=f"at {context.line(stack)} write `with tl.scratch_scope():` and move its lines inside; or delete "
            f"{context.line(stack)}",
            fixes=() if fix is None else (fix,),
        )


RULE = Rule(
    code="KS206",
    name="scope-never-entered",
    severity="warning",
    summary="`tl.scratch_scope()` is called, but nothing enters what it returns",
    what="""
Reports calls of `tl.scratch_scope()` whose result is in no `with` statement (and was entered by no other means, such as
`contextlib.ExitStack`) in the call of the kernel that made it.
""",
    why="""
The call alone does nothing: a scope begins where it is entered. What is allocated after it belongs to the scope around
it and stays allocated, so that a loop which seems to give its tiles back does not.
""",
    example="""
import kernscope as ks
from kernscope import tl


@ks.launch("small", x=ks.hbm((128, 64), "f32"), o=ks.hbm((128, 64), "f32"))
@ks.kernel
def doubled(x, o):
    tl.scratch_scope()
    tl.store(o[:, :], tl.load(x[:, :]) * 2.0)
""",
    fix="""
import kernscope as ks
from kernscope import tl


@ks.launch("small", x=ks.hbm((128, 64), "f32"), o=ks.hbm((128, 64), "f32"))
@ks.kernel
def doubled(x, o):
    with tl.scratch_scope():
        tl.store(o[:, :], tl.load(x[:, :]) * 2.0)
""",
    check=_never_entered,
)
