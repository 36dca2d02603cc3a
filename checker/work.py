"""The checker's own account of a graph: what each node runs on, how long it takes, what its command costs to issue.

Written from the machine's table of durations and the operands' layouts alone. Nothing here comes from, or goes to, the
schedulers: two accounts that agree are worth more than one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import attrs
import numpy as np

from ..ir.graph import Graph
from ..ir.indices import Index
from ..ir.layout import Layout
from ..ir.ops import OPERATIONS, Family, Operation
from ..ir.tables import IntArray, Mode
from ..machine.description import Machine
from ..machine.parts import Elementwise, EnginePart, Link, Matmul, Transfer

__all__ = ["KNOWN_KINDS", "Account", "account_for"]

#: Reductions, softmax and sorting touch each element of what they read, everything else each element of its result.
_COUNTS_INPUT = (Family.REDUCTION, Family.SOFTMAX, Family.ORDER)
#: The class of costs that a machine cannot list.
_UNLISTED = "move"


@attrs.frozen(eq=False)
class Account:
    """By node: ``occupancy_ps`` of its engine, ``duration_ps``, ``engine`` (a name such as ``"gemm"`` or
    ``"link:next"``, as an index into ``engine_names``; -1: none), ``is_marker``. ``command`` numbers the commands,
    markers left out (-1), in program order within a rank; by command: ``first`` its first node, ``rank``, ``cost_ps``
    of its issue, ``goes_on``: whether the CPU goes on after the issue under ``lazy``."""

    occupancy_ps: IntArray
    duration_ps: IntArray
    engine_names: tuple[str, ...]
    engine: IntArray
    is_marker: IntArray
    command: IntArray
    first: IntArray
    rank: IntArray
    cost_ps: IntArray
    goes_on: IntArray


def account_for(graph: Graph, machine: Machine) -> Account:
    """The account of a graph on a machine."""
    nodes = graph.nodes
    operations = list(OPERATIONS.values())
    home = _homes(graph, machine)
    engine_names, engine = _engines(graph, machine, home)
    is_marker = np.array([operation.family is Family.MARKER for operation in operations], dtype=np.bool_)[nodes.op]
    first, inverse = np.unique(nodes.command[~is_marker], return_inverse=True)
    command = np.full(len(graph), -1, dtype=np.int64)
    command[~is_marker] = inverse
    composite = np.bincount(inverse, minlength=len(first)) > 1
    names = [engine.name for engine in machine.engines]
    alone: dict[tuple[int, int], int] = {}
    for op, place in zip(nodes.op[first].tolist(), home[first].tolist(), strict=True):
        if (op, place) not in alone:
            alone[op, place] = _issue_cost(machine, operations[op].name, names[place] if place >= 0 else "")
    products = next((engine.name for engine in machine.engines if engine.kind == "matmul"), "")
    cost = np.array(
        [alone[key] for key in zip(nodes.op[first].tolist(), home[first].tolist(), strict=True)], dtype=np.int64
    )
    cost = np.where(composite, _issue_cost(machine, "composite", products), cost)
    occupancy, duration = _durations(graph, machine, home)
    return Account(
        occupancy_ps=occupancy,
        duration_ps=duration,
        engine_names=engine_names,
        engine=engine,
        is_marker=is_marker,
        command=command,
        first=first.astype(np.int64),
        rank=nodes.rank[first],
        cost_ps=cost.astype(np.int64),
        goes_on=composite
        | np.array([operation.asynchronous for operation in operations], dtype=np.bool_)[nodes.op[first]],
    )


def _homes(graph: Graph, machine: Machine) -> IntArray:
    """By node the place of its engine in the machine's list, -1 for none: the first of the operation's kind (or that
    names it) which reads every memory that the node reads and writes the one it writes. What a node reads and writes in
    place it need only write; addresses beside a tensor it need not reach."""
    memory, accesses = graph.storages.memory, graph.accesses
    key = graph.nodes.op.astype(np.int64)
    written = np.full(len(graph), -1, dtype=np.int64)
    writes = accesses.mode == Mode.WRITE
    written[accesses.node[writes]] = accesses.storage[writes]
    outside = np.array([o.reads_from == "global" for o in OPERATIONS.values()], dtype=np.bool_)[graph.nodes.op]
    addresses = outside[accesses.node] & (graph.storages.rank[accesses.storage] >= 0)
    counted = writes | ((accesses.storage != written[accesses.node]) & ~addresses)
    for place in range(len(graph.target.memories)):
        for mode in (Mode.READ, Mode.WRITE):
            found = np.zeros(len(graph), dtype=np.int64)
            found[accesses.node[counted & (accesses.mode == mode) & (memory[accesses.storage] == place)]] = 1
            _, key = np.unique(key * 2 + found, return_inverse=True)
    for number in range(max((len(engine.operands) for engine in machine.engines), default=0)):
        rows = graph.access_start[:-1] + number
        there = rows < graph.access_start[1:]
        lies = np.where(there, memory[accesses.storage[np.where(there, rows, 0)]].astype(np.int64), -1)
        _, key = np.unique(key * 257 + lies + 1, return_inverse=True)
    _, sample, inverse = np.unique(key, return_index=True, return_inverse=True)
    return np.array([_home(graph, machine, int(node)) for node in sample], dtype=np.int64)[inverse]


def _home(graph: Graph, machine: Machine, node: int) -> int:
    shown = graph[node]
    operation = shown.operation
    if operation.kind == "none":
        return -1
    into = {access.storage.row: access.storage.memory.name for access in shown.writes}
    out_of = {access.storage.memory.name for access in shown.reads if access.storage.row not in into}
    if operation.reads_from == "global":
        out_of = {access.storage.memory.name for access in shown.reads if access.storage.is_hbm}
    for place, engine in enumerate(machine.engines):
        named = {operation.name, operation.like, str(operation.kind)} - {""}
        told = (named if operation.cost == _UNLISTED else named | {str(operation.cost)}) & set(engine.ops)
        takes = bool(told) if engine.ops else engine.kind == operation.kind
        if not takes or not out_of <= set(engine.reads) or not set(into.values()) <= set(engine.writes):
            continue
        # Operands that have memories of their own.
        if all(
            access.storage.memory.name in allowed
            for access, allowed in zip(shown.reads, engine.operands, strict=False)
            if access.storage.row not in into and access.storage.memory.name in out_of
        ):
            return place
    return -1


def _engines(graph: Graph, machine: Machine, home: IntArray) -> tuple[tuple[str, ...], IntArray]:
    own = [place for place, engine in enumerate(machine.engines) if engine.kind != "link"]
    link = [engine.name for engine in machine.engines if engine.kind == "link"]
    names = (
        *(machine.engines[place].name for place in own),
        *(f"{name}:{direction}" for name in link[:1] for direction in graph.target.directions),
    )
    number = {place: at for at, place in enumerate(own)}
    found = np.array([number.get(place, -1) for place in range(len(machine.engines))] + [-1], dtype=np.int64)[home]
    sends = np.flatnonzero(np.array([o.kind == "link" for o in OPERATIONS.values()], dtype=np.bool_)[graph.nodes.op])
    found[sends] = len(own) + graph.channels.direction[graph.nodes.channel[sends]]
    return names, found


def _issue_cost(machine: Machine, operation: str, engine: str) -> int:
    listed = dict(machine.cpu.issue_cycles.listed)
    cycles = listed.get(operation, listed.get(engine, machine.cpu.issue_cycles.default))
    return _ceiling(cycles * 1000, machine.clock_ghz)


def _ceiling(over: Fraction | int, under: Fraction | int = 1) -> int:
    """``over / under`` rounded up."""
    exact = Fraction(over) / Fraction(under)
    return -(-exact.numerator // exact.denominator)


# --- durations --------------------------------------------------------------------------------------------------------


@attrs.frozen
class _Tile:
    """An operand or a result: its layout, and the memory that it lies in."""

    layout: Layout
    memory: str


@attrs.frozen
class _Task:
    """One node for the durations: its operation, up to three operands, its result, the direction it sends in, the
    elements that an index names (-1: it has none), the axis of which an index tile names places (-1: it has none), how
    many nodes move what it moves at once, and the ranks that share."""

    operation: Operation
    reads: tuple[_Tile, ...]
    result: _Tile | None
    direction: str
    named: int
    axis: int
    together: int
    ranks: int


def _durations(graph: Graph, machine: Machine, home: IntArray) -> tuple[IntArray, IntArray]:
    """Occupancies and durations in picoseconds, worked out once per operation, engine, and layouts and memories of its
    first three operands and its result."""
    count = len(graph)
    accesses, start = graph.accesses, graph.access_start
    reads = np.bincount(accesses.node[accesses.mode == Mode.READ], minlength=count)
    total = np.diff(start)
    memories = len(graph.target.memories)
    used = accesses.layout.astype(np.int64) * memories + graph.storages.memory[accesses.storage]
    used = np.append(used, -1)
    last = len(used) - 1
    columns = [used[np.where(reads > number, start[:-1] + number, last)] for number in range(3)]
    columns.append(used[np.where(total > reads, start[:-1] + reads, last)])
    # A message's time is that of its direction.
    toward = np.append(graph.channels.direction, -1)[graph.nodes.channel]
    sends = np.array([operation.kind == "link" for operation in OPERATIONS.values()], dtype=np.bool_)
    toward = np.where(sends[graph.nodes.op], toward + 1, 0)
    together = _together(graph, machine)
    # What an index names is counted from the index.
    counts = [_named_by_index(attributes) for attributes in graph.attributes]
    named = np.array(counts or [-1], dtype=np.int64)[graph.nodes.attributes]
    listed = [a["axis"] if isinstance(a.get("axis"), int) else -1 for a in graph.attributes]
    axes = np.array(listed or [-1], dtype=np.int64)[graph.nodes.attributes]
    key = graph.nodes.op.astype(np.int64)
    for column in (home, toward, together, named, axes, *columns):
        # Renumbered at each step, so that the product always fits.
        _, value = np.unique(column, return_inverse=True)
        _, key = np.unique(key * np.int64(count + 1) + value, return_inverse=True)
    _, sample, inverse = np.unique(key, return_index=True, return_inverse=True)

    def tile(number: int) -> _Tile:
        return _Tile(graph.layouts[number // memories], graph.target.memory_names[number % memories])

    operations = list(OPERATIONS.values())
    times = []
    for node in sample.tolist():
        seen = [int(column[node]) for column in columns]
        task = _Task(
            operations[int(graph.nodes.op[node])],
            tuple(tile(number) for number in seen[:3] if number >= 0),
            tile(seen[3]) if seen[3] >= 0 else None,
            ("", *graph.target.directions)[int(toward[node])],
            int(named[node]),
            int(axes[node]),
            int(together[node]),
            graph.ranks,
        )
        times.append(_took(machine, int(home[node]), task))
    # As Python integers where an int64 could not hold them: then nothing in the schedule can match.
    duration = np.array([done for _, done in times], dtype=np.int64 if all(t < 2**63 for _, t in times) else object)
    occupancy = np.array([min(held, 2**62) for held, _ in times], dtype=np.int64)
    return occupancy[inverse], duration[inverse]


def _named_by_index(attributes: Mapping[str, object]) -> int:
    """How many elements of its tile a node's index names; -1 where it has none."""
    index = attributes.get("index")
    return int(np.count_nonzero(index.elements() >= 0)) if isinstance(index, Index) else -1


def _together(graph: Graph, machine: Machine) -> IntArray:
    """By node how many loads and stores of all ranks move the same view while the shared level holds it, 1 for what is
    neither.

    What a rank moves is cut where what all ranks have moved up to there (each so much) fills the level once more; what
    fits as a whole is not cut."""
    found = np.ones(len(graph), dtype=np.int64)
    levels = [memory for memory in machine.memory.values() if memory.scope == "level"]
    if not levels:
        return found
    holds = int(levels[0].bytes or 0)
    views: dict[int, tuple[int, ...]] = {}
    sizes: dict[int, int] = {}
    accesses, nodes = graph.accesses, graph.nodes
    kinds = [(o.reads_from == "global", o.writes_to == "global") for o in OPERATIONS.values()]
    moves = np.array(kinds, dtype=np.bool_)[nodes.op]
    moves &= ~np.array(["index" in a for a in graph.attributes] or [False], dtype=np.bool_)[nodes.attributes][:, None]
    # Rows by an index tile are other ones each time.
    moves &= np.array([not o.by_index for o in OPERATIONS.values()], dtype=np.bool_)[nodes.op][:, None]
    outside = np.array([memory.is_global for memory in graph.target.memories], dtype=np.bool_)
    for row in np.flatnonzero(outside[graph.storages.memory[accesses.storage]]).tolist():
        node = int(accesses.node[row])
        if not moves[node, int(accesses.mode[row] == Mode.WRITE)]:
            continue
        views[node] = (int(accesses.storage[row]), int(accesses.offset[row]), int(accesses.layout[row]))
        sizes[node] = graph.layouts[views[node][2]].nbytes
    once = sum({view: sizes[node] for node, view in views.items()}.values())
    progress = dict.fromkeys(range(graph.ranks), 0)
    groups: dict[tuple[int, ...], list[int]] = {}
    for node, view in sorted(views.items()):
        rank = int(nodes.rank[node])
        progress[rank] += sizes[node]
        cut = 0 if once <= holds else progress[rank] * graph.ranks // holds
        groups.setdefault((*view, cut), []).append(node)
    for group in groups.values():
        found[group] = len(group) if sizes[group[0]] <= holds else 1
    return found


def _took(machine: Machine, home: int, task: _Task) -> tuple[int, int]:
    """Occupancy and duration; no engine does it: neither can be right."""
    if task.operation.kind == "none":
        return 0, 0
    if home < 0:
        return -1, -1
    busy, rest = _BY_KIND[machine.engines[home].kind](machine, machine.engines[home].cost, task)
    return _ceiling(busy), _ceiling(busy + rest)


def _period(machine: Machine, part: EnginePart) -> Fraction:
    """A cycle in picoseconds."""
    return 1000 / (machine.sustained * (machine.clock_ghz if part.clock_ghz is None else part.clock_ghz))


def _moved_bytes(task: _Task) -> int:
    # A ragged load wholly outside its tensor reads nothing: the latency alone.
    layout = task.reads[0].layout if task.reads else None
    if task.operation.by_index and task.operation.reads_from == "global" and task.result is not None:
        return task.result.layout.nbytes  # the rows that the index tile names, not all of the region
    if layout is not None and task.named >= 0:
        return task.named * layout.dtype.itemsize
    return layout.nbytes if layout is not None else 0


def _transfer(machine: Machine, port: Transfer, task: _Task) -> tuple[Fraction, Fraction]:
    nbytes = _moved_bytes(task)
    outside = [t for t in (*task.reads, task.result) if t is not None and machine.memory[t.memory].scope == "global"]
    rate = port.bytes_per_ns * port.spread
    if port.efficiency and outside:
        rate *= _share_of(port.efficiency, _run_of(task, outside[0].layout))
    slowest = nbytes / rate
    # A level takes what is stored, and writes it back in its own time.
    waits = task.operation.writes_to != "global" or all(m.scope != "level" for m in machine.memory.values())
    for memory in machine.memory.values() if task.operation.reads_from != task.operation.writes_to else ():
        if memory.bytes_per_ns is not None and (memory.scope == "level" or (memory.scope == "global" and waits)):
            passes = task.together if memory.scope == "global" else 1
            slowest = max(slowest, nbytes * task.ranks / (passes * memory.bytes_per_ns))
    if port.pipelined:
        return slowest * 1000, port.latency_ns * 1000
    return (slowest + port.latency_ns) * 1000, Fraction(0)


def _run_of(task: _Task, layout: Layout) -> int:
    """The bytes of a run without gaps: of rows by an index tile, within one row."""
    if not task.operation.by_index:
        return _side_by_side(layout)
    shape = tuple(1 if axis == task.axis else n for axis, n in enumerate(layout.shape))
    return _side_by_side(Layout.of(shape, layout.strides, layout.dtype))


def _side_by_side(layout: Layout) -> int:
    """The bytes of a run without gaps at the end of a view, by enumeration of its dimensions."""
    run = 1
    for size, stride in list(zip(layout.shape, layout.strides, strict=True))[::-1]:
        if size > 1 and stride == run:
            run *= size
        elif size > 1:
            break
    return run * layout.dtype.itemsize


def _share_of(pairs: tuple[tuple[Fraction, Fraction], ...], run: int) -> Fraction:
    below = [pair for pair in pairs if pair[0] <= run]
    above = [pair for pair in pairs if pair[0] >= run]
    if not below or not above:
        return (above or below[::-1])[0][1]
    (x, low), (y, high) = below[-1], above[0]
    return low if x == y else low + (high - low) * (run - x) / (y - x)


def _link(machine: Machine, link: Link, task: _Task) -> tuple[Fraction, Fraction]:
    own = getattr(link, task.direction)
    latency = link.latency_ns if own.latency_ns is None else own.latency_ns
    rate = link.bytes_per_ns if own.bytes_per_ns is None else own.bytes_per_ns
    return (latency + _moved_bytes(task) / rate) * 1000, Fraction(0)


def _matmul(machine: Machine, unit: Matmul, task: _Task) -> tuple[Fraction, Fraction]:
    a, b = task.reads[0].layout, task.reads[1].layout
    *batch, m, k = a.shape
    n = b.shape[-1]
    # The products of a batch go through one after the other.
    k *= math.prod(batch)
    rate = dict(unit.rate.listed).get(a.dtype.name, unit.rate.default)
    period = _period(machine, unit)
    busy = Fraction(0)
    for rows in _pieces(m, unit.limits.m):
        for cols in _pieces(n, unit.limits.n):
            for deep in _pieces(k, unit.limits.k):
                steps = _ceiling(rows, unit.rows) * _ceiling(cols, unit.cols) * _ceiling(deep, rate)
                one = (unit.startup_cycles + max(Fraction(steps), unit.least_cycles)) * period
                fed = 1000 * (rows + cols) * deep * a.dtype.itemsize
                busy += one if unit.feed_bytes_per_ns is None else max(one, fed / unit.feed_bytes_per_ns)
    return busy, unit.latency_cycles * period


def _pieces(size: int, limit: int | None) -> list[int]:
    if limit is None or size <= limit:
        return [size]
    return [min(limit, size - done) for done in range(0, size, limit)]


def _elementwise(machine: Machine, unit: Elementwise, task: _Task) -> tuple[Fraction, Fraction]:
    operation = task.operation
    counted = task.reads[0] if operation.family in _COUNTS_INPUT else task.result
    assert counted is not None
    dtype = (task.reads[0] if task.reads else counted).layout.dtype.name
    listed, default = dict(unit.cycles.listed), unit.cycles.default
    made_of = (
        [operation] if operation.name in listed or not operation.parts else [OPERATIONS[p] for p in operation.parts]
    )
    each = sum(
        (default if o.cost == _UNLISTED else listed.get(o.name, listed.get(str(o.cost), default)) for o in made_of),
        Fraction(0),
    )
    each *= dict(unit.dtype.listed).get(dtype, unit.dtype.default)
    full = [t.memory for t in task.reads if task.result is not None and t.layout.size == task.result.layout.size]
    twice = [memory for memory in full if full.count(memory) > 1]
    if twice and twice[0] in unit.both_in:
        table = unit.both_in[twice[0]]
        each *= dict(table.listed).get(dtype, table.default)
    size, partitions = counted.layout.size, machine.memory[counted.memory].partitions
    steps = _ceiling(size, unit.lanes)
    if partitions is not None and counted.layout.shape:
        rows = counted.layout.shape[0]
        steps = _ceiling(rows, partitions) * _ceiling(size // rows * partitions, unit.lanes)
    cycles = unit.startup_cycles + steps * each
    return cycles * _period(machine, unit), unit.latency_cycles * _period(machine, unit)


#: From a machine, an engine's costs and a task: how long that holds the engine, and what is left then; in picoseconds.
_Duration = Callable[[Machine, Any, _Task], tuple[Fraction, Fraction]]
#: A kind that is not listed here is one that the checker does not know: it refuses to judge (``check``).
_BY_KIND: dict[str, _Duration] = {
    "transfer": _transfer,
    "link": _link,
    "matmul": _matmul,
    "elementwise": _elementwise,
}
KNOWN_KINDS = frozenset({*_BY_KIND, "none"})
