"""What only a launch's data tells, of all of its programs: accesses outside their tensors as findings, the rest in
words."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np

from ...ir.forms.counts import plural
from ...ir.forms.text import quote
from ...ir.source.location import Location
from ...linter import RULES, Diagnostic
from ...linter.findings import Place
from ...tracer.triton.launching import Launch
from ...tracer.triton.recording.facts import Fact, FactKind
from ...tracer.triton.recording.races import ProgramRace

__all__ = ["facts_in_words", "outside_findings"]

_RULE = RULES["KS501"]


@attrs.frozen
class _Group:
    """The facts of one kind, line and name, over all chunks of a launch: the programs concerned, ascending, and a
    number for each."""

    fact: Fact
    place: Location | None
    programs: tuple[int, ...]
    elements: tuple[int, ...]

    def where(self, launch: Launch) -> str:
        """How many programs, and which is the first."""
        total = launch.programs_run
        first = f"first in program {_program(launch, self.programs[0])}"
        if total == 1:
            return "in the only program"
        run = "" if total == launch.programs else " that were run"
        return f"in {len(self.programs):,} of {plural(total, 'program')}{run}, {first}"


def _groups(launch: Launch) -> Iterator[_Group]:
    gathered: dict[tuple[str, str, Location | None], list[Fact]] = {}
    for fact in launch.facts:
        gathered.setdefault((fact.kind, fact.what, launch.location(fact.stack)), []).append(fact)
    for (_, _, place), facts in gathered.items():
        programs = np.concatenate([fact.programs for fact in facts])
        elements = np.concatenate([fact.elements for fact in facts])
        numbers, first = np.unique(programs, return_index=True)
        yield _Group(facts[0], place, tuple(numbers.tolist()), tuple(elements[first].tolist()))


def outside_findings(launch: Launch) -> tuple[Diagnostic, ...]:
    """KS501 for every program: a finding for each line that reads or writes outside a tensor."""
    sizes = {storage.name: len(storage.memory) for storage in launch.storages}
    return tuple(
        Diagnostic(
            code=_RULE.code,
            name=_RULE.name,
            severity=_RULE.severity,
            message=f"`{quote(group.fact.what)}` is left {group.where(launch)}: element {group.elements[0]:,} of "
            f"{sizes[group.fact.what]:,}",
            locations=() if group.place is None else (Place("accessed here", group.place),),
            help="mask what lies beyond the end: tl.load(pointers, mask=offsets < n, other=...), and so a store",
        )
        for group in _groups(launch)
        if group.fact.kind == FactKind.OUTSIDE
    )


def facts_in_words(launch: Launch) -> tuple[str, ...]:
    """What was met that no rule judges yet, a line each."""
    said = [
        f"{_words(launch, group)}, {group.where(launch)}"
        for group in _groups(launch)
        if group.fact.kind != FactKind.OUTSIDE
    ]
    races = launch.races()
    if races is None:
        return (*said, "races between programs: too many elements to look at")
    return (*said, *(_race(launch, race) for race in races))


def _race(launch: Launch, race: ProgramRace) -> str:
    written, met = (_line(launch.location(row)) for row in (race.written, race.met))
    what = f"element {race.element:,} of `{quote(race.storage)}`"
    return (
        f"{met}: program {_program(launch, race.other)} {'reads' if race.reads else 'writes'} {what}, which program "
        f"{_program(launch, race.writer)} writes{'' if met == written else f' at {written}'}, and nothing orders them"
    )


def _program(launch: Launch, number: int) -> str:
    ids = launch.program_ids(number)
    return str(ids[0] if launch.grid[1:] == (1, 1) else ids)


def _words(launch: Launch, group: _Group) -> str:
    what, line = quote(group.fact.what), _line(group.place)
    match group.fact.kind:
        case FactKind.WRAPPED:
            made = _line(launch.location(group.elements[0]))
            return f"{line}: an int32 made at {made} wraps around on its way to an address of `{what}`"
        case FactKind.UNDEFINED:
            return f"{line}: {what} uses what a masked load without other= left undefined"
        case FactKind.HINT:
            return f"{line}: the data contradicts {what}: {group.elements[0]:,}"
        case FactKind.ASSERTION:
            return f"{line}: device_assert does not hold: {what}"
    return f"{line}: {group.fact.kind}: {what}"


def _line(place: Location | None) -> str:
    return "an unknown line" if place is None else place.short
