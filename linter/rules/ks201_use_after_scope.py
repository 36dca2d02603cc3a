"""KS201: handles read after the exit of their scope."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...memory.liveness import ViolationKind
from ..rule import Finding, LintContext, Rule
from ..wording.after_scope import uses_after_scope

__all__ = ["RULE"]


def _use_after_scope(context: LintContext, options: Mapping[str, Any]) -> Iterator[Finding]:
    return uses_after_scope(context, ViolationKind.USE_AFTER_SCOPE, "read")


RULE = Rule(
    code="KS201",
    name="use-after-scope",
    severity="error",
    summary="a handle, or a view of it, is read after its scope's exit",
    what="""
Reports every operation that reads a handle, or any view of one (a slice, a transpose, a reshape), after the exit of
the scope that the handle was made in: where it was made, where the scope closed, which line took the bytes since
then, and where it is read. A handle made outside a scope and written inside it is no fault.
""",
    why="""
The scope's exit gives the bytes back. The next allocation takes them, and the read silently gets what that one holds.
As long as nobody has taken them yet the value is still there, which is why such a kernel passes its test until it is
changed.
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
            total += tl.load(x[:, j * 128 : (j + 1) * 128])
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
    check=_use_after_scope,
)
