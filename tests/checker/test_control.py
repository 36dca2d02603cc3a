"""Decisions: what follows one waits for what it read, in the graph, in every schedule, and to the checker."""

import attrs
import numpy as np
import pytest

import kernscope as ks
from kernscope.checker.check import check
from kernscope.ir import dtypes
from kernscope.ir.layout import Layout
from kernscope.ir.verifier.verify import verify
from kernscope.memory.automatic import placed
from kernscope.scheduler.policy.registry import LADDER
from kernscope.tracer.trace import recording

MACHINE = ks.load_machine("ahbm-pe")
TILE = Layout.dense((64,), dtypes.float32)


def decided() -> ks.Graph:
    """Loads, decides by what was loaded, and loads, computes and stores what has nothing to do with it; twice."""
    with recording(MACHINE.target, MACHINE.name, kernel="decided", automatic=True) as trace:
        recorder = trace.recorder
        x, o = trace.tensor("x", TILE), trace.tensor("o", TILE)
        for _ in trace.ranks():
            for _ in range(2):
                load = recorder.plan("load", (TILE,), (("shape", (64,)), ("dtype", dtypes.float32)))
                flag = recorder.record(load, [(x.storage, 0, TILE)])
                recorder.record_only(recorder.plan("decide", (TILE,), ()), [(flag.storage, 0, TILE)])
            tile = recorder.record(load, [(x.storage, 0, TILE)])
            result = recorder.compute("exp", (tile,))
            recorder.record(recorder.plan("store", (TILE,), ()), [(result.storage, 0, TILE)], into=(o.storage, 0, TILE))
    return placed(trace.finish({}))


GRAPH = decided()
DECISIONS = [node.id for node in GRAPH if node.op == "decide"]


def test_what_follows_a_decision_waits_for_it() -> None:
    """An edge leads from a decision to what nothing behind it comes before: through those all else waits, too; also the
    next decision."""
    assert verify(GRAPH) == []
    assert DECISIONS == [1, 3]
    control = {(e.source, e.target) for node in GRAPH for e in node.edges_in if e.reason.label == "control"}
    assert control == {(1, 2), (3, 4)}


@pytest.mark.parametrize("policy", LADDER)
def test_every_schedule_waits_and_the_checker_sees_one_that_does_not(policy: str) -> None:
    """The load behind the decisions starts when both of them have ended; moved before, it is refused."""
    made = ks.schedule(GRAPH, policy, MACHINE)
    assert check(made) == []
    late = 4
    assert made.start_ps[late] >= made.end_ps[DECISIONS].max()
    start, end = np.array(made.start_ps), np.array(made.end_ps)
    end[late] -= start[late]
    start[late] = 0
    damaged = attrs.evolve(made, start_ps=start, end_ps=end)
    assert ("control", (3, late)) in {(v.rule, v.nodes) for v in check(damaged)}


def test_a_decision_computes_nothing() -> None:
    """Numbers are those of the operations around it."""
    x = np.linspace(0, 1, 64, dtype=np.float32)
    assert np.array_equal(ks.run(GRAPH, {"x": x})["o"], np.exp(x))
