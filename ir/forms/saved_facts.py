"""What the data of a launch told, in the header of a saved graph: plain JSON, read as untrusted input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from ..launch_facts import FactKind, LaunchFact, LaunchFacts
from ..source.location import CALLERS_KEPT, Location
from .saved_values import bad, bounded, count, of, place, safe, written_place

__all__ = ["read_facts", "written_facts"]

_TEXTS = ("kind", "what", "program", "other_program")
_FLAGS = ("reads", "is_sample", "is_apart")
_PLACES = ("place", "other_place")
_KINDS = frozenset(value for name, value in vars(FactKind).items() if name.isupper())
#: Elements of tensors, and the values that hints contradict.
_LARGEST = 1 << 63


def written_facts(facts: LaunchFacts) -> dict[str, Any]:
    """Facts as JSON has them."""
    return {
        "facts": [_written(fact) for fact in facts.facts],
        "open_questions": [safe(text) for text in facts.open_questions],
        "is_judged": facts.is_judged,
    }


def read_facts(entry: Any, digest_of: Callable[[str], str]) -> LaunchFacts:
    """The same from JSON, every value of its right type; ``digest_of`` tells the text of a file that was traced. Raises
    ``GraphFormatError``, and ``KeyError`` for what is not there."""
    entry = of(dict, entry)
    return LaunchFacts(
        tuple(_fact(row, digest_of) for row in of(list, entry["facts"])),
        tuple(of(str, text) for text in of(list, entry["open_questions"])),
        of(bool, entry["is_judged"]),
    )


def _written(fact: LaunchFact) -> dict[str, Any]:
    made: dict[str, Any] = attrs.asdict(fact, recurse=False)
    made |= {name: safe(made[name]) for name in _TEXTS}
    return made | {name: _written_stack(made[name]) for name in _PLACES}


def _written_stack(at: Location | None) -> list[Any] | None:
    return None if at is None else [[written_place(one) for one in (at, *at.stack)], at.callers_left_out]


def _fact(entry: Any, digest_of: Callable[[str], str]) -> LaunchFact:
    entry = of(dict, entry)
    if of(str, entry["kind"]) not in _KINDS:
        raise bad("a fact of a kind that there is not")
    values: dict[str, Any] = {name: of(str, entry[name]) for name in _TEXTS}
    values |= {name: of(bool, entry[name]) for name in _FLAGS}
    values |= {name: _stack(entry[name], digest_of) for name in _PLACES}
    values |= {name: count(entry[name]) for name in ("programs", "total", "size")}
    return LaunchFact(**values, number=bounded(entry["number"], -_LARGEST, _LARGEST))


def _stack(entry: Any, digest_of: Callable[[str], str]) -> Location | None:
    if entry is None:
        return None
    frames, left_out = of(list, entry)
    at, *callers = (attrs.evolve(one, digest=digest_of(one.file)) for one in map(place, of(list, frames)))
    if len(callers) > CALLERS_KEPT:
        raise bad("a place with more callers than are kept")
    return attrs.evolve(at, stack=tuple(callers), callers_left_out=count(left_out))
