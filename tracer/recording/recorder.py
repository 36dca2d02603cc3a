"""The recorder: turns calls into rows of a graph's tables. Usable without ``tl``.

What depends only on the operation and the operands' layouts (result shape, work, ...) is worked out once and
remembered (:mod:`kernscope.tracer.recording.plans`). The rest are a few integers a node
(:mod:`kernscope.tracer.recording.rows`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import current_thread, get_ident
from types import CodeType
from typing import Any

from ...ir import dtypes
from ...ir.arrays.physical import physical_bytes
from ...ir.dtypes import DType
from ...ir.errors import (
    ArgumentError,
    BoundsError,
    KernscopeError,
    NodeLimitError,
    OtherThreadError,
    OwnerError,
    ScopeError,
    ScratchOverflowError,
    SpaceError,
    UseAfterScopeError,
    did_you_mean,
    shown,
)
from ...ir.graph import Graph
from ...ir.grid import PROGRAM, Grid, coordinates, program_text
from ...ir.layout import Layout, Shape
from ...ir.ops import OPERATIONS, Operand, Operation
from ...ir.source.digests import source_digest
from ...ir.source.frames import OwnFolders
from ...ir.source.location import Location
from ...ir.tables import BoundsFault
from ...ir.target import OPPOSITE, Target
from ..values.handles import TensorHandle
from ..values.hbm import HbmTensor
from ..values.refusals import first_step
from ..values.scratch import AutomaticLifetimes, Scope, ScratchAllocator
from .plans import Plan, Planner, Static, plain_scalar, scalar_key
from .routes import Route, Router
from .rows import READ, WRITE, Rows, frame_table, stack_table
from .sites import CallChain, SiteTable

__all__ = ["DEFAULT_MAX_NODES", "Read", "Recorder"]

#: One operand of a node: storage row, offset in elements, layout.
Read = tuple[int, int, Layout]

_MIB_A_MILLION_NODES = 900
_NODES_UP_TO = 20_000_000


def _nodes_that_fit() -> int:
    present = physical_bytes()
    if present is None:
        return _NODES_UP_TO
    millions = 3 * present // 4 // (_MIB_A_MILLION_NODES << 20)
    return min(max(millions, 1) * 1_000_000, _NODES_UP_TO)


#: Whole millions of nodes, 20 at most: as many as three quarters of this machine's memory hold once they are traced,
#: scheduled and linted. A loop that never ends is told so before the system runs out of memory.
DEFAULT_MAX_NODES = _nodes_that_fit()

#: How far scratch can be filled where an overflow is recorded: addresses stay inside the graph's 64-bit columns.
_LARGEST_ADDRESS = 2**60


class Recorder:
    """Records the ranks of one trace, one after the other, into one graph.

    ``target`` gives the scratch budget and the topology. ``strict`` raises ``UseAfterScopeError`` at the first use of a
    handle after its scope; ``on_overflow`` and ``on_bounds`` are ``"raise"`` or ``"record"``. ``boundary`` and ``own``
    are those of a :class:`SiteTable`. ``automatic``: there are no scopes, and allocations get their addresses after the
    trace, which cannot overflow; ``sites`` goes on with those of an earlier trace. Faults at the stack rows
    ``handled`` are raised in any case. ``grid`` is the launch grid, if there is one, and ``program`` where the program
    that is being traced stands in it. ``raised`` are the overflows and accesses out of bounds that were, each with its
    stack row.
    """

    def __init__(
        self,
        target: Target,
        *,
        ranks: int,
        strict: bool = False,
        on_overflow: str = "raise",
        on_bounds: str = "raise",
        max_nodes: int = DEFAULT_MAX_NODES,
        boundary: CodeType | None = None,
        own: OwnFolders = (),
        automatic: bool = False,
        sites: SiteTable | None = None,
        handled: frozenset[int] = frozenset(),
        grid: Grid = (),
    ) -> None:
        self.target = target
        self.ranks = ranks
        self.strict = strict
        self.on_overflow = on_overflow
        self.on_bounds = on_bounds
        self.max_nodes = max_nodes
        self.automatic = automatic
        self.sites = SiteTable(boundary, own) if sites is None else sites
        self.handled = handled
        self.grid = grid
        self.program: Grid = ()
        self.raised: list[tuple[int, KernscopeError]] = []
        self.rank = -1
        self.node_count = 0
        self.rows = Rows()
        self._channels: dict[tuple[int, int], int] = {}
        self._planner = Planner(self.rows, target.memories[target.results_memory])
        # Looked up at once where operations are recorded, where nothing depends on the memories they lie in.
        self._quick = self._planner.known if target.is_plain else {}
        self._plans = self._quick
        self._router = None if target.is_plain else Router(target)
        self._region_views: dict[tuple[Layout, Shape, tuple[bool, ...], Shape], Layout] = {}
        self._bounds_faults: list[BoundsFault] = []
        self._storage_count = 0
        self._own_storages = 0  # where the rank's own storages begin: those of earlier ranks lie before
        self._programs: list[tuple[int, int]] = []  # each one's first storage, and its number
        self._allocator: ScratchAllocator | None = None
        self._is_suspended = False
        #: Scopes that were made and not (yet) entered: by what would enter them, where it was made.
        self.never_entered: dict[object, CallChain] = {}
        self._thread = get_ident()
        self._refused: KernscopeError | None = None

    # --- ranks, tensors, scopes -------------------------------------------------------------------------------------

    def add_tensor(self, name: str, layout: Layout) -> HbmTensor:
        """Declare an HBM tensor. All of them come before the first rank."""
        assert self.rank < 0, "tensors are declared before the first rank"
        row = self._storage(0, self.rows.layout_number(layout), -1, -1)
        self.rows.hbm_names.append(name)
        return HbmTensor(name, row, layout, self)

    def begin_rank(self) -> None:
        """Start the next rank with an empty scratch."""
        self.rank += 1
        self.rows.rank_starts.append(self.node_count)
        self.rows.rank_storages.append(self._storage_count)
        self._own_storages = self._storage_count
        self._allocator = (
            AutomaticLifetimes(self.target)
            if self.automatic
            else ScratchAllocator(self.target, self._scope_row(-1, 0, "", -1))
        )

    @property
    def allocator(self) -> ScratchAllocator:
        """The scratch of the rank being traced."""
        assert self._allocator is not None, "no rank has begun"
        return self._allocator

    def end_rank(self) -> None:
        """The rank's kernel has returned. Raises ``ScopeError`` where it left a scope open, and again what another
        thread was refused: the kernel may never have heard of it."""
        if self._refused is not None:
            raise self._refused
        self._refuse_open(self.allocator.scope)

    def _refuse_open(self, scope: Scope, outermost: Scope | None = None) -> None:
        if scope.parent is not None and scope is not outermost:
            error = ScopeError(
                f"{scope!r} is still open at the end of the kernel", help="open scopes with `with tl.scratch_scope():`"
            )
            raise error.at(self.sites.location(self.rows.scopes[scope.row][5]), "opened here")

    def begin_program(self, number: int) -> Scope:
        """Start a program of the grid, in fresh scratch: its scope."""
        self.program = coordinates(self.grid, number)
        scope = self._open_scope(PROGRAM, -1)
        # Each has scratch of its own: what another one made is out of reach, as another rank's is.
        self._own_storages = self._storage_count
        self._programs.append((self._storage_count, number))
        return scope

    def end_program(self, scope: Scope) -> None:
        """The program has returned. Raises ``ScopeError`` where it left a scope open."""
        self._refuse_open(self.allocator.scope, scope)
        self._close_scope(scope, -1)
        self.program = ()

    def suspend(self) -> None:
        """Refuse further recording: the trace has ended, or another one runs within it. Operators of handles reach
        their recorder without asking which trace is running, so it is the recorder that has to know."""
        # Without plans every operator takes the slow way, which looks here: the quick way needs no check.
        self._is_suspended, self._plans = True, {}

    def resume(self) -> None:
        """Take up recording again."""
        self._is_suspended, self._plans = False, self._quick

    def open_scope(self, name: str) -> Scope:
        """Open a scope: records its ``scope_enter``."""
        self.check_thread()
        return self._open_scope(name, self.sites.here())

    def _open_scope(self, name: str, stack: int) -> Scope:
        try:
            scope = self.allocator.open(len(self.rows.scopes), name)
        except KernscopeError as error:
            raise self.located(error) from None
        assert scope.parent is not None
        row = self._scope_row(scope.parent.row, scope.base, name, stack)
        self.rows.scopes[row][2] = self._marker("scope_enter", row, stack)
        return scope

    def close_scope(self, scope: Scope) -> None:
        """Close the innermost scope: records its ``scope_exit``. Raises ``ScopeError`` for any other."""
        self.check_thread()
        self._close_scope(scope, self.sites.here())

    def _close_scope(self, scope: Scope, stack: int) -> None:
        try:
            self.allocator.close(scope)
        except KernscopeError as error:
            raise self.located(error) from None
        self.rows.scopes[scope.row][3] = self._marker("scope_exit", scope.row, stack)

    def _scope_row(self, parent: int, base: int, name: str, stack: int) -> int:
        self.rows.scopes.append([self.rank, parent, -1, -1, base, stack])
        self.rows.scope_names.append(name)
        return len(self.rows.scopes) - 1

    def _marker(self, name: str, scope: int, stack: int) -> int:
        plan = self.plan(name, (), ())
        return self._node(plan, stack, scope, ())

    # --- plans ------------------------------------------------------------------------------------------------------

    def plan(self, name: str, operands: tuple[Operand, ...], static: Static) -> Plan:
        """The plan of an operation: its rule is applied once per distinct operands and static values. Errors of the
        rule blame the kernel's line."""
        try:
            return self._planner.plan(name, operands, static)
        except KernscopeError as error:
            raise self.located(error) from None

    # --- rows -------------------------------------------------------------------------------------------------------

    def _storage(self, address: int, layout: int, scope: int, stack: int) -> int:
        self.rows.storages.extend((address, layout, scope, stack, self.node_count))
        self._storage_count += 1
        return self._storage_count - 1

    def _node(self, plan: Plan, stack: int, scope: int, accesses: Sequence[int]) -> int:
        number = self.node_count
        if number >= self.max_nodes:
            self._refuse_node()
        self.node_count = number + 1
        self.rows.nodes.extend((plan.kind, stack, scope, len(accesses) // 3))
        self.rows.accesses.extend(accesses)
        return number

    def _refuse_node(self) -> None:
        raise self.located(
            NodeLimitError(
                f"the trace passed {self.max_nodes:,} nodes",
                help="a loop that never ends? else raise the limit: trace(..., max_nodes=...); "
                f"a million nodes, scheduled and linted, take about {_MIB_A_MILLION_NODES} MiB",
            )
        )

    # --- recording --------------------------------------------------------------------------------------------------

    def compute(
        self, name: str, operands: tuple[Any, ...], static: Static = (), space: str | None = None
    ) -> TensorHandle:
        """Record an operation on handles and Python numbers; the fresh handle of its result, in the memory of a name
        (None: where the machine puts it)."""
        if space is not None:
            return self._compute_slowly(name, operands, static, space)
        # The innermost path of a trace: what `allocate` and `_node` do, written out.
        rows, own = self.rows, self._own_storages
        layouts = rows.layouts
        key: list[Any] = [name, static]
        accesses: list[int] = []
        try:
            for operand in operands:
                if operand.__class__ is TensorHandle:
                    if operand._recorder is not self or operand.storage < own or self.strict:
                        self.check_handle(operand)
                    layout = operand.layout
                    key.append(layout)
                    accesses += (operand.storage, operand.offset, layouts[layout] * 2)
                else:
                    key.append(scalar_key(operand))
            plan = self._plans[tuple(key)]
        except KeyError:
            return self._compute_slowly(name, operands, static)
        if get_ident() != self._thread:
            self.check_thread()
        stack = self.sites.here()
        number, storage, allocator = self.node_count, self._storage_count, self._allocator
        assert allocator is not None
        if number >= self.max_nodes:
            self._refuse_node()
        address, scope = allocator.cursor, allocator.scope
        end = address + plan.held_bytes
        if end > allocator.budget and self._refuses_end(end, stack):
            raise self._overflow(plan.result, stack, self.target.results_memory, address)
        allocator.cursor = end
        self.node_count, self._storage_count = number + 1, storage + 1
        row = scope.row
        rows.storages.extend((address, plan.result_number, row, stack, number))
        accesses += (storage, 0, plan.result_number * 2 + WRITE)
        rows.accesses.extend(accesses)
        rows.nodes.extend((plan.kind, stack, row, len(accesses) // 3))
        return TensorHandle(self, storage, address, scope, plan.result)

    def _compute_slowly(
        self, name: str, operands: tuple[Any, ...], static: Static, space: str | None = None
    ) -> TensorHandle:
        """As :meth:`compute`, where a plan has to be made, a view's layout is new, an operand is wrong, or a rank has
        several memories."""
        return self.record(*self.planned(name, operands, static), space=space)

    def planned(self, name: str, operands: tuple[Any, ...], static: Static) -> tuple[Plan, list[Read]]:
        """The plan of an operation on handles and Python numbers, and what it reads."""
        for operand in operands:
            if isinstance(operand, TensorHandle):
                self.check_handle(operand)
        ready = tuple(self._operand(name, operand) for operand in operands)
        reads = [(h.storage, h.offset, h.layout) for h in operands if isinstance(h, TensorHandle)]
        return self.plan(name, ready, static), reads

    def _operand(self, name: str, operand: Any) -> Operand:
        if isinstance(operand, TensorHandle):
            return operand.layout
        number = plain_scalar(operand)
        if isinstance(number, bool | int | float):
            return number
        raise self.located(
            ArgumentError(
                f"{name}: operand {shown(operand)} is neither a handle nor a Python number", help=first_step(operand)
            )
        )

    def record(
        self,
        plan: Plan,
        reads: Iterable[Read],
        *,
        into: TensorHandle | Read | None = None,
        channel: int = -1,
        stack: int | None = None,
        space: str | None = None,
    ) -> TensorHandle:
        """Record a node that reads these views and writes ``into`` (a handle or a view of HBM), or fresh bytes in the
        memory of a name (None: where the machine puts them); at the place of a stack row, where the call that led here
        is not what made it.

        Where a rank has several memories, what no engine reaches is moved to where one does, before and after.
        """
        if get_ident() != self._thread:
            self.check_thread()
        place = None if space is None else self.place(space)
        if self._router is None:
            return self._write(plan, reads, into, channel, place, stack)
        given = tuple(reads)
        route = self._route(plan, given, into, place)
        if route.is_direct:
            return self._write(plan, given, into, channel, route.result, stack)
        ready = [self._moved(read, path, stack) for read, path in zip(given, route.operands, strict=True)]
        if not route.after:
            return self._write(plan, ready, into, channel, route.result, stack)
        # A product that is added to in place is added to where it was moved to.
        twin = self._in_place(given, into)
        made = self._write(
            plan, ready, None if twin < 0 else self._handle_of(ready[twin]), channel, route.result, stack
        )
        *between, last = route.after
        at = self._moved((made.storage, made.offset, made.layout), tuple(between), stack)
        plan = self._move_plan(at)
        return self._write(plan, (at,), into, -1, last, stack)

    def _route(self, plan: Plan, reads: Sequence[Read], into: TensorHandle | Read | None, place: int | None) -> Route:
        """The way to do what a plan says. Raises ``SpaceError`` where there is none, or, with ``strict_spaces``, where
        something would have to be moved."""
        assert self._router is not None
        operation = OPERATIONS.by_code(self.rows.kinds[plan.kind].code)
        places = tuple(self._place_of(storage) for storage, _, _ in reads)
        wanted = -1 if place is None else place
        if into is not None:
            wanted = self._place_of(into.storage if isinstance(into, TensorHandle) else into[0])
        twin = self._in_place(reads, into)
        fixed = wanted == self.target.global_memory
        route = self._router.route(operation, places, wanted=wanted, in_place=twin, fixed=fixed)
        if route is not None and (route.is_direct or not self.target.strict_spaces):
            return route
        names = self.target.memory_names
        lie = " and ".join(dict.fromkeys(names[at] for at in places)) or "nothing"
        goal = f" into {names[wanted]}" if wanted >= 0 else ""
        reaches = "; ".join(str(reach) for reach in self.target.reaches if reach.takes(operation))
        if route is None:
            raise self.located(
                SpaceError(
                    f"no engine does {operation.name} from {lie}{goal}, and nothing brings it where one does",
                    help=self._nearer(operation, names[places[twin]] if twin >= 0 else "")
                    or f"what does {operation.name}: {reaches or 'no engine'}",
                )
            )
        number = next((n for n, path in enumerate(route.operands) if path), -1)
        where = names[route.operands[number][-1]] if number >= 0 else names[route.result]
        raise self.located(
            SpaceError(
                f"no engine does {operation.name} from {lie}{goal}: it takes {reaches}",
                help=f'bring it there: tl.move(h, "{where}")'
                if number >= 0
                else f'make it in {where}, then write tl.move(h, "{names[wanted]}")',
            )
        )

    def _nearer(self, operation: Operation, lies: str) -> str:
        """The ``help:`` text where what is written over ``lies`` in a memory that no engine writes (empty: nothing
        is)."""
        place = self.target.place_of(operation)
        writes = [reach.writes for reach in self.target.reaches if reach.takes(operation)]
        there = place if any(place in names for names in writes) else next((names[0] for names in writes), "")
        if not lies or not there or any(lies in names for names in writes):
            return ""
        return f'make what it adds to in {there}: tl.zeros(..., space="{there}")'

    def _in_place(self, reads: Sequence[Read], into: TensorHandle | Read | None) -> int:
        """The number of the operand that an operation writes over; -1 for none."""
        if not isinstance(into, TensorHandle):
            return -1
        over = (into.storage, into.offset, into.layout)
        return next((number for number, read in enumerate(reads) if read == over), -1)

    def _moved(self, read: Read, path: Sequence[int], stack: int | None = None) -> Read:
        """Record the moves of a view through these memories; the view of what came of it."""
        for place in path:
            made = self._write(self._move_plan(read), (read,), None, -1, place, stack)
            read = (made.storage, made.offset, made.layout)
        return read

    def _move_plan(self, read: Read) -> Plan:
        return self.plan("move", (read[2],), (("automatic", True),))

    def _handle_of(self, read: Read) -> TensorHandle:
        storage, offset, layout = read
        return TensorHandle(self, storage, 0, self.allocator.scope, layout, offset)

    def move(self, handle: TensorHandle, space: str | None, out: TensorHandle | None = None) -> TensorHandle:
        """Record that a tile is brought into another of the rank's memories, into ``out`` there or fresh bytes; its
        handle there."""
        self.check_handle(handle)
        at: Read = (handle.storage, handle.offset, handle.layout)
        goal = self.place(space)
        here = self._place_of(handle.storage)
        path = (goal,) if self._router is None else self._router.path(here, (goal,))
        if path is None or here == goal:
            raise self.located(
                SpaceError(
                    f"move of {handle!r} from {self.target.memory_names[here]} to {space}",
                    help="it is there already" if here == goal else "no engine of the machine brings it there",
                )
            )
        *between, last = path
        at = self._moved(at, tuple(between))
        return self._write(self.plan("move", (at[2],), ()), (at,), out, -1, last)

    def place(self, space: object) -> int:
        """The place of one of the rank's memories, by name. Raises ``SpaceError``."""
        names = [self.target.memory_names[place] for place in self.target.scratch_memories]
        if not isinstance(space, str) or space not in names:
            raise self.located(
                SpaceError(f"no memory {shown(space)}", help=did_you_mean(str(space), names, what="memories"))
            )
        return self.target.memory_names.index(space)

    def usual_place(self, name: str) -> int:
        """The place of the memory where an operation's results go where nothing else is said."""
        return self.target.memory_names.index(self.target.place_of(OPERATIONS[name]))

    def _place_of(self, storage: int) -> int:
        if storage < len(self.rows.hbm_names):
            return self.target.global_memory
        return self.rows.elsewhere.get(storage, self.target.results_memory)

    def _write(
        self,
        plan: Plan,
        reads: Iterable[Read],
        into: TensorHandle | Read | None,
        channel: int,
        place: int | None,
        stack: int | None = None,
    ) -> TensorHandle:
        """Record a node as it is, wherever its operands lie."""
        rows = self.rows
        stack = self.sites.here() if stack is None else stack
        scope = self.allocator.scope.row
        accesses: list[int] = []
        for storage, offset, layout in reads:
            accesses += (storage, offset, rows.layout_number(layout) * 2 + READ)
        if into is None:
            handle = self.allocate(plan.result, plan.result_number, stack, place)
            accesses += (handle.storage, 0, plan.result_number * 2 + WRITE)
        else:
            if isinstance(into, TensorHandle):
                handle = into
            else:
                handle = TensorHandle(self, into[0], 0, self.allocator.scope, into[2], into[1])
            accesses += (handle.storage, handle.offset, rows.layout_number(handle.layout) * 2 + WRITE)
        node = self._node(plan, stack, scope, accesses)
        if channel >= 0:
            rows.channels.append((node, channel))
        return handle

    def record_only(self, plan: Plan, reads: Iterable[Read], *, channel: int = -1, stack: int | None = None) -> int:
        """Record a node that writes nothing; its id. ``stack`` as of :meth:`record`."""
        if get_ident() != self._thread:
            self.check_thread()
        if self._router is not None:
            given = tuple(reads)
            paths = self._route(plan, given, None, None).operands
            reads = [self._moved(read, path, stack) for read, path in zip(given, paths, strict=True)]
        accesses: list[int] = []
        for storage, offset, layout in reads:
            accesses += (storage, offset, self.rows.layout_number(layout) * 2 + READ)
        stack = self.sites.here() if stack is None else stack
        node = self._node(plan, stack, self.allocator.scope.row, accesses)
        if channel >= 0:
            self.rows.channels.append((node, channel))
        return node

    @contextmanager
    def command(self) -> Iterator[None]:
        """What is recorded in the ``with`` block is one command."""
        first = self.node_count
        yield
        self.rows.commands.append((first, self.node_count))

    def cast(self, handle: TensorHandle, dtype: Any, bitcast: bool = False, space: str | None = None) -> TensorHandle:
        """Record a cast or a bitcast (also to the same dtype: fresh bytes, always)."""
        return self.compute("bitcast" if bitcast else "cast", (handle,), (("dtype", self.dtype(dtype)),), space)

    def dtype(self, name: Any) -> DType:
        """A dtype by name; the error blames the user's line."""
        try:
            return dtypes.of(name)
        except KernscopeError as error:
            raise self.located(error) from None

    def channel(self, direction: str, *, sending: bool) -> int:
        """The channel row that a send or receive of this rank in a direction uses. Raises ``ChannelError``."""
        try:
            peer = self.target.neighbour(self.rank, direction, self.ranks)
        except KernscopeError as error:
            raise self.located(error) from None
        here = self.target.directions.index(direction)
        there = self.target.directions.index(OPPOSITE[direction])
        row = (self.rank, here, peer, there) if sending else (peer, there, self.rank, here)
        known = self._channels.get(row[:2])
        if known is None:
            known = self._channels[row[:2]] = len(self.rows.channel_ends)
            self.rows.channel_ends.append(row)
        return known

    def region_view(self, tensor: Layout, extents: Shape, kept: tuple[bool, ...], steps: Shape = ()) -> Layout:
        """The layout of a region that lies inside its tensor."""
        key = (tensor, extents, kept, steps)
        view = self._region_views.get(key)
        if view is None:
            shown_dims = [i for i, keep in enumerate(kept) if keep]
            by = steps or (1,) * len(extents)
            view = self._region_views[key] = Layout.of(
                tuple(extents[i] for i in shown_dims),
                tuple(tensor.strides[i] * by[i] for i in shown_dims),
                tensor.dtype,
            )
        return view

    def raises(self, mode: str, stack: int) -> bool:
        """Whether a fault at a stack row is raised: under this mode, or because the kernel is known to handle it."""
        return mode == "raise" or stack in self.handled

    def out_of_bounds(self, error: BoundsError, tensor: HbmTensor, lower: Shape, upper: Shape) -> None:
        """Raise the error, or note that the next node leaves its tensor."""
        stack = self.sites.here()
        if self.raises(self.on_bounds, stack):
            self.raised.append((stack, error))
            raise error
        self.note_bounds_fault(BoundsFault(self.node_count, tensor.storage, lower, upper))

    def note_bounds_fault(self, fault: BoundsFault) -> None:
        """Note an access that leaves its tensor."""
        self._bounds_faults.append(fault)

    # --- scratch ----------------------------------------------------------------------------------------------------

    def allocate(self, layout: Layout, number: int = -1, stack: int = -2, memory: int | None = None) -> TensorHandle:
        """Fresh bytes for a dense layout in the innermost scope, in the memory of a place (``None``: where results go).
        Raises ``ScratchOverflowError`` past its capacity."""
        allocator = self.allocator
        if stack == -2:
            self.check_thread()
            stack = self.sites.here()
        place = self.target.results_memory if memory is None else memory
        address, end = allocator.allocate(layout, place)
        if end > self.target.memories[place].bytes and self._refuses_end(end, stack):
            allocator.give_back(address, place)
            raise self._overflow(layout, stack, place, address)
        if place != self.target.results_memory:
            self.rows.elsewhere[self._storage_count] = place
        row = self._storage(
            address, self.rows.layout_number(layout) if number < 0 else number, allocator.scope.row, stack
        )
        return TensorHandle(self, row, address, allocator.scope, layout)

    def _refuses_end(self, end: int, stack: int) -> bool:
        """Whether an allocation past its memory's capacity is refused. Where that is recorded, its addresses must still
        be numbers of the graph."""
        return self.raises(self.on_overflow, stack) or end > _LARGEST_ADDRESS

    def _overflow(self, layout: Layout, stack: int, memory_place: int, in_use: int) -> KernscopeError:
        """``in_use`` are the bytes of the memory that are taken already."""
        open_scopes = []
        scope: Scope | None = self.allocator.scope
        while scope is not None:
            open_scopes.append(scope.row)
            scope = scope.parent
        memory = self.target.memories[memory_place]
        budget, asked = memory.bytes, memory.held_bytes(layout.nbytes, layout.shape)
        groups = self.rows.live_bytes_by_stack(open_scopes, memory, memory_place, self.target.results_memory)
        ordered = sorted(groups.items(), key=lambda item: (-sum(item[1]), item[0]))
        lines = [
            f"    {sum(sizes):>12,} B  {f'{len(sizes)} x ' if len(sizes) > 1 else ''}"
            f"{self.sites.name(where) or 'unnamed'}  {place.short if (place := self.sites.named_at(where)) else ''}"
            for where, sizes in ordered
        ]
        live = ["  live allocations, largest first:", *lines] if lines else []
        error = ScratchOverflowError(
            f"{self.target.called(memory_place)} overflow {self.whereabouts}: {layout!r} needs {asked:,} B, "
            + "\n".join([f"{in_use:,} B of {budget:,} B are in use ({in_use + asked - budget:,} B too many)", *live]),
            help="wrap each iteration's temporaries in `with tl.scratch_scope():` (tl.copy_to keeps what must "
            "persist), or use smaller tiles; `ks.lint` looks at the whole kernel, and says which loop and which tile",
        )
        self.raised.append((stack, error))
        return error.at(self.sites.location(stack))

    # --- checks and errors ------------------------------------------------------------------------------------------

    def check_handle(self, handle: TensorHandle) -> None:
        """Refuse a handle of another trace or another rank, and under ``strict`` one whose scope is closed."""
        if handle._recorder is not self or handle.storage < self._own_storages or self._is_suspended:
            raise self._foreign(handle)
        if self.strict and handle.scope.closed:
            error = UseAfterScopeError(
                f"{shown(handle)} is used after the exit of its scope",
                help="keep it alive: make it before the scope and tl.copy_to into it, or use it inside",
            )
            self.located(error).at(self.sites.location(self.rows.stack_of_storage(handle.storage)), "made here")
            exit_node = self.rows.scopes[handle.scope.row][3]
            if exit_node >= 0:
                error.at(self.sites.location(self.rows.stack_of_node(exit_node)), "scope closed here")
            raise error

    def check_tensor(self, tensor: HbmTensor) -> None:
        """Refuse an HBM tensor of another trace."""
        if tensor._recorder is not self:
            raise self.located(
                OwnerError(
                    f"HBM tensor {tensor.name!r} belongs to another trace",
                    help="use this call's arguments: what a cache or a global keeps of another call is of no use here",
                )
            )

    def _foreign(self, handle: TensorHandle) -> KernscopeError:
        owner = handle._recorder
        if owner is self and not self._is_suspended:
            error = self._of_another_program(handle) if self.program else self._of_another_rank(handle)
        else:
            error = OwnerError(
                f"{shown(handle)} belongs to another trace, which is not running",
                help="make it anew in every call of the kernel: functools.cache and globals keep what an earlier "
                "trace made",
            )
        return self.located(error).at(owner.made_at(handle.storage), "made here")

    @property
    def whereabouts(self) -> str:
        """Where the trace stands: ``on rank 3``, and in which program."""
        place = f" in {program_text(self.grid, self._programs[-1][1])}" if self.program else ""
        return f"on rank {self.rank}{place}"

    def _of_another_rank(self, handle: TensorHandle) -> OwnerError:
        rank = self.rows.rank_of_storage(handle.storage)
        return OwnerError(
            f"{shown(handle)} belongs to rank {rank}, and rank {self.rank} uses it: a rank reaches its own scratch "
            "only",
            help="make it anew in every rank (functools.cache and globals keep what rank 0 made), or tl.send it and "
            "tl.recv it",
        )

    def _of_another_program(self, handle: TensorHandle) -> OwnerError:
        owner = bisect_right(self._programs, handle.storage, key=lambda begun: begun[0]) - 1
        return OwnerError(
            f"{shown(handle)} belongs to {program_text(self.grid, self._programs[owner][1])}, and "
            f"{program_text(self.grid, self._programs[-1][1])} uses it: each has fresh scratch",
            help="make it anew in every program (functools.cache and globals keep what the first one made)",
        )

    def made_at(self, storage: int) -> Location | None:
        """Where a storage was made."""
        return self.sites.location(self.rows.stack_of_storage(storage))

    def check_thread(self) -> None:
        """Refuse what another thread than the kernel's records while the kernel runs."""
        if get_ident() == self._thread or self._is_suspended:
            return
        error = self.located(
            OtherThreadError(
                f"thread {current_thread().name!r} records an operation of a kernel that runs in another thread",
                help="record every operation in the kernel's own thread: threads may prepare Python values for it",
            )
        )
        self._refused = self._refused or error
        raise error

    def located(self, error: KernscopeError) -> KernscopeError:
        """The error with the user's line added."""
        return error.at(self.sites.location(self.sites.here()))

    def location(self) -> Location | None:
        """The user's line."""
        return self.sites.location(self.sites.here())

    def space_of(self, storage: int) -> str:
        """The name of the memory that a storage lies in."""
        return self.target.memory_names[self._place_of(storage)]

    def told_space(self, storage: int) -> str:
        """What a handle says of its memory: nothing where it lies where results go."""
        place = self._place_of(storage)
        return "" if place == self.target.results_memory else f" in {self.target.memory_names[place]}"

    def name_of(self, storage: int) -> str:
        """The name of a storage: of an HBM tensor its parameter's, of an allocation what it was assigned to."""
        if storage < len(self.rows.hbm_names):
            return self.rows.hbm_names[storage]
        return self.sites.name(self.rows.stack_of_storage(storage))

    # --- the graph --------------------------------------------------------------------------------------------------

    def finish(self, *, kernel: str, machine: str, machine_toml: str, defaults: Mapping[str, Any]) -> Graph:
        """The graph of all that was recorded."""
        names: dict[str, int] = {"": 0}

        def number(name: str) -> int:
            return names.setdefault(name, len(names))

        rows, sites = self.rows, self.sites
        unentered = tuple(sites.row(chain) for chain in self.never_entered.values())
        storages = rows.storage_table(sites, number, self.target)
        return Graph(
            kernel=kernel,
            machine=machine,
            ranks=self.ranks,
            target=self.target,
            nodes=rows.node_table(),
            accesses=rows.access_table(storages),
            storages=storages,
            scopes=rows.scope_table(number),
            channels=rows.channel_table(),
            frames=frame_table(sites, number),
            stacks=stack_table(sites),
            layouts=tuple(rows.layouts),
            names=tuple(names),
            attributes=self._planner.attribute_sets(),
            bounds_faults=tuple(self._bounds_faults),
            unentered_scopes=unentered,
            grid=self.grid,
            machine_toml=machine_toml,
            digests={file: source_digest(file) for file in dict.fromkeys(place.file for place in sites.frames)},
            initial=tuple(defaults),
            defaults=dict(defaults),
        )
