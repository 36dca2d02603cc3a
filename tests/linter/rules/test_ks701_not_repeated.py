"""KS701: a kernel that does something else when it is traced a second time."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import kernscope as ks
from kernscope import tl
from kernscope.ir.difference import first_difference
from kernscope.linter import LintReport
from kernscope.tracer import retrace

Lint = Callable[..., LintReport]
X = ks.hbm((8, 8), "f32")

#: What a kernel's body depends on, by what is wrong with it.
DEPENDS = {
    "a mutable default": ("calls=[]", "calls.append(1); n = len(calls)"),
    "a global counter": ("", "COUNTS.append(1); n = len(COUNTS)"),
    "a random number": ("", "n = next(NUMBERS)"),
}


@pytest.mark.parametrize("what", DEPENDS)
@pytest.mark.parametrize(
    "use",
    [
        "h = h * float(n)",
        "h = h + 1.0 if n % 2 else h - 1.0",
        "for _ in range(n): h = h + 1.0",
        "h = tl.load(x[n : n + 1, :]) + h",
        "h = h.to(tl.float16 if n % 2 else tl.bfloat16).to(tl.float32)",
        "tl.empty((n, 4), tl.float32)",
    ],
)
def test_what_every_call_changes_is_found(lint: Lint, what: str, use: str) -> None:
    """In operations, values, places, dtypes, number and allocations: with the line of the first difference."""
    parameter, before = DEPENDS[what]
    report = lint(
        f"""
        COUNTS = []
        NUMBERS = iter([1, 2, 3, 4])

        @ks.kernel
        def kernel(x, o, *, {parameter or "none=None"}):
            h = tl.load(x[:, :])
            {before}
            {use}
            tl.store(o[:, :], h)
        """,
        X,
        X,
        select=["KS701"],
    )
    (finding,) = report
    assert finding.severity == "warning" and finding.location is not None
    assert finding.location.line in (10, 11, 12)
    assert "the first time" in finding.message and "the second" in finding.message


def test_the_difference_names_both_lines(lint: Lint) -> None:
    """Where the two calls go different ways."""
    report = lint(
        """
        STATE = []

        @ks.kernel
        def kernel(x, o):
            STATE.append(1)
            if len(STATE) == 1:
                h = tl.exp(tl.load(x[:, :]))
            else:
                h = tl.log(tl.load(x[:, :]))
            tl.store(o[:, :], h)
        """,
        X,
        X,
        select=["KS701"],
    )
    (finding,) = report
    assert [place.location.line for place in finding.locations] == [10, 12]
    assert finding.nodes == (0,)


def test_what_the_second_call_raises_is_found(lint: Lint) -> None:
    """A cache that keeps a handle, and an iterator that is used up."""
    for body, kind in (
        ("@functools.cache\ndef one():\n    return tl.full((8, 8), 1.0, tl.float32)\n", "OwnerError"),
        ("ONCE = iter([1.0])\ndef one():\n    return next(ONCE)\n", "StopIteration"),
    ):
        report = lint(
            f"import functools\n{body}\n@ks.kernel\ndef kernel(x, o):\n    tl.store(o[:], tl.load(x[:]) + one())\n",
            X,
            X,
            select=["KS701"],
        )
        (finding,) = report
        assert kind in finding.message and finding.location is not None


@pytest.mark.parametrize("module", ["flash_attention", "matmul", "softmax", "layer_norm", "vector_add"])
def test_kernels_that_repeat_themselves_are_silent(module: str) -> None:
    """All that come with the tool: every launch does the same when it is traced again."""
    found = __import__(f"kernscope.kernels.{module}", fromlist=["_"])
    kernels = [value for value in vars(found).values() if isinstance(value, ks.Kernel)]
    for kernel in kernels:
        for name in kernel.launches:
            assert list(ks.lint(kernel.launch(name), trace_twice=True, select=["KS701"])) == []


def test_state_that_leaves_no_trace_is_silent(lint: Lint) -> None:
    """Names of scopes, a cache of Python values, a counter of calls."""
    report = lint(
        """
        import functools, itertools
        NUMBERS = itertools.count()

        @functools.cache
        def size():
            return next(NUMBERS) * 0 + 8

        @ks.kernel
        def kernel(x, o):
            with tl.scratch_scope(f"call {next(NUMBERS)}"):
                tl.store(o[0 : size(), :], tl.load(x[:, :]))
        """,
        X,
        X,
        select=["KS701"],
        trace_twice=True,
    )
    assert list(report) == []


def test_what_a_kernel_prints_is_seen_once(capsys: pytest.CaptureFixture[str]) -> None:
    """The second trace is silent, and it is one: the kernel runs twice."""
    calls: list[int] = []

    def kernel(x: Any) -> None:
        calls.append(1)
        print("a line")
        tl.load(x)

    ks.lint(kernel, X)
    assert len(calls) == 2 and capsys.readouterr().out == "a line\n"
    ks.lint(kernel, X, trace_twice=False)
    assert len(calls) == 3


def test_a_slow_trace_is_repeated_on_request_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """The report says that the question is open."""
    monkeypatch.setattr(retrace, "AT_MOST_S", 0.05)
    calls: list[int] = []

    def kernel(x: Any) -> None:
        calls.append(1)
        time.sleep(0.1)
        tl.load(x)

    report = ks.lint(kernel, X)
    assert len(calls) == 1 and "traced once" in report.notes[0] and "KS701" in report.notes[0]
    assert not ks.lint(kernel, X, trace_twice=True).notes and len(calls) == 3
    assert not ks.lint(kernel, X, trace_twice=False).notes and len(calls) == 4


def test_a_graph_cannot_be_traced_again() -> None:
    """Asking for it is a mistake."""
    with pytest.raises(ks.OptionError, match="trace_twice"):
        ks.lint(ks.trace(lambda x: tl.load(x), X), trace_twice=True)


@pytest.fixture
def numbers() -> Iterator[random.Random]:
    yield random.Random(3)


def test_the_first_difference_is_the_first(numbers: random.Random) -> None:
    """Of random sequences of operations that part somewhere: the node at which they do, and none for equal ones."""
    operations: list[Callable[[Any, int], Any]] = [
        lambda h, n: h + float(n),
        lambda h, n: tl.exp(h),
        lambda h, n: tl.maximum(h, h),
        lambda h, n: h.T + h,
    ]

    def kernel(x: Any, *, steps: list[tuple[int, int]]) -> None:
        h = tl.load(x)
        for which, value in steps:
            h = operations[which](h, value)

    for _ in range(60):
        steps = [(numbers.randrange(4), numbers.randrange(3)) for _ in range(numbers.randrange(1, 12))]
        other = list(steps)
        at = numbers.randrange(len(steps))
        other[at] = (numbers.randrange(4), numbers.randrange(3))
        one, two = ks.trace(kernel, X, steps=steps), ks.trace(kernel, X, steps=other)
        found = first_difference(one, two)
        same = steps[at][0] == other[at][0] and (steps[at] == other[at] or steps[at][0] != 0)
        assert (found is None) == same
        if found is not None:
            assert (found.table, found.first, found.second) == ("nodes", at + 1, at + 1)
        shorter = first_difference(one, ks.trace(kernel, X, steps=steps[:-1]))
        assert shorter is not None and (shorter.first, shorter.second) == (len(steps), None)


@pytest.mark.parametrize(
    ("wanted", "took", "again"), [(None, 0.5, True), (None, 2.0, False), (True, 2.0, True), (False, 0.5, False)]
)
def test_when_a_kernel_is_traced_twice(
    monkeypatch: pytest.MonkeyPatch, wanted: bool | None, took: float, again: bool
) -> None:
    """Where it takes less than a second, or as is said."""
    clock = iter([10.0, 10.0 + took])
    monkeypatch.setattr(retrace.time, "perf_counter", lambda: next(clock))
    graphs = [ks.trace(lambda x: None, X) for _ in range(2)]
    left = list(graphs)
    made = retrace.trace_twice(lambda: left.pop(0), wanted)
    assert (made.graph, made.again, made.seconds) == (graphs[0], graphs[1] if again else None, took)


def test_what_the_second_trace_raises_is_told_but_for_the_end_of_its_time() -> None:
    """A limit ends the command, in whichever trace it is met."""
    graph = ks.trace(lambda x: None, X)
    for error, raised in [(ValueError("no"), False), (ks.TimeLimitError("late"), True)]:
        results = iter([graph, error])

        def trace(results: Iterator[Any] = results) -> ks.Graph:
            result = next(results)
            if isinstance(result, Exception):
                raise result
            return result

        if raised:
            with pytest.raises(ks.TimeLimitError):
                retrace.trace_twice(trace, True)
        else:
            assert retrace.trace_twice(trace, True).again is error
