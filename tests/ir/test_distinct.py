"""Distinct values and rows by sorting, beside numpy's own."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from kernscope.ir.arrays.distinct import distinct, distinct_rows

small = arrays.arrays(np.int64, st.integers(0, 40), elements=st.integers(-3, 3))
tables = arrays.arrays(np.int32, st.tuples(st.integers(0, 40), st.integers(1, 4)), elements=st.integers(-2, 2))


@given(small)
def test_distinct_values_are_those_of_numpy(values: np.ndarray) -> None:
    """Ascending, each once; nothing of nothing."""
    assert np.array_equal(distinct(values), np.unique(values))


@given(tables)
def test_distinct_rows_are_those_of_numpy(table: np.ndarray) -> None:
    """In lexicographic order, by their first row, each row with its number, and the rows of each number."""
    rows, first, which = np.unique(table, axis=0, return_index=True, return_inverse=True)
    found = distinct_rows(*table.T)
    assert np.array_equal(found.first, first)
    assert np.array_equal(found.which, which.reshape(-1))
    assert len(found) == len(rows)
    assert [m.tolist() for m in found.members()] == [np.flatnonzero(which == n).tolist() for n in range(len(rows))]
