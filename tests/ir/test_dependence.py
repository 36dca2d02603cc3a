"""Edges: who waits for whom, and why. Small cases, one a sentence of the language."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import kernscope as ks
from kernscope import tl

Edges = set[tuple[int, int, str]]


def trace(body: Callable[..., None], *, ranks: int = 1, machine: Any = None, **tensors: tuple[int, ...]) -> ks.Graph:
    """Trace a kernel with f32 tensors of these shapes."""
    arguments = {name: ks.hbm(shape, "f32") for name, shape in tensors.items()}
    return ks.trace(body, ranks=ranks, machine=machine, **arguments)


def edges(graph: ks.Graph) -> Edges:
    """All edges as (source, target, reason)."""
    return {(edge.source, edge.target, edge.reason.label) for node in graph for edge in node.edges_in}


def recycled(graph: ks.Graph) -> set[tuple[int, int]]:
    """The pairs whose edge joins two allocations that share bytes."""
    return {(edge.source, edge.target) for node in graph for edge in node.edges_in if edge.recycled}


def ids(graph: ks.Graph, op: str) -> list[int]:
    """The nodes of an operation."""
    return [node.id for node in graph if node.op == op]


def test_a_reader_waits_for_the_writer() -> None:
    """Read after write: data. The load's handle carries its pending load: that is this edge."""

    def kernel(x: Any, o: Any) -> None:
        tl.store(o, tl.exp(tl.load(x)))

    assert edges(trace(kernel, x=(8, 8), o=(8, 8))) == {(0, 1, "data"), (1, 2, "data")}


def test_two_readers_do_not_wait_for_each_other() -> None:
    """Both wait for the load only."""

    def kernel(x: Any) -> None:
        h = tl.load(x)
        tl.exp(h)
        tl.abs(h)

    assert edges(trace(kernel, x=(8, 8))) == {(0, 1, "data"), (0, 2, "data")}


def test_a_writer_waits_for_the_readers_since_the_last_write_not_for_that_write() -> None:
    """Where reads lie between two writes, the second waits for them (war) and needs no waw edge: case 9, `copy_to`
    after a read of its destination."""

    def kernel(x: Any) -> None:
        h = tl.load(x)  # 0
        new = tl.zeros((8, 8), "f32")  # 1
        tl.exp(h)  # 2
        tl.abs(h)  # 3
        tl.copy_to(h, new)  # 4

    found = edges(trace(kernel, x=(8, 8)))
    assert found == {(0, 2, "data"), (0, 3, "data"), (1, 4, "data"), (2, 4, "war"), (3, 4, "war")}


def test_a_writer_waits_for_the_writer_where_nothing_was_read_between() -> None:
    """Write after write: waw."""

    def kernel(x: Any) -> None:
        h = tl.load(x)  # 0
        new = tl.zeros((8, 8), "f32")  # 1
        tl.copy_to(h, new)  # 2
        tl.load(x, out=h)  # 3

    assert edges(trace(kernel, x=(8, 8))) == {(1, 2, "data"), (0, 2, "waw"), (2, 3, "waw")}


def test_a_pair_with_several_reasons_keeps_the_first() -> None:
    """The copy reads what the load wrote and overwrites part of it: data before war and waw."""

    def kernel(x: Any) -> None:
        h = tl.load(x)
        tl.copy_to(h[0:4], h[4:8])

    assert edges(trace(kernel, x=(8, 8))) == {(0, 1, "data")}


def test_a_node_never_waits_for_itself() -> None:
    """A dot into its accumulator reads and writes it; the next one reads what it wrote."""

    def kernel(x: Any) -> None:
        a = tl.load(x)  # 0
        acc = tl.zeros((8, 8), "f32")  # 1
        tl.dot(a, a, acc=acc)  # 2
        tl.dot(a, a, acc=acc)  # 3

    found = edges(trace(kernel, x=(8, 8)))
    assert found == {(0, 2, "data"), (1, 2, "data"), (0, 3, "data"), (2, 3, "data")}


def test_disjoint_row_slices_stay_independent() -> None:
    """Case 10: two copies to disjoint slices of one buffer have no edge between them; the whole's reader waits for
    both."""

    def kernel(x: Any) -> None:
        new = tl.zeros((4, 8), "f32")  # 0
        whole = tl.empty((8, 8), "f32")
        tl.copy_to(whole[0:4], new)  # 1
        tl.copy_to(whole[4:8], new)  # 2
        tl.exp(whole)  # 3

    assert edges(trace(kernel, x=(8, 8))) == {(0, 1, "data"), (0, 2, "data"), (1, 3, "data"), (2, 3, "data")}


def test_disjoint_column_slices_stay_independent() -> None:
    """Columns interleave in memory, yet share no element: their byte ranges overlap and nothing waits."""

    def kernel(x: Any) -> None:
        new = tl.zeros((8, 4), "f32")  # 0
        whole = tl.empty((8, 8), "f32")
        tl.copy_to(whole[:, 0:4], new)  # 1
        tl.copy_to(whole[:, 4:8], new)  # 2
        tl.exp(whole[:, 2:4])  # 3
        tl.exp(whole[:, 3:5])  # 4

    found = edges(trace(kernel, x=(8, 8)))
    assert found == {(0, 1, "data"), (0, 2, "data"), (1, 3, "data"), (1, 4, "data"), (2, 4, "data")}


def test_slices_that_share_an_element_depend() -> None:
    """One row in common is enough."""

    def kernel(x: Any) -> None:
        new = tl.zeros((4, 8), "f32")  # 0
        whole = tl.empty((8, 8), "f32")
        tl.copy_to(whole[0:4], new)  # 1
        tl.copy_to(whole[3:7], new)  # 2

    assert edges(trace(kernel, x=(8, 8))) == {(0, 1, "data"), (0, 2, "data"), (1, 2, "waw")}


def test_a_transposed_read_reads_its_own_columns_only() -> None:
    """A slice of a transpose is a box of the storage: rows of the one are columns of the other."""

    def kernel(x: Any) -> None:
        new = tl.zeros((8, 4), "f32")  # 0
        whole = tl.empty((8, 8), "f32")
        tl.copy_to(whole[:, 0:4], new)  # 1
        tl.copy_to(whole[:, 4:8], new)  # 2
        tl.exp(tl.trans(whole)[0:4])  # 3
        tl.exp(tl.trans(whole)[4:8, 2:3])  # 4

    found = edges(trace(kernel, x=(8, 8)))
    assert found == {(0, 1, "data"), (0, 2, "data"), (1, 3, "data"), (2, 4, "data")}


def test_a_read_through_a_broadcast_waits_for_what_it_repeats() -> None:
    """And for nothing beside it."""

    def kernel(x: Any) -> None:
        row = tl.zeros((1, 8), "f32")  # 0
        whole = tl.empty((8, 8), "f32")
        tl.copy_to(whole[0:1], row)  # 1
        tl.copy_to(whole[1:2], row)  # 2
        tl.exp(tl.broadcast_to(whole[0:1], (4, 8)))  # 3
        _, wide = tl.broadcast(whole[0:2], whole[1:2])
        tl.exp(wide)  # 4

    found = edges(trace(kernel, x=(8, 8)))
    assert found == {(0, 1, "data"), (0, 2, "data"), (1, 3, "data"), (2, 4, "data")}


def test_a_reshaped_view_meets_the_rows_it_covers() -> None:
    """Half of the flat elements are the upper rows."""

    def kernel(x: Any) -> None:
        new = tl.zeros((4, 8), "f32")  # 0
        whole = tl.empty((8, 8), "f32")
        tl.copy_to(whole[0:4], new)  # 1
        tl.copy_to(whole[4:8], new)  # 2
        tl.exp(tl.reshape(whole, (64,))[32:64])  # 3

    assert edges(trace(kernel, x=(8, 8))) == {(0, 1, "data"), (0, 2, "data"), (2, 3, "data")}


def test_a_pointer_range_across_rows_meets_exactly_its_elements() -> None:
    """Elements 4 to 11 of 8 columns are the right half of row 0 and the left half of row 1."""

    def kernel(x: Any, o: Any) -> None:
        tile = tl.zeros((1, 4), "f32")  # 0
        tl.store(o[0:1, 0:4], tile)  # 1
        tl.store(o[0:1, 4:8], tile)  # 2
        tl.store(o[1:2, 0:4], tile)  # 3
        tl.store(o[1:2, 4:8], tile)  # 4
        tl.load(o + 4, (8,))  # 5

    found = edges(trace(kernel, x=(8, 8), o=(8, 8)))
    assert {edge for edge in found if edge[1] == 5} == {(2, 5, "data"), (3, 5, "data")}


def test_stores_to_disjoint_tiles_of_hbm_are_independent() -> None:
    """A load of a tile waits for the store of that tile, and a second store for the load."""

    def kernel(x: Any, o: Any) -> None:
        tile = tl.zeros((4, 4), "f32")  # 0
        tl.store(o[0:4, 0:4], tile)  # 1
        tl.store(o[0:4, 4:8], tile)  # 2
        tl.load(o[0:4, 4:8])  # 3
        tl.store(o[0:4, 4:8], tile)  # 4

    found = edges(trace(kernel, x=(8, 8), o=(8, 8)))
    assert found == {(0, 1, "data"), (0, 2, "data"), (0, 4, "data"), (2, 3, "data"), (3, 4, "war")}


def test_a_clipped_store_touches_its_inside_only() -> None:
    """What is left out is no access: the rows read are those that lie inside."""

    def kernel(x: Any, o: Any) -> None:
        tile = tl.load(x)  # 0
        tl.copy_to(tile[6:8], tl.zeros((2, 8), "f32"))  # 1, 2
        tl.store(o[4:12], tile, clip=True)  # 3

    found = edges(trace(kernel, x=(8, 8), o=(10, 8)))
    assert found == {(0, 2, "waw"), (1, 2, "data"), (0, 3, "data")}


def test_recycled_bytes_wait_for_their_last_user() -> None:
    """Case 8: scope A stores a tile, scope B loads into the same bytes: the load waits for the store (war), and the
    edge is marked recycled."""

    def kernel(x: Any, o: Any) -> None:
        with tl.scratch_scope():  # 0
            tl.store(o, tl.load(x))  # 1, 2; exit 3
        with tl.scratch_scope():  # 4
            tl.load(x)  # 5; exit 6

    graph = trace(kernel, x=(8, 8), o=(8, 8))
    assert edges(graph) == {(1, 2, "data"), (2, 5, "war")}
    assert recycled(graph) == {(2, 5)}


def test_a_load_in_flight_at_its_scopes_exit_holds_up_the_next_writer_of_its_bytes() -> None:
    """The exit waits for nothing; the next writer does: waw, recycled."""

    def kernel(x: Any) -> None:
        with tl.scratch_scope():  # 0
            tl.load(x)  # 1; exit 2
        with tl.scratch_scope():  # 3
            tl.zeros((4, 8), "f32")  # 4
            tl.zeros((4, 8), "f32")  # 5; exit 6
            tl.zeros((4, 8), "f32")  # 6: beyond the load's bytes

    graph = trace(kernel, x=(8, 8))
    assert edges(graph) == {(1, 4, "waw"), (1, 5, "waw")}
    assert recycled(graph) == {(1, 4), (1, 5)}


def test_within_one_allocation_no_edge_is_recycled() -> None:
    """The flag speaks of two allocations only."""

    def kernel(x: Any) -> None:
        h = tl.load(x)
        tl.exp(h)
        tl.load(x, out=h)

    assert recycled(trace(kernel, x=(8, 8))) == set()


def test_bytes_handed_on_twice_join_neighbours_in_time_only() -> None:
    """A, B and C on the same bytes: C waits for B's reader; that it also came after A follows."""

    def kernel(x: Any) -> None:
        for _ in range(3):
            with tl.scratch_scope():
                tl.exp(tl.load(x))

    graph = trace(kernel, x=(8, 8))
    load, exp = ids(graph, "load"), ids(graph, "exp")
    assert edges(graph) == {
        *((a, b, "data") for a, b in zip(load, exp, strict=True)),
        *((a, b, "war") for a, b in zip(exp, load[1:], strict=False)),
        *((a, b, "waw") for a, b in pairwise(exp)),
    }


def test_an_allocation_over_several_waits_for_each_of_them() -> None:
    """One large tile over two small ones: it waits for both, whatever their order."""

    def kernel(x: Any) -> None:
        with tl.scratch_scope():  # 0
            a = tl.zeros((4, 8), "f32")  # 1
            tl.zeros((4, 8), "f32")  # 2
            tl.exp(a)  # 3; exit 4
        with tl.scratch_scope():  # 5
            tl.load(x)  # 6

    found = edges(trace(kernel, x=(8, 8)))
    assert found == {(1, 3, "data"), (3, 6, "war"), (2, 6, "waw")}


def test_a_stale_read_depends_on_who_wrote_the_bytes() -> None:
    """A use after scope is recorded as it happens: it reads what the next allocation wrote there."""

    def kernel(x: Any) -> None:
        with tl.scratch_scope():  # 0
            h = tl.load(x)  # 1; exit 2
        with tl.scratch_scope():  # 3
            tl.zeros((8, 8), "f32")  # 4; exit 5
        tl.store(x, h)  # 6

    graph = trace(kernel, x=(8, 8))
    found = edges(graph)
    assert (4, 6, "data") in found
    assert (1, 4, "waw") in found
    assert {(1, 4), (4, 6)} <= recycled(graph)


def test_a_stale_write_holds_up_who_uses_the_bytes_next() -> None:
    """A write after scope goes into somebody else's bytes: their reader waits for it."""

    def kernel(x: Any) -> None:
        with tl.scratch_scope():  # 0
            h = tl.load(x)  # 1; exit 2
        new = tl.zeros((8, 8), "f32")  # 3
        tl.load(x, out=h)  # 4
        tl.exp(new)  # 5

    graph = trace(kernel, x=(8, 8))
    assert {(3, 4, "waw"), (4, 5, "data")} <= edges(graph)


def test_a_write_with_gaps_between_allocations_keeps_both() -> None:
    """Columns of a new allocation over an old one: whoever comes after waits for the column's writer, and the old
    allocation's last reader is waited for, too."""

    def kernel(x: Any) -> None:
        column = tl.zeros((8, 1), "f32")  # 0
        with tl.scratch_scope():  # 1
            tl.exp(tl.load(x))  # 2, 3; exit 4
        with tl.scratch_scope():  # 5
            whole = tl.empty((8, 8), "f32")
            tl.copy_to(whole[:, 3:4], column)  # 6; exit 7
        with tl.scratch_scope():  # 8
            tl.load(x)  # 9

    graph = trace(kernel, x=(8, 8))
    found = edges(graph)
    assert {(3, 6, "war"), (6, 9, "waw")} <= found
    assert (3, 9, "war") in found, "the column leaves most of the bytes to their old reader"
    assert {(3, 6), (6, 9), (3, 9)} <= recycled(graph)


def test_a_read_with_gaps_does_not_take_bytes_over() -> None:
    """A column is read before the bytes between its elements are written for the first time: that write still waits for
    the last reader of the allocation that held them before."""

    def kernel(x: Any) -> None:
        element = tl.zeros((1, 1), "f32")  # 0
        with tl.scratch_scope():  # 1
            tl.exp(tl.load(x))  # 2, 3; exit 4
        with tl.scratch_scope():  # 5
            whole = tl.empty((8, 8), "f32")
            for row in range(3):
                tl.copy_to(whole[row : row + 1, 0:1], element)  # 6, 7, 8
            tl.exp(whole[0:3, 0:1])  # 9
            tl.copy_to(whole[0:1, 1:2], element)  # 10

    graph = trace(kernel, x=(8, 8))
    found = edges(graph)
    assert (3, 10, "war") in found
    assert (3, 10) in recycled(graph)
    assert {(3, node, "war") for node in (6, 7, 8)} <= found


def test_markers_wait_for_nothing() -> None:
    """A scope's markers access nothing: they have no edges."""

    def kernel(x: Any) -> None:
        h = tl.load(x)
        with tl.scratch_scope():
            tl.exp(h)

    graph = trace(kernel, x=(8, 8))
    markers = {*ids(graph, "scope_enter"), *ids(graph, "scope_exit")}
    assert markers == {1, 3}
    assert not {n for source, target, _ in edges(graph) for n in (source, target)} & markers


def test_ranks_are_not_joined_through_hbm() -> None:
    """Every rank stores to the same tile: no edge; each rank's own accesses to it are ordered."""

    def kernel(x: Any) -> None:
        tl.store(x, tl.exp(tl.load(x)))  # 0, 1, 2 of each rank

    graph = trace(kernel, ranks=3, x=(8, 8))
    wanted = {(3 * r + a, 3 * r + b, "data") for r in range(3) for a, b in ((0, 1), (1, 2))}
    assert edges(graph) == wanted | {(3 * r, 3 * r + 2, "war") for r in range(3)}


def test_scratch_of_two_ranks_is_not_shared() -> None:
    """The same address on two ranks is two memories."""

    def kernel(x: Any) -> None:
        with tl.scratch_scope():
            tl.zeros((8, 8), "f32")

    assert edges(trace(kernel, ranks=2, x=(8, 8))) == set()


def test_messages_slots_and_order() -> None:
    """On two slots: each receive waits for its send, the third send for the first receive, and both sides keep their
    order."""

    def kernel(x: Any) -> None:
        if tl.program_id(0) == 0:
            h = tl.load(x)
            for _ in range(4):
                tl.send("next", h)
        else:
            for _ in range(4):
                tl.recv("prev", (8, 8), "f32")

    graph = trace(kernel, ranks=2, x=(8, 8))
    send, recv = ids(graph, "send"), ids(graph, "recv")
    assert graph.target.slots == 2
    found = edges(graph)
    assert {e for e in found if e[2] == "message"} == {(s, r, "message") for s, r in zip(send, recv, strict=True)}
    assert {e for e in found if e[2] == "credit"} == {(recv[0], send[2], "credit"), (recv[1], send[3], "credit")}
    order = [*pairwise(send), *pairwise(recv)]
    assert {e for e in found if e[2] == "fifo"} == {(a, b, "fifo") for a, b in order}


def test_nothing_waits_for_a_message_that_never_comes() -> None:
    """A receive without a send, and a send without a receive, have no message edge; a send that no receive frees a slot
    for has no credit edge."""

    def kernel(x: Any) -> None:
        if tl.program_id(0) == 0:
            h = tl.load(x)
            for _ in range(5):
                tl.send("next", h)
        else:
            tl.recv("prev", (8, 8), "f32")
            tl.recv("next", (8, 8), "f32")

    graph = trace(kernel, ranks=2, x=(8, 8))
    send, recv = ids(graph, "send"), ids(graph, "recv")
    found = edges(graph)
    assert {e for e in found if e[2] == "message"} == {(send[0], recv[0], "message")}
    assert {e for e in found if e[2] == "credit"} == {(recv[0], send[2], "credit")}


def test_a_wait_waits_for_its_receive_and_the_reader_for_it_too() -> None:
    """The reader's tile was written by the posted receive, which is what it waits for."""

    def kernel(x: Any) -> None:
        if tl.program_id(0) == 0:
            tl.send("next", tl.load(x))
        else:
            future = tl.recv_async("prev", (8, 8), "f32")
            tl.exp(tl.wait(future))

    graph = trace(kernel, ranks=2, x=(8, 8))
    (send,), (recv,), (wait,), (exp,) = (ids(graph, op) for op in ("send", "recv_async", "wait", "exp"))
    assert {(send, recv, "message"), (recv, wait, "data"), (recv, exp, "data")} <= edges(graph)


def test_edges_are_sorted_and_point_forward_within_a_rank() -> None:
    """By target, then source; no pair twice; a rank's own edges go from smaller to larger ids."""

    def kernel(x: Any, o: Any) -> None:
        acc = tl.zeros((8, 8), "f32")
        for _ in range(5):
            with tl.scratch_scope():
                t = tl.load(x)
                tl.copy_to(acc, acc + tl.dot(t, t))
        tl.store(o, acc)

    graph = trace(kernel, x=(8, 8), o=(8, 8))
    pairs = list(zip(graph.edges.target.tolist(), graph.edges.source.tolist(), strict=True))
    assert pairs == sorted(set(pairs))
    assert all(source < target for target, source in pairs)


def test_a_kernel_that_does_nothing_has_no_edges() -> None:
    """An empty graph is a graph."""

    def kernel(x: Any) -> None:
        pass

    graph = trace(kernel, x=(8, 8))
    assert (len(graph), len(graph.edges)) == (0, 0)
