"""The verifier, rule by rule: a graph that holds together, damaged in one place, and the exact lines that say so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import pytest

import kernscope as ks
from kernscope import tl
from kernscope.ir.dtypes import ALL as DTYPES
from kernscope.ir.layout import Layout
from kernscope.ir.ops import OPERATIONS
from kernscope.ir.tables import BoundsFault, EdgeTable
from kernscope.ir.verifier.verify import rules, verify


@ks.kernel
def whole(x: Any, o: Any) -> None:
    """A bit of everything: scopes that nest, views, a composite, messages, on two ranks."""
    a = tl.load(x[0:4, :])
    with tl.scratch_scope("outer"):
        b = tl.exp(a)
        with tl.scratch_scope("inner"):
            tl.send("next", b)
            c = tl.recv("prev", (4, 8), tl.float32)
            tl.copy_to(b[:, 0:2], c[:, 2:4])
        d = tl.composite("gemm", b, tl.ref(x[:, :]), tile=(4, 4, 4))
        rank = tl.program_id(0)
        tl.store(o[4 * rank : 4 * rank + 4, :], d)


def traced() -> ks.Graph:
    return ks.trace(whole, ks.hbm((8, 8), "f32"), ks.hbm((8, 8), "f32"), ranks=2)


GRAPH = traced()


def changed(graph: ks.Graph, where: str, row: int, value: int) -> ks.Graph:
    """The graph with one number of a table changed: ``where`` is ``"nodes.op"``."""
    table, column = where.split(".")
    columns = dict(getattr(graph, table).columns())
    columns[column] = columns[column].copy()
    columns[column][row] = value
    return attrs.evolve(graph, **{table: type(getattr(graph, table)).make(**columns)})


def several(graph: ks.Graph, *changes: tuple[str, int, int]) -> ks.Graph:
    for change in changes:
        graph = changed(graph, *change)
    return graph


def lines(graph: ks.Graph) -> list[str]:
    return [str(violation) for violation in verify(graph)]


OP = OPERATIONS.code
Damage = Callable[[ks.Graph], ks.Graph]


def one(where: str, row: int, value: int) -> Damage:
    return lambda graph: changed(graph, where, row, value)


def more(*changes: tuple[str, int, int]) -> Damage:
    return lambda graph: several(graph, *changes)


def buffered(*changes: tuple[str, int, int]) -> Damage:
    """Of the graph with two buffers a scope."""
    return lambda graph: several(ks.rebuffer(graph, 2), *changes)


def with_layout(layout: Layout, *rows: int) -> Damage:
    """Some accesses with a layout that the graph has not."""

    def damage(graph: ks.Graph) -> ks.Graph:
        more_layouts = attrs.evolve(graph, layouts=(*graph.layouts, layout))
        return several(more_layouts, *(("accesses.layout", row, len(graph.layouts)) for row in rows))

    return damage


def without_access(row: int) -> Damage:
    """One access less."""

    def damage(graph: ks.Graph) -> ks.Graph:
        columns = {name: np.delete(column, row) for name, column in graph.accesses.columns().items()}
        return attrs.evolve(graph, accesses=type(graph.accesses).make(**columns))

    return damage


def swapped_accesses(row: int) -> Damage:
    """An access and the next one change places."""

    def damage(graph: ks.Graph) -> ks.Graph:
        order = np.arange(len(graph.accesses))
        order[[row, row + 1]] = order[[row + 1, row]]
        columns = {name: column[order] for name, column in graph.accesses.columns().items()}
        return attrs.evolve(graph, accesses=type(graph.accesses).make(**columns))

    return damage


F16 = Layout.dense((4, 8), tl.float16)


def with_attributes(attributes: dict[str, Any]) -> Damage:
    """The graph with another first set of attributes."""
    return lambda graph: attrs.evolve(graph, attributes=(attributes, *graph.attributes[1:]))


DAMAGES: dict[str, Damage] = {
    "initial values of what is no tensor": lambda graph: attrs.evolve(graph, initial=("nowhere",)),
    "initial values twice": lambda graph: attrs.evolve(graph, initial=(next(iter(graph.tensors)),) * 2),
    "a grid of too many axes": lambda graph: attrs.evolve(graph, grid=(1, 1, 1, 2)),
    "a line before the first": one("frames.line", 1, -3),
    "a column before the first": one("frames.column", 0, -2),
    "a scalar without a value": with_attributes({"scalars": ((1,),)}),
    "a scalar that is a text": with_attributes({"scalars": ((1, "2"),)}),
    "a scalar before all operands": with_attributes({"scalars": ((-1, 2.0),)}),
    "scalars that are none": with_attributes({"scalars": 7}),
    "a tensor at an address": one("storages.address", 1, 64),
    "a tensor made later": one("storages.born", 0, 3),
    "two tensors of one name": one("storages.name", 1, int(GRAPH.storages.name[0])),
    "a parent that comes later": one("scopes.parent", 2, 2),
    "a caller that comes later": one("stacks.caller", 3, 3),
    "a rank out of order": one("nodes.rank", 3, 1),
    "a write before its reads": swapped_accesses(2),
    "a command that does not reach its node": one("nodes.command", 6, 4),
    "a command of another rank": one("nodes.command", 20, 19),
    "two kernel scopes on one rank": more(("scopes.parent", 1, -1)),
    "a scope opened elsewhere": one("scopes.enter", 2, 4),
    "a scope opened within another": one("scopes.parent", 2, 0),
    "a scope closed elsewhere": one("scopes.exit", 2, 8),
    "a scope closed out of turn": more(("nodes.scope", 7, 1), ("nodes.scope", 19, 2)),
    "a scope closed twice": more(("nodes.op", 18, OP("scope_exit"))),
    "a scope left open": one("nodes.op", 19, OP("store")),
    "a node in an outer scope": one("nodes.scope", 5, 1),
    "bytes freed by another marker": one("storages.freed", 4, 19),
    "bytes that are never freed": one("storages.freed", 3, -1),
    "a tensor behind the allocations": more(("storages.memory", 15, 0)),
    "an allocation of another rank's time": one("storages.born", 4, 25),
    "an address past the cursor": one("storages.address", 3, 144),
    "an address before the cursor": one("storages.address", 5, 128),
    "a scope that saves another cursor": one("scopes.base", 2, 128),
    "bytes that are not the layout's": one("storages.nbytes", 3, 64),
    "a layout with gaps": one("storages.layout", 3, 6),
    "a tensor of one rank": one("storages.rank", 0, 0),
    "a tensor of a scope": one("storages.scope", 1, 0),
    "an allocation of no rank": one("storages.rank", 6, -1),
    "an allocation of another rank's scope": one("storages.scope", 2, 3),
    "an access past its storage": one("accesses.offset", 35, 33),
    "an access before its storage": one("accesses.offset", 0, -1),
    "an access of another dtype": with_layout(F16, 4),
    "an access to another rank's bytes": one("accesses.storage", 4, 10),
    "an access before its allocation": more(("accesses.storage", 4, 5)),
    "a box that says range": one("accesses.kind", 6, 1),
    "a channel without a message": one("nodes.channel", 6, 0),
    "a message without a channel": one("nodes.channel", 4, -1),
    "a load from scratch": one("accesses.storage", 0, 2),
    "a store that writes scratch": more(("accesses.storage", 35, 2)),
    "an exp that writes nothing": without_access(3),
    "a rule that refuses its operands": one("nodes.op", 9, OP("where")),
    "another shape written": with_layout(Layout.dense((8, 4), tl.float32), 3),
    "a broadcast written": with_layout(Layout.of((4, 8), (8, 0), tl.float32), 3),
    "another work stated": one("nodes.work0", 2, 33),
    "another dtype stated": one("nodes.dtype", 2, 1),
    "a channel to nobody": lambda graph: attrs.evolve(
        graph, target=attrs.evolve(graph.target, topology="mesh2d", shape=(2, 1))
    ),
    "a channel to another rank": one("channels.receiver", 0, 0),
    "a channel that arrives elsewhere": one("channels.arrival", 0, 0),
    "a send on another rank's channel": one("nodes.channel", 4, 1),
    "buffers below zero": lambda graph: attrs.evolve(graph, buffers=-1),
    "buffers and an allocation of no scope": buffered(("storages.scope", 4, -1)),
    "buffers and an allocation outside its scope": buffered(("storages.born", 4, 8)),
    "buffers and an allocation at its scope's start": buffered(("storages.born", 4, 3)),
    "buffers and allocations out of order": buffered(("storages.born", 5, 12)),
    "buffers and another address": buffered(("storages.address", 6, 400)),
    "buffers and another base": buffered(("scopes.base", 2, 0)),
    "buffers and a use after its scope": buffered(("accesses.storage", 35, 4), ("accesses.storage", 34, 4)),
    "buffers that no memory holds": lambda graph: attrs.evolve(
        changed(graph, "storages.nbytes", 4, 1 << 50), buffers=2
    ),
}


EXPECTED: dict[str, list[str]] = {
    "initial values of what is no tensor": [
        "initial-values: 'nowhere' has initial values, and is no tensor",
    ],
    "initial values twice": [
        f"initial-values: {next(iter(GRAPH.tensors))!r} has initial values 2 times",
    ],
    "a line before the first": [
        "places: frame 1 is at line -3, column 4",
    ],
    "a column before the first": [
        "places: frame 0 is at line 24, column -2",
    ],
    "a scalar without a value": [
        "scalars: attributes 0: scalars ((1,),)",
    ],
    "a scalar that is a text": [
        "scalars: attributes 0: scalars ((1, '2'),)",
    ],
    "a scalar before all operands": [
        "scalars: attributes 0: scalars ((-1, 2.0),)",
    ],
    "scalars that are none": [
        "scalars: attributes 0: scalars 7",
    ],
    "a tensor at an address": [
        "tensors: tensor 1 is at 0x40, made at node 0",
    ],
    "a tensor made later": [
        "tensors: tensor 0 is at 0x0, made at node 3",
        "accesses-inside: access 0 of node %0 comes before its allocation",
    ],
    "two tensors of one name": [
        "tensors: 2 tensors are called 'x'",
    ],
    "a parent that comes later": [
        "forest: scope 2 follows its own 2",
    ],
    "a caller that comes later": [
        "forest: stack 3 follows its own 3",
    ],
    "a rank out of order": [
        "program-order: nodes are not in the order of ranks",
    ],
    "a write before its reads": [
        "program-order: accesses are not in the order of nodes, reads before writes",
    ],
    "a command that does not reach its node": [
        "commands: node %6 belongs to a command that does not reach it",
    ],
    "a command of another rank": [
        "commands: node %20 belongs to a command of another rank",
    ],
    "two kernel scopes on one rank": [
        "scopes-nest: there are 3 kernel scopes for 2 ranks",
    ],
    "a scope opened elsewhere": [
        "scopes-nest: node %3 opens scope 2, which is not its own within 1",
    ],
    "a scope opened within another": [
        "scopes-nest: node %3 opens scope 2, which is not its own within 1",
    ],
    "a scope closed elsewhere": [
        "scopes-nest: node %7 closes scope 2, but 2 is innermost",
        "scopes-nest: storage 4 is freed by %7, but its scope closes at %8",
        "bump-allocation: storage 5 is at 0x100, the cursor was 0x180",
    ],
    "a scope closed out of turn": [
        "scopes-nest: node %7 closes scope 1, but 2 is innermost",
        "scopes-nest: node %19 closes scope 2, but 1 is innermost",
    ],
    "a scope closed twice": [
        "scopes-nest: node %18 closes scope 1, but 1 is innermost",
        "scopes-nest: node %19 closes scope 1, but 0 is innermost",
        "operations: node %18: scope_exit touches o+0 f32[4,8]",
    ],
    "a scope left open": [
        "scopes-nest: rank 0 leaves scope 1 open",
        "operations: node %19: store writes 0 views",
    ],
    "a node in an outer scope": [
        "scopes-nest: node %5 does not stand in the innermost open scope",
    ],
    "bytes freed by another marker": [
        "scopes-nest: storage 4 is freed by %19, but its scope closes at %7",
    ],
    "bytes that are never freed": [
        "scopes-nest: storage 3 is freed by %-1, but its scope closes at %19",
    ],
    "a tensor behind the allocations": [
        "bump-allocation: HBM tensors do not all come before the allocations",
        "tensors: tensor 15 is at 0x200, made at node 28",
        "storage-layouts: storage 15 does not fit its layout, rank or scope",
        "operations: node %30: load touches d+0 f32[4,4] (2 such nodes)",
        "operations: node %31: dot touches d+0 f32[4,4] (2 such nodes)",
    ],
    "an allocation of another rank's time": [
        "bump-allocation: rank 0: storage 4 lies outside the rank's nodes",
        "bump-allocation: storage 4 is at 0x100, the cursor was 0x80",
        "accesses-inside: access 5 of node %5 comes before its allocation",
        "accesses-inside: access 6 of node %6 comes before its allocation",
    ],
    "an address past the cursor": [
        "bump-allocation: storage 3 is at 0x90, the cursor was 0x80",
        "bump-allocation: scope 2 saves cursor 256, which was 272",
        "bump-allocation: storage 4 is at 0x100, the cursor was 0x110",
        "bump-allocation: storage 5 is at 0x100, the cursor was 0x110",
    ],
    "an address before the cursor": [
        "bump-allocation: storage 5 is at 0x80, the cursor was 0x100",
        "bump-allocation: storage 6 is at 0x180, the cursor was 0x100",
    ],
    "a scope that saves another cursor": [
        "bump-allocation: scope 2 saves cursor 128, which was 256",
    ],
    "bytes that are not the layout's": [
        "bump-allocation: scope 2 saves cursor 256, which was 192",
        "bump-allocation: storage 4 is at 0x100, the cursor was 0xc0",
        "bump-allocation: storage 5 is at 0x100, the cursor was 0xc0",
        "storage-layouts: storage 3 does not fit its layout, rank or scope",
    ],
    "a layout with gaps": [
        "storage-layouts: storage 3 does not fit its layout, rank or scope",
        "accesses-inside: access 3 of node %2 leaves its storage",
        "accesses-inside: access 4 of node %4 leaves its storage",
        "accesses-inside: access 7 of node %6 leaves its storage",
        "accesses-inside: access 10 of node %9 leaves its storage",
        "accesses-inside: access 15 of node %11 leaves its storage",
        "accesses-inside: access 23 of node %14 leaves its storage",
        "accesses-inside: access 28 of node %16 leaves its storage",
    ],
    "a tensor of one rank": [
        "storage-layouts: storage 0 does not fit its layout, rank or scope",
    ],
    "a tensor of a scope": [
        "storage-layouts: storage 1 does not fit its layout, rank or scope",
    ],
    "an allocation of no rank": [
        "allocations: storage 6 is an allocation of no rank",
    ],
    "an allocation of another rank's scope": [
        "storage-layouts: storage 2 does not fit its layout, rank or scope",
    ],
    "an access past its storage": [
        "accesses-inside: access 35 of node %18 leaves its storage",
    ],
    "an access before its storage": [
        "accesses-inside: access 0 of node %0 leaves its storage",
    ],
    "an access of another dtype": [
        "accesses-inside: access 4 of node %4 shows another dtype than its storage",
        "operations: node %4: send states work (128, 0, 0), its operands give (64, 0, 0)",
    ],
    "an access to another rank's bytes": [
        "accesses-inside: access 4 of node %4 reaches into another rank's scratch",
        "accesses-inside: access 4 of node %4 comes before its allocation",
        "edges-point-forward: edge %4 -> %22 (war)",
    ],
    "an access before its allocation": [
        "accesses-inside: access 4 of node %4 comes before its allocation",
    ],
    "a box that says range": [
        "accesses-inside: access 6 of node %6 says RANGE",
    ],
    "a channel without a message": [
        "operations: node %6: copy_to and channel 0",
        "channels: node %6 uses a channel of other ranks",
    ],
    "a message without a channel": [
        "operations: node %4: send and channel -1",
    ],
    "a load from scratch": [
        "operations: node %0: load touches a@0x0 f32[4,8]",
    ],
    "a store that writes scratch": [
        "operations: node %18: store touches a@0x0 f32[4,8]",
    ],
    "an exp that writes nothing": [
        "operations: node %2: exp writes 0 views",
    ],
    "a rule that refuses its operands": [
        "operations: node %9: where cannot have the operands (f32[4,4] strides (8,1), f32[4,4]) "
        "with {'out_dtype': tl.float32}",
    ],
    "another shape written": [
        "operations: node %2: exp writes f32[8,4], its rule gives f32[4,8]",
    ],
    "a broadcast written": [
        "operations: node %2: exp writes a broadcast view",
    ],
    "another work stated": [
        "operations: node %2: exp states work (33, 0, 0), its operands give (32, 0, 0)",
    ],
    "another dtype stated": [
        "operations: node %2: exp states its work in f16",
    ],
    "a channel to nobody": [
        "channels: channel 0: rank 0 of 2 has no neighbour 'north' on a mesh2d of 2 x 1",
    ],
    "a channel to another rank": [
        "channels: channel 0 leads next to rank 0; that way lies rank 1",
        "channels: node %25 uses a channel of other ranks",
    ],
    "a channel that arrives elsewhere": [
        "channels: channel 0 leads next and arrives at next, not at prev",
    ],
    "a send on another rank's channel": [
        "channels: node %4 uses a channel of other ranks",
        "edges-point-forward: edge %4 -> %24 (fifo)",
    ],
    "buffers below zero": [
        "bump-allocation: a graph of buffers=-1",
    ],
    "buffers and an allocation of no scope": [
        "scopes-nest: storage 4 is freed by %7, but its scope closes at %-1",
        "bump-allocation: an allocation belongs to no scope or no rank",
        "storage-layouts: storage 4 does not fit its layout, rank or scope",
    ],
    "buffers and an allocation outside its scope": [
        "bump-allocation: storage 4 is made outside its scope 2",
        "accesses-inside: access 5 of node %5 comes before its allocation",
        "accesses-inside: access 6 of node %6 comes before its allocation",
    ],
    "buffers and an allocation at its scope's start": [
        "bump-allocation: storage 4 is made outside its scope 2",
    ],
    "buffers and allocations out of order": [
        "bump-allocation: storage 6 comes after one that is made later",
    ],
    "buffers and another address": [
        "bump-allocation: storage 6 is at 0x190, with buffers=2 it belongs at 0x200",
    ],
    "buffers and another base": [
        "bump-allocation: scope 2 begins at 0, with buffers=2 it belongs at 256",
    ],
    "buffers and a use after its scope": [
        "bump-allocation: access 34 of node %18 comes after its allocation's scope",
        "bump-allocation: access 35 of node %18 comes after its allocation's scope",
        "operations: node %18: store touches c@0x100 f32[4,8]",
    ],
    "a grid of too many axes": ["programs: a grid of (1, 1, 1, 2)"],
    "buffers that no memory holds": [
        "bump-allocation: the scopes take 1,125,899,906,843,200 B with buffers=2",
        "storage-layouts: storage 4 does not fit its layout, rank or scope",
    ],
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damage_is_said_in_these_words(name: str) -> None:
    """Each by its own rule, with the node, access, storage, scope or channel at fault and the values; what follows from
    it is said, too, and nothing else."""
    assert lines(DAMAGES[name](GRAPH)) == EXPECTED[name]


def test_the_damages_meet_every_rule() -> None:
    """Together with those of the columns below no rule is without one."""
    met = {line.split(":")[0] for each in EXPECTED.values() for line in each}
    assert met | {"equal-lengths", "indices"} == set(rules()) and lines(GRAPH) == []
    assert all(text.endswith(".") for text in rules().values())


INDICES = {
    "nodes.op": len(OPERATIONS), "nodes.rank": 2, "nodes.attributes": len(GRAPH.attributes), "nodes.dtype": len(DTYPES),
    "nodes.command": len(GRAPH), "accesses.node": len(GRAPH), "accesses.storage": len(GRAPH.storages),
    "accesses.layout": len(GRAPH.layouts), "accesses.mode": 2, "accesses.kind": 4,
    "storages.memory": len(GRAPH.target.memories), "storages.layout": len(GRAPH.layouts),
    "storages.name": len(GRAPH.names), "storages.born": len(GRAPH) + 1, "scopes.rank": 2,
    "scopes.name": len(GRAPH.names), "channels.sender": 2, "channels.receiver": 2, "channels.direction": 2,
    "channels.arrival": 2, "frames.file": len(GRAPH.names), "frames.function": len(GRAPH.names),
    "stacks.frame": len(GRAPH.frames),
}  # fmt: skip
OPTIONAL = {
    "nodes.scope": len(GRAPH.scopes), "nodes.stack": len(GRAPH.stacks), "nodes.channel": len(GRAPH.channels),
    "storages.rank": 2, "storages.scope": len(GRAPH.scopes), "storages.stack": len(GRAPH.stacks),
    "storages.freed": len(GRAPH), "scopes.parent": len(GRAPH.scopes), "scopes.enter": len(GRAPH),
    "scopes.exit": len(GRAPH), "scopes.stack": len(GRAPH.stacks), "stacks.caller": len(GRAPH.stacks),
}  # fmt: skip


@pytest.mark.parametrize("where", [*INDICES, *OPTIONAL])
def test_an_index_past_its_table_is_said(where: str) -> None:
    """One too large or too small, in the last row, with the value and how many there are: nothing is followed further.
    Where none is allowed, -1 stands for it."""
    size, lowest = (OPTIONAL[where], -1) if where in OPTIONAL else (INDICES[where], 0)
    table, column = where.split(".")
    last = len(getattr(GRAPH, table)) - 1
    dtype = np.dtype(type(getattr(GRAPH, table)).dtypes[column])
    for value in (size, lowest - 1):
        if np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
            (line,) = [line for line in lines(changed(GRAPH, where, last, value)) if line.startswith("indices")]
            assert line.startswith(f"indices: {where}[{last}] = {value} is no ")
            assert line.endswith(f": {size} there are (1 such rows)")
    for value in (size - 1, lowest):
        assert not [line for line in lines(changed(GRAPH, where, last, value)) if line.startswith("indices")]


@pytest.mark.parametrize("table", ["nodes", "accesses", "storages", "scopes", "channels", "frames", "stacks"])
def test_columns_of_several_lengths_are_said(table: str) -> None:
    """One short, or of two dimensions: by table, with all shapes."""
    whole_table = getattr(GRAPH, table)
    name, column = next(iter(whole_table.columns().items()))
    for wrong in (column[:-1], column[:, None]):
        found = lines(attrs.evolve(GRAPH, **{table: attrs.evolve(whole_table, **{name: wrong})}))
        assert found[0].startswith(f"equal-lengths: table {table} has columns of shapes {{{name!r}: {wrong.shape}")


@pytest.mark.parametrize(
    ("node_id", "storage", "holds"),
    [(0, 0, True), (len(GRAPH), 0, True), (len(GRAPH) + 1, 0, False), (-1, 0, False), (0, -1, False),
     (0, len(GRAPH.storages) - 1, True), (0, len(GRAPH.storages), False)],
)  # fmt: skip
def test_a_recorded_fault_points_into_the_graph(node_id: int, storage: int, holds: bool) -> None:
    """At a node, or right behind the last one (of an operation that was never recorded), and at a storage."""
    fault = BoundsFault(node_id, storage, (0, 0), (9, 9))
    found = lines(attrs.evolve(GRAPH, bounds_faults=(fault,)))
    assert found == ([] if holds else [f"indices: bounds fault {fault} points outside the graph"])


def test_an_edge_against_the_order_is_said() -> None:
    """Backwards within a rank, or between ranks where no message goes."""
    columns = {"source": [6, 2], "target": [2, 22], "reason": [0, 0], "recycled": [0, 0]}
    graph = traced()
    graph.__dict__["edges"] = EdgeTable.make(**columns)
    assert lines(graph) == ["edges-point-forward: edge %6 -> %2 (data)", "edges-point-forward: edge %2 -> %22 (data)"]
    graph = traced()
    graph.__dict__["edges"] = EdgeTable.make(source=[4, 2], target=[25, 6], reason=[1, 0], recycled=[0, 0])
    assert lines(graph) == []


def test_many_of_a_rule_are_counted() -> None:
    """Twenty are listed, the rest is a number."""
    graph = attrs.evolve(GRAPH, accesses=attrs.evolve(GRAPH.accesses, kind=1 - GRAPH.accesses.kind))
    found = [line for line in lines(graph) if line.startswith("accesses-inside")]
    assert len(found) == 21 and found[-1] == f"accesses-inside: and {len(GRAPH.accesses) - 20} more"
