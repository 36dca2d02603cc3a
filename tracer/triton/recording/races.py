"""Races between the programs of a launch: one writes an element that another one writes or reads, without atomics.

No order of the programs is promised, so that the outcome is chance, whatever the values were this time. What a program
does after it has learnt what an atomic found (it took a lock, or a ticket) is left out: what that orders is not known.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import numpy as np

from ..values.arithmetic import is_float
from .facts import AccessFact

__all__ = ["ProgramRace", "find_chances", "find_races"]

Array = np.ndarray[Any, np.dtype[Any]]
#: Programs, by lane, and what they accessed.
Accesses = Sequence[tuple[Array, AccessFact]]

#: So many elements are looked at at a time, and in all.
_AT_ONCE = 1 << 20
_IN_ALL = 1 << 28


@attrs.frozen(eq=False)
class ProgramRace:
    """``writer`` writes the element of a storage at the stack row ``written``, and ``other``, another program, writes
    or ``reads`` it at ``met``. Of each pair of stack rows the first that was met; ``programs`` are all that meet so,
    ascending."""

    storage: str
    element: int
    writer: int
    written: int
    other: int
    met: int
    reads: bool
    programs: Array


def find_races(accesses: Accesses) -> tuple[ProgramRace, ...] | None:
    """The races among some programs' accesses; None where there are too many elements to look at."""
    plain = [(programs, fact) for programs, fact in accesses if fact.mode != "atomic"]
    stored = {id(fact.access.storage) for _, fact in plain if fact.mode == "write"}
    met = [(programs, fact) for programs, fact in plain if id(fact.access.storage) in stored]
    if sum(len(programs) * math.prod(fact.access.shape) for programs, fact in met) > _IN_ALL:
        return None
    found: dict[tuple[str, int, int, bool], ProgramRace] = {}
    for number in dict.fromkeys(id(fact.access.storage) for _, fact in met):
        for race in _races_in([(p, fact) for p, fact in met if id(fact.access.storage) == number]):
            key = (race.storage, race.written, race.met, race.reads)
            known = found.get(key, race)
            found[key] = attrs.evolve(known, programs=np.union1d(known.programs, race.programs))
    return tuple(found.values())


def find_chances(accesses: Accesses) -> tuple[ProgramRace, ...] | None:
    """The same of programs that add floats to one element by atomics: nothing is lost, but the order decides how the
    sum is rounded."""
    return find_races(
        [
            (programs, attrs.evolve(fact, mode="write"))
            for programs, fact in accesses
            if fact.how == "add" and is_float(fact.access.storage.memory.dtype)
        ]
    )


def _races_in(accesses: Accesses) -> Iterator[ProgramRace]:
    """The races in one storage: writes with what was written before, then reads."""
    storage = accesses[0][1].access.storage
    if _keeps_apart([fact for _, fact in accesses]):
        return
    size = storage.memory.size
    written = sum(len(programs) * math.prod(fact.access.shape) for programs, fact in accesses if fact.mode == "write")
    # Of a storage much larger than what is written, the elements that are.
    known = _written(accesses, size) if written * 4 < size else None
    places = size if known is None else len(known)
    writer = np.full(places, -1, dtype=np.int64)
    row = np.zeros(places, dtype=np.int32)
    for mode in ("write", "read"):
        for programs, fact in accesses:
            if fact.mode != mode:
                continue
            for element, program in _elements(programs, fact, size):
                if known is None:
                    place = element
                else:
                    place = np.searchsorted(known, element)
                    met = known[np.minimum(place, places - 1)] == element if places else np.zeros(len(place), np.bool_)
                    place, element, program = place[met], element[met], program[met]
                yield from _clashes(storage.name, fact, element, place, program, writer, row)
                if mode == "write":
                    writer[place], row[place] = program, fact.stack
                    yield from _clashes(storage.name, fact, element, place, program, writer, row)


def _written(accesses: Accesses, size: int) -> Array:
    """The elements that are written, ascending."""
    found = [
        np.unique(element)
        for programs, fact in accesses
        if fact.mode == "write"
        for element, _ in _elements(programs, fact, size)
    ]
    return np.unique(np.concatenate([np.zeros(0, np.int64), *found]))


def _keeps_apart(facts: Sequence[AccessFact]) -> bool:
    """Whether it shows without looking at elements that no two programs meet: a storage that is only written, by steps
    that never come to one element twice, in stretches that do not overlap."""
    stretches = []
    for fact in facts:
        access = fact.access
        stepwise = access.rest is None and None not in access.strides and access.lane_step() is not None
        if fact.mode != "write" or not stepwise or not access.is_disjoint():
            return False
        low, high = access.extent()
        some = high >= low
        if some.any():
            stretches.append((int(low[some].min()), int(high[some].max())))
    stretches.sort()
    return all(before[1] < after[0] for before, after in itertools.pairwise(stretches))


def _clashes(
    name: str, fact: AccessFact, element: Array, place: Array, program: Array, writer: Array, row: Array
) -> Iterator[ProgramRace]:
    """For each row that wrote an element which another program accesses, the first such program's. ``place`` is where
    ``writer`` and ``row`` have it."""
    others = np.flatnonzero((writer[place] >= 0) & (writer[place] != program))
    rows, which = np.unique(row[place[others]], return_inverse=True)
    for number, written in enumerate(rows):
        of_row = others[which == number]
        at = of_row[int(np.argmin(program[of_row]))]
        yield ProgramRace(
            storage=name,
            element=int(element[at]),
            writer=int(writer[place[at]]),
            written=int(written),
            other=int(program[at]),
            met=fact.stack,
            reads=fact.mode == "read",
            programs=np.unique(np.concatenate([program[of_row], writer[place[of_row]]])),
        )


def _elements(programs: Array, fact: AccessFact, size: int) -> Iterator[tuple[Array, Array]]:
    """The elements inside the storage that an access meets, each with its program; some lanes at a time."""
    step = max(_AT_ONCE // max(math.prod(fact.access.shape), 1), 1)
    for begin in range(0, len(programs), step):
        lanes = np.arange(begin, min(begin + step, len(programs)))
        index, mask = fact.access.take(lanes).elements()
        shape = (len(lanes), *index.shape[1:])
        element = np.broadcast_to(index, shape).reshape(-1)
        program = np.repeat(programs[lanes], len(element) // len(lanes))
        inside = (element >= 0) & (element < size)
        if mask is not None:
            inside &= np.broadcast_to(mask, shape).reshape(-1)
        yield element[inside], program[inside]
