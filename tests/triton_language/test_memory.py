"""The memory of a launch: narrow floats, views of larger arrays, what is kept and what is let go."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tritonkernels import launched, same_in_turn, tl

import kernscope as ks

RNG = np.random.default_rng(2)


def doubled(x_ptr, o_ptr, n, stride, N: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + i * stride, mask=i < n, other=0.0)
    tl.store(o_ptr + i * stride, (x.to(tl.float32) * 2).to(o_ptr.dtype.element_ty), mask=i < n)


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float16", "float64"])
def test_narrow_and_wide_floats_are_loaded_and_stored(dtype: str) -> None:
    """Doubling is exact in each."""
    kind = np.dtype(getattr(ml_dtypes, dtype, None) or dtype)
    x = RNG.integers(-8, 8, 50).astype(kind)
    out = np.zeros(50, kind)
    made = launched(doubled, 4, x, out, 50, 1, N=16)
    assert np.array_equal(out.astype(np.float64), 2 * x.astype(np.float64))
    same_in_turn(made, {"o_ptr": out})


def test_a_view_of_an_array_lies_where_it_lies() -> None:
    """Columns of a matrix are read and written in place; the graph's tensor is the whole matrix."""
    whole = RNG.standard_normal((40, 3), np.float32)
    before = whole.copy()
    made = launched(doubled, 3, whole[:, 1], whole[:, 2], 40, 3, N=16)
    assert np.array_equal(whole[:, 2], 2 * before[:, 1])
    assert np.array_equal(whole[:, :2], before[:, :2])
    (storage,) = made.storages
    assert storage.layout.shape == (40, 3)
    same_in_turn(made, {storage.name: whole})


def test_what_was_there_before_is_kept_while_it_is_small() -> None:
    """A run of a graph begins with it, whatever became of the arrays since; of a larger launch it asks for inputs, and
    nothing of the host's memory is held."""
    x, out = np.ones(32, np.float32), np.zeros(32, np.float32)
    made = launched(doubled, 2, x, out, 32, 1, N=16)
    large = launched(doubled, 2, x, out, 32, 1, N=16, options={"snapshot_bytes": 100})
    x[:] = 7
    assert ks.run(made.graph(0))["o_ptr"][:16].tolist() == [2.0] * 16
    with pytest.raises(ks.InputError, match="x_ptr"):
        ks.run(large.graph(0))
    assert all(storage.before is None and not storage.memory.flags.writeable for storage in large.storages)
    assert len(ks.lint(large.graph(0))) == 0


def one_of_two(x_ptr, y_ptr, o_ptr, n, m, N: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.arange(0, N)
    x, y = tl.load(x_ptr + i, mask=i < n, other=0.0), tl.load(y_ptr + i, mask=i < m, other=0.0)
    tl.store(o_ptr + i, x + y, mask=i < n + m)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_a_tensor_may_have_no_elements(dtype: Any) -> None:
    """As libraries give where a kernel takes more tensors than there are: nothing of it is accessed, and if it is, that
    is outside."""
    x, none, out = np.arange(6).astype(dtype), np.zeros(0, dtype), np.zeros(8, dtype)
    made = launched(one_of_two, 1, x, none, out, 6, 0, N=8)
    np.testing.assert_array_equal(out[:6], x)
    same_in_turn(made, {"o_ptr": out})
    assert not made.facts
    beyond = launched(one_of_two, 1, x, none, out, 6, 1, N=8)
    assert [(fact.kind, fact.what) for fact in beyond.facts] == [("outside", "y_ptr")]
