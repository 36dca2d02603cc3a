"""What only a launch's data tells, of all of its programs, in the words of the linter's rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import attrs
import numpy as np

from ...ir.launch_facts import FactKind, LaunchFact, LaunchFacts
from ...ir.source.location import Location
from ...tracer.triton.launching import NOTHING, Launch, Without
from ...tracer.triton.recording.facts import AccessFact, Fact
from ...tracer.triton.recording.races import ProgramRace

__all__ = ["launch_facts"]

Array = np.ndarray[Any, np.dtype[Any]]

#: What is at fault about where an access goes.
_OF_ADDRESSES = (FactKind.OUTSIDE, FactKind.RACE, FactKind.CHANCE)


def launch_facts(launch: Launch) -> LaunchFacts:
    """The facts of a launch, one for each kind, line and name, and of those of addresses another one that leaves out
    the programs whose address wrapped around; and what could not be looked at, a sentence each."""
    lost = _lost(launch)
    races, chances = launch.races(), launch.chances()
    open_questions: tuple[str, ...] = ()
    if races is None:
        open_questions += ("races between programs: too many elements to look at (KS801)",)
    if any(fact.may_be_ordered and fact.mode != "atomic" for fact in _accesses_of(launch)):
        open_questions += ("races between programs behind locks and tickets: what these order is not known (KS801)",)
    if chances is None:
        open_questions += ("the order of atomics: too many elements to look at (KS806)",)
    found = [*_noted(launch), *_races(launch, races or ()), *_chances(launch, chances or ())]
    if lost:
        apart = [
            *_noted(launch, lost),
            *_races(launch, launch.races(lost) or ()),
            *_chances(launch, launch.chances(lost) or ()),
        ]
        found += [
            attrs.evolve(fact, is_apart=True)
            for fact in apart
            if fact.kind in _OF_ADDRESSES and _accesses(fact) & lost.keys()
        ]
    return LaunchFacts(tuple(found), open_questions)


def _accesses_of(launch: Launch) -> Iterator[AccessFact]:
    return (fact for trace in launch.traces for chunk in trace.chunks for fact in chunk.accesses)


def _accesses(fact: LaunchFact) -> set[tuple[str, Location | None]]:
    return {(fact.what, fact.place), (fact.what, fact.other_place)}


def _lost(launch: Launch) -> dict[tuple[str, Location | None], Array]:
    """The programs whose address of an access wrapped around on its way there."""
    found: dict[tuple[str, Location | None], Array] = {}
    for fact in launch.facts:
        if fact.kind == FactKind.WRAPPED:
            key = (fact.what, launch.location(fact.stack))
            found[key] = np.union1d(found.get(key, fact.programs[:0]), fact.programs)
    return found


def _noted(launch: Launch, lost: Without = NOTHING) -> Iterator[LaunchFact]:
    sizes = {storage.name: len(storage.memory) for storage in launch.storages}
    gathered: dict[tuple[str, str, Location | None, Location | None], list[Fact]] = {}
    for fact in _once(launch):
        load = launch.location(int(fact.elements[0])) if fact.kind == FactKind.UNDEFINED else None
        gathered.setdefault((fact.kind, fact.what, launch.location(fact.stack), load), []).append(fact)
    for (kind, what, place, _), facts in gathered.items():
        programs, elements = (np.concatenate([getattr(f, name) for f in facts]) for name in ("programs", "elements"))
        meant = ~np.isin(programs, lost.get((what, place), programs[:0]))
        if not meant.any():
            continue
        numbers, first = np.unique(programs[meant], return_index=True)
        number = int(elements[meant][first[0]])
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
            other_place=launch.location(number) if kind in (FactKind.WRAPPED, FactKind.UNDEFINED) else None,
        )


def _once(launch: Launch) -> Iterator[Fact]:
    """The facts, in the order of each program; of a load that leaves elements undefined those where a program uses it
    first: what follows is mended with it."""
    known = np.sort(np.concatenate([chunk.programs for trace in launch.traces for chunk in trace.chunks]))
    used: dict[int, Array] = {}
    for fact in launch.facts:
        if fact.kind != FactKind.UNDEFINED:
            yield fact
            continue
        told = used.setdefault(int(fact.elements[0]), np.zeros(len(known), np.bool_))
        place = np.searchsorted(known, fact.programs)
        new = ~told[place]
        told[place] = True
        if new.any():
            yield attrs.evolve(fact, programs=fact.programs[new], elements=fact.elements[new])


def _races(launch: Launch, races: Iterable[ProgramRace]) -> Iterator[LaunchFact]:
    for race in races:
        yield LaunchFact(
            FactKind.RACE,
            race.storage,
            launch.location(race.met),
            len(race.programs),
            launch.programs_run,
            _program(launch, race.writer),
            number=race.element,
            other_place=launch.location(race.written),
            other_program=_program(launch, race.other),
            reads=race.reads,
            is_sample=launch.programs_run < launch.programs,
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
