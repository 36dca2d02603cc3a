"""What the data of a launch told, over all of its programs: facts for the rules that judge them. A graph has one
program, and no data; a front end that runs a launch on its data hands these to the linter beside the graphs."""

from __future__ import annotations

import attrs

from .forms.counts import plural
from .source.location import Location

__all__ = ["NOT_JUDGED", "FactKind", "LaunchFact", "LaunchFacts"]


class FactKind:
    """What a fact is of."""

    OUTSIDE = "outside"
    """An access leaves its tensor: ``what`` names it, of ``size`` elements; ``number`` is the first element outside."""
    RACE = "race"
    """A program writes the element ``number`` of the tensor ``what``, which another one writes or ``reads``. ``place``
    is where the other one, ``other_program``, does; ``other_place`` where the first, ``program``, writes."""
    CHANCE = "chance"
    """Programs add floats to the element ``number`` of the tensor ``what`` by atomics, ``other_program`` among them."""
    WRAPPED = "wrapped"
    """An int32 wrapped around, at ``other_place``, on its way to an address of the tensor ``what``."""
    UNDEFINED = "undefined"
    """What a masked load without ``other=``, at ``other_place``, left undefined is used. ``what``: by which
    operation."""
    HINT = "hint"
    """A hint, ``what``, that the value ``number`` contradicts."""
    ASSERTION = "assertion"
    """A ``device_assert`` that does not hold. ``what``: its message."""


@attrs.frozen
class LaunchFact:
    """One fact of a line: its ``kind``, one of :class:`FactKind`, says what the other fields mean. ``programs`` of the
    launch's ``total`` programs that were run (``is_sample``: not all) have it; ``program`` is the first, as
    ``program_id`` has it (``"3"``, ``"(3, 0, 1)"``). One that ``is_apart`` stands beside another of its line, and
    leaves out the programs whose address wrapped around on its way there.
    """

    kind: str
    what: str
    place: Location | None
    programs: int
    total: int
    program: str
    number: int = 0
    size: int = 0
    other_place: Location | None = None
    other_program: str = ""
    reads: bool = False
    is_sample: bool = False
    is_apart: bool = False

    @property
    def where(self) -> str:
        """How many programs, and which is the first."""
        if self.total == 1:
            return f"in the only program that was run, {self.program}" if self.is_sample else "in the only program"
        return f"in {self.share}, first in program {self.program}"

    @property
    def share(self) -> str:
        """How many programs, of how many."""
        run = " that were run" if self.is_sample else ""
        return f"{self.programs:,} of {plural(self.total, 'program')}{run}"


@attrs.frozen
class LaunchFacts:
    """All facts of a launch, and its ``open_questions``: what could not be looked at, a sentence each. ``is_judged``:
    all that can be known of its programs is among them."""

    facts: tuple[LaunchFact, ...]
    open_questions: tuple[str, ...] = ()
    is_judged: bool = True


#: Of the graph of one program, which knows of no other.
NOT_JUDGED = LaunchFacts(
    (),
    ("what the data of the launch tells is not judged (KS801 to KS806, KS501 of other programs): lint the launch",),
    is_judged=False,
)
