"""Findings on what the data of a launch told, of all of its programs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from ..ir.launch_facts import FactKind, LaunchFact
from ..ir.source.location import Location
from .findings import Diagnostic, in_order
from .rule_selection import select_rules
from .rules import RULES
from .suppressions import Suppression, split_suppressed

__all__ = ["CODES_OF_FACTS", "Line", "judged_facts", "line_of", "lint_facts"]

#: A file and a line in it.
Line = tuple[str, int]

#: Rules that judge graphs too, and leave what the facts of all programs tell to these: the graph of one knows less.
CODES_OF_FACTS = frozenset(rule.code for rule in RULES.values() if rule.of_fact is not None)
#: What is at fault about where an access goes.
_OF_ADDRESSES = (FactKind.OUTSIDE, FactKind.RACE, FactKind.CHANCE)


def line_of(place: Location | None) -> Line:
    """The line of a place."""
    return ("", 0) if place is None else (place.file, place.line)


def lint_facts(
    facts: Iterable[LaunchFact], *, select: Iterable[str] = (), ignore: Iterable[str] = ()
) -> tuple[Diagnostic, ...]:
    """The findings of the rules on what the data of a launch told; ``select`` and ``ignore`` as for a graph. Raises
    ``RuleError`` for an unknown rule."""
    judging = {rule.fact: rule for rule in select_rules(select, ignore, RULES) if rule.of_fact is not None}
    found = []
    for fact in facts:
        rule = judging.get(fact.kind)
        if rule is not None and rule.of_fact is not None:
            found.append(rule.finding(rule.of_fact(fact)))
    return in_order(found)


def judged_facts(
    facts: Sequence[LaunchFact],
    suppressions: Sequence[Suppression],
    *,
    told: Collection[tuple[str, Line]] = (),
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
) -> tuple[Sequence[Diagnostic], Sequence[Diagnostic]]:
    """The findings on a launch's facts that are kept, and those that comments silence; without those of a code and a
    line that are ``told`` already, and without what follows from a wrapped address whose finding is kept: wherever that
    went, what the access does there was not meant."""

    def judged(some: Iterable[LaunchFact]) -> tuple[Sequence[Diagnostic], Sequence[Diagnostic]]:
        found = lint_facts(some, select=select, ignore=ignore)
        kept, hidden, _ = split_suppressed(
            [d for d in found if (d.code, line_of(d.location)) not in told], suppressions
        )
        return kept, hidden

    lost = {(fact.what, fact.place) for fact in facts if fact.kind == FactKind.WRAPPED and judged([fact])[0]}
    return judged(fact for fact in facts if fact.is_apart == _is_lost(fact, lost))


def _is_lost(fact: LaunchFact, lost: Collection[tuple[str, Location | None]]) -> bool:
    return fact.kind in _OF_ADDRESSES and any((fact.what, at) in lost for at in (fact.place, fact.other_place))
