"""Signals between ranks: what they order, what they cost, and how those without a partner are told."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest

import kernscope as ks
from kernscope import tl
from kernscope.ir.tables import Reason
from kernscope.ir.verifier.verify import verify

POLICIES = ("blocking", "lazy", "queued", "list")
SHARED = ks.hbm((4, 64), "f32")


def through_hbm(x: Any, shared: Any, o: Any, *, signal: bool = True) -> None:
    """Each rank reads what the one before it stored."""
    rank, ranks = tl.program_id(0), tl.num_programs(0)
    tl.store(shared[rank, :], tl.load(x[rank, :]) * 2.0)
    if signal:
        tl.notify("next")
        tl.wait_for("prev")
    tl.store(o[rank, :], tl.load(shared[(rank - 1) % ranks, :]) + 1.0)


def traced(**options: Any) -> ks.Graph:
    return ks.trace(through_hbm, SHARED, SHARED, SHARED, ranks=4, **options)


def test_a_signal_orders_what_would_race() -> None:
    """Without it KS502 fires; with it, every policy and every order gives the same numbers."""
    assert [d.code for d in ks.lint(traced(signal=False)) if d.severity == "error"] == ["KS502"]
    graph = traced()
    assert verify(graph) == [] and [d for d in ks.lint(graph) if d.severity == "error"] == []
    x = np.random.default_rng(0).normal(size=(4, 64)).astype(np.float32)
    inputs = {"x": x, "shared": np.zeros((4, 64), np.float32)}
    for policy in POLICIES:
        schedule = ks.schedule(graph, policy)
        assert ks.check(schedule) == []
        np.testing.assert_array_equal(ks.run(graph, inputs, order=schedule)["o"], np.roll(x * 2, 1, axis=0) + 1)


def test_edges_of_a_signal() -> None:
    """The store before it, the load after it; nothing in scratch; a message joins the ranks."""
    graph = traced()
    of_rank = {name: next(n.id for n in graph if n.op == name and n.rank == 1) for name in ("notify", "wait_for")}
    into = {(graph[e.source].op, e.reason) for e in graph[of_rank["notify"]].edges_in}
    assert ("store", Reason.ORDER) in into
    assert [(graph[e.source].op, graph[e.source].rank, e.reason) for e in graph[of_rank["wait_for"]].edges_in] == [
        ("notify", 0, Reason.MESSAGE)
    ]
    held = [graph[int(t)].op for s, t in zip(graph.edges.source, graph.edges.target, strict=True)
            if s == of_rank["wait_for"]]  # fmt: skip
    assert held == ["load", "store"]
    assert graph.count("ipcq/notify") == 4 and graph[of_rank["notify"]].engine == "link:next"


def test_a_signal_takes_the_links_latency_and_keeps_the_order_of_its_channel() -> None:
    """No bytes; what is sent before it arrives before it."""
    graph = traced()
    schedule = ks.schedule(graph, "queued")
    machine = ks.load_machine("ahbm-pe")
    for node in graph:
        if node.op == "notify":
            assert schedule.end_ps[node.id] - schedule.start_ps[node.id] == machine.link.latency_ns * 1000
        if node.op == "wait_for":
            assert schedule.end_ps[node.id] == schedule.start_ps[node.id]

    def mixed(x: Any, o: Any) -> None:
        tl.send("next", tl.load(x))
        tl.notify("next")
        h = tl.recv("prev", (64,), "f32")
        tl.wait_for("prev")
        tl.store(o[tl.program_id(0), :], h)

    graph = ks.trace(mixed, ks.hbm((64,), "f32"), ks.hbm((2, 64), "f32"), ranks=2)
    assert [d for d in ks.lint(graph) if d.severity == "error"] == []
    assert ks.check(ks.schedule(graph)) == []


@pytest.mark.parametrize("policy", POLICIES)
def test_the_checker_sees_an_access_on_the_wrong_side(policy: str) -> None:
    """A store that ends after the notification, a load that begins before the wait has ended."""
    graph = traced()
    schedule = ks.schedule(graph, policy)
    for name, column, by in (("notify", "start_ps", -1), ("load", "start_ps", -1)):
        node = [n.id for n in graph if n.op == name and n.rank == 2][-1]
        moved = getattr(schedule, column).copy()
        moved[node] = 0 if name == "load" else moved[node] + by
        found = ks.check(attrs.evolve(schedule, **{column: moved}))
        assert any(v.rule == "order" and v.nodes[-1] == node for v in found), found


def meshed(x: Any, o: Any) -> None:
    """All ranks store, meet, and read what some other one stored."""
    cols, ranks = tl.num_programs(1), tl.num_programs(0) * tl.num_programs(1)
    rank = tl.program_id(0) * cols + tl.program_id(1)
    for turn in range(2):
        tl.store(x[turn, rank, :], tl.full((16,), rank + turn, "f32"))
        tl.barrier()
        other = (rank + 1 + 2 * turn) % ranks
        tl.store(o[turn, rank, :], tl.load(x[turn, other, :]))


@pytest.mark.parametrize(
    ("topology", "shape", "wraps", "ranks"),
    [
        ("ring", (), False, 1),
        ("ring", (), False, 2),
        ("ring", (), False, 5),
        ("mesh2d", (2, 3), True, 6),
        ("mesh2d", (3, 2), False, 6),
        ("mesh2d", (4, 1), False, 4),
        ("mesh2d", (), False, 3),
    ],
)
def test_a_barrier_keeps_all_ranks_apart(topology: str, shape: Any, wraps: bool, ranks: int) -> None:
    """On rings and meshes, also twice, also of one rank; no race, no deadlock, the right numbers in every policy."""
    machine = ks.load_machine("ahbm-pe")
    if topology == "mesh2d":
        machine = attrs.evolve(
            machine, topology=attrs.evolve(machine.topology, kind="mesh2d", shape=shape, wraps=wraps)
        )
    tensor = ks.hbm((2, ranks, 16), "f32")
    graph = ks.trace(meshed, np.zeros((2, ranks, 16), np.float32), tensor, ranks=ranks, machine=machine)
    assert verify(graph) == []
    assert [str(d) for d in ks.lint(graph, machine=machine) if d.severity == "error"] == []
    assert graph.count("ipcq/notify") == 2 * 2 * (ranks - 1)
    for policy in POLICIES:
        schedule = ks.schedule(graph, policy, machine)
        assert ks.check(schedule) == []
        got = ks.run(graph, order=schedule)["o"]
        for turn in range(2):
            expected = [(rank + 1 + 2 * turn) % ranks + turn for rank in range(ranks)]
            np.testing.assert_array_equal(got[turn, :, 0], expected)


def test_a_signal_without_partner_is_told() -> None:
    """In words of its own, on both sides, and where it meets a message with bytes."""

    def only(o: Any, *, call: Any) -> None:
        if tl.program_id(0) == 0:
            call(0)
        else:
            call(1)

    def said(call: Any) -> ks.Diagnostic:
        (found,) = [d for d in ks.lint(only, ks.hbm((4,), "f32"), ranks=2, call=call) if d.code == "KS401"]
        return found

    lonely = said(lambda rank: tl.notify("next") if rank == 0 else None)
    assert lonely.message.startswith('notify to "next" of rank 0: rank 1 never waits for it (1 sent, 0 received')
    assert 'add `tl.wait_for("prev")`' in lonely.help
    waits = said(lambda rank: tl.wait_for("next") if rank == 0 else None)
    assert waits.message.startswith('wait_for "next" of rank 0: rank 1 never notifies it (0 sent, 1 received')
    assert 'add `tl.notify("prev")`' in waits.help
    crossed = said(lambda rank: tl.notify("next") if rank == 0 else tl.recv("prev", (4,), "f32"))
    assert crossed.message == "notify of rank 0 meets recv of rank 1"
    other = said(lambda rank: tl.send("next", tl.zeros((4,), "f32")) if rank == 0 else tl.wait_for("prev"))
    assert other.message == "send of rank 0 meets wait_for of rank 1"


def test_ranks_that_wait_before_they_tell_deadlock() -> None:
    """KS402 and the error name the lines, under every policy."""

    def stuck(o: Any) -> None:
        tl.wait_for("prev")
        tl.notify("next")

    graph = ks.trace(stuck, ks.hbm((4,), "f32"), ranks=3)
    assert [d.code for d in ks.lint(graph) if d.severity == "error"] == ["KS402"]
    for policy in POLICIES:
        with pytest.raises(ks.DeadlockError, match="wait for each other"):
            ks.schedule(graph, policy)


def test_full_channels_hold_signals_back() -> None:
    """A notification takes a slot until its wait; KS403 says so in its own words."""

    def many(x: Any, o: Any) -> None:
        if tl.program_id(0) == 0:
            for _ in range(4):
                tl.notify("next")
        else:
            h = tl.load(x)
            for _ in range(4):
                h = tl.exp(h)
                tl.store(o, h)
                tl.wait_for("prev")

    big = ks.hbm((256, 256), "f32")
    (found,) = [d for d in ks.lint(many, big, big, ranks=2) if d.code == "KS403"]
    assert found.message.startswith('notify to "next" of rank 0 is held back') and "tl.wait_for" in found.help
