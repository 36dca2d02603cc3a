"""The checker's own account of a graph: what each node runs on, how long it takes, what its command costs to issue.

Written from the machine's table of durations and the operands' layouts alone. Nothing here comes from, or goes to, the
schedulers: two accounts that agree are worth more than one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction

import attrs
import numpy as np

from ..ir.graph import Graph
from ..ir.indices import Index
from ..ir.layout import Layout
from ..ir.ops import OPERATIONS, Family, Operation
from ..ir.tables import IntArray, Mode
from ..machine.description import Machine
from ..machine.parts import Dma, Engine, Gemm, Link, Math

__all__ = ["KNOWN_KINDS", "Account", "account_for"]

#: Reductions, softmax and sorting touch each element of what they read, everything else each element of its result.
_COUNTS_INPUT = (Family.REDUCTION, Family.SOFTMAX, Family.ORDER)
#: The class of costs that a machine cannot list.
_UNLISTED = "move"


@attrs.frozen(eq=False)
class Account:
    """By node: ``duration_ps``, ``engine`` (a name such as ``"gemm"`` or ``"link:next"``, as an index into
    ``engine_names``; -1: none), ``is_marker``. ``command`` numbers the commands, markers left out (-1), in program
    order within a rank; by command: ``first`` its first node, ``rank``, ``cost_ps`` of its issue, ``goes_on``: whether
    the CPU goes on after the issue under ``lazy``."""

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
    engine_names, engine = _engines(graph, machine)
    is_marker = np.array([operation.family is Family.MARKER for operation in operations], dtype=np.bool_)[nodes.op]
    first, inverse = np.unique(nodes.command[~is_marker], return_inverse=True)
    command = np.full(len(graph), -1, dtype=np.int64)
    command[~is_marker] = inverse
    composite = np.bincount(inverse, minlength=len(first)) > 1
    homes = [_engine_of(machine, operation) for operation in operations]
    alone = [
        _issue_cost(machine, operation.name, home.name if home is not None else "")
        for operation, home in zip(operations, homes, strict=True)
    ]
    products = next((engine.name for engine in machine.engines if engine.kind == "matmul"), "")
    by_code = np.array(alone, dtype=np.int64)
    cost = np.where(composite, _issue_cost(machine, "composite", products), by_code[nodes.op[first]])
    return Account(
        duration_ps=_durations(graph, machine),
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


def _engine_of(machine: Machine, operation: Operation) -> Engine | None:
    """The first engine listed of the operation's kind that reaches its operands and its result."""
    target = machine.target
    place = {"scratch": target.results, "global": target.memory_names[target.global_memory]}
    for engine in machine.engines:
        reaches = place[operation.reads_from] in engine.reads
        if operation.writes_to in place:
            reaches = reaches and place[operation.writes_to] in engine.writes
        if reaches and engine.kind == operation.kind:
            return engine
    return None


def _engines(graph: Graph, machine: Machine) -> tuple[tuple[str, ...], IntArray]:
    own = [engine.name for engine in machine.engines if engine.kind != "link"]
    link = [engine.name for engine in machine.engines if engine.kind == "link"]
    names = (*own, *(f"{name}:{direction}" for name in link[:1] for direction in graph.target.directions))
    number = []
    for operation in OPERATIONS.values():
        engine = _engine_of(machine, operation)
        number.append(own.index(engine.name) if engine is not None and engine.kind != "link" else -1)
    found = np.array(number, dtype=np.int64)[graph.nodes.op]
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


def _durations(graph: Graph, machine: Machine) -> IntArray:
    """Durations in picoseconds, worked out once per operation and layouts of its first two operands and its result."""
    count = len(graph)
    layouts, accesses, start = graph.layouts, graph.accesses, graph.access_start
    none = len(layouts)
    reads = np.bincount(accesses.node[accesses.mode == Mode.READ], minlength=count)
    total = np.diff(start)
    layout = np.append(accesses.layout.astype(np.int64), none)
    last = len(layout) - 1

    def operand(present: IntArray, row: IntArray) -> IntArray:
        return layout[np.where(present, row, last)]

    first_read = operand(reads > 0, start[:-1])
    second_read = operand(reads > 1, start[:-1] + 1)
    written = operand(total > reads, start[:-1] + reads)
    # A message's time is that of its direction.
    toward = np.append(graph.channels.direction, -1)[graph.nodes.channel]
    sends = np.array([operation.kind == "link" for operation in OPERATIONS.values()], dtype=np.bool_)
    toward = np.where(sends[graph.nodes.op], toward + 1, 0)
    # What an index names is counted from the index.
    counts = [_named_by_index(attributes) for attributes in graph.attributes]
    named = np.array(counts or [-1], dtype=np.int64)[graph.nodes.attributes]
    different, named_number = np.unique(named, return_inverse=True)
    key = graph.nodes.op.astype(np.int64) * len(different) + named_number
    width = max(none, len(graph.target.directions)) + 1  # of either sort of column: a mesh has more ways than layouts
    for column in (first_read, second_read, written, toward):
        # Renumbered at each step, so that the product always fits.
        _, key = np.unique(key * width + column, return_inverse=True)
    _, sample, inverse = np.unique(key, return_index=True, return_inverse=True)
    operations = list(OPERATIONS.names)
    times = [
        _duration(
            machine,
            operations[int(graph.nodes.op[node])],
            ("", *graph.target.directions)[int(toward[node])],
            int(named[node]),
            *(
                layouts[int(column[node])] if column[node] < none else None
                for column in (first_read, second_read, written)
            ),
        )
        for node in sample.tolist()
    ]
    # As Python integers where an int64 could not hold them: then nothing in the schedule can match.
    return np.array(times, dtype=np.int64 if all(t < 2**63 for t in times) else object)[inverse]


def _duration(
    machine: Machine,
    name: str,
    direction: str,
    named: int,
    a: Layout | None,
    b: Layout | None,
    result: Layout | None,
) -> int:
    """``named`` are the elements that an index names, -1 where there is none."""
    operation = OPERATIONS[name]
    if operation.kind == "none":
        return 0
    engine = _engine_of(machine, operation)
    if engine is not None and direction:
        own, common = getattr(machine.link, direction), machine.link
        numbers = {
            name: getattr(common, name) if getattr(own, name) is None else getattr(own, name)
            for name in ("latency_ns", "bytes_per_ns")
        }
        engine = attrs.evolve(engine, cost=attrs.evolve(common, **numbers))
    if engine is not None and named >= 0:
        a = Layout.of((named,), (1,), a.dtype) if a is not None else None
    return _BY_KIND[operation.kind](machine, engine, operation, a, b, result) if engine is not None else -1


def _named_by_index(attributes: Mapping[str, object]) -> int:
    """How many elements of its tile a node's index names; -1 where it has none."""
    index = attributes.get("index")
    return int(np.count_nonzero(index.elements() >= 0)) if isinstance(index, Index) else -1


def _transfer(
    machine: Machine, engine: Engine, operation: Operation, a: Layout | None, b: Layout | None, result: Layout | None
) -> int:
    # A ragged load wholly outside its tensor reads nothing: the latency alone.
    nbytes = a.nbytes if a is not None else 0
    port = engine.cost
    assert isinstance(port, Dma | Link)
    return _ceiling((port.latency_ns + nbytes / port.bytes_per_ns) * 1000)


def _matmul(
    machine: Machine, engine: Engine, operation: Operation, a: Layout | None, b: Layout | None, result: Layout | None
) -> int:
    unit = engine.cost
    assert a is not None and b is not None and isinstance(unit, Gemm)
    *batch, m, k = a.shape
    n = b.shape[-1]
    rates = dict(unit.rate.listed)
    # The products of a batch go through one after the other.
    steps = _ceiling(math.prod(batch) * k, rates.get(a.dtype.name, unit.rate.default))
    cycles = unit.startup_cycles + _ceiling(m, unit.rows) * _ceiling(n, unit.cols) * steps
    return _ceiling(cycles * 1000, machine.clock_ghz)


def _elementwise(
    machine: Machine, engine: Engine, operation: Operation, a: Layout | None, b: Layout | None, result: Layout | None
) -> int:
    unit = engine.cost
    counted = a if operation.family in _COUNTS_INPUT else result
    assert counted is not None and isinstance(unit, Math)
    listed, default = dict(unit.cycles.listed), unit.cycles.default
    of_class = listed.get(str(operation.cost), default)
    each = default if operation.cost == _UNLISTED else listed.get(operation.name, of_class)
    cycles = unit.startup_cycles + _ceiling(counted.size, unit.lanes) * each
    return _ceiling(cycles * 1000, machine.clock_ghz)


_Duration = Callable[[Machine, Engine, Operation, Layout | None, Layout | None, Layout | None], int]
#: A kind that is not listed here is one that the checker does not know: it refuses to judge (``check``).
_BY_KIND: dict[str, _Duration] = {
    "transfer": _transfer,
    "link": _transfer,
    "matmul": _matmul,
    "elementwise": _elementwise,
}
KNOWN_KINDS = frozenset({*_BY_KIND, "none"})
