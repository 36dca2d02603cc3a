"""The checker's own account of a graph: what each node runs on, how long it takes, what its command costs to issue.

Written from the machine's table of durations and the operands' layouts alone. Nothing here comes from, or goes to, the
schedulers: two accounts that agree are worth more than one.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import attrs
import numpy as np

from ..ir.graph import Graph
from ..ir.layout import Layout
from ..ir.ops import OPERATIONS, Family
from ..ir.tables import IntArray, Mode
from .machine import Machine

__all__ = ["Account", "account_for"]

#: Operations whose command lets the CPU go on under ``lazy``; a composite is the fourth.
_GOES_ON = ("load", "recv_async", "send")
_ENGINE_OF_OPERATION = {
    "load": "dma_read",
    "store": "dma_write",
    "dot": "gemm",
    "send": "link",
    "recv": "",
    "recv_async": "",
    "wait": "",
    "scope_enter": "",
    "scope_exit": "",
}
#: Reductions and softmax touch each element of what they read, everything else each element of its result.
_COUNTS_INPUT = (Family.REDUCTION, Family.SOFTMAX)
_COST_DEFAULT = ("copy_to", "fill", "cast")


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
    names = np.array(OPERATIONS.names)[nodes.op] if len(graph) else np.array([], dtype=np.str_)
    engine_names, engine = _engines(graph)
    is_marker = np.isin(nodes.op, [OPERATIONS.code("scope_enter"), OPERATIONS.code("scope_exit")])
    first, inverse = np.unique(nodes.command[~is_marker], return_inverse=True)
    command = np.full(len(graph), -1, dtype=np.int64)
    command[~is_marker] = inverse
    composite = np.bincount(inverse, minlength=len(first)) > 1
    alone = {name: _issue_cost(machine, name, _ENGINE_OF_OPERATION.get(name, "math")) for name in OPERATIONS.names}
    by_code = np.array([alone[name] for name in OPERATIONS.names], dtype=np.int64)
    cost = np.where(composite, _issue_cost(machine, "composite", "gemm"), by_code[nodes.op[first]])
    return Account(
        duration_ps=_durations(graph, machine),
        engine_names=engine_names,
        engine=engine,
        is_marker=is_marker,
        command=command,
        first=first.astype(np.int64),
        rank=nodes.rank[first],
        cost_ps=cost.astype(np.int64),
        goes_on=composite | np.isin(names[first], _GOES_ON),
    )


def _engines(graph: Graph) -> tuple[tuple[str, ...], IntArray]:
    links = tuple(f"link:{direction}" for direction in graph.target.directions)
    names = ("dma_read", "dma_write", "gemm", "math", *links)
    kinds = [_ENGINE_OF_OPERATION.get(name, "math") for name in OPERATIONS.names]
    number = np.array([names.index(kind) if kind in names else -1 for kind in kinds], dtype=np.int64)
    engine = number[graph.nodes.op]
    sends = np.flatnonzero(graph.nodes.op == OPERATIONS.code("send"))
    engine[sends] = names.index(links[0]) + graph.channels.direction[graph.nodes.channel[sends]]
    return names, engine


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
    key = graph.nodes.op.astype(np.int64)
    for column in (first_read, second_read, written):
        # Renumbered at each step, so that the product always fits.
        _, key = np.unique(key * (none + 1) + column, return_inverse=True)
    _, sample, inverse = np.unique(key, return_index=True, return_inverse=True)
    operations = list(OPERATIONS.names)
    times = [
        _duration(
            machine,
            operations[int(graph.nodes.op[node])],
            *(
                layouts[int(column[node])] if column[node] < none else None
                for column in (first_read, second_read, written)
            ),
        )
        for node in sample.tolist()
    ]
    # As Python integers where an int64 could not hold them: then nothing in the schedule can match.
    return np.array(times, dtype=np.int64 if all(t < 2**63 for t in times) else object)[inverse]


def _duration(machine: Machine, name: str, a: Layout | None, b: Layout | None, result: Layout | None) -> int:
    kind = _ENGINE_OF_OPERATION.get(name, "math")
    if kind == "":
        return 0
    return _BY_ENGINE[kind](machine, name, a, b, result)


def _transfer(latency_ns: Fraction, bytes_per_ns: Fraction, moved: Layout | None) -> int:
    # A ragged load wholly outside its tensor reads nothing: the latency alone.
    nbytes = moved.nbytes if moved is not None else 0
    return _ceiling((latency_ns + nbytes / bytes_per_ns) * 1000)


def _dma_read(machine: Machine, name: str, a: Layout | None, b: Layout | None, result: Layout | None) -> int:
    return _transfer(machine.dma_read.latency_ns, machine.dma_read.bytes_per_ns, a)


def _dma_write(machine: Machine, name: str, a: Layout | None, b: Layout | None, result: Layout | None) -> int:
    return _transfer(machine.dma_write.latency_ns, machine.dma_write.bytes_per_ns, a)


def _link(machine: Machine, name: str, a: Layout | None, b: Layout | None, result: Layout | None) -> int:
    return _transfer(machine.link.latency_ns, machine.link.bytes_per_ns, a)


def _gemm(machine: Machine, name: str, a: Layout | None, b: Layout | None, result: Layout | None) -> int:
    assert a is not None and b is not None
    (m, k), n = a.shape, b.shape[1]
    unit, rates = machine.gemm, dict(machine.gemm.rate.listed)
    steps = _ceiling(k, rates.get(a.dtype.name, unit.rate.default))
    cycles = unit.startup_cycles + _ceiling(m, unit.rows) * _ceiling(n, unit.cols) * steps
    return _ceiling(cycles * 1000, machine.clock_ghz)


def _math(machine: Machine, name: str, a: Layout | None, b: Layout | None, result: Layout | None) -> int:
    counted = a if OPERATIONS[name].family in _COUNTS_INPUT else result
    assert counted is not None
    unit, listed = machine.math, dict(machine.math.cycles.listed)
    each = unit.cycles.default if name in _COST_DEFAULT else listed.get(name, unit.cycles.default)
    cycles = unit.startup_cycles + _ceiling(counted.size, unit.lanes) * each
    return _ceiling(cycles * 1000, machine.clock_ghz)


_BY_ENGINE: dict[str, Callable[[Machine, str, Layout | None, Layout | None, Layout | None], int]] = {
    "dma_read": _dma_read,
    "dma_write": _dma_write,
    "link": _link,
    "gemm": _gemm,
    "math": _math,
}
