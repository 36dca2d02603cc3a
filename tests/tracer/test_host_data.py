"""Arrays that the host knows: passed on as they are, for indices and branches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import kernscope as ks
from kernscope import tl

X = np.arange(32, dtype=np.float32).reshape(4, 8)


def masked(x: Any, o: Any, *, mask: Any, table: Any) -> None:
    for i in range(4):
        if mask[i]:
            tl.store(o[i : i + 1, :], tl.load(x[table[i] : table[i] + 1, :]))


def test_an_array_in_a_keyword_only_parameter_is_host_data() -> None:
    """It decides what is traced, and is no tensor of the graph."""
    mask, table = np.array([1, 0, 1, 1], bool), np.array([2, 0, 1, 3], np.int32)
    graph = ks.trace(masked, X, ks.hbm((4, 8), "f32"), mask=mask, table=table)
    assert set(graph.tensors) == {"x", "o"}
    out = ks.run(graph)["o"]
    assert [row for row in range(4) if np.array_equal(out[row], X[table[row]])] == [0, 2, 3]


def test_it_is_the_same_array() -> None:
    """Untouched; lists pass unchanged as ever."""
    given, pages, found = np.arange(3), [np.arange(2)], []

    def kernel(x: Any, pages: Any, *, table: Any) -> None:
        found.extend([table, pages])

    ks.trace(kernel, X, pages, table=given)
    assert found[0] is given and found[1] is pages


def test_a_description_is_a_tensor_in_any_parameter() -> None:
    """There is nothing else that it could be; and so are arrays by any other keyword."""

    def kernel(*, x: Any, **more: Any) -> None:
        assert isinstance(x, ks.HbmTensor) and isinstance(more["y"], ks.HbmTensor)

    ks.trace(kernel, x=ks.hbm((4,), "f32"), y=X)


@pytest.mark.parametrize(
    "use", [lambda x, table: x[table[0]], lambda x, table: 1 if table[0] else 2, lambda x, table: tl.load(x, table[0])]
)
def test_a_tensor_that_stands_for_host_data_says_how_to_pass_it(use: Any) -> None:
    """As an index, a condition or a size."""

    def kernel(x: Any, table: Any) -> None:
        use(x, table)

    with pytest.raises(ks.KernscopeError) as caught:
        ks.trace(kernel, X, np.arange(4, dtype=np.int32))
    assert "keyword-only parameter: def kernel(x, o, *, table)" in caught.value.help


def test_an_array_that_is_no_tensor_says_how_to_make_it_one() -> None:
    """In a list, or in a keyword-only parameter."""

    def kernel(xs: Any) -> None:
        tl.load(xs[0])

    with pytest.raises(ks.ArgumentError, match="an argument of its own, not keyword-only and not in a list"):
        ks.trace(kernel, [X])
