"""Launches: a kernel's source is run once for all programs; lanes that need different answers are divided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Literal

import attrs
import numpy as np

from ...ir.arrays.frozen_map import FrozenMap
from ...ir.errors import ArgumentError, DTypeError, KernscopeError, ShapeError, TritonCompileError
from ...ir.graph import Graph
from ...ir.source.frames import author_place, own_folders
from ...ir.source.location import Location
from ...ir.target import Target
from ...memory.automatic import placed, spread
from ..recording.sites import SiteTable
from ..trace import recording
from .arguments import DescriptorArgument, TensorArgument
from .constexpr import Constexpr, bare
from .language.descriptors import Descriptor
from .recording.facts import AccessFact, Fact
from .recording.graph import GraphNames, kept_for_loops, unplaced_graph
from .recording.races import ProgramRace, find_chances, find_races
from .recording.tape import Tape
from .recording.tracing import Tracing
from .sampling import ProgramSample
from .values.storage import Storage, Storages
from .values.value import Array, Running, Split, Value, constant

__all__ = ["Chunk", "Launch", "LaunchOptions", "Trace", "launch"]

Placement = Literal["spread", "least"]
#: By name of a tensor and place of an access of it: programs that are left out.
Without = Mapping[tuple[str, Location | None], Array]
NOTHING: Without = FrozenMap({})

#: Lanes of the first attempt: as long as nothing is known of a kernel, little is lost if they have to be divided.
_FIRST_LANES = 64
_MOST_LANES = 1 << 16
#: Bytes that an element of the largest tile is taken to need while its operations run.
_BYTES_PER_ELEMENT = 64


@attrs.frozen
class LaunchOptions:
    """``machine``: its name, for the graphs; ``machine_toml``: what describes it; ``kernel``: the kernel's name;
    ``budget``: the bytes that lanes and their undo log may take; ``num_stages``: the copies of what loops load, where
    the kernel does not say; ``addresses``: tensors by their addresses, which kernels may load and go to;
    ``programs``: which programs are run (None: all); ``snapshot_bytes``: up to so many, the memory from before the
    launch is kept, for runs of its graphs (those of a larger launch are given their inputs)."""

    machine: str = ""
    machine_toml: str = ""
    kernel: str = "kernel"
    budget: int = 1 << 30
    num_stages: int = 1
    addresses: Mapping[int, TensorArgument] = attrs.field(factory=dict)
    snapshot_bytes: int = 1 << 24
    programs: ProgramSample | None = None


@attrs.frozen(eq=False)
class Chunk:
    """Programs that ran together: their numbers, by lane; what they did; every access of theirs."""

    programs: Array
    tape: Tape
    accesses: tuple[AccessFact, ...]


@attrs.define(eq=False, slots=False)
class Trace:
    """The programs of a launch that do the same."""

    launch: Launch
    chunks: list[Chunk]

    @cached_property
    def programs(self) -> Array:
        """Their numbers, ascending: axis 0 of the grid runs fastest."""
        return np.sort(np.concatenate([chunk.programs for chunk in self.chunks]))

    @cached_property
    def kinds(self) -> Counter[Any]:
        """How often each kind of step occurs in it."""
        return self.chunks[0].tape.kinds()

    def graph(self, program: int | None = None, placement: Placement = "spread") -> Graph:
        """The graph of a program (by default the first), with addresses: ``"spread"`` over the scratch, as far as it
        goes, so that little waits for bytes alone; or with the ``"least"`` peak. Raises ``ArgumentError`` for a program
        that is not of this trace."""
        number = int(self.programs[0]) if program is None else program
        for chunk in self.chunks:
            lanes = np.flatnonzero(chunk.programs == number)
            if len(lanes):
                return self.launch.graph_of(chunk, int(lanes[0]), placement)
        raise ArgumentError(f"program {number} is not of this trace", help="its programs are in trace.programs")


@attrs.define(eq=False)
class Launch:
    """What came of a launch: the traces, in the order in which they were met; the storages, with what was there before;
    the facts that rules speak of. ``sampled`` are the programs that were run, ascending (None: all of the grid): of the
    others nothing is known."""

    kernel: str
    grid: tuple[int, int, int]
    target: Target
    names: GraphNames
    sites: SiteTable
    storages: list[Storage]
    num_stages: int = 1
    sampled: Array | None = None
    traces: list[Trace] = attrs.field(factory=list)
    facts: list[Fact] = attrs.field(factory=list)
    splits: int = 0

    @property
    def programs(self) -> int:
        """How many programs the grid has."""
        x, y, z = map(int, self.grid)
        return x * y * z

    @property
    def programs_run(self) -> int:
        """How many of them were run."""
        return self.programs if self.sampled is None else len(self.sampled)

    def location(self, stack: int) -> Location | None:
        """The place of a stack row of its facts."""
        return self.sites.location(stack)

    def races(self, without: Without = NOTHING) -> tuple[ProgramRace, ...] | None:
        """What programs do to one another's memory without atomics; None where there is too much to look at. What
        comes after a lock or another atomic that tells what it found is not looked at, nor programs in ``without``: by
        name of a tensor and place of an access."""
        return find_races(self._unordered(without))

    def chances(self, without: Without = NOTHING) -> tuple[ProgramRace, ...] | None:
        """Where programs add floats to one element by atomics, in no order; None where there is too much to look at."""
        return find_chances(self._unordered(without))

    def _unordered(self, without: Without) -> list[tuple[Array, AccessFact]]:
        found = []
        for trace in self.traces:
            for chunk in trace.chunks:
                for fact in (fact for fact in chunk.accesses if not fact.may_be_ordered):
                    programs, storage = chunk.programs, fact.access.storage.name
                    if without and (storage, self.location(fact.stack)) in without:
                        left = ~np.isin(programs, without[storage, self.location(fact.stack)])
                        programs = programs[left]
                        fact = attrs.evolve(fact, access=fact.access.take(np.flatnonzero(left)))
                    if len(programs):
                        found.append((programs, fact))
        return found

    def program_ids(self, program: int) -> tuple[int, int, int]:
        """What ``program_id`` gives a program."""
        x, y, _ = self.grid
        return program % x, program // x % y, program // (x * y)

    def graph_of(self, chunk: Chunk, lane: int, placement: Placement = "spread") -> Graph:
        """The graph of a lane, with addresses."""
        graph, before = unplaced_graph(chunk.tape, lane, self.storages, self.sites, self.target, self.names)
        acquired = kept_for_loops(graph, chunk.tape, before, self.num_stages)
        found = spread(graph, acquired) if placement == "spread" else None
        return placed(graph, acquired) if found is None else found

    def graph(self, program: int = 0) -> Graph:
        """The graph of a program. Raises ``ArgumentError`` for one that the grid has not."""
        for trace in self.traces:
            if program in trace.programs:
                return trace.graph(program)
        run = "" if self.sampled is None else f", of which {self.programs_run:,} programs were run"
        raise ArgumentError(f"the launch has no program {program}", help=f"its grid is {self.grid}{run}")


def call_kernel(function: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    """The boundary: call stacks end below it."""
    function(**arguments)


def launch(
    function: Callable[..., Any],
    arguments: Mapping[str, Any],
    grid: tuple[int, int, int],
    *,
    target: Target,
    options: LaunchOptions = LaunchOptions(),
) -> Launch:
    """Execute all programs of a launch on the arrays among its arguments, which it writes in place.

    Raises ``TritonCompileError`` for what Triton's compiler, or kernscope, refuses, with the line; whatever else the
    kernel raises passes through. Then memory is as it was before.
    """
    names = GraphNames(options.kernel, options.machine, options.machine_toml)
    storages = Storages(dict(options.addresses), snapshot_bytes=options.snapshot_bytes)
    given = {name: _argument(name, value, storages) for name, value in arguments.items()}
    sites = SiteTable(call_kernel.__code__, own_folders(()))
    made = Launch(options.kernel, grid, target, names, sites, storages.all, options.num_stages)
    if options.programs is not None:
        made.sampled = options.programs.chosen(made.programs)
    try:
        _Execution(made, function, given, storages, options).run()
    finally:
        for storage in storages.all:
            storage.release()
    return made


class _Execution:
    """The programs in chunks, each as often as its lanes have to be divided."""

    def __init__(
        self,
        made: Launch,
        function: Callable[..., Any],
        given: Mapping[str, Any],
        storages: Storages,
        options: LaunchOptions,
    ) -> None:
        self._made, self._function, self._given, self._storages, self._options = (
            made,
            function,
            given,
            storages,
            options,
        )
        self._known: dict[Any, Trace] = {}
        self._largest = 1
        self._done: list[tuple[Array, Any, Array]] = []

    def run(self) -> None:
        """Run all programs, in the order of the grid."""
        count, sample = self._made.programs, self._made.sampled
        run = count if sample is None else len(sample)
        begin, size = 0, _FIRST_LANES
        while begin < run:
            end = min(begin + size, run)
            waiting = [np.arange(begin, end) if sample is None else sample[begin:end]]
            begin += size
            while waiting:
                waiting += self._attempt(waiting.pop())
            size = min(_MOST_LANES, max(_FIRST_LANES, self._options.budget // (_BYTES_PER_ELEMENT * self._largest)))

    def _attempt(self, programs: Array) -> list[Array]:
        """Run some programs at once; where that cannot be, the groups to be run instead, the last one first."""
        x, y, _ = self._made.grid
        ids = np.stack([programs % x, programs // x % y, programs // (x * y)], 1).astype(np.int32)
        tracing = Tracing(self._made.sites, self._storages, programs, ids, self._made.grid, self._options.budget)
        outer, Running.tracing = Running.tracing, tracing
        try:
            with recording(
                self._made.target,
                self._options.machine,
                kernel=self._options.kernel,
                automatic=True,
                sites=self._made.sites,
            ):
                call_kernel(self._function, {name: _fresh(value) for name, value in self._given.items()})
        except Split as split:
            tracing.rollback()
            self._made.splits += 1
            groups, which = np.unique(split.values, return_inverse=True)
            # Those that come first in the grid run first, where groups of one program each depend on one another.
            order = sorted(range(len(groups)), key=lambda group: int(np.flatnonzero(which.reshape(-1) == group)[0]))
            if len(groups) < len(programs):
                order = list(range(len(groups)))
            return [programs[which.reshape(-1) == group] for group in reversed(order)]
        except (ArgumentError, DTypeError, ShapeError) as error:
            tracing.rollback()
            refused = TritonCompileError(error.message, help=error.help, places=error.places)
            raise refused.at(author_place(error.__traceback__)) from error
        except KernscopeError as error:
            tracing.rollback()
            if not error.places:
                error.at(author_place(error.__traceback__))
            raise
        except BaseException:
            tracing.rollback()
            raise
        finally:
            Running.tracing = outer
        self._largest = max(self._largest, tracing.largest)
        self._made.facts += tracing.facts
        self._keep(tracing)
        return []

    def _keep(self, tracing: Tracing) -> None:
        for fact in tracing.accesses:
            fact.access.forget()
        chunk = Chunk(tracing.programs, tracing.tape, tuple(tracing.accesses))
        key = tracing.tape.structure()
        known = self._known.get(key)
        if known is None:
            self._known[key] = made = Trace(self._made, [chunk])
            self._made.traces.append(made)
        else:
            known.chunks.append(chunk)


# --- arguments --------------------------------------------------------------------------------------------------------


def _argument(name: str, value: Any, storages: Storages) -> Any:
    match value:
        case Constexpr():
            return bare(value)
        case TensorArgument():
            storage = storages.of_tensor(name, value)
            return Value([np.array([value.offset], np.int64)], (), storage=storage, is_const=value.is_const)
        case np.ndarray():
            storage, offset = storages.of_array(name, value)
            return Value([np.array([offset], np.int64)], (), storage=storage)
        case DescriptorArgument():
            base = _argument(name, value.base, storages)
            strides = [*value.strides[:-1], 1]
            return Descriptor(
                base, list(map(_scalar, value.shape)), list(map(_scalar64, strides)), value.block_shape, value.padding
            )
        case bool() | int() | float() | np.generic():
            return _scalar(value)
        case tuple() if hasattr(value, "_fields"):
            return type(value)(
                *(_argument(f"{name}.{f}", v, storages) for f, v in zip(value._fields, value, strict=True))
            )
        case tuple() | list():
            return tuple(_argument(f"{name}_{place}", each, storages) for place, each in enumerate(value))
    return value


def _scalar(number: Any) -> Value:
    return constant(bool(number), np.bool_) if isinstance(number, bool | np.bool_) else constant(number)


def _scalar64(number: int) -> Value:
    return constant(int(number), np.int64)


def _fresh(value: Any) -> Any:
    """An argument for one attempt: what a trace learns of a value stays in it."""
    match value:
        case Value():
            return Value(value.parts, value.shape, storage=value.storage, is_const=value.is_const)
        case Descriptor():
            return value.fresh(_fresh)
        case tuple() if hasattr(value, "_fields"):
            return type(value)(*map(_fresh, value))
        case tuple():
            return tuple(map(_fresh, value))
    return value
