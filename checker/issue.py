"""The rules on the CPU: it issues a rank's commands one by one, and waits for what its policy says."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

from ..ir.errors import PolicyError
from ..ir.graph import Graph
from ..ir.layout import Layout
from ..ir.ops import OPERATIONS
from ..ir.tables import IntArray, Mode, Reason
from .memory import memory_waits
from .violation import CheckableSchedule, Violation, describe, pairs
from .work import Account

__all__ = ["check_issue"]


def check_issue(schedule: CheckableSchedule, account: Account) -> Iterator[Violation]:
    """The violations of the rules ``issue`` and ``policy``."""
    yield from _issues(schedule, account)
    try:
        rules = schedule.rules
    except PolicyError as error:
        yield Violation("policy", (), f"{error.message}: {error.help}")
        return
    if rules.in_order:
        yield from _in_order(schedule)
    previous, following = _consecutive(account)
    if rules.holds == "all":
        why = f"{schedule.policy} issues one command after the other's end"
        yield from _held(schedule, account, previous, following, why)
    elif rules.holds == "synchronous":
        waits, why = ~account.goes_on[previous], f"{schedule.policy} goes on at that command's end"
        yield from _held(schedule, account, previous[waits], following[waits], why)
    elif rules.holds != "none":
        yield Violation("policy", (), f"the checker knows no policy that holds {rules.holds!r}")
    yield from _waits(schedule, account, rules.waits_for)


def _consecutive(account: Account) -> tuple[IntArray, IntArray]:
    """Pairs of commands that follow each other in their rank's program."""
    previous = np.flatnonzero(account.rank[1:] == account.rank[:-1])
    return previous, previous + 1


def _issue_begins(schedule: CheckableSchedule, account: Account) -> IntArray:
    """When the CPU begins to issue each command."""
    begins: IntArray = schedule.issue_ps[account.first] - account.cost_ps
    return begins


def _issues(schedule: CheckableSchedule, account: Account) -> Iterator[Violation]:
    issue, first = schedule.issue_ps, account.first
    begins = _issue_begins(schedule, account)
    for command in np.flatnonzero(begins < 0).tolist():
        node = int(first[command])
        yield Violation(
            "issue",
            (node,),
            f"{describe(schedule.graph, node)} is issued by {issue[node]} ps, but its issue costs "
            f"{account.cost_ps[command]} ps",
        )
    previous, following = _consecutive(account)
    yield from pairs(
        schedule,
        "issue",
        first[previous],
        first[following],
        issue[first[previous]],
        begins[following],
        "the issue of {b} begins at {at} ps, before that of {a} ends at {limit} ps",
    )
    for node in first[schedule.start_ps[first] < issue[first]].tolist():
        yield Violation(
            "issue",
            (node,),
            f"{describe(schedule.graph, node)} starts at {schedule.start_ps[node]} ps, before it is issued at "
            f"{issue[node]} ps",
        )
    nodes = np.flatnonzero(account.command >= 0)
    nodes = nodes[first[account.command[nodes]] != nodes]
    head = first[account.command[nodes]]
    yield from pairs(
        schedule,
        "issue",
        head,
        nodes,
        issue[head],
        schedule.start_ps[nodes],
        "{b} starts at {at} ps, before its command {a} is issued at {limit} ps",
    )


def _in_order(schedule: CheckableSchedule) -> Iterator[Violation]:
    """On an engine nodes start in program order."""
    busy = np.flatnonzero(schedule.engine >= 0)
    busy = busy[np.argsort(schedule.engine[busy], kind="stable")]
    same = schedule.engine[busy[1:]] == schedule.engine[busy[:-1]]
    a, b = busy[:-1][same], busy[1:][same]
    yield from pairs(
        schedule,
        "policy",
        a,
        b,
        schedule.start_ps[a],
        schedule.start_ps[b],
        "{b} starts at {at} ps, before {a}, ahead of it on its engine, starts at {limit} ps",
    )


def _held(
    schedule: CheckableSchedule, account: Account, previous: IntArray, following: IntArray, why: str
) -> Iterator[Violation]:
    """The issue of each following command begins no earlier than the previous one's last end."""
    ends = np.full(len(account.first), np.iinfo(np.int64).min)
    issued = account.command >= 0
    np.maximum.at(ends, account.command[issued], schedule.end_ps[issued])
    yield from pairs(
        schedule,
        "policy",
        account.first[previous],
        account.first[following],
        ends[previous],
        _issue_begins(schedule, account)[following],
        "the issue of {b} begins at {at} ps, before {a} ends at {limit} ps: " + why,
    )


def _waits(schedule: CheckableSchedule, account: Account, reasons: Collection[int]) -> Iterator[Violation]:
    """A command is issued when its data is there and, for a send, its slot is free, where the CPU waits for these."""
    unknown = sorted(set(reasons) - {Reason.DATA, Reason.CREDIT})
    if unknown:
        yield Violation("policy", (), f"the checker knows no policy that waits for {Reason(unknown[0]).label}")
    begins = np.full(len(schedule.graph), np.iinfo(np.int64).max)
    issued = account.command >= 0
    begins[issued] = _issue_begins(schedule, account)[account.command[issued]]
    if Reason.DATA in reasons:
        yield from _data_waits(schedule, account, begins)
    if Reason.CREDIT in reasons:
        yield from _credit_waits(schedule, begins)


def _data_waits(schedule: CheckableSchedule, account: Account, begins: IntArray) -> Iterator[Violation]:
    graph = schedule.graph
    issued = account.command >= 0
    # A marker reads nothing; a node of a composite never waits at issue for another one of it.
    group = np.where(issued, account.command, -1 - np.arange(len(graph)))
    asks = (graph.accesses.mode == Mode.READ) & ~_fed_within(graph, account)
    for wait in memory_waits(graph, begins, schedule.end_ps, group, asks=asks):
        yield Violation(
            "policy",
            (wait.earlier, wait.node),
            f"the issue of {describe(graph, wait.node)} begins at {begins[wait.node]} ps, before "
            f"{describe(graph, wait.earlier)}, whose data it reads, ends at {schedule.end_ps[wait.earlier]} ps",
        )


def _fed_within(graph: Graph, account: Account) -> IntArray:
    """The accesses that read what a node before them in their own command wrote: a composite's dot, say, of its
    streamed tile. What was in those bytes before is no data of the command; only the write over it waits.

    A command's nodes follow each other, so that nothing else writes in between.
    """
    accesses = graph.accesses
    # The elements that a layout shows, whatever the order of its dimensions: a tile may be read transposed.
    shown: dict[tuple[tuple[int, int], ...], int] = {}
    elements = [shown.setdefault(_walked(layout), len(shown)) for layout in graph.layouts]
    key = account.command[accesses.node] + 1
    for column in (accesses.storage, accesses.offset, np.array(elements, dtype=np.int64)[accesses.layout]):
        # Renumbered at each step, so that the product always fits.
        _, value = np.unique(column, return_inverse=True)
        _, key = np.unique(key * np.int64(len(accesses) + 1) + value, return_inverse=True)
    order = np.argsort(key, kind="stable")
    write = accesses.mode[order] == Mode.WRITE
    place = np.arange(len(order))
    first = np.searchsorted(key[order], key[order])
    last_write = np.maximum.accumulate(np.where(write, place, -1))
    fed = np.zeros(len(order), dtype=np.bool_)
    fed[order] = ~write & (last_write >= first)
    return fed


def _walked(layout: Layout) -> tuple[tuple[int, int], ...]:
    """The strides that a layout walks with its sizes, ascending: equal for views of the same elements in any order."""
    return tuple(sorted((s, n) for n, s in zip(layout.shape, layout.strides, strict=True) if n > 1 and s))


def _credit_waits(schedule: CheckableSchedule, begins: IntArray) -> Iterator[Violation]:
    graph = schedule.graph
    nodes, slots = graph.nodes, graph.target.slots
    kinds = OPERATIONS.receives[nodes.op]
    sends = np.flatnonzero(OPERATIONS.sends[nodes.op])
    freeing: list[int] = []
    freed: list[int] = []
    for channel in range(len(graph.channels)):
        sent = sends[nodes.channel[sends] == channel][slots:]
        received = np.flatnonzero(kinds & (nodes.channel == channel))[: len(sent)]
        freeing += received.tolist()
        freed += sent[: len(received)].tolist()
    a, b = np.array(freeing, dtype=np.int64), np.array(freed, dtype=np.int64)
    yield from pairs(
        schedule,
        "policy",
        a,
        b,
        schedule.end_ps[a],
        begins[b],
        "the issue of {b} begins at {at} ps, before {a} frees its slot at {limit} ps",
    )
