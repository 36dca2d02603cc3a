"""Names of Triton and numpy that ``tl`` has not: each has an answer, and what it says to write is right."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kernscope as ks
from kernscope import tl
from kernscope.tracer.values.foreign_names import NOT_THERE, WRITE, answer

#: The public names of ``triton.language``.
TRITON = Path(__file__).with_name("triton_language_names.txt").read_text(encoding="utf-8").split()
ELEMENTWISE = sorted(name for name in dir(np) if isinstance(getattr(np, name), np.ufunc))
REDUCTIONS = {
    *("all", "amax", "amin", "any", "argmax", "argmin", "average", "count_nonzero", "cumprod", "cumsum", "max", "mean"),
    *("median", "min", "nanargmax", "nanargmin", "nancumsum", "nanmax", "nanmean", "nanmedian", "nanmin", "nanprod"),
    *("nanstd", "nansum", "nanvar", "percentile", "prod", "ptp", "quantile", "std", "sum", "var"),
}
RNG = np.random.default_rng(0)
X, Y = (RNG.uniform(0.1, 0.9, (4, 8)).astype(np.float32) for _ in range(2))
I, J = (RNG.integers(0, 5, (4, 8)).astype(np.int32) for _ in range(2))
P, Q = (RNG.integers(0, 2, (4, 8)).astype(bool) for _ in range(2))


@pytest.mark.parametrize("name", sorted({*TRITON, *ELEMENTWISE, *REDUCTIONS}))
def test_every_name_is_there_or_has_an_answer(name: str) -> None:
    """Of its own: never the nearest spelling of another function."""
    if name in tl.__all__:
        return

    def kernel(o: Any) -> None:
        getattr(tl, name)

    with pytest.raises(ks.UnknownNameError) as caught:
        ks.trace(kernel, ks.hbm((4,), "f32"))
    assert caught.value.help == answer(name) and "did you mean" not in caught.value.help


def test_no_name_has_two_answers_or_none_to_give() -> None:
    """And what tl has needs none."""
    assert not set(WRITE) & set(NOT_THERE) and not {*WRITE, *NOT_THERE} & set(tl.__all__)
    assert answer("no_such_name") is None


@pytest.mark.parametrize("text", sorted({*WRITE.values(), *NOT_THERE.values()}))
def test_an_answer_names_what_there_is(text: str) -> None:
    """Every function of tl that an answer speaks of exists."""
    assert [name for name in re.findall(r"\btl\.(\w+)", text) if not hasattr(tl, name)] == []


def computed(expression: str) -> Any:
    """What an expression gives on the arrays of this module: an array, or None where it gives no tensor."""
    given: dict[str, np.ndarray[Any, Any]] = {"x": X, "y": Y, "i": I, "j": J, "p": P, "q": Q}
    found: list[Any] = []

    def evaluate(tensors: Any) -> Any:
        # A condition is no dtype of HBM: it is made of integers.
        loaded = {n: tl.load(tensors[n][:, :]) for n in given}
        loaded |= {n: loaded[n] != 0 for n in "pq"}
        return eval(expression, {"tl": tl, **loaded})

    def look(**tensors: Any) -> None:
        found.append(evaluate(tensors))

    arrays = {n: a.astype(np.int32) if a.dtype == bool else a for n, a in given.items()}
    ks.trace(look, **arrays)
    made = found[0]
    if not isinstance(made, ks.TensorHandle):
        return made if isinstance(made, tuple) else None
    dtype = "i32" if made.dtype.short == "bool" else made.dtype.short

    def store(out: Any, **tensors: Any) -> None:
        tl.store(out, evaluate(tensors).to(dtype))

    graph = ks.trace(store, ks.hbm(made.shape, dtype), **arrays)
    return ks.run(graph)["out"]


@pytest.mark.parametrize("name", WRITE)
def test_what_is_to_be_written_can_be_written(name: str) -> None:
    """As it stands; where numpy has the function of that name, with its result."""
    made = computed(WRITE[name])
    expected = ORACLES[name] if name in ORACLES else oracle(name)
    if expected is not None:
        assert isinstance(made, np.ndarray)
        np.testing.assert_allclose(made, expected, rtol=2e-5, atol=2e-6)


#: Functions that need other arguments than :func:`oracle` gives them, or that are no elementwise functions.
ORACLES: dict[str, Any] = {
    "clip": np.clip(X, -1, 1),
    "partition": np.sort(X, axis=1),
    "matmul": X @ Y.T,
    "inner": X @ Y.T,
    "vecdot": (X * Y).sum(1),
    "outer": np.outer(X[0], Y[0]),
    "arccosh": None,  # not defined on X
    "acosh": None,
    "divmod": None,
    "squeeze": None,
    "full_like": np.full_like(X, 2),
    "ones": None,
    "copy": None,
}
OF_ROWS = ["amax", "amin", "mean", "average", "var", "any", "all", "count_nonzero", "ptp"]


def oracle(name: str) -> Any:
    """numpy's own result, where it has a function of that name; conditions as integers."""
    function: Callable[..., Any] | None = getattr(np, name, None)
    if function is None or name.endswith("_like") or name in ("ravel",):
        return None if name != "ravel" else X.ravel()
    if name in OF_ROWS:
        return function(P if name in ("any", "all") else X, axis=1)
    if name in ("permute", "transpose", "swapaxes"):
        return X.T
    operands = {"logical": (P, Q), "bitwise": (I, J), "invert": (I, J), "left": (I, J), "right": (I, J)}
    given = operands.get(name.partition("_")[0], (X, Y))
    if not isinstance(function, np.ufunc):
        return function(X) if name in ("around", "fix") else None
    return function(*given[: function.nin])


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (np.sum, "tl.sum(h, ...)"),
        (np.max, "tl.max(h, ...)"),
        (np.prod, NOT_THERE["prod"]),
        (np.exp, "tl.exp(h, ...)"),
        (np.square, "x * x"),
        (np.arctan, NOT_THERE["arctan"]),
        (lambda h: np.add(h, h), "tl.add(h, ...)"),
        (lambda h: h.mean(), "tl.sum(x, axis=1)"),
        (lambda h: h.sort(), "tl.sort(h, ...)"),
        (lambda h: h.sum(), "tl.sum(h, ...)"),
        (lambda h: np.clip(h, 0, 1), "tl.clamp(x, -1.0, 1.0)"),
        (lambda h: np.where(h > 0.0, 1, 0), "tl.where(h, ...)"),
        (lambda h: np.concatenate([h, h]), "tl.copy_to"),
        (lambda h: np.transpose(h), "tl.trans"),
        (np.mean, "tl.sum(x, axis=1)"),
        (np.argsort, "none"),
        (lambda h: np.linalg.norm(h), "functions and operators of tl"),
    ],
)
def test_functions_and_methods_of_numpy_have_the_same_answers(function: Callable[..., Any], says: str) -> None:
    """On a handle, as on tl."""

    def kernel(x: Any) -> None:
        function(tl.load(x[:, :]))

    with pytest.raises(ks.KernscopeError) as caught:
        ks.trace(kernel, X)
    assert says in caught.value.help


def test_what_numpy_can_know_of_a_handle_it_may() -> None:
    """Its shape and the number of its dimensions are no values."""
    seen = []

    def kernel(x: Any) -> None:
        h = tl.load(x[:, :])
        seen.append((np.shape(h), np.ndim(h)))

    ks.trace(kernel, X)
    assert seen == [(X.shape, 2)]


@pytest.mark.parametrize(("name", "near"), [("sofmax", "softmax"), ("zeroes", "zeros"), ("maximun", "maximum")])
def test_a_misspelt_name_has_the_nearest(name: str, near: str) -> None:
    """What is no name anywhere is taken for one of tl's, if it is alike."""
    with pytest.raises(ks.UnknownNameError, match=f"did you mean '{near}'"):
        getattr(tl, name)
    with pytest.raises(ks.UnknownNameError, match=r"dir\(tl\)"):
        _ = tl.multitude
