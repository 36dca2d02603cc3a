"""Addresses that reuse bytes late: what lives at one time shares no byte, and what need not share does not."""

import frontend
import kernelgen
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import kernscope as ks
from kernscope.ir.verifier.verify import verify
from kernscope.memory.automatic import placed, spread
from kernscope.memory.next_fit import next_fit

BLOCKS = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 10), st.integers(1, 8)), min_size=1, max_size=30)


@given(BLOCKS, st.integers(8, 200))
@kernelgen.examples(100)
def test_blocks_that_live_together_are_apart(blocks: list[tuple[int, int, int]], room: int) -> None:
    """Inside the room, for any lives and sizes; or there is no placement."""
    start, length, size = np.array(blocks, dtype=np.int64).T
    stop = start + length
    address = next_fit(start, stop, size, room)
    if address is None:
        assert size.sum() > room
        return
    assert (address >= 0).all()
    assert (address + size <= room).all()
    for a in range(len(blocks)):
        for b in range(a):
            together = start[a] < stop[b] and start[b] < stop[a]
            apart = address[a] + size[a] <= address[b] or address[b] + size[b] <= address[a]
            assert apart or not together


def test_room_for_all_is_used_before_any_byte_is_used_again() -> None:
    """Ten blocks one after the other, and room for ten: ten addresses. With room for three they go around."""
    start = np.arange(10)
    assert sorted(next_fit(start, start + 1, np.full(10, 4), 40)) == list(range(0, 40, 4))  # type: ignore[arg-type]
    assert next_fit(start, start + 1, np.full(10, 4), 12).tolist() == [0, 4, 8] * 3 + [0]  # type: ignore[union-attr]
    assert next_fit(start, start + 2, np.full(10, 4), 7) is None


@given(kernelgen.programs(max_size=12))
@kernelgen.examples(40)
def test_graphs_spread_over_the_scratch_hold_together(program: kernelgen.Program) -> None:
    """Verified, never slower than with the least peak where nothing but bytes is waited for, equal in numbers."""
    graph = frontend.unplaced(program)
    wide = spread(graph)
    if wide is None:
        assert placed(graph).overflows.any() or graph.held_bytes.sum() > graph.target.capacities.max()
        return
    assert verify(wide) == []
    assert not wide.overflows.any()
    assert len(ks.check(ks.schedule(wide, "list", program.machine, effort="fast"))) == 0
