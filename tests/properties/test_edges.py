"""The edges of random kernels beside the rule that defines them, applied element by element and byte by byte."""

import itertools
from collections import defaultdict
from typing import Any

import kernelgen
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import kernscope as ks
from kernscope import tl
from kernscope.ir.graph import Access
from kernscope.ir.tables import AccessKind, Mode, Reason

Pairs = dict[tuple[int, int], Reason]
RECEIVES = ("recv", "recv_async")

any_program = st.one_of(
    kernelgen.programs(),
    kernelgen.programs(faults=True),
    kernelgen.programs(ranks=3, max_size=20),
    kernelgen.programs(ranks=2, faults=True, max_size=20),
)


def elements(access: Access) -> np.ndarray[Any, Any]:
    """The elements of its storage that an access covers: those of its view, or of its covering range."""
    if access.kind is AccessKind.RANGE:
        return np.arange(access.offset, access.offset + access.layout.span)
    found = np.full((), access.offset)
    for size, stride in zip(access.layout.shape, access.layout.strides, strict=True):
        found = found[..., None] + np.arange(size) * stride
    return np.unique(found)


def touched_bytes(access: Access) -> np.ndarray[Any, Any]:
    """The bytes of its rank's scratch that an access really touches."""
    size = access.layout.dtype.itemsize
    first = access.storage.address + elements(access) * size
    return (first[:, None] + np.arange(size)).ravel()


def keep_first(pairs: Pairs, source: int, target: int, reason: Reason) -> None:
    if source != target:
        pairs[source, target] = min(reason, pairs.get((source, target), reason))


def edges_within_storages(graph: ks.Graph) -> Pairs:
    """The rule, element by element: a read waits for the last writer; a write for the readers since, or else for it."""
    writer: dict[tuple[int, int, int], int] = {}
    readers: dict[tuple[int, int, int], list[int]] = defaultdict(list)
    found: Pairs = {}
    for node in graph:
        for access in sorted(node.accesses, key=lambda a: a.mode):
            for element in elements(access).tolist():
                cell = (access.storage.row, node.rank if access.storage.is_hbm else -1, element)
                if access.mode is Mode.READ:
                    if cell in writer:
                        keep_first(found, writer[cell], node.id, Reason.DATA)
                    readers[cell].append(node.id)
                    continue
                others = [reader for reader in readers[cell] if reader != node.id]
                for reader in others:
                    keep_first(found, reader, node.id, Reason.WAR)
                if not others and cell in writer:
                    keep_first(found, writer[cell], node.id, Reason.WAW)
                writer[cell], readers[cell] = node.id, []
    return found


def edges_of_channels(graph: ks.Graph) -> Pairs:
    """The rule, channel by channel: the i-th receive waits for the i-th send, a send for the receive that frees its
    slot, and sends and receives keep their order."""
    sent: dict[int, list[int]] = defaultdict(list)
    received: dict[int, list[int]] = defaultdict(list)
    for node in graph:
        if node.op == "send":
            sent[node.channel].append(node.id)
        elif node.op in RECEIVES:
            received[node.channel].append(node.id)
    found: Pairs = {}
    for channel in set(sent) | set(received):
        sends, receives = sent[channel], received[channel]
        for source, target in zip(sends, receives, strict=False):
            keep_first(found, source, target, Reason.MESSAGE)
        for source, target in zip(receives, sends[graph.target.slots :], strict=False):
            keep_first(found, source, target, Reason.CREDIT)
        for line in (sends, receives):
            for source, target in itertools.pairwise(line):
                keep_first(found, source, target, Reason.FIFO)
    return found


def reachable(graph: ks.Graph) -> list[int]:
    """For each node the set of nodes that it comes after, as bits. The graph has no cycle."""
    before = [0] * len(graph)
    waits: list[list[int]] = [[] for _ in range(len(graph))]
    for source, target in zip(graph.edges.source.tolist(), graph.edges.target.tolist(), strict=True):
        waits[target].append(source)
    done = [False] * len(graph)

    def visit(first: int) -> None:
        stack = [first]
        while stack:
            node = stack[-1]
            missing = [source for source in waits[node] if not done[source]]
            if missing:
                stack += missing
                continue
            stack.pop()
            for source in waits[node]:
                before[node] |= before[source] | (1 << source)
            done[node] = True

    for node in range(len(graph)):
        visit(node)
    return before


@given(any_program)
@kernelgen.examples(60)
def test_edges_within_a_storage_are_those_of_the_rule(program: kernelgen.Program) -> None:
    """Pairs and reasons of the edges that are not between recycled allocations are exactly the rule's, element by
    element, and the channels'."""
    graph = program.trace()
    expected = edges_within_storages(graph)
    for (source, target), reason in edges_of_channels(graph).items():
        keep_first(expected, source, target, reason)
    e = graph.edges
    rows = zip(e.source.tolist(), e.target.tolist(), e.reason.tolist(), e.recycled.tolist(), strict=True)
    found = {(source, target): (Reason(reason), recycled) for source, target, reason, recycled in rows}
    assert len(found) == len(e)
    assert {pair for pair in expected if pair not in found} == set()
    for pair, (reason, recycled) in found.items():
        if not recycled:
            assert expected.get(pair) == reason, pair
        elif pair in expected:
            assert reason <= expected[pair], pair


@given(any_program)
@kernelgen.examples(60)
def test_accesses_to_one_byte_are_ordered(program: kernelgen.Program) -> None:
    """Two nodes of a rank that touch one byte of scratch, one of them writing, are joined by a path in program order,
    also where the byte went from one allocation to another, and where a handle is used after its scope."""
    check_order(program.trace())


boxes = st.tuples(*[st.integers(0, 3)] * 4).map(lambda c: (min(c[:2]), max(c[:2]) + 1, min(c[2:]), max(c[2:]) + 1))
uses = st.lists(st.tuples(st.booleans(), boxes), min_size=1, max_size=7)


@given(st.lists(st.tuples(st.sampled_from([(4, 4), (4, 8), (8, 4)]), uses), min_size=2, max_size=4))
@kernelgen.examples(150)
def test_parts_of_tiles_in_reused_bytes_are_ordered(tiles: list[tuple[tuple[int, int], list[Any]]]) -> None:
    """As above, where tiles of several shapes take the same bytes one after the other, and each is written and read in
    parts: many have gaps, some are never written, some written twice."""

    def kernel(x: Any, o: Any) -> None:
        for shape, parts in tiles:
            with tl.scratch_scope():
                tile = tl.empty(shape, tl.float32)
                for writes, (top, bottom, left, right) in parts:
                    part = tile[top:bottom, left:right]
                    height, width = part.shape
                    if writes:
                        tl.load(x[:height, :width], out=part)
                    else:
                        tl.store(o[:height, :width], part)

    check_order(ks.trace(kernel, ks.hbm((8, 8), "f32"), ks.hbm((8, 8), "f32")))


def test_a_write_with_gaps_does_not_take_over_the_bytes_in_its_gaps() -> None:
    """The second tile's column is written over its own elements; who takes the first one's other bytes comes later."""

    def kernel(x: Any, o: Any) -> None:
        with tl.scratch_scope():
            tl.store(o[:, :], tl.load(x[:, :]))
        with tl.scratch_scope():
            tile = tl.empty((4, 4), tl.float32)
            for row in range(2):
                tl.load(x[:1, :1], out=tile[row : row + 1, :1])
            tl.load(x[:2, :1], out=tile[:2, :1])
            tl.load(x[:1, :1], out=tile[:1, 1:2])

    graph = ks.trace(kernel, ks.hbm((4, 4), "f32"), ks.hbm((4, 4), "f32"))
    check_order(graph)


def check_order(graph: ks.Graph) -> None:
    """Any two nodes that touch one byte of scratch, one of them writing, are joined by a path in program order."""
    before = reachable(graph)
    users: dict[tuple[int, int], dict[int, bool]] = defaultdict(dict)
    for node in graph:
        for access in node.accesses:
            if not access.storage.is_hbm:
                for byte in touched_bytes(access).tolist():
                    writes = users[node.rank, byte]
                    writes[node.id] = writes.get(node.id, False) or access.mode is Mode.WRITE
    for byte, nodes in users.items():
        ids = sorted(nodes)
        for index, later in enumerate(ids):
            for earlier in ids[:index]:
                if nodes[earlier] or nodes[later]:
                    assert before[later] >> earlier & 1, (byte, earlier, later)


@given(any_program)
@kernelgen.examples(60)
def test_a_recycled_edge_joins_two_allocations_that_share_bytes(program: kernelgen.Program) -> None:
    """It goes forward in program order, between accesses of one rank to different allocations whose covering bytes
    overlap; by its reason the source writes (data, waw) or reads (war), and the target reads or writes."""
    graph = program.trace()
    for edge in (edge for node in graph for edge in node.edges_in if edge.recycled):
        source, target = graph[edge.source], graph[edge.target]
        assert source.rank == target.rank
        assert source.id < target.id
        assert any(
            a.storage.row != b.storage.row
            and not a.storage.is_hbm
            and not b.storage.is_hbm
            and Mode.WRITE in (a.mode, b.mode)
            and max(a.byte_range[0], b.byte_range[0]) < min(a.byte_range[1], b.byte_range[1])
            for a in source.accesses
            for b in target.accesses
        ), edge


@given(any_program)
@kernelgen.examples(20)
def test_tracing_twice_gives_the_same_graph(program: kernelgen.Program) -> None:
    """The same kernel and arguments give the same graph, bit for bit, edges included."""
    first, second = program.trace(), program.trace()
    assert first == second
    assert first.edges == second.edges
