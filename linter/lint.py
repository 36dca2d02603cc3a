"""Linting a graph, and explaining a code."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from ..analysis.analysis import Analysis
from ..ir.errors import ERRORS, KernscopeError
from ..ir.graph import Graph
from ..ir.verifier.verify import require_valid
from .facts import CODES_OF_FACTS, judged_facts
from .findings import Diagnostic, LintReport, in_order
from .invocation import Invocation
from .rule import LintContext, Rule
from .rule_selection import find_rule, option_values, select_rules
from .rules import RULES
from .suppressions import split_suppressed, suppressions_of

__all__ = ["explain", "lint_graph"]


def lint_graph(
    analysis: Analysis,
    *,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    options: Mapping[str, Mapping[str, Any]] | None = None,
    title: str | None = None,
    again: Graph | Exception | None = None,
    invocation: Invocation | None = None,
) -> LintReport:
    """The findings of the rules on a graph, on the machine of its analysis.

    ``select`` and ``ignore`` take codes (``"KS201"``), names (``"use-after-scope"``) and beginnings of codes
    (``"KS2"``); nothing selected means all rules. ``options`` gives values by rule, then by option:
    ``{"KS102": {"percent": 80}}``.

    A comment ``# kernscope: ignore[KS201]`` on a statement silences that rule there: such findings are the report's
    ``suppressed``, and a comment that silences nothing is one of its own (KS001).

    ``again`` is what came of tracing the kernel a second time: another graph, or what it raised. ``invocation`` is how
    the kernel was asked for, which commands in helps repeat; None where it is not known.

    Trace with ``on_overflow="record"`` and bounds recorded, or those faults raise before there is a graph.

    Raises ``RuleError`` for an unknown rule, ``OptionError`` for a wrong option, ``InvalidGraphError`` for a graph that
    no trace made.
    """
    graph = analysis.graph
    require_valid(graph)
    chosen = select_rules(select, ignore, RULES)
    values = option_values(options or {}, RULES)
    shared = LintContext(analysis, again=again, invocation=invocation)
    ran = {rule.code for rule in chosen if not rule.judges_suppressions}
    found = [d for rule in chosen if rule.code in ran for d in _run(rule, shared, values[rule.code])]
    silencing = suppressions_of(graph)
    facts = graph.facts
    if facts is not None and facts.is_judged:
        found = [d for d in found if d.code not in CODES_OF_FACTS]
    kept, suppressed, unused = split_suppressed(found, silencing)
    if facts is not None:
        more, hidden = judged_facts(facts.facts, silencing, select=select, ignore=ignore)
        kept, suppressed = [*kept, *more], [*suppressed, *hidden]
        unused = split_suppressed(hidden, unused)[2]
    judged = tuple(s for s in unused if s.code in ran or s.code not in RULES)
    after = LintContext(analysis, unused_suppressions=judged)
    kept += [d for rule in chosen if rule.code not in ran for d in _run(rule, after, values[rule.code])]
    return LintReport(
        title=graph.kernel if title is None else title,
        diagnostics=in_order(kept),
        suppressed=in_order(suppressed),
        notes=() if facts is None else facts.open_questions,
        branches=graph.branches,
    )


def _run(rule: Rule, shared: LintContext, options: Mapping[str, Any]) -> Iterable[Diagnostic]:
    return map(rule.finding, rule.check(shared, options))


def explain(code: str) -> str:
    """The page of a rule or an error, in Markdown, under fixed headings. Takes a code or a name.

    Raises ``RuleError`` for any other."""
    error = _find_error(code)
    return _explain_rule(find_rule(code, RULES, also=_ERROR_NAMES)) if error is None else _explain_error(error)


#: Codes and names of errors, for the nearest one to a misspelt name.
_ERROR_NAMES = (*ERRORS, *(kind.title() for kind in ERRORS.values()))


def _find_error(code: str) -> type[KernscopeError] | None:
    wanted = str(code).strip()
    for kind in ERRORS.values():
        if wanted.upper() == kind.code or wanted.lower() == kind.title() or wanted == kind.__name__:
            return kind
    return None


def _explain_error(kind: type[KernscopeError]) -> str:
    builtin = next(base.__name__ for base in kind.__bases__ if base is not KernscopeError)
    sections = [
        f"# {kind.code} {kind.title()}",
        f"An error: `ks.{kind.__name__}`, which `except {builtin}` catches too.",
        f"## What it means\n\n{inspect.cleandoc(kind.__doc__ or '').replace('``', '`')}",
        f"## What to do\n\n{kind.fix}",
    ]
    return "\n\n".join(sections) + "\n"


def _explain_rule(rule: Rule) -> str:
    options = [f"- `{o.name}` (default `{o.default}`): {o.doc}" for o in rule.options] or ["None."]
    sections = [
        f"# {rule.code} {rule.name}",
        f"Severity: {rule.severity}. Fires when {rule.summary}.",
        f"## What it does\n\n{rule.what.strip()}",
        f"## Why it is bad\n\n{rule.why.strip()}",
        f"## Example\n\n```python\n{rule.example.strip()}\n```",
        f"## Fix\n\n```python\n{rule.fix.strip()}\n```",
        "## Options\n\n" + "\n".join(options),
    ]
    return "\n\n".join(sections) + "\n"
