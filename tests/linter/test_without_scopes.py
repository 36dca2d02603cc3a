"""What rules about scratch say of a kernel whose allocations have automatic lifetimes."""

import re
from collections.abc import Callable
from typing import Any

import pytest

import kernscope as ks
from kernscope import tl
from kernscope.analysis.analysis import Analysis
from kernscope.ir.memories import Memory
from kernscope.ir.target import Target
from kernscope.ir.verifier.verify import verify
from kernscope.linter import lint_graph
from kernscope.memory.automatic import placed
from kernscope.tracer.recording.current import current
from kernscope.tracer.trace import recording

SPEC = ks.hbm((64, 16), "f32")
#: All about scratch and results; what needs a machine says nothing of lifetimes.
SELECTED = ("KS1", "KS2", "KS301", "KS302", "KS5")


def record(kernel: Callable[..., Any], target: Target, ranks: int = 1) -> ks.Graph:
    """A kernel of two tensors, without scopes."""
    with recording(target, "", ranks, kernel=kernel.__name__, automatic=True) as trace:
        x, o = trace.tensor("x", SPEC.layout), trace.tensor("o", SPEC.layout)
        for _ in trace.ranks():
            trace.call(kernel, x, o)
    graph = placed(trace.finish({}))
    assert verify(graph) == []
    return graph


def loop(x: Any, o: Any) -> None:
    """Tile by tile: each iteration's bytes are the next one's."""
    for i in range(16):
        rows = slice(i * 4, (i + 1) * 4)
        tl.store(o[rows, :], tl.exp(tl.load(x[rows, :])) * 2.0)


def whole(x: Any, o: Any) -> None:
    """Three tiles at once."""
    a = tl.load(x[:, :])
    b = tl.exp(a)
    tl.store(o[:, :], a + b)


def test_a_loop_takes_no_more_than_an_iteration_and_is_told_of_no_scope() -> None:
    """256 bytes a tile, two at once: KS103 has nothing to say where KS103 speaks of the same lines with scopes."""
    target = Target.of_scratch(1 << 20)
    graph = record(loop, target)
    assert ks.liveness(graph).peak_bytes == 512
    assert [d.code for d in lint_graph(Analysis(graph), select=SELECTED)] == []
    assert [f.code for f in ks.lint(ks.trace(loop, x=SPEC, o=SPEC), select=["KS103"])] == ["KS103"]


@pytest.mark.parametrize(
    ("scratch", "words"),
    [
        (8192, "holds the most at the peak"),  # each fits, not all
        (2048, "alone takes 4,096 B: "),
    ],
)
def test_an_overflow_is_told_with_its_holders_and_no_scope(scratch: int, words: str) -> None:
    """KS101 says what is needed and by whom, on all ranks at once, and how to need less without scopes."""
    graph = record(whole, Target.of_scratch(scratch), ranks=2)
    (finding,) = (f for f in lint_graph(Analysis(graph), select=SELECTED) if f.code == "KS101")
    assert "12,288 B needed" in finding.message
    assert "on all 2 ranks" in finding.message
    assert words in finding.help
    assert not re.search(r"\bscope|scratch_scope", finding.help + finding.message)
    assert sum(place.role.startswith("holds 4,096 B") for place in finding.locations) == 3
    assert not ks.liveness(graph).fits


def test_what_nothing_reads_is_told_and_what_nothing_uses_takes_nothing() -> None:
    """KS302 for the result that nobody reads (also a load's, which no scope frees); an allocation that nothing touches
    takes no bytes, and nobody has to hear of it."""

    def wasteful(x: Any, o: Any) -> None:
        tl.empty((64, 16), tl.float32)
        lost = tl.load(x[0:8, :])  # noqa: F841  # that is what the rule finds
        tl.store(o[:, :], tl.load(x[:, :]))

    graph = record(wasteful, Target.of_scratch(4096 + 512))
    findings = list(lint_graph(Analysis(graph), select=SELECTED))
    assert [f.code for f in findings if f.severity != "info"] == ["KS302"]
    assert "lost" in findings[0].message
    assert ks.liveness(graph).peak_bytes == 4096
    assert sorted(holder.name for holder in ks.liveness(graph).peak_holders()) == [""]


def test_each_memory_is_placed_by_itself() -> None:
    """Addresses of one memory say nothing of another's, and are multiples of its own alignment."""
    memories = (Memory("hbm", is_global=True), Memory("sbuf", 1 << 16, 32), Memory("psum", 1024, 64))

    def through(x: Any, o: Any) -> None:
        for i in range(4):
            tile = tl.load(x[i : i + 1, 0:9])
            kept = current().allocate(tile.layout, memory=2)
            tl.copy_to(kept, tile)
            tl.store(o[i : i + 1, 0:9], kept)

    graph = record(through, Target(memories=memories, results="sbuf"))
    live = ks.liveness(graph)
    assert (live.peak_bytes, live.in_memory("psum").peak_bytes) == (64, 64)
    assert set(graph.storages.address[graph.in_scratch].tolist()) == {0}
    assert {graph.storage(row).memory.name for row in range(len(graph.storages))} == {"hbm", "sbuf", "psum"}
