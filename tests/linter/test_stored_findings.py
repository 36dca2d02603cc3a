"""What is said of a kernel does not change unseen: all findings of all kernels of this folder's cases and of the rules'
pages, with their places, nodes and helps, against ``findings.txt``.

Whoever changes a rule on purpose writes it anew and looks at the difference::

    python -m pytest tests/linter --rewrite-outputs
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import kernscope as ks
from kernscope.linter import Diagnostic, LintReport
from kernscope.linter.rules import RULES

from .fixcases import CASES
from .test_fixes import Load, arguments, source
from .unsurecases import ADVICE

LintPage = Callable[[str], LintReport]
STORED = Path(__file__).with_name("findings.txt")
NODES_SHOWN = 12

KERNELS = {f"{case.code}: {case.name}": case for case in [*CASES, *ADVICE]}
PAGES = {
    f"{code}: {part} of the page": getattr(rule, part) for code, rule in RULES.items() for part in ("example", "fix")
}


def told(finding: Diagnostic) -> Iterator[str]:
    """A finding, a line for each thing that it says."""
    yield f"{finding.code} {finding.severity}: {finding.message}"
    for place in finding.locations:
        at, callers = place.location, "".join(f" < {call.line}" for call in place.location.stack)
        yield f"  {at.line}:{at.column}-{at.end_line}:{at.end_column}{callers} {place.role}"
    more = f" and {len(finding.nodes) - NODES_SHOWN} more" if len(finding.nodes) > NODES_SHOWN else ""
    yield f"  nodes {' '.join(map(str, finding.nodes[:NODES_SHOWN]))}{more}"
    yield f"  help: {finding.help}"
    yield from (f"  note: {note}" for note in finding.notes)
    yield from (f"  fix: {fix.title}" for fix in finding.fixes)


def told_of(name: str, load_kernel: Load, lint_page: LintPage) -> str:
    """All that is found in a kernel."""
    report: LintReport
    if name in KERNELS:
        case = KERNELS[name]
        report = ks.lint(load_kernel(source(case.text)), *arguments(case))
    else:
        report = lint_page(PAGES[name])
    return "\n".join([*(line for finding in report for line in told(finding)), *report.notes]) + "\n"


def stored() -> dict[str, str]:
    """By name what is stored."""
    sections = re.split("^# ", STORED.read_text(encoding="utf-8") if STORED.exists() else "", flags=re.MULTILINE)[1:]
    return {name: text for name, _, text in (section.partition("\n") for section in sections)}


@pytest.mark.parametrize("name", [*KERNELS, *PAGES])
def test_what_is_found_is_what_is_stored(
    load_kernel: Load, lint_page: LintPage, name: str, request: pytest.FixtureRequest
) -> None:
    """To the letter."""
    text = told_of(name, load_kernel, lint_page)
    if request.config.getoption("--rewrite-outputs"):
        sections = {**stored(), name: text}
        kept = [known for known in [*KERNELS, *PAGES] if known in sections]
        STORED.write_text("".join(f"# {known}\n{sections[known]}" for known in kept), encoding="utf-8")
    assert text == stored()[name]


def test_nothing_stored_is_left_over() -> None:
    """Every stored text is compared with something."""
    assert list(stored()) == [*KERNELS, *PAGES]
