"""The checker's words: for each of its branches one damaged schedule, with the nodes and the line that it reports."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

import kernscope as ks
from kernscope import tl
from kernscope.checker.check import RULES, check
from kernscope.machine.description import load_machine
from kernscope.scheduler.result.schedule import Schedule, schedule


@ks.kernel
def pair(x: Any, o: Any) -> None:
    """One rank sends more messages than a channel holds, the other one takes them."""
    h = tl.load(x[:])
    if tl.program_id(0) == 0:
        for _ in range(4):
            tl.send("next", h)
    else:
        for _ in range(4):
            tl.recv("prev", (64,), tl.float32)
    tl.store(o[:], h)


@ks.kernel
def told(x: Any, o: Any) -> None:
    """One rank stores and tells; the other one loads when it has been told."""
    if tl.program_id(0) == 0:
        tl.store(o[:], tl.load(x[:]))
        tl.notify("next")
    else:
        tl.wait_for("prev")
        tl.load(o[:])


MACHINE = load_machine("ahbm-pe").override({"cpu.issue_cycles.default": "7"})
GRAPH = ks.trace(pair, ks.hbm((64,), "f32"), ks.hbm((64,), "f32"), ranks=2)
LOAD, SENDS, STORE, RECVS = 0, (1, 2, 3, 4), 5, (7, 8, 9, 10)
MADE = {policy: schedule(GRAPH, MACHINE, policy, "fast") for policy in ("blocking", "lazy", "queued", "list")}
MADE["signal"] = schedule(ks.trace(told, *[ks.hbm((64,), "f32")] * 2, ranks=2), MACHINE, "list", "fast")
Damage = Callable[[Schedule], Schedule]


def at(column: str, node: int, value: int) -> Damage:
    """One number of a column."""

    def damage(made: Schedule) -> Schedule:
        changed = getattr(made, column).copy()
        changed[node] = value
        return attrs.evolve(made, **{column: changed})

    return damage


def moved(node: int, by: int) -> Damage:
    """One node in time, its issue as it was."""

    def damage(made: Schedule) -> Schedule:
        start, end = made.start_ps.copy(), made.end_ps.copy()
        start[node] += by
        end[node] += by
        return attrs.evolve(made, start_ps=start, end_ps=end)

    return damage


def under(policy: str) -> Damage:
    return lambda made: attrs.evolve(made, policy=policy)


#: By what is wrong: the policy whose schedule it is, and what is done to it.
DAMAGES: dict[str, tuple[str, Damage]] = {
    "another target": (
        "list",
        lambda made: attrs.evolve(made, machine=made.machine.override({"link.slots": "3", "scratch.align": "32"})),
    ),
    "a column too short": ("list", lambda made: attrs.evolve(made, lane=made.lane[:-1])),
    "a column of floats": ("list", lambda made: attrs.evolve(made, end_ps=made.end_ps * 1.0)),
    "a negative time": ("list", at("start_ps", LOAD, -1)),
    "too long": ("list", at("end_ps", STORE, 211_001)),
    "an engine twice": ("list", lambda made: attrs.evolve(made, engines=(*made.engines, made.engines[0]))),
    "an engine of more channels": (
        "list",
        lambda made: attrs.evolve(made, engines=(attrs.evolve(made.engines[0], channels=2), *made.engines[1:])),
    ),
    "no engines": ("list", lambda made: attrs.evolve(made, engines=None)),
    "engines that are none": (
        "list",
        lambda made: attrs.evolve(made, engines=("dma", attrs.evolve(made.engines[0], channels=2**40), *made.engines)),
    ),
    "another engine": ("list", at("engine", STORE, 0)),
    "another rank's engine": ("list", at("engine", STORE, 6)),
    "an engine for what needs none": ("list", at("engine", RECVS[0], 3)),
    "no engine": ("list", at("engine", STORE, -1)),
    "an engine that is not listed": ("list", lambda made: attrs.evolve(made, engines=made.engines[:-3])),
    "a lane too many": ("list", at("lane", STORE, 1)),
    "two at once": ("list", moved(SENDS[1], -1)),
    "before its data": ("list", moved(STORE, -1)),
    "a message before it is sent": ("list", moved(RECVS[3], -1)),
    "a send to a full channel": ("list", moved(RECVS[0], 54_001)),
    "receives out of order": ("list", moved(RECVS[1], -54_001)),
    "issued before time begins": ("list", at("issue_ps", LOAD, 6_999)),
    "issues that overlap": ("list", at("issue_ps", STORE, 41_999)),
    "started before it is issued": ("list", at("issue_ps", RECVS[2], 271_001)),
    "a policy that is none": ("list", under("fastest")),
    "out of turn on its engine": ("list", lambda made: under("queued")(moved(SENDS[0], 400_000)(made))),
    "issued while the one before runs": ("lazy", under("blocking")),
    "issued before its data": ("lazy", at("issue_ps", SENDS[0], 115_999)),
    "issued before its slot is free": ("lazy", at("issue_ps", SENDS[2], 176_999)),
    "a store that ends after its signal": ("signal", at("end_ps", 1, 300_000)),
    "a load that does not wait for its signal": ("signal", at("start_ps", 4, 200_000)),
    "issued while a receive waits": ("queued", under("lazy")),
}

#: By damage the nodes and the line of each violation, without the source places. Look at what changes there.
WORDS = Path(__file__).with_name("check_words.txt").read_text(encoding="utf-8")
EXPECTED = {name: lines for name, *lines in (block.splitlines() for block in WORDS.removeprefix("## ").split("\n## "))}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damage_is_said_in_these_words(name: str) -> None:
    """Each violation with the nodes involved, the later or offending one last, and the times or places that disagree;
    and nothing else is said."""
    policy, damage = DAMAGES[name]
    found = check(damage(MADE[policy]))
    said = [f"{list(v.nodes)} " + re.sub(r" \(test_check_words\.py:\d+\)", "", str(v)) for v in found]
    assert said == [line for line in EXPECTED[name] if line]


def test_the_damages_meet_every_rule() -> None:
    """No rule is without one, and every schedule is legal as it was made."""
    met = {v.rule for policy, damage in DAMAGES.values() for v in check(damage(MADE[policy]))}
    # No kernel of `tl` decides by a value: test_control.py has one.
    assert met == set(RULES) - {"control"} and set(EXPECTED) == set(DAMAGES)
    assert all(check(made) == [] for made in MADE.values())


def test_a_node_is_said_with_its_place() -> None:
    """``%5 store (file.py:29)``."""
    policy, damage = DAMAGES["too long"]
    (found,) = check(damage(MADE[policy]))
    assert re.search(r"%5 store \(test_check_words\.py:\d+\) takes", found.message)


def test_a_node_of_a_command_waits_for_its_issue() -> None:
    """A composite has one issue: none of its nodes starts before it, and it is said which."""

    @ks.kernel
    def composite(x: Any, o: Any) -> None:
        tl.store(o[:, :], tl.composite("gemm", tl.ref(x[:, :]), tl.ref(x[:, :]), tile=(8, 8, 8)))

    made = schedule(ks.trace(composite, ks.hbm((8, 8), "f32"), ks.hbm((8, 8), "f32")), MACHINE, "list", "fast")
    first, second = 0, 1
    late = int(made.start_ps[second]) + 1
    damaged = attrs.evolve(made, issue_ps=np.where(made.graph.nodes.command == first, late, made.issue_ps))
    found = [v for v in check(damaged) if v.rule == "issue" and "its command" in v.message]
    assert [v.nodes for v in found] == [(first, second)]
    assert f"starts at {late - 1} ps, before its command %0 load" in found[0].message
    assert found[0].message.endswith(f"is issued at {late} ps")


def test_issue_costs_are_listed_by_operation_before_engine() -> None:
    """An operation's own number, else its engine's, else the default; a composite is an operation on the GEMM: one
    picosecond less is a violation for each."""

    @ks.kernel
    def mixed(x: Any, o: Any) -> None:
        a = tl.load(x[:, :])
        b = tl.exp(tl.dot(a, a))
        tl.store(o[:, :], -b)
        tl.store(o[:, :], tl.composite("gemm", a, tl.ref(x[:, :])))

    costs = {"default": 2, "load": 3, "dma_read": 5, "gemm": 7, "composite": 11, "math": 13, "exp": 17}
    described = load_machine("ahbm-pe").override({f"cpu.issue_cycles.{k}": str(v) for k, v in costs.items()})
    graph = ks.trace(mixed, ks.hbm((8, 8), "f32"), ks.hbm((8, 8), "f32"))
    made = schedule(graph, described, "list", "fast")
    assert check(made) == []
    first = np.unique(graph.nodes.command)
    assert np.diff(made.issue_ps[first], prepend=0).tolist() == [1000 * c for c in (3, 7, 17, 13, 2, 11, 2)]
    for node in first.tolist():
        early = np.where(graph.nodes.command == node, made.issue_ps - 1, made.issue_ps)
        assert "issue" in {v.rule for v in check(attrs.evolve(made, issue_ps=early))}, node


def test_durations_that_no_time_holds_match_no_schedule() -> None:
    """On a machine so slow that one operation takes longer than int64 says, its node is wrong and no other."""
    slow = MACHINE.override({"dma_write.latency_ns": "1e18"})
    made = attrs.evolve(MADE["list"], machine=slow)
    assert [(v.rule, v.nodes) for v in check(made)] == [("duration", (STORE,)), ("duration", (11,))]
    assert f"the machine says {10**21 + 2000} ps" in check(made)[0].message


JUNK = (
    None,
    5,
    "gemm",
    b"gemm",
    {},
    {1: 2},
    set(),
    [None],
    [5],
    [[]],
    (object(),),
    iter(()),
    np.zeros(3),
    float("nan"),
)
PARTS = (None, -1, 1.5, "x", True, 2**31, 2**70, [], np.int64(3), np.float64(1))


@pytest.mark.parametrize("junk", JUNK, ids=repr)
def test_engines_that_are_junk_are_a_violation(junk: Any) -> None:
    """Whatever stands in the place of the engines is said, and nothing is raised."""
    assert {v.rule for v in check(attrs.evolve(MADE["list"], engines=junk))} >= {"engine"}


@pytest.mark.parametrize("part", ["rank", "name", "channels"])
@pytest.mark.parametrize("value", PARTS, ids=repr)
def test_an_engine_with_a_part_that_is_junk_is_a_violation(part: str, value: Any) -> None:
    """A rank, a name or a number of channels that is none, or is another's; of numpy's integers the value counts."""
    first, *others = MADE["list"].engines
    damaged = attrs.evolve(MADE["list"], engines=(attrs.evolve(first, **{part: value}), *others))
    assert "engine" in {v.rule for v in check(damaged)}
