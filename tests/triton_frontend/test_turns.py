"""Launches in which every program has another trip count: some of their traces stand for all, numbers and bounds are
those of every program."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import kernscope as ks
from kernscope.cli import main
from kernscope.tracer.triton.recording.turns import grouped_by_turns

RAGGED = """\
import numpy as np
import triton
import triton.language as tl


@triton.jit
def ragged(x_ptr, o_ptr, n, N: tl.constexpr, BRANCH: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((N,), tl.float32)
    for k in range(row + 1):
        x = tl.load(x_ptr + row * n + k * N + tl.arange(0, N))
        total += tl.exp(x)
    if BRANCH:
        if row % 2 == 1:
            total = tl.sqrt(total)
    tl.store(o_ptr + row * N + tl.arange(0, N), total)


PROGRAMS, N = 12, 64
x = np.random.default_rng(0).normal(size=(PROGRAMS, PROGRAMS * N)).astype(np.float32)
out = np.zeros((PROGRAMS, N), np.float32)
"""
LAUNCH = """
ragged[(PROGRAMS,)](x, out, PROGRAMS * N, N=N, BRANCH=False)
for row in range(PROGRAMS):
    want = np.exp(x[row].reshape(PROGRAMS, N)[: row + 1]).sum(0)
    assert np.allclose(out[row], want, rtol=1e-5)
"""


def launched(tmp_path: Path, text: str) -> ks.triton.LaunchResult:
    """The one launch of a script."""
    path = tmp_path / "ragged.py"
    path.write_text(text)
    with ks.triton.session() as session:
        exec(compile(text, str(path), "exec"), {"__name__": "ragged"})
    (one,) = session.launches
    return one


def test_some_traces_stand_for_those_that_differ_in_their_turns(tmp_path: Path) -> None:
    """The smallest and the two largest are scheduled; the times of the others are linear between, and near to what
    scheduling them says; numbers are those of all programs."""
    one = launched(tmp_path, RAGGED + LAUNCH)
    assert len(one.traces) == 12
    examined = sorted(int(p) for trace in one.examined for p in trace.trace.programs)
    assert examined[-2:] == [10, 11]
    assert examined[0] == 0
    assert len(examined) <= 4
    assert len(one.graphs) == len(one.examined)
    for trace, time in zip(one.traces, one.times_ps, strict=True):
        measured = trace.schedule.makespan_ps
        if trace in one.examined:
            assert time == measured
        assert abs(time - measured) <= 0.05 * measured


def test_a_branch_is_no_turn(tmp_path: Path) -> None:
    """Programs that do something else are another group."""
    one = launched(tmp_path, RAGGED + LAUNCH.split("\nfor row")[0].replace("BRANCH=False", "BRANCH=True"))
    odd = [{int(p) % 2 for m in group.members for p in one.traces[m].trace.programs} for group in one.alike]
    assert all(len(parities) == 1 for parities in odd)


def test_bounds_hold_for_programs_whose_trace_is_not_examined(tmp_path: Path) -> None:
    """An access of a program in the middle that leaves its tensor is found, with its program."""
    text = RAGGED + "x = x[:, :].reshape(-1)\n" + LAUNCH.split("\nfor row")[0]
    text = text.replace("row * n + k * N", "tl.where((row == 6) & (k == 3), 1 << 20, row * n + k * N)")
    one = launched(tmp_path, text)
    assert all(6 not in trace.trace.programs for trace in one.examined)
    (found,) = [d for d in one.lint() if d.code == "KS501"]
    assert "first in program 6" in found.message


def test_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """How many are scheduled, and that times are linear between; nothing where all are."""
    monkeypatch.chdir(tmp_path)
    Path("ragged.py").write_text(RAGGED + LAUNCH)
    assert main(["triton", "ragged.py"]) == 0
    assert "of 12 traces are linted and scheduled: others differ" in capsys.readouterr().out
    Path("ragged.py").write_text((RAGGED + LAUNCH).replace("PROGRAMS, N = 12", "PROGRAMS, N = 3"))
    assert main(["triton", "ragged.py"]) == 0
    assert "turns" not in capsys.readouterr().out


def test_every_trace_is_in_one_group_and_examined_ones_are_in_theirs() -> None:
    """Property, over random counts: groups part the traces; in each the kinds are the same and counts are linear in the
    length; times of examined members are those measured, others lie between."""
    numbers = np.random.default_rng(3)
    for _ in range(200):
        base, slope = numbers.integers(1, 4, (2, 3))
        counters = []
        for _ in range(int(numbers.integers(1, 12))):
            odd = numbers.integers(0, 6) == 0
            counts = numbers.integers(1, 9, 3) if odd else base + slope * numbers.integers(0, 20)
            counters.append(Counter(dict(zip("abc", counts.tolist(), strict=True))))
        groups = grouped_by_turns(counters)
        assert sorted(m for group in groups for m in group.members) == list(range(len(counters)))
        for group in groups:
            assert group.steps == tuple(counters[m].total() for m in group.members)
            assert group.examined[0] == 0
            assert group.examined[-1] == len(group.members) - 1
            measured = [100 + 7 * group.steps[place] for place in group.examined]
            times = group.times(measured)
            assert times == [100 + 7 * steps for steps in group.steps]
