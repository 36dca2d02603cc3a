"""KS0xx: the linter's own comments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...ir.errors import did_you_mean
from .. import rules
from ..findings import Place
from ..fixes.filling import without_code
from ..rule import Finding, LintContext, Rule
from ..suppressions import Suppression

__all__ = ["RULE"]


def _unused(context: LintContext, options: Mapping[str, Any]) -> Iterator[Finding]:
    for suppression in context.unused_suppressions:
        fixes = (without_code(suppression, _title(suppression)),) if _is_known(suppression) else ()
        yield Finding(
            message=suppression.unused_message,
            places=(Place("suppressed here", suppression.location),),
            help=_help(suppression),
            fixes=fixes,
        )


def _help(suppression: Suppression) -> str:
    code, known = suppression.code, rules.RULES  # of which this module's own are a part: hence not imported by name
    if not code:
        return "name the code of the finding to silence, such as `# kernscope: ignore[KS302]`, or delete the comment"
    if code not in known:
        named = [rule.code for rule in known.values() if rule.name == code.lower()]
        if named:
            return f"write the code of that rule, {named[0]}, if this statement has such a finding; else take it out"
        return f"no rule {code!r}; {did_you_mean(code, known, what='rules')}"
    return f"{_title(suppression)}; the comment goes at the end of the line that is at fault"


def _is_known(suppression: Suppression) -> bool:
    return not suppression.code or suppression.code in rules.RULES


def _title(suppression: Suppression) -> str:
    return f"take {suppression.code} out of the brackets" if suppression.code else "delete the comment"


RULE = Rule(
    code="KS001",
    name="unused-suppression",
    severity="warning",
    summary="a comment `# kernscope: ignore[...]` silences nothing",
    what="""
Reports a code in a suppression comment for which its statement has no finding, on statements that the trace came by.
Where several launches are linted together, one that needs the comment is enough. Codes of rules that did not run are
left alone; a code that is no rule is always reported, and so is a comment without a code.
""",
    why="""
The fault is gone, or moved to another line, or the code is misspelt. The comment stays and will hide the next fault
of its kind.
""",
    example="""
import kernscope as ks
from kernscope import tl


@ks.launch("small", x=ks.hbm((128,), "f32"), o=ks.hbm((128,), "f32"))
@ks.kernel
def copy(x, o):
    h = tl.load(x[:])
    tl.store(o[:], h)  # kernscope: ignore[KS201]
""",
    fix="""
import kernscope as ks
from kernscope import tl


@ks.launch("small", x=ks.hbm((128,), "f32"), o=ks.hbm((128,), "f32"))
@ks.kernel
def copy(x, o):
    h = tl.load(x[:])
    tl.store(o[:], h)
""",
    check=_unused,
    judges_suppressions=True,
)
