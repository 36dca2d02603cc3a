"""The recorder: turns calls into rows of a graph's tables. Usable without ``tl``.

Tracing is the path on which Python itself is the cost, so rows go into flat integer arrays, and what depends only on
the operation and the operands' layouts (result shape, work, numbers of the tables) is worked out once and remembered: a
*plan*.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping
from types import CodeType
from typing import Any

import attrs
import numpy as np

from ..ir import dtypes
from ..ir.dtypes import DType
from ..ir.errors import (
    ArgumentError,
    KernscopeError,
    NodeLimitError,
    NotTracingError,
    ScopeError,
    ScratchOverflowError,
    UseAfterScopeError,
    shown,
)
from ..ir.graph import Graph
from ..ir.layout import Layout, Shape
from ..ir.location import Location
from ..ir.ops import OPERATIONS, Operand, Work
from ..ir.regions import boxes
from ..ir.tables import (
    AccessKind,
    AccessTable,
    BoundsFault,
    ChannelTable,
    FrameTable,
    NodeTable,
    ScopeTable,
    StackTable,
    StorageKind,
    StorageTable,
)
from ..ir.target import OPPOSITE, Target
from .handles import HbmTensor, TensorHandle
from .refusals import first_step
from .scratch import Scope, ScratchAllocator
from .sites import SiteTable

__all__ = ["DEFAULT_MAX_NODES", "Plan", "Read", "Recorder", "Static", "plain_scalar"]

Static = tuple[tuple[str, Any], ...]
#: One operand of a node: storage row, offset in elements, layout.
Read = tuple[int, int, Layout]

DEFAULT_MAX_NODES = 10_000_000
_NODE_WIDTH, _ACCESS_WIDTH, _STORAGE_WIDTH = 11, 4, 8
_READ, _WRITE = 0, 1


@attrs.frozen
class Plan:
    """What a node looks like, given its operation, static values and operands' layouts. ``result`` is the dense layout
    of the result, ``held_bytes`` what it takes of the budget; the other fields are columns of the node table."""

    code: int
    attributes: int
    work: Work
    dtype: int
    result: Layout
    result_number: int
    held_bytes: int


class Recorder:
    """Records the ranks of one trace, one after the other, into one graph.

    ``target`` gives the scratch budget and the topology. ``strict`` raises ``UseAfterScopeError`` at the first use of a
    handle after its scope; ``on_overflow`` and ``on_bounds`` are ``"raise"`` or ``"record"``.
    """

    def __init__(
        self,
        target: Target,
        *,
        ranks: int = 1,
        strict: bool = False,
        on_overflow: str = "raise",
        on_bounds: str = "raise",
        max_nodes: int = DEFAULT_MAX_NODES,
        boundary: CodeType | None = None,
    ) -> None:
        self.target = target
        self.ranks = ranks
        self.strict = strict
        self.on_overflow = on_overflow
        self.on_bounds = on_bounds
        self.max_nodes = max_nodes
        self.sites = SiteTable(boundary)
        self.rank = -1
        self.node_count = 0
        self.command = -1  # the first node of the open composite, or -1
        self._nodes = array("q")
        self._access_counts = array("q")
        self._accesses = array("q")
        self._storages = array("q")
        self._hbm_names: list[str] = []
        self._scopes: list[list[int]] = []
        self._scope_names: list[str] = []
        self._channels: dict[tuple[int, int], int] = {}
        self._channel_rows: list[tuple[int, int, int, int]] = []
        self._layouts: dict[Layout, int] = {}
        self._attributes: dict[tuple[tuple[str, Any, str], ...], int] = {(): 0}
        self._plans: dict[tuple[Any, ...], Plan] = {}
        self._bounds_faults: list[BoundsFault] = []
        self._storage_count = 0
        self._allocator: ScratchAllocator | None = None
        self._suspended: dict[tuple[Any, ...], Plan] | None = None

    # --- ranks, tensors, scopes -------------------------------------------------------------------------------------

    def add_tensor(self, name: str, layout: Layout) -> HbmTensor:
        """Declare an HBM tensor. All of them come before the first rank."""
        assert self.rank < 0, "tensors are declared before the first rank"
        row = self._storage(StorageKind.HBM, -1, 0, layout, self._layout_number(layout), -1, -1)
        self._hbm_names.append(name)
        return HbmTensor(name, row, layout, self)

    def begin_rank(self) -> None:
        """Start the next rank with an empty scratch."""
        self.rank += 1
        root = Scope(self._scope_row(-1, 0, "", -1), None, 0, "")
        self._allocator = ScratchAllocator(self.target.scratch_bytes, self.target.align, root)

    @property
    def allocator(self) -> ScratchAllocator:
        """The scratch of the rank being traced."""
        assert self._allocator is not None, "no rank has begun"
        return self._allocator

    def end_rank(self) -> None:
        """The rank's kernel has returned. Raises ``ScopeError`` where it left a scope open."""
        scope = self.allocator.scope
        if scope.parent is not None:
            error = ScopeError(
                f"{scope!r} is still open at the end of the kernel", help="open scopes with `with tl.scratch_scope():`"
            )
            raise error.at(self.sites.location(self._scopes[scope.row][5]), "opened here")

    def suspend(self) -> None:
        """Refuse further recording: the trace has ended, or another one runs within it. Operators of handles reach
        their recorder without asking which trace is running, so it is the recorder that has to know."""
        if self._suspended is None:
            # Without plans every operator takes the slow way, which looks here: the quick way needs no check.
            self._suspended, self._plans = self._plans, {}

    def resume(self) -> None:
        """Take up recording again."""
        if self._suspended is not None:
            self._plans, self._suspended = self._suspended, None

    def open_scope(self, name: str) -> Scope:
        """Open a scope: records its ``scope_enter``."""
        stack = self.sites.here()
        row = self._scope_row(self.allocator.scope.row, self.allocator.cursor, name, stack)
        scope = self.allocator.open(row, name)
        self._scopes[row][2] = self._marker("scope_enter", row, stack)
        return scope

    def close_scope(self, scope: Scope) -> None:
        """Close the innermost scope: records its ``scope_exit``. Raises ``ScopeError`` for any other."""
        try:
            self.allocator.close(scope)
        except KernscopeError as error:
            raise self.located(error) from None
        self._scopes[scope.row][3] = self._marker("scope_exit", scope.row, self.sites.here())

    def _scope_row(self, parent: int, base: int, name: str, stack: int) -> int:
        self._scopes.append([self.rank, parent, -1, -1, base, stack])
        self._scope_names.append(name)
        return len(self._scopes) - 1

    def _marker(self, name: str, scope: int, stack: int) -> int:
        plan = self.plan(name, (), ())
        return self._node(plan, stack, scope, -1, ())

    # --- plans ------------------------------------------------------------------------------------------------------

    def plan(self, name: str, operands: tuple[Operand, ...], static: Static) -> Plan:
        """The plan of an operation: its rule is applied once per distinct operands and static values."""
        floats = [scalar_key(value) for _, value in static if value.__class__ is float]
        key = (name, static, *floats, *[o if isinstance(o, Layout) else scalar_key(o) for o in operands])
        known = self._plans.get(key)
        return known or self._make_plan(key, name, operands, static)

    def _make_plan(self, key: tuple[Any, ...], name: str, operands: tuple[Operand, ...], static: Static) -> Plan:
        operation = OPERATIONS[name]
        try:
            shape, dtype = operation.rule(operands, **dict(static))
        except KernscopeError as error:
            error.args = (f"{name}: {error.message}",)
            error.message = f"{name}: {error.message}"
            raise self.located(error) from None
        result = Layout.dense(shape, dtype)
        scalars = tuple((i, o) for i, o in enumerate(operands) if not isinstance(o, Layout))
        attributes: Static = (*static, ("scalars", scalars)) if scalars else static
        tensor_dtypes = [o.dtype for o in operands if isinstance(o, Layout)]
        plan = self._plans[key] = Plan(
            code=OPERATIONS.code(name),
            attributes=self._attribute_number(attributes),
            work=operation.work(operands, result),
            dtype=(tensor_dtypes[0] if tensor_dtypes else dtype).index,
            result=result,
            result_number=self._layout_number(result),
            held_bytes=-(-result.nbytes // self.target.align) * self.target.align,
        )
        return plan

    def _layout_number(self, layout: Layout) -> int:
        number = self._layouts.get(layout)
        if number is None:
            number = self._layouts[layout] = len(self._layouts)
        return number

    def _attribute_number(self, attributes: Static) -> int:
        # True == 1 == 1.0 and 0.0 == -0.0 in Python: keep apart what computes differently.
        key = tuple((name, value, repr(value)) for name, value in attributes)
        number = self._attributes.get(key)
        if number is None:
            number = self._attributes[key] = len(self._attributes)
        return number

    # --- rows -------------------------------------------------------------------------------------------------------

    def _storage(
        self, kind: int, rank: int, address: int, layout: Layout, layout_number: int, scope: int, stack: int
    ) -> int:
        self._storages.extend((kind, rank, address, layout.nbytes, layout_number, scope, stack, self.node_count))
        self._storage_count += 1
        return self._storage_count - 1

    def _node(self, plan: Plan, stack: int, scope: int, channel: int, accesses: tuple[int, ...]) -> int:
        number = self.node_count
        if number >= self.max_nodes:
            self._refuse_node()
        self.node_count = number + 1
        w0, w1, w2 = plan.work
        self._nodes.extend(
            (
                plan.code,
                self.rank,
                scope,
                stack,
                plan.attributes,
                w0,
                w1,
                w2,
                plan.dtype,
                channel,
                number if self.command < 0 else self.command,
            )
        )
        self._accesses.extend(accesses)
        self._access_counts.append(len(accesses) // _ACCESS_WIDTH)
        return number

    def _refuse_node(self) -> None:
        raise self.located(
            NodeLimitError(
                f"the trace passed {self.max_nodes:,} nodes",
                help="a loop that never ends? else raise the limit: trace(..., max_nodes=...)",
            )
        )

    # --- recording --------------------------------------------------------------------------------------------------

    def compute(self, name: str, operands: tuple[Any, ...], static: Static = ()) -> TensorHandle:
        """Record an operation on handles and Python numbers; the fresh handle of its result."""
        key: list[Any] = [name, static]
        accesses: list[int] = []
        try:
            for operand in operands:
                if operand.__class__ is TensorHandle:
                    layout = operand.layout
                    key.append(layout)
                    accesses += (operand.storage, _READ, operand.offset, self._layouts[layout])
                    if operand._recorder is not self or (self.strict and operand.scope.closed):
                        self.check_handle(operand)
                else:
                    key.append(scalar_key(operand))
            plan = self._plans[tuple(key)]
        except KeyError:
            return self._compute_slowly(name, operands, static)
        stack = self.sites.here()
        handle = self.allocate(plan.result, plan.result_number, stack)
        accesses += (handle.storage, _WRITE, 0, plan.result_number)
        self._node(plan, stack, handle.scope.row, -1, tuple(accesses))
        return handle

    def _compute_slowly(self, name: str, operands: tuple[Any, ...], static: Static) -> TensorHandle:
        """As :meth:`compute`, where a plan has to be made, a view's layout is new, or an operand is wrong."""
        if self._suspended is not None:
            raise self.located(
                NotTracingError(
                    f"{name} of a handle whose trace is not running", help="handles live as long as the kernel's call"
                )
            )
        for operand in operands:
            if isinstance(operand, TensorHandle):
                self.check_handle(operand)
        ready = tuple(self._operand(name, operand) for operand in operands)
        reads = [(h.storage, h.offset, h.layout) for h in operands if isinstance(h, TensorHandle)]
        return self.record(self.plan(name, ready, static), reads)

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
    ) -> TensorHandle:
        """Record a node that reads these views and writes ``into`` (a handle or a view of HBM), or fresh bytes."""
        stack = self.sites.here()
        scope = self.allocator.scope.row
        accesses: list[int] = []
        for storage, offset, layout in reads:
            accesses += (storage, _READ, offset, self._layout_number(layout))
        if into is None:
            handle = self.allocate(plan.result, plan.result_number, stack)
            accesses += (handle.storage, _WRITE, 0, plan.result_number)
        elif isinstance(into, TensorHandle):
            handle = into
            accesses += (handle.storage, _WRITE, handle.offset, self._layout_number(handle.layout))
        else:
            storage, offset, layout = into
            handle = TensorHandle(self, storage, 0, self.allocator.scope, layout, offset)
            accesses += (storage, _WRITE, offset, self._layout_number(layout))
        self._node(plan, stack, scope, channel, tuple(accesses))
        return handle

    def record_only(self, plan: Plan, reads: Iterable[Read], *, channel: int = -1) -> int:
        """Record a node that writes nothing; its id."""
        accesses: list[int] = []
        for storage, offset, layout in reads:
            accesses += (storage, _READ, offset, self._layout_number(layout))
        return self._node(plan, self.sites.here(), self.allocator.scope.row, channel, tuple(accesses))

    def cast(self, handle: TensorHandle, dtype: Any) -> TensorHandle:
        """Record a cast (also to the same dtype: fresh bytes, always)."""
        return self.compute("cast", (handle,), (("dtype", self.dtype(dtype)),))

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
            known = self._channels[row[:2]] = len(self._channel_rows)
            self._channel_rows.append(row)
        return known

    def bounds_fault(self, tensor: HbmTensor, lower: Shape, upper: Shape) -> None:
        """Note that the next node leaves its tensor."""
        self._bounds_faults.append(BoundsFault(self.node_count, tensor.storage, lower, upper))

    # --- scratch ----------------------------------------------------------------------------------------------------

    def allocate(self, layout: Layout, number: int = -1, stack: int = -2) -> TensorHandle:
        """Fresh bytes for a dense layout in the innermost scope. Raises ``ScratchOverflowError`` past the budget."""
        allocator = self.allocator
        scope = allocator.scope
        before = allocator.cursor
        address = allocator.allocate(layout.nbytes)
        if stack == -2:
            stack = self.sites.here()
        if allocator.cursor > allocator.budget and self.on_overflow == "raise":
            allocator.cursor = before
            raise self._overflow(layout, before, stack)
        if number < 0:
            number = self._layout_number(layout)
        row = self._storage(0, self.rank, address, layout, number, scope.row, stack)
        return TensorHandle(self, row, address, scope, layout)

    def _overflow(self, layout: Layout, in_use: int, stack: int) -> KernscopeError:
        open_scopes: dict[int, Scope] = {}
        scope: Scope | None = self.allocator.scope
        while scope is not None:
            open_scopes[scope.row] = scope
            scope = scope.parent
        align, budget = self.target.align, self.allocator.budget
        asked = -(-layout.nbytes // align) * align
        # A copy: a view kept alive by a traceback would forbid the array to grow.
        rows = _matrix(self._storages, _STORAGE_WIDTH).copy()
        live = rows[(rows[:, 0] == StorageKind.SCRATCH) & np.isin(rows[:, 5], list(open_scopes))]
        groups: dict[int, list[int]] = {}
        for nbytes, where in live[:, [3, 6]].tolist():
            groups.setdefault(where, []).append(-(-nbytes // align) * align)
        ordered = sorted(groups.items(), key=lambda item: (-sum(item[1]), item[0]))
        lines = [
            f"    {sum(sizes):>12,} B  {f'{len(sizes)} x ' if len(sizes) > 1 else ''}"
            f"{self.sites.name(where) or 'unnamed'}  {place.short if (place := self.sites.location(where)) else ''}"
            for where, sizes in ordered
        ]
        error = ScratchOverflowError(
            f"scratch overflow on rank {self.rank}: {layout!r} needs {asked:,} B, "
            f"{in_use:,} B of {budget:,} B are in use ({in_use + asked - budget:,} B too many)\n"
            "  live allocations, largest first:\n" + "\n".join(lines),
            help="wrap each iteration's temporaries in `with tl.scratch_scope():` (tl.copy_to keeps what must "
            "persist), or use smaller tiles",
        )
        place = self.sites.location(stack)
        return error.at(place)

    # --- checks and errors ------------------------------------------------------------------------------------------

    def check_handle(self, handle: TensorHandle) -> None:
        """Refuse a handle of another trace, and under ``strict`` one whose scope is closed."""
        if handle._recorder is not self:
            raise self.located(
                NotTracingError(
                    f"{handle!r} belongs to another trace",
                    help="handles live as long as the kernel's call: make it anew",
                )
            )
        if self.strict and handle.scope.closed:
            row = handle.storage * _STORAGE_WIDTH
            error = UseAfterScopeError(
                f"{handle!r} is used after the exit of its scope",
                help="keep it alive: make it before the scope and tl.copy_to into it, or use it inside",
            )
            self.located(error).at(self.sites.location(self._storages[row + 6]), "made here")
            exit_node = self._scopes[handle.scope.row][3]
            if exit_node >= 0:
                error.at(self.sites.location(self._nodes[exit_node * _NODE_WIDTH + 3]), "scope closed here")
            raise error

    def check_tensor(self, tensor: HbmTensor) -> None:
        """Refuse an HBM tensor of another trace."""
        if tensor._recorder is not self:
            raise self.located(
                NotTracingError(
                    f"HBM tensor {tensor.name!r} belongs to another trace", help="use this call's arguments"
                )
            )

    def located(self, error: KernscopeError) -> KernscopeError:
        """The error with the user's line added."""
        return error.at(self.sites.location(self.sites.here()))

    def location(self) -> Location | None:
        """The user's line."""
        return self.sites.location(self.sites.here())

    def name_of(self, storage: int) -> str:
        """The name of a storage: of an HBM tensor its parameter's, of an allocation what it was assigned to."""
        if storage < len(self._hbm_names):
            return self._hbm_names[storage]
        return self.sites.name(self._storages[storage * _STORAGE_WIDTH + 6])

    # --- the graph --------------------------------------------------------------------------------------------------

    def finish(self, *, kernel: str, machine: str, defaults: Mapping[str, Any]) -> Graph:
        """The graph of all that was recorded."""
        names: dict[str, int] = {"": 0}

        def number(name: str) -> int:
            return names.setdefault(name, len(names))

        layouts = tuple(self._layouts)
        nodes = _matrix(self._nodes, _NODE_WIDTH)
        accesses = _matrix(self._accesses, _ACCESS_WIDTH)
        storages = _matrix(self._storages, _STORAGE_WIDTH)
        scopes = np.array(self._scopes, dtype=np.int64).reshape(-1, 6)
        exits = np.append(scopes[:, 3], -1)
        made_at, which = np.unique(storages[:, 6], return_inverse=True)
        stack_names = np.array([number(self.sites.name(int(stack))) for stack in made_at], dtype=np.int64)
        storage_names = stack_names[which] if len(made_at) else np.zeros(0, dtype=np.int64)
        storage_names[: len(self._hbm_names)] = [number(name) for name in self._hbm_names]
        storage_table: StorageTable = StorageTable.make(
            kind=storages[:, 0],
            rank=storages[:, 1],
            address=storages[:, 2],
            nbytes=storages[:, 3],
            layout=storages[:, 4],
            scope=storages[:, 5],
            stack=storages[:, 6],
            born=storages[:, 7],
            name=storage_names,
            freed=exits[storages[:, 5]],
        )
        access_columns = {
            "node": np.repeat(np.arange(self.node_count), np.frombuffer(self._access_counts, dtype=np.int64)),
            "storage": accesses[:, 0],
            "mode": accesses[:, 1],
            "offset": accesses[:, 2],
            "layout": accesses[:, 3],
        }
        flat: AccessTable = AccessTable.make(kind=np.zeros(len(accesses)), **access_columns)
        _, _, exact = boxes(flat, storage_table, layouts)
        frames = self.sites.frames
        return Graph(
            kernel=kernel,
            machine=machine,
            ranks=self.ranks,
            target=self.target,
            nodes=NodeTable.make(
                **dict(
                    zip(
                        ("op", "rank", "scope", "stack", "attributes", "work0", "work1", "work2", "dtype", "channel"),
                        nodes.T[:10],
                        strict=True,
                    ),
                    command=nodes[:, 10],
                )
            ),
            accesses=AccessTable.make(kind=np.where(exact, AccessKind.BOX, AccessKind.RANGE), **access_columns),
            storages=storage_table,
            scopes=ScopeTable.make(
                rank=scopes[:, 0],
                parent=scopes[:, 1],
                enter=scopes[:, 2],
                exit=scopes[:, 3],
                base=scopes[:, 4],
                stack=scopes[:, 5],
                name=[number(name) for name in self._scope_names],
            ),
            channels=ChannelTable.make(
                **dict(
                    zip(
                        ("sender", "direction", "receiver", "arrival"),
                        np.array(self._channel_rows, dtype=np.int64).reshape(-1, 4).T,
                        strict=True,
                    )
                )
            ),
            frames=FrameTable.make(
                file=[number(f.file) for f in frames],
                function=[number(f.function) for f in frames],
                line=[f.line for f in frames],
                column=[f.column for f in frames],
                end_line=[f.end_line for f in frames],
                end_column=[f.end_column for f in frames],
            ),
            stacks=StackTable.make(
                frame=[frame for frame, _ in self.sites.stacks], caller=[caller for _, caller in self.sites.stacks]
            ),
            layouts=layouts,
            names=tuple(names),
            attributes=tuple({name: value for name, value, _ in entry} for entry in self._attributes),
            bounds_faults=tuple(self._bounds_faults),
            defaults=dict(defaults),
        )


def _matrix(rows: array[int], width: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.frombuffer(rows, dtype=np.int64).reshape(-1, width) if len(rows) else np.zeros((0, width), dtype=np.int64)


def plain_scalar(value: Any) -> Any:
    """A number of Python or numpy as exactly a ``bool``, ``int`` or ``float``; anything else as it is. There is one
    NaN, so that a kernel that fills with NaN gives equal graphs each time."""
    if isinstance(value, np.generic):
        item = value.item()
        value = float(value) if isinstance(item, np.generic) else item  # bf16 and f8 scalars have no Python twin
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return math.nan if math.isnan(value) else float(value)
    return value


def scalar_key(value: Any) -> tuple[Any, ...]:
    """A dictionary key that keeps apart what computes differently: ``True``, ``1`` and ``1.0``; ``0.0`` and
    ``-0.0``."""
    kind = value.__class__
    return (kind, value.hex()) if kind is float else (kind, value if kind is int or kind is bool else id(value))
