"""Orders as permutations, and group starts."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kernscope.ir.arrays.permutations import group_starts, inverse_permutation


@given(st.permutations(range(9)))
def test_an_inverse_undoes_its_permutation(order: list[int]) -> None:
    """What stands at the place of an element is the element; and the inverse of the inverse is the order."""
    place = inverse_permutation(np.array(order))
    assert place.dtype == np.int64 and np.array_equal(np.array(order)[place], np.arange(9))
    assert inverse_permutation(place).tolist() == order


@given(st.lists(st.integers(0, 6), max_size=20))
def test_group_starts_cut_a_sorted_column_into_its_groups(values: list[int]) -> None:
    """Between a group's start and the next are all rows of the group and no others, none of an empty one."""
    column = np.sort(np.array(values, dtype=np.int64))
    starts = group_starts(column, 8)
    assert len(starts) == 9 and starts[0] == 0 and starts[-1] == len(column)
    for group in range(8):
        assert column[starts[group] : starts[group + 1]].tolist() == [group] * values.count(group)
