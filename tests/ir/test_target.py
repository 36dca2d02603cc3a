"""The target: who is whose neighbour, and which memories there are for whom."""

from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernscope as ks
from kernscope import tl
from kernscope.ir.ops import Kind
from kernscope.ir.target import OPPOSITE, Target


@given(st.integers(2, 20), st.integers(0, 19))
def test_a_ring_is_closed(ranks: int, rank: int) -> None:
    """`next` and `prev` are one step each way, and the last rank's next is the first."""
    rank %= ranks
    target = Target(topology="ring")
    assert target.directions == ("next", "prev")
    assert target.neighbour(rank, "next", ranks) == (rank + 1) % ranks
    assert target.neighbour(rank, "prev", ranks) == (rank - 1) % ranks


@given(st.integers(1, 5), st.integers(1, 5), st.booleans(), st.data())
def test_a_message_comes_back_by_the_opposite_direction(rows: int, cols: int, wraps: bool, data: st.DataObject) -> None:
    """On a mesh, too, the neighbour's neighbour in the opposite direction is where one started."""
    target = Target(topology="mesh2d", shape=(rows, cols), wraps=wraps)
    rank = data.draw(st.integers(0, rows * cols - 1))
    direction = data.draw(st.sampled_from(target.directions))
    try:
        there = target.neighbour(rank, direction, rows * cols)
    except ks.ChannelError:
        return
    assert there != rank
    assert target.neighbour(there, OPPOSITE[direction], rows * cols) == rank


@pytest.mark.parametrize(
    ("rank", "direction", "neighbour"),
    [(0, "south", 3), (0, "east", 1), (4, "north", 1), (4, "south", 7), (4, "west", 3), (4, "east", 5)],
)
def test_a_mesh_is_row_major(rank: int, direction: str, neighbour: int) -> None:
    """On 3 x 3 ranks north and south are a row away, east and west one rank."""
    assert Target(topology="mesh2d", shape=(3, 3)).neighbour(rank, direction, 9) == neighbour


@pytest.mark.parametrize(("rank", "direction"), [(0, "north"), (0, "west"), (8, "south"), (8, "east"), (2, "east")])
def test_a_mesh_ends_at_its_border(rank: int, direction: str) -> None:
    """Without wraps there is nobody beyond the border, and the error says who asked for whom."""
    with pytest.raises(ks.ChannelError) as caught:
        Target(topology="mesh2d", shape=(3, 3)).neighbour(rank, direction, 9)
    assert f"rank {rank} of 9 has no neighbour {direction!r}" in caught.value.message
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("rank", "direction", "neighbour"), [(0, "north", 6), (0, "west", 2), (8, "south", 2), (8, "east", 6)]
)
def test_wraps_join_the_borders(rank: int, direction: str, neighbour: int) -> None:
    """With wraps a mesh is a torus."""
    assert Target(topology="mesh2d", shape=(3, 3), wraps=True).neighbour(rank, direction, 9) == neighbour


@pytest.mark.parametrize("topology", ["ring", "mesh2d"])
def test_nobody_is_their_own_neighbour(topology: str) -> None:
    """A line of one rank has no neighbours, whatever wraps."""
    target = Target(topology=topology, wraps=True)
    for direction in target.directions:
        with pytest.raises(ks.ChannelError):
            target.neighbour(0, direction, 1)


def test_a_mesh_without_a_shape_is_one_row() -> None:
    """All ranks in a row: no north, no south."""
    target = Target(topology="mesh2d")
    assert target.grid(4) == (1, 4)
    assert target.coordinates(3, 4) == (0, 3)
    assert target.neighbour(1, "east", 4) == 2
    with pytest.raises(ks.ChannelError):
        target.neighbour(1, "north", 4)


def test_ranks_have_to_fill_the_mesh() -> None:
    """Five ranks on 2 x 3 places are an error that says how many it takes."""
    with pytest.raises(ks.ChannelError, match="5 ranks do not fill a mesh of 2 x 3") as caught:
        Target(topology="mesh2d", shape=(2, 3)).grid(5)
    assert "ranks=6" in caught.value.help


def test_an_unknown_direction_names_the_nearest() -> None:
    """A misspelt direction is refused with what was meant; a mesh's direction on a ring with the ring's."""
    with pytest.raises(ks.ChannelError) as caught:
        Target().neighbour(0, "nxt", 4)
    assert "did you mean 'next'" in caught.value.help
    with pytest.raises(ks.ChannelError) as caught:
        Target().neighbour(0, "north", 4)
    assert "next" in caught.value.help


def test_two_targets_name_each_field_in_which_they_differ() -> None:
    """Equal targets differ in nothing; others say the field and both values."""
    assert Target().differences(Target()) == []
    assert Target().differences(Target.of_scratch(1 << 20, 32, slots=4)) == [
        "align of tcm: 16 here, 32 there",
        "slots: 2 here, 4 there",
    ]


def test_a_target_says_which_engines_reach_which_memories() -> None:
    """Another reach is another target; the verifier refuses what no engine could do."""
    target = Target()
    transfers = tuple(reach for reach in target.reaches if reach.kind is Kind.TRANSFER)
    narrow = attrs.evolve(target, reaches=transfers)
    (line,) = target.differences(narrow)
    assert line.startswith("engines: transfer from hbm to tcm; ") and "elementwise from tcm to tcm" in line

    def kernel(x: Any, o: Any) -> None:
        tl.store(o[:], tl.exp(tl.load(x[:])))

    graph = attrs.evolve(ks.trace(kernel, ks.hbm((8,), "f32"), ks.hbm((8,), "f32")), target=narrow)
    (violation,) = ks.verify(graph)
    assert "exp takes tcm into tcm, which no engine of kind elementwise does" in str(violation)
