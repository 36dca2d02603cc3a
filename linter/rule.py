"""What a rule is: one declaration holds its code, severity, documentation, options and check."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

import attrs

from ..analysis.analysis import Analysis
from ..ir.forms.text import quote
from ..ir.graph import Graph
from ..ir.launch_facts import LaunchFact
from ..ir.messages import MessageFault
from ..ir.source.location import Location
from ..memory.liveness import Liveness
from .analyses.lazy_messages import LazyRun, run_lazy
from .analyses.overwritten import OverwrittenLoad, find_overwritten_loads
from .analyses.races import Race, find_races
from .analyses.readers import Readers
from .edits import Fix
from .findings import Diagnostic, Place, Severity
from .invocation import Invocation
from .suppressions import Suppression

__all__ = ["Finding", "LintContext", "Option", "Rule"]

OptionValue = bool | int | str


@attrs.frozen
class Option:
    """An option of a rule. A value has the default's type; a number lies within ``lower`` and ``upper``, inclusive."""

    name: str
    default: OptionValue
    doc: str
    lower: int | None = None
    upper: int | None = None


@attrs.frozen
class Finding:
    """What a check yields; its rule adds code and severity. See ``Diagnostic`` for the fields."""

    message: str
    places: tuple[Place, ...] = ()
    nodes: tuple[int, ...] = ()
    help: str = ""
    fixes: tuple[Fix, ...] = ()


@attrs.frozen(slots=False, eq=False)
class LintContext:
    """What all rules look at: the graph on a machine, and what is known of it; and what several rules look for, found
    on first use. ``unused_suppressions`` are there for the rules that judge them only; ``again`` is what came of
    tracing the kernel a second time (None: it was not), ``invocation`` how the kernel was asked for (None: not known).
    """

    analysis: Analysis
    unused_suppressions: tuple[Suppression, ...] = ()
    memory: int | None = None
    again: Graph | Exception | None = None
    invocation: Invocation | None = None

    @property
    def graph(self) -> Graph:
        """The graph."""
        return self.analysis.graph

    @property
    def liveness(self) -> Liveness:
        """The liveness of the graph in ``memory`` (``None``: the one where results go)."""
        return self.analysis.liveness(self.memory)

    @property
    def memory_name(self) -> str:
        """What messages call that memory."""
        return self.graph.target.called(self.liveness.memory)

    def in_every_memory(self) -> Iterator[LintContext]:
        """The same for each memory of the ranks: for rules that judge one at a time."""
        places = self.graph.target.scratch_memories
        return iter([self]) if len(places) == 1 else (attrs.evolve(self, memory=place) for place in places)

    @cached_property
    def readers(self) -> Readers:
        """Who reads which storage."""
        return Readers(self.graph)

    @property
    def message_faults(self) -> list[MessageFault]:
        """Messages without a partner, or with one that expects another tile."""
        return self.analysis.message_faults

    @cached_property
    def lazy_run(self) -> LazyRun:
        """The graph under the ``lazy`` policy. Raises what ``run_lazy`` raises."""
        return run_lazy(self.analysis)

    @cached_property
    def overwritten_loads(self) -> list[OverwrittenLoad]:
        """Loads that are written over before anything reads them."""
        return find_overwritten_loads(self.graph)

    @cached_property
    def races(self) -> list[Race]:
        """The graph's races in HBM."""
        return find_races(self.graph)

    @property
    def lazy(self) -> LazyRun | None:
        """The same; None for a graph without messages, which needs no machine then."""
        return self.lazy_run if len(self.graph.channels) else None

    def places(self, *entries: tuple[str, int]) -> tuple[Place, ...]:
        """Places of ``(role, stack row)`` pairs; those whose line is not known are left out."""
        found = [(role, self.location(stack)) for role, stack in entries]
        return tuple(Place(role, location) for role, location in found if location is not None)

    def location(self, stack: int) -> Location | None:
        """The source location of a row of the stack table."""
        return self.graph.location(stack)

    def stack_of(self, node: int | None) -> int:
        """The stack row of a node; -1 for none."""
        return -1 if node is None else int(self.graph.nodes.stack[node])

    def op_of(self, node: int | None) -> str:
        """The name of a node's operation; ``nothing`` for none."""
        return "nothing" if node is None else self.graph[node].op

    def line(self, stack: int) -> str:
        """A row of the stack table for a sentence: ``line 12``."""
        place = self.location(stack)
        return f"line {place.line}" if place is not None else "an unknown line"

    def name_of(self, storage: int) -> str:
        """A storage for a reader: its name in backticks, or its layout."""
        storages = self.graph.storages
        name = quote(self.graph.names[storages.name[storage]])
        return f"`{name}`" if name else f"an unnamed {self.graph.layouts[storages.layout[storage]]!r}"


def nothing_of_a_graph(context: LintContext, options: Mapping[str, Any]) -> Iterable[Finding]:
    """The check of a rule that judges facts of launches only."""
    return ()


@attrs.frozen(eq=False)
class Rule:
    """One rule. ``summary`` completes "fires when ..."; ``what``, ``why``, ``example`` and ``fix`` are the sections of
    its page (the last two are kernels: the first has the fault, the second has not). ``check`` gets the context and the
    values of the rule's options, and yields its faults. Rules that judge suppressions run after all others. ``fact`` is
    the kind of facts of a launch (``FactKind``) that the rule judges, and ``of_fact`` what it says of one."""

    code: str
    name: str
    severity: Severity
    summary: str
    what: str
    why: str
    example: str
    fix: str
    check: Callable[[LintContext, Mapping[str, Any]], Iterable[Finding]] = nothing_of_a_graph
    options: tuple[Option, ...] = ()
    judges_suppressions: bool = False
    fact: str = ""
    of_fact: Callable[[LaunchFact], Finding] | None = None

    def finding(self, found: Finding) -> Diagnostic:
        """What the rule's check found, as the report has it."""
        return Diagnostic(
            code=self.code,
            name=self.name,
            severity=self.severity,
            message=found.message,
            locations=found.places,
            nodes=found.nodes,
            help=found.help,
            fixes=found.fixes,
        )
