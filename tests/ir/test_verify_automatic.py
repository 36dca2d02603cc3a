"""The verifier on graphs without scopes: what a placement must not do, and what such a graph cannot hold."""

from collections.abc import Callable
from typing import Any

import attrs
import frontend
import kernelgen
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import kernscope as ks
from kernscope.ir.tables import StorageTable
from kernscope.ir.verifier.verify import verify
from kernscope.memory.automatic import placed

GRAPH = frontend.record(kernelgen.random_kernel(5, ranks=2))


def changed(graph: ks.Graph, **columns: Any) -> ks.Graph:
    """The graph with other columns of storages."""
    return attrs.evolve(graph, storages=StorageTable.make(**{**graph.storages.columns(), **columns}))


def messages(graph: ks.Graph) -> str:
    return "\n".join(map(str, verify(graph)))


def live_together(graph: ks.Graph, a: int, b: int) -> bool:
    """Whether two allocations live at the same time, looked up by their accesses."""
    nodes = [graph.accesses.node[graph.accesses.storage == row] for row in (a, b)]
    return bool(all(map(len, nodes)) and nodes[0].min() <= nodes[1].max() and nodes[1].min() <= nodes[0].max())


@given(kernelgen.programs(max_size=12), st.integers(0, 10_000), st.integers(0, 10_000))
@kernelgen.examples(60)
def test_a_byte_belongs_to_one_live_allocation(program: kernelgen.Program, a: int, b: int) -> None:
    """Moved onto another one's bytes, an allocation is refused if both live at some time, and only then if it meets
    none else."""
    graph = frontend.record(program)
    rows = np.flatnonzero(graph.in_scratch)
    assume(len(rows) > 1)
    one, other = int(rows[a % len(rows)]), int(rows[b % len(rows)])
    address = graph.storages.address.copy()
    address[one] = address[other]
    moved = changed(graph, address=address)
    begin, end = address, address + graph.held_bytes
    meets = [
        row
        for row in rows.tolist()
        if row != one and begin[row] < end[one] and begin[one] < end[row] and live_together(graph, one, row)
    ]
    assert bool(verify(moved)) is bool(meets)
    if meets:
        assert "share bytes while both are live" in messages(moved)


@pytest.mark.parametrize(
    ("column", "change", "words"),
    [
        ("address", lambda column: column + 8, "no address of its memory"),
        ("address", lambda column: column - 4096, "is at -0x"),
        ("address", lambda column: np.full_like(column, -1), "has no address yet"),
        ("address", lambda column: column + (1 << 60), "beyond its memory and all that lies in it"),
        ("freed", lambda column: np.full_like(column, 3), "in a graph without scopes"),
        ("scope", lambda column: np.zeros_like(column), "is no scope"),
        ("rank", lambda column: np.full_like(column, -1), "is an allocation of no rank"),
        ("born", lambda column: np.zeros_like(column), "outside its rank's nodes"),
        ("born", lambda column: column[::-1], "comes"),
    ],
)
def test_columns_that_do_not_fit_are_refused(column: str, change: Callable[[Any], Any], words: str) -> None:
    """Each column of the allocations, changed, breaks a rule."""
    values = getattr(GRAPH.storages, column).copy()
    values[GRAPH.in_scratch] = change(values[GRAPH.in_scratch])
    assert verify(GRAPH) == []
    assert words in messages(changed(GRAPH, **{column: values}))


def test_scopes_and_automatic_lifetimes_do_not_mix() -> None:
    """An allocation without scope among scopes, a marker without them, and buffers of what has no scopes."""
    scoped = kernelgen.random_kernel(5).trace()
    scope = scoped.storages.scope.copy()
    scope[-1] = -1
    assert "does not fit its layout, rank or scope" in messages(changed(scoped, scope=scope))
    bare = attrs.evolve(scoped, scopes=GRAPH.scopes)
    assert verify(bare)
    assert "of buffers=2" in messages(attrs.evolve(GRAPH, buffers=2))


def test_a_graph_with_scopes_is_not_placed() -> None:
    """Its addresses are those of its bump allocation: a mistake of ours, not a user's."""
    with pytest.raises(AssertionError):
        placed(kernelgen.random_kernel(5).trace())


def test_several_buffers_need_scopes() -> None:
    """``rebuffer`` refuses, by name; the help holds."""
    with pytest.raises(ks.NoScopesError, match="buffers=2: straight_line has no scopes") as caught:
        ks.rebuffer(GRAPH, 2)
    assert caught.value.code == "KE205"
    assert "as it is" in caught.value.help
    assert ks.check(ks.schedule(GRAPH)) == []
