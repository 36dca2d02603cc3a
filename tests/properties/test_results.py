"""What the linter says of messages, loads and results, beside oracles over random kernels, access by access."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

import kernelgen
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernscope as ks
from kernscope import tl
from kernscope.ir.tables import AccessKind, Mode

ANY = st.one_of(
    kernelgen.programs(),
    kernelgen.programs(faults=True),
    kernelgen.programs(ranks=2, faults=True, max_size=20),
    kernelgen.programs(ranks=2, grid=3, max_size=12),
)


def reported(graph: ks.Graph, code: str) -> set[int]:
    """The nodes of a rule's findings."""
    return {node for finding in ks.lint(graph, select=[code]) for node in finding.nodes}


def elements_of(graph: ks.Graph, row: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The elements of its storage that an access covers; of one that is no box its whole range."""
    layout, offset = graph.layouts[graph.accesses.layout[row]], int(graph.accesses.offset[row])
    if graph.accesses.kind[row] == AccessKind.RANGE:
        return np.arange(offset, offset + layout.span)
    places = np.array([offset], dtype=np.int64)
    for size, stride in zip(layout.shape, layout.strides, strict=True):
        places = (places[:, None] + np.arange(size if stride else 1) * stride).reshape(-1)
    return np.unique(places)


class Replay:
    """Which nodes read what which node wrote, element by element, within one allocation and before its scope's exit."""

    def __init__(self, graph: ks.Graph) -> None:
        self.escaped: set[int] = set()
        self.read: set[int] = set()
        self.readers: dict[int, set[int]] = defaultdict(set)
        writers = {
            row: np.full(graph.storage(row).layout.size, -1)
            for row in range(len(graph.storages))
            if not graph.storage(row).is_hbm
        }
        accesses = graph.accesses
        for row, (node, storage) in enumerate(zip(accesses.node.tolist(), accesses.storage.tolist(), strict=True)):
            if storage not in writers:
                continue
            if 0 <= graph.storages.freed[storage] < node:
                self.escaped.add(storage)
            elements = elements_of(graph, row)
            if accesses.mode[row] == Mode.WRITE:
                writers[storage][elements] = node
            elif graph[node].op != "wait":
                self.read.add(storage)
                if not 0 <= graph.storages.freed[storage] < node:
                    for writer in set(writers[storage][elements].tolist()):
                        self.readers[writer].add(node)


@given(ANY)
@kernelgen.examples(80)
def test_lost_loads_are_those_of_which_no_element_is_read_in_time(program: kernelgen.Program) -> None:
    """KS301, but for handles that KS201 and KS202 speak of, and loads that KS304 does."""
    graph = program.trace()
    replay = Replay(graph)
    expected = set()
    for node in graph:
        if node.op == "load":
            target = node.writes[0].storage.row
            in_scope = graph.storages.freed[target] > node.id
            if in_scope and target not in replay.escaped and not replay.readers[node.id]:
                expected.add(node.id)
    assert reported(graph, "KS301") == expected - reported(graph, "KS304")


@given(st.one_of(kernelgen.programs(), kernelgen.programs(ranks=2, max_size=20)))
@kernelgen.examples(80)
def test_overwritten_loads_are_those_of_which_every_element_is_written_again_unread(
    program: kernelgen.Program,
) -> None:
    """KS304, element by element: who reads what, and what of a load still stands when its handle is given back."""
    graph = program.trace()
    replay = Replay(graph)
    accesses = graph.accesses
    left: dict[int, set[int]] = {}
    for row, (node, storage) in enumerate(zip(accesses.node.tolist(), accesses.storage.tolist(), strict=True)):
        if accesses.mode[row] == Mode.READ or graph.storage(storage).is_hbm:
            continue
        elements = set(elements_of(graph, row).tolist())
        for load, remaining in left.items():
            if graph[load].writes[0].storage.row == storage:
                remaining -= elements
        if graph[node].op == "load" and graph[node].command == node:
            left[node] = elements
    expected = {load for load, remaining in left.items() if not remaining and not replay.readers[load]}
    assert reported(graph, "KS304") == expected


@given(ANY)
@kernelgen.examples(80)
def test_unused_results_are_never_read_and_of_a_line_that_is_never_read(program: kernelgen.Program) -> None:
    """KS302 names no allocation that is read; and every one that nobody reads is named by some rule, shares its line
    with one that is read or named, was received, or is a composite's own."""
    graph = program.trace()
    replay = Replay(graph)
    lost = reported(graph, "KS301") | reported(graph, "KS304") | reported(graph, "KS203")
    blamed = {access.storage.row for node in lost for access in graph[node].writes}
    written: dict[int, list[str]] = defaultdict(list)
    for node in graph:
        for access in node.writes:
            written[access.storage.row].append(node.op)
    named: set[tuple[str, int]] = set()
    for finding in ks.lint(graph, select=["KS302"]):
        assert finding.location is not None
        named.add((finding.location.file, finding.location.line))
        for node in finding.nodes:
            assert not {access.storage.row for access in graph[node].writes} & replay.read
    by_line: dict[int, list[int]] = defaultdict(list)
    for row in range(len(graph.storages)):
        if not graph.storage(row).is_hbm:
            by_line[int(graph.storages.stack[row])].append(row)
    for stack, rows in by_line.items():
        free = [row in replay.read or row in blamed or row in replay.escaped for row in rows]
        received = [any(op.startswith("recv") for op in written[row]) for row in rows]
        location = graph.location(stack)
        if not any(free) and not any(received):
            assert location is not None and (location.file, location.line) in named


def random_messages(seed: int, ranks: int) -> Any:
    """Sends and receives at random, of a few shapes and dtypes: most of them without regard for a partner."""

    def kernel() -> None:
        own = random.Random(seed * 17 + tl.program_id(0))
        for _ in range(own.randint(0, 5)):
            shape, dtype = own.choice(((2,), (3,))), own.choice(("f32", "f32", "f16"))
            direction = own.choice(("next", "prev"))
            match own.randint(0, 2):
                case 0:
                    tl.recv(direction, shape, dtype)
                case 1:
                    tl.recv_async(direction, shape, dtype)
                case 2:
                    tl.send(direction, tl.zeros(shape, dtype))

    return kernel


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_unmatched_messages_are_those_that_meet_nobody_or_somebody_else(ranks: int) -> None:
    """KS401 by definition: on each channel the i-th send meets the i-th receive."""
    faults = 0
    for seed in range(40):
        graph = ks.trace(random_messages(seed, ranks), ranks=ranks)
        sent: dict[tuple[int, int], list[int]] = defaultdict(list)
        received: dict[tuple[int, int], list[int]] = defaultdict(list)
        for node in graph:
            if node.op not in ("send", "recv", "recv_async"):
                continue
            direction = graph.target.directions[
                graph.channels.direction[node.channel] if node.op == "send" else graph.channels.arrival[node.channel]
            ]
            step = 1 if direction == "next" else -1
            # A channel is known by its receiver and the direction that it comes from.
            if node.op == "send":
                sent[(node.rank + step) % ranks, -step].append(node.id)
            else:
                received[node.rank, step].append(node.id)
        expected: set[int] = set()
        for channel in {*sent, *received}:
            ours, theirs = sent[channel], received[channel]
            paired = min(len(ours), len(theirs))
            expected.update(ours[paired:], theirs[paired:])
            for send, recv in zip(ours, theirs, strict=False):
                one, other = graph[send].reads[0].layout, graph[recv].writes[0].layout
                if (one.shape, one.dtype) != (other.shape, other.dtype):
                    expected.update((send, recv))
        assert reported(graph, "KS401") == expected
        faults += bool(expected)
    assert faults > 20


@given(ANY)
@kernelgen.examples(60)
def test_commands_that_write_what_they_read_are_found_element_by_element(program: kernelgen.Program) -> None:
    """KS205 beside the elements of each access in their order: alike element for element, where each is read for itself
    alone; else none shared."""
    graph = program.trace()
    expected = set()
    for node in graph:
        for operand, read in enumerate(node.reads):
            for written in node.writes:
                if read.storage.row != written.storage.row:
                    continue
                one, other = in_order(read), in_order(written)
                by_itself = node.op != "dot" or operand == 2
                if not (by_itself and np.array_equal(one, other)) and np.intersect1d(one, other).size:
                    expected.add(node.id)
    assert reported(graph, "KS205") == expected


def in_order(access: ks.Access) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The elements of its storage that an access shows, in the order of its indices."""
    places = np.array([access.offset], dtype=np.int64)
    for size, stride in zip(access.layout.shape, access.layout.strides, strict=True):
        places = (places[:, None] + np.arange(size) * stride).reshape(-1)
    return places
