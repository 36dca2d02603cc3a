"""Whose a handle is: of one trace, one rank and one thread. What else uses it is refused, with both places."""

import contextvars
import copy
import functools
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import kernscope as ks
from kernscope import tl

X = ks.hbm((8, 8), "f32")
HERE = __file__


def cached() -> Callable[..., Any]:
    """A helper as authors write it: made once, handed out for ever."""

    @functools.cache
    def helper(rank: int = 0) -> Any:
        return tl.full((8, 8), 3.0, tl.float32)

    return helper


def future() -> Any:
    tl.send("next", tl.zeros((8, 8), "f32"))
    return tl.recv_async("prev", (8, 8), "f32")


USES: list[Callable[[Any, Any], Any]] = [
    lambda h, x: h + 1.0,
    lambda h, x: 1.0 - h,
    lambda h, x: tl.load(x) + h,
    lambda h, x: h.to("f16"),
    lambda h, x: tl.exp(h),
    lambda h, x: tl.sum(h, axis=1),
    lambda h, x: tl.softmax(h),
    lambda h, x: tl.where(tl.load(x) > 0, h, 0.0),
    lambda h, x: tl.dot(h, tl.load(x)),
    lambda h, x: tl.dot(tl.load(x), tl.load(x), acc=h),
    lambda h, x: tl.store(x, h),
    lambda h, x: tl.load(x, out=h),
    lambda h, x: tl.copy_to(h, tl.load(x)),
    lambda h, x: tl.copy_to(tl.load(x), h),
    lambda h, x: tl.send("next", h),
    lambda h, x: tl.recv("prev", (8, 8), "f32", out=h),
    lambda h, x: tl.recv_async("prev", (8, 8), "f32", out=h),
    lambda h, x: tl.composite("gemm", h, tl.ref(x)),
    # through views
    lambda h, x: h[0:2, :] + 1.0,
    lambda h, x: tl.exp(h.T),
    lambda h, x: tl.exp(tl.reshape(h, 64)),
    lambda h, x: tl.load(x[0, :], out=h[0, :]),
]


def failure(kernel: Callable[..., Any], **options: Any) -> ks.KernscopeError:
    with pytest.raises(ks.KernscopeError) as caught:
        ks.trace(kernel, X, **options)
    return caught.value


@pytest.mark.parametrize("use", USES)
def test_a_handle_of_another_rank_is_refused_at_every_use(use: Callable[[Any, Any], Any]) -> None:
    """Also where rank 0 had used it the same way, so that the plan is known. The error names both lines."""
    helper = cached()

    def kernel(x: Any) -> None:
        if tl.program_id(0) == 0:
            tl.send("next", tl.zeros((8, 8), "f32"))
        use(helper(), x)

    error = failure(kernel, ranks=2)
    assert type(error) is ks.OwnerError
    assert "rank 0" in error.message and "rank 1" in error.message
    (_, used), (role, made) = error.places
    assert used.file == made.file == HERE and role == "made here"
    assert made.function == "helper" and used.line != made.line


@pytest.mark.parametrize("use", USES)
def test_a_handle_of_another_trace_is_refused_at_every_use(use: Callable[[Any, Any], Any]) -> None:
    """The error names the line of the trace that made it, too."""
    helper = cached()
    ks.trace(lambda x: use(helper(tl.program_id(0)), x), X, ranks=2)
    error = failure(lambda x: use(helper(tl.program_id(0)), x), ranks=2)
    assert type(error) is ks.OwnerError and "trace" in error.message
    assert [place.function for _, place in error.places] == ["<lambda>", "helper"]


def test_a_future_of_another_rank_is_refused() -> None:
    """A receive that rank 0 posted is no message for rank 1."""
    helper = functools.cache(future)
    error = failure(lambda x: tl.wait(helper()), ranks=2)
    assert type(error) is ks.OwnerError and error.places[1][1].function == "future"


def test_what_every_rank_makes_for_itself_is_fine() -> None:
    """By rank, or by argument of the cache: no false alarm; HBM is every rank's."""

    @functools.cache
    def helper(rank: int) -> Any:
        return tl.full((8, 8), 3.0, tl.float32)

    regions: list[Any] = []

    def kernel(x: Any, o: Any) -> None:
        regions.append(x[0:4, :])
        tl.load(regions[0])
        rank = tl.program_id(0)
        tl.store(o[8 * rank : 8 * rank + 8, :], tl.load(x) + helper(rank) + helper(rank))

    graph = ks.trace(kernel, X, ks.hbm((32, 8), "f32"), ranks=4)
    assert ks.verify(graph) == []


@pytest.mark.parametrize(
    "use",
    [copy.copy, copy.deepcopy, pickle.dumps, lambda h: copy.deepcopy({"state": [h]}), lambda h: pickle.dumps((h,))],
)
def test_a_handle_is_not_copied(use: Callable[[Any], Any]) -> None:
    """Elsewhere a copy has bytes of its own. The help says what does that here: the copy differs from what is then
    written to the original."""
    error = failure(lambda x: use(tl.load(x)))
    assert type(error) is ks.ArgumentError and "h.to(h.dtype)" in error.help

    def followed(x: Any, o: Any) -> None:
        h = tl.load(x)
        kept = h.to(h.dtype)
        tl.copy_to(h, h + 1.0)
        tl.store(o, kept)

    graph, zeros = ks.trace(followed, X, X), np.zeros((8, 8), np.float32)
    array = ks.run(graph, {"x": zeros})["o"]
    assert (array == zeros).all()


def test_places_in_hbm_are_copied_as_what_they_are() -> None:
    """Tensor, region, pointer, reference and future are names that nothing changes: a copy is the same."""

    def kernel(x: Any) -> None:
        for thing in (x, x[0:4, :], x + 3, tl.ref(x), future()):
            assert copy.copy(thing) is thing and copy.deepcopy([thing])[0] is thing
            with pytest.raises(ks.ArgumentError):
                pickle.dumps(thing)
        tl.load(copy.deepcopy(x[0:4, :]))

    assert ks.trace(kernel, X, ranks=2).count("memory/dma_read") == 2


THREADED: list[Callable[[Any, Any], Any]] = [
    lambda h, x: h + 1.0,
    lambda h, x: h.to("f16"),
    lambda h, x: -h,
]


@pytest.mark.parametrize("use", THREADED)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_another_thread_records_nothing(use: Callable[[Any, Any], Any]) -> None:
    """Its line is named, also where the kernel never hears of the error, and where the same was recorded before."""

    def kernel(x: Any) -> None:
        h = tl.load(x)
        use(h, x)
        thread = threading.Thread(target=lambda: use(h, x))
        thread.start()
        thread.join()

    error = failure(kernel)
    assert type(error) is ks.OtherThreadError
    assert error.places[0][1].file == HERE and error.places[0][1].function == "<lambda>"


@pytest.mark.parametrize(
    "use",
    [
        lambda h, x: tl.exp(h),
        lambda h, x: tl.load(x),
        lambda h, x: tl.store(x, h),
        lambda h, x: tl.maximum(1.0, h),
        lambda h, x: tl.copy_to(dst=h, src=h),
        lambda h, x: tl.sum(h, axis=0),
    ],
)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_functions_called_in_another_thread_are_refused_as_operators_are(use: Callable[[Any, Any], Any]) -> None:
    """What they are called with says whose trace it would have been."""

    def kernel(x: Any) -> None:
        h = tl.load(x)
        thread = threading.Thread(target=lambda: use(h, x))
        thread.start()
        thread.join()

    error = failure(kernel)
    assert type(error) is ks.OtherThreadError and error.places[0][1].file == HERE


@pytest.mark.parametrize(
    "use",
    [
        lambda h, x: tl.exp(h),
        lambda h, x: h + 1.0,
        lambda h, x: tl.load(x),
        lambda h, x: tl.store(x, h),
        lambda h, x: tl.empty((4,), tl.float32),
        lambda h, x: tl.zeros((4,), tl.float32),
        lambda h, x: tl.send("next", h),
        lambda h, x: tl.recv_async("prev", (4,), tl.float32),
        lambda h, x: tl.composite("gemm", tl.ref(x), tl.ref(x)),
    ],
)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_takes_the_context_with_it_records_nothing_either(use: Callable[[Any, Any], Any]) -> None:
    """As ``asyncio.to_thread`` does: there the trace is known, and is refused."""

    def kernel(x: Any) -> None:
        h, context = tl.load(x), contextvars.copy_context()
        thread = threading.Thread(target=lambda: context.run(use, h, x))
        thread.start()
        thread.join()

    error = failure(kernel, ranks=2)
    assert type(error) is ks.OtherThreadError and error.places[0][1].file == HERE


def test_a_function_outside_any_trace_names_its_line() -> None:
    """So that a thread's author finds it."""
    with pytest.raises(ks.NotTracingError, match="outside a trace") as caught:
        tl.zeros((4,), "f32")
    assert caught.value.places[0][1].file == HERE


def test_threads_may_prepare_values() -> None:
    """A pool that computes Python values for a kernel is no fault."""

    def kernel(x: Any) -> None:
        sizes: list[int] = []
        thread = threading.Thread(target=lambda: sizes.append(tl.cdiv(x.shape[0], 4)))
        thread.start()
        thread.join()
        tl.load(x[0 : sizes[0], :])

    assert ks.trace(kernel, X).count("memory/dma_read") == 1
