"""One analysis of a graph on a machine: whoever it is handed to, nothing is computed twice."""

from __future__ import annotations

import functools
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import kernelcases
import pytest

import kernscope as ks
from kernscope import tl
from kernscope.analysis.analysis import Analysis
from kernscope.backends.report.page import write_report
from kernscope.face import presentation
from kernscope.face.testing import assert_fits
from kernscope.ir.messages import message_faults
from kernscope.linter import lint_graph
from kernscope.memory.liveness import liveness
from kernscope.scheduler.policy.lower_bounds import lower_bounds
from kernscope.scheduler.policy.policies import run_policy
from kernscope.scheduler.policy.problem import make_problem
from kernscope.scheduler.policy.registry import LADDER
from kernscope.scheduler.result.causes import find_causes
from kernscope.scheduler.result.critical_chain import walk_chain
from kernscope.scheduler.result.ladder import compare

Calls = Counter[str]
COUNTED = (liveness, make_problem, lower_bounds, run_policy, find_causes, walk_chain, message_faults)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """How often each of the functions is called, from whichever module; a policy and an effort count apart."""
    counted: Calls = Counter()
    for function in COUNTED:
        wrapped = _counting(function, counted)
        for name, module in list(sys.modules.items()):
            if name.startswith("kernscope.") and getattr(module, function.__name__, None) is function:
                monkeypatch.setattr(module, function.__name__, wrapped)
    return counted


def _counting(function: Callable[..., Any], counted: Calls) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        policy = f" {args[1].name}" if function is run_policy else ""
        counted[function.__name__ + policy] += 1
        return function(*args, **kwargs)

    return wrapped


def flash_attention() -> ks.Launch:
    return kernelcases.kernel_of("flash_attention").launch()


@ks.kernel
def ring(x: Any, o: Any) -> None:
    """Four ranks pass a tile on."""
    rank = tl.program_id(0)
    tile = tl.load(x[rank * 16 : rank * 16 + 16])
    tl.send("next", tile)
    tl.store(o[rank * 16 : rank * 16 + 16], tl.recv("prev", (16,), tl.float32))


def ring_graph() -> ks.Graph:
    return ks.trace(ring, ks.hbm((64,), "f32"), ks.hbm((64,), "f32"), ranks=4)


def test_a_report_computes_each_thing_once(calls: Calls, tmp_path: Path) -> None:
    """Schedules, findings, the scratch and the page of flash attention, with its numbers: one liveness, one problem,
    one set of bounds, one run of each policy; causes and critical chain once for each schedule."""
    launch = flash_attention()
    ks.report(ks.trace(launch, on_overflow="record"), tmp_path / "page.html", launch=launch)
    expected = dict.fromkeys([f"run_policy {policy}" for policy in LADDER], 1)
    expected |= {"liveness": 1, "make_problem": 1, "lower_bounds": 1, "message_faults": 1}
    expected |= {"find_causes": len(LADDER), "walk_chain": len(LADDER)}
    assert dict(calls) == expected


def test_a_report_of_messages_looks_for_their_partners_once(calls: Calls, tmp_path: Path) -> None:
    """The schedules that refuse unmatched messages and the rules about messages share what was found."""
    graph = ring_graph()
    data = presentation.gather(graph, ks.load_machine(graph.machine), numbers=False)
    write_report(tmp_path / "page.html", data)
    assert calls["message_faults"] == calls["run_policy lazy"] == calls["make_problem"] == calls["liveness"] == 1


def test_each_side_of_a_comparison_is_analysed_once(calls: Calls, tmp_path: Path) -> None:
    """A report against another graph analyses two graphs; against an earlier report, its own alone."""
    graph = ring_graph()
    before = ks.report(graph, tmp_path / "page.html", effort="fast", against=ring_graph())
    assert calls["liveness"] == calls["make_problem"] == calls["run_policy list"] == 2
    calls.clear()
    ks.report(graph, tmp_path / "page.html", effort="fast", against=before)
    assert calls["liveness"] == calls["make_problem"] == calls["run_policy list"] == 1


@pytest.mark.parametrize("effort", ["fast", "normal"])
def test_the_linter_runs_lazy_and_no_search(calls: Calls, effort: str) -> None:
    """Linting needs no bounds and no other policy; what was scheduled before is not scheduled again for it."""
    known = Analysis(ks.trace(flash_attention(), on_overflow="record"))
    lint_graph(known)
    assert dict(calls) == {"liveness": 1, "make_problem": 1, "run_policy lazy": 1, "message_faults": 1}
    known.schedule("lazy", effort)
    assert calls["run_policy lazy"] == calls["make_problem"] == 1


def test_fit_analyses_each_value_once(calls: Calls) -> None:
    """Whether a value fits, what the linter finds and how fast it is come from one analysis of its graph."""
    found = ks.fit(flash_attention(), "tile", [64, 128], "time")
    assert [row.verdict for row in found] == ["fits", "fits"]
    assert calls["liveness"] == calls["make_problem"] == calls["lower_bounds"] == calls["run_policy list"] == 2


def test_the_assertion_of_fitting_tells_from_what_it_measured(calls: Calls) -> None:
    """A kernel that does not fit is measured once, and linted for the message by the same analysis."""
    with pytest.raises(AssertionError, match="KS101"):
        assert_fits(ks.trace(flash_attention(), on_overflow="record", tile=2048))
    assert calls["liveness"] == 1


@pytest.mark.parametrize("effort", ["fast", "normal"])
def test_what_is_kept_is_what_is_computed_anew(effort: str) -> None:
    """In whichever order policies are asked for, their times are those of a run on its own."""
    graph = ks.trace(flash_attention())
    known = Analysis(graph)
    for policy in (*reversed(LADDER), *LADDER):
        kept, anew = known.schedule(policy, effort), ks.schedule(graph, policy, effort=effort)
        assert kept.to_json() == anew.to_json()
        assert kept is known.schedule(policy, effort)
    assert str(known.ladder(effort=effort)) == str(compare(graph, effort=effort))


def test_an_analysis_holds_the_efforts_apart(calls: Calls) -> None:
    """A search of another effort is another search, and finds other bounds; policies in order do not search."""
    known = Analysis(ks.trace(flash_attention()))
    made = [known.schedule(policy, effort) for policy in ("list", "lazy") for effort in ("fast", "normal", "fast")]
    assert [one.effort for one in made] == ["fast", "normal", "fast"] * 2
    assert calls["run_policy list"] == calls["lower_bounds"] == 2
    assert calls["run_policy lazy"] == 1


def test_a_machine_is_asked_for_only_where_times_are() -> None:
    """A graph of a machine that is no preset, and that says nothing of it, has a liveness, and findings that need no
    machine."""
    traced = ks.trace(flash_attention(), machine=attrs.evolve(ks.load_machine("ahbm-pe"), name="no preset"))
    graph = attrs.evolve(traced, machine_toml="")
    known = Analysis(graph)
    assert known.liveness().fits
    assert lint_graph(known, select=["KS1", "KS2", "KS4"]).ok
    with pytest.raises(ks.MachineError, match="no preset"):
        lint_graph(known, select=["KS303"])


def test_what_is_kept_is_no_part_of_what_an_analysis_is() -> None:
    """It is not given when one is made, and not printed: it may be as large as the graph."""
    graph = ks.trace(lambda: None)
    made = Analysis(graph, None)
    assert len(made.liveness().peak_bytes_by_rank) == 1 and "iveness" not in repr(made)
    with pytest.raises(TypeError):
        Analysis(graph, None, liveness={})  # type: ignore[call-arg]
