"""KS303: loads that could have run beside other work under the lazy policy."""

# ruff: noqa: E501  (goldens show lines as they are printed)

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

import kernscope as ks
from kernscope.analysis.analysis import Analysis
from kernscope.linter import LintReport
from kernscope.linter.analyses.late_loads import find_late_loads
from kernscope.linter.analyses.lazy_messages import run_lazy

from .rulecases import body

Lint = Callable[..., LintReport]
X: Any = ks.hbm((128, 256), "f32")


@pytest.fixture
def lint(lint: Lint) -> Lint:
    """This rule alone, without its threshold."""
    return functools.partial(lint, select=["KS303"], options={"KS303": {"percent": 0}})


LATE = """
left = tl.load(x[:, 0:128])
left = tl.exp(left)
right = tl.load(x[:, 128:256])
tl.store(o[:, 0:128], left * right)
"""


def test_a_load_behind_work_that_does_not_need_it_is_told_what_to_move(lint: Lint) -> None:
    """It could start at 612 ns, when the first load ends; it starts at 872, behind exp (260 ns)."""
    assert (
        str(lint(body(LATE), X, X))
        == """\
info[KS303]: under `lazy` the load of `right` is issued later than it could start, and waited for, once: up to 260 ns (12 % of the makespan) lost
 --> kernel.py:8:13
  |
7 |     left = tl.exp(left)
  |            ------------ from here on it could have run, 260 ns earlier
8 |     right = tl.load(x[:, 128:256])
  |             ^^^^^^^^^^^^^^^^^^^^^^ loaded here
9 |     tl.store(o[:, 0:128], left * right)
  |                           ------------ waited for here
  |
  = help: move line 8 above line 7: a load does not block, its first use does

kernel: 1 info"""
    )


def test_moving_it_as_told_saves_what_was_promised() -> None:
    """The lazy makespan falls by exactly that here; and the rule is silent then."""

    def late(x: Any, o: Any) -> None:
        left = ks.tl.exp(ks.tl.load(x[:, 0:128]))
        ks.tl.store(o[:, 0:128], left * ks.tl.load(x[:, 128:256]))

    def early(x: Any, o: Any) -> None:
        left, right = ks.tl.load(x[:, 0:128]), ks.tl.load(x[:, 128:256])
        ks.tl.store(o[:, 0:128], ks.tl.exp(left) * right)

    before, after = (ks.trace(kernel, X, X) for kernel in (late, early))
    found = find_late_loads(before, run_lazy(Analysis(before)))
    assert found.lost_ps.tolist() == [260_000]
    times = [ks.schedule(graph, policy="lazy").makespan_ps for graph in (before, after)]
    assert times[0] - times[1] == 260_000
    assert len(find_late_loads(after, run_lazy(Analysis(after))).node) == 0


def test_a_loop_is_told_to_load_one_tile_ahead(lint: Lint) -> None:
    """The bytes are free once their last reader has run: from there on, in the iteration before."""
    text = """
m = tl.zeros((128, 128), tl.float32)
for j in range(4):
    with tl.scratch_scope():
        tile = tl.exp(tl.load(x[:, 0:128]))
        tl.copy_to(m, tl.maximum(m, tile))
tl.store(o[:, 0:128], m)
"""
    (finding,) = lint(body(text), X, X)
    assert len(finding.nodes) == 4
    assert finding.help == (
        "load one tile ahead: above line 10 of the iteration before, with `tl.load(..., out=buffer)` into one of two "
        "buffers made before the loop, taken in turn"
    )


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("nothing comes before it", "tl.store(o[:, :], tl.exp(tl.load(x[:, :])))"),
        ("the engine is busy", "a, b = tl.load(x[:, :]), tl.load(x[:, :])\ntl.store(o[:, :], a + b)"),
        ("nobody waits for it", "a = tl.exp(tl.load(x[0:8, :]))\nb = tl.load(x[0:8, :])\nfor _ in range(8):\n    a = tl.sin(a)\ntl.store(o[0:8, :], a + b)"),
        ("its region is written just before", "tl.store(x[:, :], tl.zeros((128, 256), 'f32'))\ntl.store(o[:, :], tl.load(x[:, :]))"),
        ("a composite streams it", "a = tl.exp(tl.zeros((128, 128), 'f32'))\ntl.store(o[:, :], tl.composite('gemm', a, tl.ref(x[:, :])))"),
        ("no loads", "tl.store(o[:, :], tl.exp(tl.zeros((128, 256), 'f32')))"),
    ],
)  # fmt: skip
def test_loads_that_could_not_start_earlier_or_hold_nobody_up_are_silent(lint: Lint, what: str, text: str) -> None:
    """What holds them is an edge or their engine, not the order of lines."""
    report = lint(body(text), X, X)
    assert all("`b`" not in d.message for d in report) if what == "nobody waits for it" else len(report) == 0


@pytest.mark.parametrize(("percent", "fires"), [(12, True), (13, False)])
def test_how_much_must_be_lost_is_an_option(lint: Lint, percent: int, fires: bool) -> None:
    """In percent of the makespan: 260 ns of 2,164 ns here, 12.01 %."""
    report = lint(body(LATE), X, X, options={"KS303": {"percent": percent}})
    assert bool(len(report)) is fires


def test_a_deadlock_has_no_times(lint: Lint) -> None:
    """KS402 speaks of it; and a kernel without loads needs no machine."""
    text = """
tl.recv("prev", (8, 8), tl.float32)
tl.send("next", tl.load(x[0:8, 0:8]))
"""
    assert len(lint(body(text), X, X, ranks=2)) == 0


@pytest.mark.parametrize(
    ("machine", "busy", "late"),
    [("ahbm-pe", 0, 1), ("ahbm-pe", 1, 0), ("ahbm-pe-2dma", 0, 1), ("ahbm-pe-2dma", 1, 1), ("ahbm-pe-2dma", 2, 0)],
)
def test_an_engine_is_busy_when_all_its_lanes_are(lint: Lint, machine: str, busy: int, late: int) -> None:
    """Then the load could not have started before, wherever its line stands."""
    text = f"""
large = [tl.load(x[:, :]) for _ in range({busy})]
t = tl.full((64, 64), 1.0, tl.float32)
for _ in range(4):
    t = tl.tanh(t)
tl.store(o[0:64, 0:64], t * tl.load(x[0:64, 0:64]))
for h in large:
    tl.store(o[:, :], h)
"""
    wide: Any = ks.hbm((256, 256), "f32")
    assert len(lint(body(text), wide, wide, machine=machine)) == late
