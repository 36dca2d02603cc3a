"""Every command that shows schedules takes every policy of the registry."""

from __future__ import annotations

import sys

import pytest

from kernscope.scheduler.policy.registry import LADDER, POLICIES

SOURCE = """
    @ks.launch("two", x=ks.hbm((128, 64), "f32"), o=ks.hbm((128, 64), "f32"))
    @ks.kernel
    def twice(x, o):
        for i in range(2):
            with tl.scratch_scope():
                rows = slice(i * 64, (i + 1) * 64)
                tl.store(o[rows, :], tl.load(x[rows, :]) * 2.0)
"""
#: By command its option for a policy, and what else it needs.
COMMANDS = {
    "schedule": ("--policy",),
    "timeline": ("-o", "out.svg", "--policy"),
    "draw": ("-o", "out.dot", "--policy"),
    "run": ("--order",),
    "report": ("--no-run", "-o", "out.html", "--policy"),
}


@pytest.fixture
def twice(write):
    return write(SOURCE, "twice.py")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("policy", POLICIES)
def test_every_command_takes_every_policy(kernscope, twice, command, policy):
    """By its name in the registry."""
    if POLICIES[policy].exact:
        pytest.importorskip("ortools")
    done = kernscope(command, twice, *COMMANDS[command], policy)
    assert (done.status, done.err) == (0, "")


@pytest.mark.parametrize("command", COMMANDS)
def test_without_the_extra_each_says_what_to_install(kernscope, twice, monkeypatch, command):
    """One error of one line and its help; no traceback."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "ortools"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "ortools", None)
    done = kernscope(command, twice, *COMMANDS[command], "optimal")
    assert done.status == 2
    assert "the policy 'optimal' needs ortools" in done.err
    assert "pip install 'kernscope[optimal]'" in done.err
    assert "Traceback" not in done.err


def test_a_report_shows_the_policies_asked_for(kernscope, twice):
    """Each once, in the order given; without a wish those of the ladder."""
    asked = kernscope("report", twice, "--no-run", "-o", "a.html", "--policy", "lazy", "--policy", "list")
    plain = kernscope("report", twice, "--no-run", "-o", "b.html")

    def shown(text):
        return [line.split()[0] for line in text.splitlines() if line.split()[:1] and line.split()[0] in POLICIES]

    assert shown(asked.out) == ["lazy", "list"]
    assert shown(plain.out) == list(LADDER)
