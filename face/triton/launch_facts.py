"""What only a launch's data tells, of all of its programs, in the words of the linter's rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ...ir.launch_facts import FactKind, LaunchFact
from ...ir.source.location import Location
from ...tracer.triton.launching import Launch
from ...tracer.triton.recording.facts import Fact
from ...tracer.triton.recording.races import ProgramRace

__all__ = ["launch_facts"]

#: What is at fault about where an access goes.
_OF_ADDRESSES = (FactKind.OUTSIDE, FactKind.RACE, FactKind.CHANCE)


def launch_facts(launch: Launch) -> tuple[list[LaunchFact], tuple[str, ...]]:
    """The facts of a launch, one for each kind, line and name; and what could not be looked at, a sentence each."""
    races = launch.races()
    open_questions: tuple[str, ...] = (
        () if races is not None else ("races between programs: too many elements to look at (KS801)",)
    )
    chances = launch.chances()
    if chances is None:
        open_questions += ("the order of atomics: too many elements to look at (KS806)",)
    noted = [*_noted(launch), *(_race(launch, race) for race in races or ()), *_chances(launch, chances or ())]
    # Wherever an address that wrapped around went: what it does there was not meant.
    lost = {(fact.what, fact.place) for fact in noted if fact.kind == FactKind.WRAPPED}
    kept = [fact for fact in noted if fact.kind not in _OF_ADDRESSES or not lost & _accesses(fact)]
    return kept, open_questions


def _accesses(fact: LaunchFact) -> set[tuple[str, Location | None]]:
    return {(fact.what, fact.place), (fact.what, fact.other_place)}


def _noted(launch: Launch) -> Iterator[LaunchFact]:
    sizes = {storage.name: len(storage.memory) for storage in launch.storages}
    gathered: dict[tuple[str, str, Location | None], list[Fact]] = {}
    for fact in launch.facts:
        gathered.setdefault((fact.kind, fact.what, launch.location(fact.stack)), []).append(fact)
    for (kind, what, place), facts in gathered.items():
        numbers, first = np.unique(np.concatenate([fact.programs for fact in facts]), return_index=True)
        number = int(np.concatenate([fact.elements for fact in facts])[first[0]])
        yield LaunchFact(
            kind,
            what,
            place,
            len(numbers),
            launch.programs_run,
            _program(launch, int(numbers[0])),
            number=number,
            size=sizes.get(what, 0),
            is_sample=launch.programs_run < launch.programs,
            other_place=launch.location(number) if kind == FactKind.WRAPPED else None,
        )


def _race(launch: Launch, race: ProgramRace) -> LaunchFact:
    return LaunchFact(
        FactKind.RACE,
        race.storage,
        launch.location(race.met),
        2,
        launch.programs_run,
        _program(launch, race.writer),
        number=race.element,
        other_place=launch.location(race.written),
        other_program=_program(launch, race.other),
        reads=race.reads,
    )


def _chances(launch: Launch, chances: Sequence[ProgramRace]) -> Iterator[LaunchFact]:
    """Of each line one, with the programs of all that add to its elements."""
    gathered: dict[tuple[str, Location | None], list[ProgramRace]] = {}
    for chance in chances:
        gathered.setdefault((chance.storage, launch.location(chance.met)), []).append(chance)
    for (storage, place), group in gathered.items():
        first = min(group, key=lambda chance: min(chance.other, chance.writer))
        low, high = sorted((first.other, first.writer))
        yield LaunchFact(
            FactKind.CHANCE,
            storage,
            place,
            len(np.unique(np.concatenate([chance.programs for chance in group]))),
            launch.programs_run,
            _program(launch, low),
            number=first.element,
            other_program=_program(launch, high),
            is_sample=launch.programs_run < launch.programs,
        )


def _program(launch: Launch, number: int) -> str:
    ids = launch.program_ids(number)
    return str(ids[0] if launch.grid[1:] == (1, 1) else ids)
