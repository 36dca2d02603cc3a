"""The graph of one program, from its trace's tape."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from ....ir.graph import Graph
from ....ir.indices import LEFT_OUT, Index
from ....ir.launch_facts import NOT_JUDGED
from ....ir.layout import Layout
from ....ir.ops import OPERATIONS, Kind
from ....ir.tables import BoundsFault, IntArray, Mode
from ....ir.target import Target
from ...recording.plans import plain_scalar
from ...recording.recorder import Read, Recorder
from ...recording.sites import SiteTable
from ...trace import recording
from ..values.accesses import Access
from ..values.storage import Storage
from .tape import Handle, PerLane, Step, Tape

__all__ = ["GraphNames", "kept_for_loops", "unplaced_graph"]


@attrs.frozen
class GraphNames:
    """What a graph is told of its launch."""

    kernel: str
    machine: str
    machine_toml: str


def unplaced_graph(
    tape: Tape, lane: int, storages: list[Storage], sites: SiteTable, target: Target, names: GraphNames
) -> tuple[Graph, list[int]]:
    """The graph of a lane, its allocations without addresses; and by step the number of nodes before it. Its tensors
    are the kernel's arguments, and what else it accesses."""
    used = {step.access.storage.number for step in tape.steps if step.access is not None}
    storages = [storage for storage in storages if storage.is_argument or storage.number in used]
    with recording(
        target,
        names.machine,
        kernel=names.kernel,
        machine_toml=names.machine_toml,
        automatic=True,
        on_bounds="record",
        sites=sites,
    ) as trace:
        tensors = {storage.number: trace.tensor(storage.name, storage.layout).storage for storage in storages}
        before: list[int] = []
        for _ in trace.ranks():
            replay = _Replay(trace.recorder, tape, lane, tensors)
            for step in tape.steps:
                before.append(trace.recorder.node_count)
                replay.record(step)
            before.append(trace.recorder.node_count)
    defaults = {storage.name: storage.before for storage in storages if storage.before is not None}
    graph = trace.finish(defaults)
    # Every tensor of a launch has memory, whether it was kept or not.
    initial = tuple(storage.name for storage in storages)
    return attrs.evolve(graph, initial=initial, facts=NOT_JUDGED), before


def kept_for_loops(graph: Graph, tape: Tape, before: list[int], num_stages: int) -> IntArray:
    """By storage the node from which on its bytes are kept for it. What a loop's loads fill is theirs from ``num_stages
    - 1`` turns before on, so that as many copies rotate: by the loop's own word, or the launch's where the loop has a
    product."""
    acquired = graph.acquired.copy()
    accesses, nodes = graph.accesses, graph.nodes
    writes = np.flatnonzero(OPERATIONS.loads[nodes.op[accesses.node]] & (accesses.mode == Mode.WRITE))
    at, of = accesses.node[writes].astype(np.int64), accesses.storage[writes]
    first = at == acquired[of]
    at, of = at[first], of[first]
    products = OPERATIONS.mask(lambda op: op.kind is Kind.MATMUL)[nodes.op]
    for loop in tape.loops:  # outer loops come first: the innermost one has the last word
        turns = np.array([before[step] for step in loop.turns], dtype=np.int64)
        if len(turns) < 3:
            continue
        copies = loop.copies or (num_stages if products[turns[0] : turns[-1]].any() else 1)
        inside = np.flatnonzero((at >= turns[0]) & (at < turns[-1]))
        turn = np.searchsorted(turns, at[inside], side="right") - 1
        begin = turns[np.maximum(turn - (copies - 1), 0)]
        acquired[of[inside]] = begin if copies > 1 else at[inside]
    return acquired


class _Replay:
    """Steps of one lane become nodes. What an elementwise result or an accumulator can take over from an operand that
    nothing else uses any more, it takes over."""

    def __init__(self, recorder: Recorder, tape: Tape, lane: int, tensors: dict[int, int]) -> None:
        self._recorder, self._lane, self._tensors = recorder, lane, tensors
        self._storage: list[int] = [-1] * len(tape.steps)
        self._last_use = tape.last_uses()

    def record(self, step: Step) -> None:
        """Record a step."""
        if step.access is not None:
            _MEMORY[step.name](self, step, step.access.of_lane(self._lane))
            return
        operands = [self._number(o) if not isinstance(o, Handle) else o for o in step.operands]
        ready = tuple(o.layout if isinstance(o, Handle) else o for o in operands)
        static = tuple((name, self._number(value)) for name, value in step.static)
        reads = [self._read(o) for o in operands if isinstance(o, Handle)]
        self._add(step, ready, static, reads, taken_over=self._dying(step))

    def _number(self, value: Any) -> Any:
        return plain_scalar(value.of(self._lane)) if isinstance(value, PerLane) else value

    def _read(self, handle: Handle) -> Read:
        return self._storage[handle.step.number], handle.offset, handle.layout

    def _dying(self, step: Step) -> int:
        """The storage of an operand that the result can take over; -1 where there is none."""
        operation = OPERATIONS[step.name]
        places = range(2, 3) if operation.kind is Kind.MATMUL else range(3) if operation.in_parts else ()
        for place in places:
            operand = step.operands[place] if place < len(step.operands) else None
            if not isinstance(operand, Handle) or self._last_use[operand.step.number] != step.number:
                continue
            uses = sum(isinstance(o, Handle) and o.step is operand.step for o in step.operands)
            if operand.layout is step.result is operand.step.result and operand.offset == 0 and uses == 1:
                return self._storage[operand.step.number]
        return -1

    def _add(
        self,
        step: Step,
        operands: tuple[Any, ...],
        static: tuple[tuple[str, Any], ...],
        reads: list[Read],
        *,
        into: Read | None = None,
        taken_over: int = -1,
    ) -> None:
        plan = self._recorder.plan(step.name, operands, static)
        if into is None and taken_over >= 0:
            into = (taken_over, 0, plan.result)
        if OPERATIONS[step.name].writes_to == "nowhere":
            self._recorder.record_only(plan, reads, stack=step.stack)
            return
        made = self._recorder.record(plan, reads, into=into, stack=step.stack)
        if step.result is not None:
            assert plan.result is step.result, (step.name, plan.result, step.result)
            self._storage[step.number] = made.storage

    # --- memory -------------------------------------------------------------------------------------------------------

    def _addresses(self, step: Step) -> tuple[tuple[Layout, ...], list[Read]]:
        return tuple(h.layout for h in step.addresses), [self._read(h) for h in step.addresses]

    def _leaves(self, step: Step, access: Access) -> bool:
        """Whether the access leaves its tensor: then it is noted, and does nothing."""
        low, high = (int(end[0]) for end in access.extent())
        if low >= 0 and high < len(access.storage.memory):
            return False
        tensor = self._tensors[access.storage.number]
        shape = access.storage.layout.shape
        lower, upper = ((low,), (high + 1,)) if len(shape) == 1 else _corners(low, high, shape)
        self._recorder.note_bounds_fault(BoundsFault(self._recorder.node_count, tensor, lower, upper))
        return True

    def load(self, step: Step, access: Access) -> None:
        """A load: of a box, of what a mask leaves of it, or by an index."""
        assert step.result is not None
        static = dict(step.static)
        pad = self._number(static.pop("pad"))
        shape, dtype = access.shape, step.result.dtype
        known: tuple[tuple[str, Any], ...] = (("shape", shape), ("dtype", dtype))
        addresses, waited_for = self._addresses(step)
        if not int(access.counts()[0]) or self._leaves(step, access):
            self._add(step, (), (*known, ("pad", pad), ("at", None)), [])
            return
        low, high = access.low[0], access.high[0]
        if access.is_box and all(s is not None and s >= 0 for s in access.strides):
            source, offset, extents = _box(access)
            if extents != shape:
                known += (("pad", pad), ("at", tuple(low.tolist())))
        else:
            offset, index, at = _indexed(access)
            source = Layout.dense((index.span,), dtype)
            if index.shape != shape or index.count < int((high - low).prod() if len(shape) else 1):
                known += (("pad", pad), ("at", at))
            known += (("index", index),)
        reads = [(self._tensors[access.storage.number], offset, source), *waited_for]
        self._add(step, (source, *addresses), known, reads)

    def store(self, step: Step, access: Access) -> None:
        """A store of a tile, or of what a mask leaves of it."""
        (tile,) = step.operands
        assert isinstance(tile, Handle)
        addresses, waited_for = self._addresses(step)
        if not int(access.counts()[0]):
            return
        if self._leaves(step, access):
            plan = self._recorder.plan("store", (tile.layout,), ())
            self._recorder.record_only(plan, [self._read(tile)], stack=step.stack)
            return
        static: tuple[tuple[str, Any], ...] = ()
        if access.is_box and access.is_disjoint() and all(s is not None and s >= 0 for s in access.strides):
            target, offset, extents = _box(access)
            begin, size = access.low[0].tolist(), extents
        else:
            offset, index, begin_at = _indexed(access)
            target = Layout.dense((index.span,), tile.layout.dtype)
            begin, size, static = list(begin_at), index.shape, (("index", index),)
        strides = tile.layout.strides
        part = tile.at(
            sum(a * s for a, s in zip(begin, strides, strict=True)), Layout.of(size, strides, tile.layout.dtype)
        )
        into = (self._tensors[access.storage.number], offset, target)
        self._add(step, (part.layout, *addresses), static, [self._read(part), *waited_for], into=into)

    def atomic(self, step: Step, access: Access) -> None:
        """An atomic, or what it is about to find."""
        value, *others = (operand for operand in step.operands if isinstance(operand, Handle))
        addresses, waited_for = self._addresses(step)
        addresses = (*(other.layout for other in others), *addresses)
        waited_for = [*map(self._read, others), *waited_for]
        nothing = not int(access.counts()[0]) or self._leaves(step, access)
        if nothing and step.result is None:
            return
        if nothing:
            zero: tuple[tuple[str, Any], ...] = (
                ("shape", access.shape),
                ("value", value.layout.dtype.numpy.type(0).item()),
                ("dtype", value.layout.dtype),
            )
            plan = self._recorder.plan("fill", (), zero)
            self._storage[step.number] = self._recorder.record(plan, [], stack=step.stack).storage
            return
        static = step.static
        whole = int(access.counts()[0]) == value.layout.size
        if whole and access.is_box and access.is_disjoint() and all(s is not None and s >= 0 for s in access.strides):
            target, offset, _ = _box(access)
        else:
            offset, index = _listed(access)
            target, static = Layout.dense((index.span,), value.layout.dtype), (*static, ("index", index))
        place = (self._tensors[access.storage.number], offset, target)
        if step.result is None:
            reads = [self._read(value), place, *waited_for]
            self._add(step, (value.layout, target, *addresses), static, reads, into=place)
        else:
            self._add(step, (target, value.layout, *addresses), static, [place, self._read(value), *waited_for])


_MEMORY = {"load": _Replay.load, "store": _Replay.store, "atomic": _Replay.atomic, "fetch": _Replay.atomic}


def _corners(low: int, high: int, shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """A box of the tensor's dimensions that says where an access left it: rows, and whole ones."""
    row = int(np.prod(shape[1:]))
    rest = tuple(0 for _ in shape[1:]), tuple(shape[1:])
    return (low // row, *rest[0]), (high // row + 1, *rest[1])


def _box(access: Access) -> tuple[Layout, int, tuple[int, ...]]:
    """The layout of what is accessed in memory, the element where it begins, and its extents."""
    low, high = access.low[0], access.high[0]
    extents = tuple((high - low).tolist())
    strides = [s or 0 for s in access.strides]
    offset = int(access.base[0]) + sum(a * s for a, s in zip(low.tolist(), strides, strict=True))
    steps = tuple(s if n > 1 else 0 for s, n in zip(strides, extents, strict=True))
    return Layout.of(extents, steps, access.storage.layout.dtype), offset, extents


def _indexed(access: Access) -> tuple[int, Index, tuple[int, ...]]:
    """Where an access by an index begins, the index, and where in the tile its box lies. Rows stay rows: dimensions
    that are walked in equal steps keep them."""
    plain = access.rest is None and access.bits is None
    odd = [d for d, step in enumerate(access.strides) if step is None or step < 0]
    if not plain or not odd:
        offset, index = _listed(access)
        return offset, index, (0,) * len(access.shape)
    low, high = access.low[0].tolist(), access.high[0].tolist()
    shape = tuple(b - a for a, b in zip(low, high, strict=True))
    elements = np.full((1,) * len(shape), int(access.base[0]), np.int64)
    steps = [0] * len(shape)
    for d, n in enumerate(shape):
        axis = access.axes[d]
        if axis is None or (d not in odd and n == 1):
            if axis is not None:
                elements = elements + int(axis[0, low[d]])
            continue
        step = access.strides[d]
        if d not in odd and step:
            steps[d] = step
            elements = elements + low[d] * step
            continue
        line = axis[0, low[d] : high[d]]
        elements = elements + line.reshape((1,) * d + (-1,) + (1,) * (len(shape) - d - 1))
    # A dimension that nothing varies along is listed: equal steps of 0 are none.
    full = [n if not steps[d] else 1 for d, n in enumerate(shape)]
    first, index = Index.of(np.broadcast_to(elements, full), tuple(steps), shape)
    return first, index, tuple(low)


def _listed(access: Access) -> tuple[int, Index]:
    """Where an access begins whose elements are listed one by one, and the list."""
    index, mask = access.elements()
    elements = index[0] if mask is None else np.where(mask[0], index[0], LEFT_OUT)
    access.forget()
    return Index.of(np.ascontiguousarray(elements))
