"""KS202: handles written after the exit of their scope."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...memory.liveness import ViolationKind
from ..rule import Finding, LintContext, Rule
from ..wording.after_scope import uses_after_scope

__all__ = ["RULE"]


def _write_after_scope(context: LintContext, options: Mapping[str, Any]) -> Iterator[Finding]:
    return uses_after_scope(context, ViolationKind.WRITE_AFTER_SCOPE, "written")


RULE = Rule(
    code="KS202",
    name="write-after-scope",
    severity="error",
    summary="a handle, or a view of it, is written after its scope's exit",
    what="""
Reports every operation that names a handle as its destination (`copy_to`, `load(out=)`, `recv(out=)`, `dot(acc=)`)
after the exit of the scope that the handle was made in.
""",
    why="""
The bytes may belong to another allocation by then: the write destroys its value, and whoever reads that one gets a
wrong result, far from the line at fault.
""",
    example="""
import kernscope as ks
from kernscope import tl


@ks.launch("small", x=ks.hbm((128, 256), "f32"), o=ks.hbm((128, 128), "f32"))
@ks.kernel
def halves(x, o):
    with tl.scratch_scope():
        buffer = tl.load(x[:, 0:128])
        tl.store(o[:, :], buffer)
    tl.load(x[:, 128:256], out=buffer)
""",
    fix="""
import kernscope as ks
from kernscope import tl


@ks.launch("small", x=ks.hbm((128, 256), "f32"), o=ks.hbm((128, 128), "f32"))
@ks.kernel
def halves(x, o):
    buffer = tl.empty((128, 128), tl.float32)
    with tl.scratch_scope():
        tl.load(x[:, 0:128], out=buffer)
        tl.store(o[:, :], buffer)
    tl.load(x[:, 128:256], out=buffer)
""",
    check=_write_after_scope,
)
