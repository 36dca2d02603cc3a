"""The independent checker of schedules.

It derives every rule anew, from the accesses, the channels and the machine: it never looks at ``graph.edges`` and
shares no code with the dependence pass or the schedulers, so that a fault in either shows. Near-linear in the accesses
and the cells of memory they cover.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..ir.errors import ArgumentError, shown
from ..ir.graph import Graph
from ..ir.ops import OPERATIONS
from ..ir.tables import IntArray
from ..machine.description import Machine
from .channels import check_channels
from .control import check_control
from .issue import check_issue
from .memory import memory_waits
from .order import check_order
from .violation import RULES, CheckableSchedule, Violation, describe, pairs
from .work import KNOWN_KINDS, Account, account_for

__all__ = ["RULES", "Violation", "check"]

_COLUMNS = ("issue_ps", "start_ps", "end_ps", "engine", "lane")
_TIMES = ("issue_ps", "start_ps", "end_ps")


def check(schedule: CheckableSchedule) -> list[Violation]:
    """All violations of a schedule, by rule in the order of ``RULES``, then by node; none: the schedule is legal.

    A rule reports a node once for each other node that it names; of several conflicting accesses to one storage that
    end too late, the latest. Columns that are not one whole number per node, and engines that are none, are all that is
    reported then, since no other rule could be judged. Raises ``ArgumentError`` for what is no schedule, and nothing
    for a wrong one.
    """
    _expect_schedule(schedule)
    found = [*_shape(schedule), *_listed(schedule), *_unknown(schedule)]
    if not found:
        account = account_for(schedule.graph, schedule.machine)
        for part in (_target(schedule), _times(schedule, account), _engines(schedule, account), _lanes(schedule)):
            found += part
        found += _memory(schedule)
        found += check_channels(schedule)
        found += check_order(schedule)
        found += check_control(schedule)
        found += check_issue(schedule, account)
    return sorted(found, key=lambda v: (RULES.index(v.rule), v.nodes[::-1], v.message))


def _expect_schedule(schedule: object) -> None:
    graph, machine = getattr(schedule, "graph", None), getattr(schedule, "machine", None)
    if not isinstance(graph, Graph) or not isinstance(machine, Machine) or not hasattr(schedule, "issue_ps"):
        raise ArgumentError(f"check takes a schedule, not {shown(schedule)}", help="pass what ks.schedule returns")


def _shape(schedule: CheckableSchedule) -> Iterator[Violation]:
    count = len(schedule.graph)
    for name in _COLUMNS:
        column = getattr(schedule, name)
        if not isinstance(column, np.ndarray):
            yield Violation("shape", (), f"{name} is {shown(column)}, no array")
        elif column.shape != (count,):
            yield Violation("shape", (), f"{name} has shape {column.shape}, the graph has {count} nodes")
        elif column.dtype.kind not in "iu":
            yield Violation("shape", (), f"{name} holds {column.dtype}, not whole numbers")


def _listed(schedule: CheckableSchedule) -> Iterator[Violation]:
    """Engines that the other rules can speak of: each with its rank, its name and the number of its channels."""
    engines: object = schedule.engines
    if not isinstance(engines, Sequence) or isinstance(engines, str | bytes):
        yield Violation("engine", (), f"engines is {shown(engines)}, no tuple of engines")
        return
    for number, engine in enumerate(engines):
        rank, name, channels = (getattr(engine, part, None) for part in ("rank", "name", "channels"))
        if not isinstance(name, str) or not _is_count(rank) or not _is_count(channels):
            yield Violation("engine", (), f"engines[{number}] is {shown(engine)}, no engine of a rank")


def _is_count(value: object) -> bool:
    """A whole number that a column can hold."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(0 <= value < 2**31)


def _unknown(schedule: CheckableSchedule) -> Iterator[Violation]:
    """What the checker has no rule for is not taken for right."""
    nodes = schedule.graph.nodes
    for code in np.unique(nodes.op).tolist():
        operation = OPERATIONS.by_code(code)
        if operation.kind not in KNOWN_KINDS:
            where = tuple(np.flatnonzero(nodes.op == code).tolist())
            yield Violation("engine", where, f"the checker knows no operations of kind {operation.kind}")


def _target(schedule: CheckableSchedule) -> Iterator[Violation]:
    for difference in schedule.graph.target.differences(schedule.machine.target):
        yield Violation("target", (), f"the graph was traced for another target than the machine's: {difference}")


def _times(schedule: CheckableSchedule, account: Account) -> Iterator[Violation]:
    for name in _TIMES:
        column: IntArray = getattr(schedule, name)
        for node in np.flatnonzero(column < 0).tolist():
            yield Violation("range", (node,), f"{describe(schedule.graph, node)} has {name} {column[node]}")
    takes = schedule.end_ps - schedule.start_ps
    for node in np.flatnonzero(takes != account.duration_ps).tolist():
        yield Violation(
            "duration",
            (node,),
            f"{describe(schedule.graph, node)} takes {takes[node]} ps, the machine says {account.duration_ps[node]} ps",
        )


def _engines(schedule: CheckableSchedule, account: Account) -> Iterator[Violation]:
    graph, machine = schedule.graph, schedule.machine
    channels = {engine.name: engine.channels for engine in machine.engines}
    number: dict[tuple[int, str], int] = {}
    for index, engine in enumerate(schedule.engines):
        if number.setdefault((engine.rank, engine.name), index) != index:
            yield Violation("engine", (), f"engine {engine.name} of rank {engine.rank} is listed twice")
        if engine.channels != channels.get(engine.name, 1):
            yield Violation(
                "engine",
                (),
                f"{engine.name} of rank {engine.rank} has {engine.channels} channels, "
                f"the machine's has {channels.get(engine.name, 1)}",
            )
    names = account.engine_names
    table = np.full((graph.ranks, len(names) + 1), -2, dtype=np.int64)  # -2: not listed, right for no node
    table[:, -1] = -1
    for (rank, name), index in number.items():
        if name in names and 0 <= rank < graph.ranks:
            table[rank, names.index(name)] = index
    wanted = table[graph.nodes.rank, account.engine]
    for node in np.flatnonzero(schedule.engine != wanted).tolist():
        kind = int(account.engine[node])
        right = f"{names[kind]} of rank {graph.nodes.rank[node]}" if kind >= 0 else "no engine"
        yield Violation(
            "engine", (node,), f"{describe(graph, node)} is on engine {schedule.engine[node]}, it belongs on {right}"
        )


def _lanes(schedule: CheckableSchedule) -> Iterator[Violation]:
    engine, lane = schedule.engine.astype(np.int64), schedule.lane.astype(np.int64)
    width = np.array([instance.channels for instance in schedule.engines] or [0], dtype=np.int64)
    known = (engine >= 0) & (engine < len(schedule.engines))
    channels = width[np.where(known, engine, 0)]
    inside = (lane >= 0) & (lane < channels)
    for node in np.flatnonzero(known & ~inside).tolist():
        yield Violation(
            "lane",
            (node,),
            f"{describe(schedule.graph, node)} is on lane {lane[node]} of an engine with {channels[node]} channels",
        )
    busy = np.flatnonzero(known)
    # By lane, then by time; the lane that a node claims, be there such a lane or not.
    busy = busy[np.lexsort((busy, schedule.end_ps[busy], schedule.start_ps[busy], lane[busy], engine[busy]))]
    same = (engine[busy[1:]] == engine[busy[:-1]]) & (lane[busy[1:]] == lane[busy[:-1]])
    opens = np.append(True, ~same)[: len(busy)]
    latest = _latest_so_far(schedule.end_ps[busy], opens)
    a, b = busy[latest[:-1]][same], busy[1:][same]
    yield from pairs(
        schedule,
        "overlap",
        a,
        b,
        schedule.end_ps[a],
        schedule.start_ps[b],
        "{b} starts at {at} ps on the lane that {a} holds until {limit} ps",
    )


def _latest_so_far(value: IntArray, opens: IntArray) -> IntArray:
    """For each position the position of the largest value so far in its segment (``opens``: where one begins)."""
    by_value = np.argsort(value, kind="stable")
    place = np.empty(len(value), dtype=np.int64)
    place[by_value] = np.arange(len(value))
    step = np.cumsum(opens) * np.int64(len(value))
    running: IntArray = by_value[np.maximum.accumulate(place + step) - step]
    return running


def _memory(schedule: CheckableSchedule) -> Iterator[Violation]:
    graph = schedule.graph
    for wait in memory_waits(graph, schedule.start_ps, schedule.end_ps, np.arange(len(graph))):
        name = graph.storage(wait.storage).name or f"#{wait.storage}"
        yield Violation(
            "memory",
            (wait.earlier, wait.node),
            f"{describe(graph, wait.node)} starts at {schedule.start_ps[wait.node]} ps, before "
            f"{describe(graph, wait.earlier)}, with which it shares bytes of {name}, "
            f"ends at {schedule.end_ps[wait.earlier]} ps",
        )
