"""Faults that people have really met, as a user would try them here: through the public functions, end to end.

Each docstring names the case. The parts are tested where they are built (tests/tracer, tests/ir, tests/scheduler,
tests/linter); here stands that the whole behaves.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kernscope as ks
from kernscope import tl
from kernscope.cli import main

KIB, MIB = 1 << 10, 1 << 20
POLICIES = ("blocking", "lazy", "queued", "list")


def hbm(nbytes: int) -> Any:
    return ks.hbm((nbytes // 4,), "f32")


def codes(kernel: Callable[..., Any], *args: Any, ranks: int = 1, machine: Any = None) -> list[str]:
    """Codes of errors and warnings."""
    report = ks.lint(kernel, *args, ranks=ranks, machine=machine)
    return [d.code for d in report.at_least("warning")]


# --- scratch budget ---------------------------------------------------------------------------------------------------


def eight_buffers(x: Any) -> None:
    buffers = [tl.load(x[:]) for _ in range(7)]
    last = tl.load(x[:])
    for buffer in [*buffers, last]:
        tl.store(x[:], buffer)


def test_an_overflow_names_its_buffers_in_bytes() -> None:
    """Cases 1, 5 and 7: needed, budget and each line's bytes, from `trace` and from the linter; never bits."""
    x = hbm(144 * KIB)
    with pytest.raises(ks.ScratchOverflowError) as caught:
        ks.trace(eight_buffers, x)
    (found,) = ks.lint(eight_buffers, x).of("KS101")
    for text in (str(caught.value), str(found)):
        assert "1,048,576" in text and "147,456" in text and "test_faults.py" in text
        assert "bit" not in text
    assert "1,179,648" in str(found)


def test_the_command_lines_first_line_is_the_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Case 5: nothing stands before it, no traceback, and every number of bytes has its unit."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    Path("k.py").write_text(
        "import kernscope as ks\nfrom kernscope import tl\n"
        "@ks.launch('x', x=ks.hbm((300, 1024), 'f32'))\n@ks.kernel\n"
        "def k(x):\n    tl.store(x[:, :], tl.load(x[:, :]))\n",
        encoding="utf-8",
    )
    assert main(["schedule", "k.py"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error[KE202]: ") and "Traceback" not in err
    assert re.search(r"1,228,800 B", err) and re.search(r"1,048,576 B", err)
    assert main(["lint", "k.py"]) == 1
    assert capsys.readouterr().out.startswith("error[KS101]: ")


def test_a_result_counts() -> None:
    """Case 2: `c = a + b`, 0.4 MiB each, needs 1.2 MiB."""

    def add(x: Any) -> None:
        a, b = tl.load(x[:]), tl.load(x[:])
        tl.store(x[:], a + b)

    assert codes(add, hbm(4 * MIB // 10 // 16 * 16)) == ["KS101"]
    assert codes(add, hbm(MIB // 4)) == []


def test_scopes_in_sequence_share_their_bytes() -> None:
    """Case 3: eight times 0.3 MiB pass, with a peak of 0.3 MiB; the linter has nothing to say."""
    x = hbm(300 * KIB)

    def kernel(x: Any) -> None:
        for _ in range(8):
            with tl.scratch_scope():
                tl.store(x[:], tl.load(x[:]))

    assert ks.liveness(ks.trace(kernel, x)).peak_bytes == 300 * KIB
    assert codes(kernel, x) == []


@pytest.mark.parametrize(("nbytes", "fits"), [(MIB, True), (MIB - 15, True), (MIB + 1, False), (MIB + 16, False)])
def test_the_budget_itself_fits(nbytes: int, fits: bool) -> None:
    """Case 4: exactly the printed maximum passes, one byte more does not; sizes are rounded up before."""
    x = ks.hbm((nbytes,), "i8")

    def kernel(x: Any) -> None:
        tl.store(x[:], tl.load(x[:]))

    assert codes(kernel, x) == ([] if fits else ["KS101"])
    if fits:
        assert ks.liveness(ks.trace(kernel, x)).peak_bytes == MIB
    else:
        with pytest.raises(ks.ScratchOverflowError, match=r"1,048,576"):
            ks.trace(kernel, x)


@pytest.mark.parametrize("count", [1, 2, 100])
def test_a_loop_with_a_scope_has_one_iterations_peak(count: int) -> None:
    """Case 6: whatever the number of iterations; the hidden tiles of a composite count."""
    a, b, o = ks.hbm((128, 512), "f16"), ks.hbm((512, 128), "f16"), ks.hbm((128, 128), "f32")

    def kernel(a: Any, b: Any, o: Any) -> None:
        for _ in range(count):
            with tl.scratch_scope():
                product = tl.composite(op="gemm", a=tl.ref(a, (128, 512), "f16"), b=tl.ref(b, (512, 128), "f16"))
                tl.store(o[:, :], product)

    graph = ks.trace(kernel, a, b, o)
    peak = ks.liveness(graph).peak_bytes
    assert peak == ks.liveness(ks.trace(kernel, a, b, o)).peak_bytes
    assert peak > 128 * 128 * 4  # more than the product alone
    if count > 1:
        once = next(i for i in range(len(graph)) if graph[i].op == "scope_exit")
        assert int(ks.liveness(graph).cursor[:once].max()) == peak


# --- reuse and lifetimes ----------------------------------------------------------------------------------------------


def store_then_load(x: Any, y: Any, o: Any) -> None:
    with tl.scratch_scope():
        tl.store(o[:], tl.load(x[:]))
    with tl.scratch_scope():
        b = tl.load(y[:])
        tl.store(o[:], tl.exp(b))


@pytest.mark.parametrize("policy", POLICIES)
def test_bytes_are_not_overwritten_under_a_store_in_flight(policy: str) -> None:
    """Case 8: the load into the same bytes begins when the store out of them has ended, in every policy."""
    graph = ks.trace(store_then_load, hbm(64 * KIB), hbm(64 * KIB), hbm(64 * KIB))
    schedule = ks.schedule(graph, policy)
    store = next(i for i in range(len(graph)) if graph[i].op == "store")
    load = [i for i in range(len(graph)) if graph[i].op == "load"][1]
    assert schedule.start_ps[load] >= schedule.end_ps[store]
    assert list(ks.check(schedule)) == []


@pytest.mark.parametrize("policy", POLICIES)
def test_a_read_before_a_copy_stays_before_it(policy: str) -> None:
    """Case 9: `exp` reads what `copy_to` overwrites afterwards."""

    def kernel(x: Any, o: Any) -> None:
        a, b = tl.load(x[:]), tl.load(x[:])
        tl.store(o[:], tl.exp(a))
        tl.copy_to(a, b)
        tl.store(o[:], a)

    schedule = ks.schedule(graph := ks.trace(kernel, hbm(4096), hbm(4096)), policy)
    read = next(i for i in range(len(graph)) if graph[i].op == "exp")
    copy = next(i for i in range(len(graph)) if graph[i].op == "copy_to")
    assert schedule.start_ps[copy] >= schedule.end_ps[read]


def test_copies_to_disjoint_slices_are_independent() -> None:
    """Case 10: no path of edges from one to the other."""

    def kernel(x: Any, o: Any) -> None:
        whole = tl.empty((2, 64), tl.float32)
        tl.copy_to(whole[0:1, :], tl.load(x[0:1, :]))
        tl.copy_to(whole[1:2, :], tl.load(x[1:2, :]))
        tl.store(o[:, :], whole)

    x = ks.hbm((2, 64), "f32")
    graph = ks.trace(kernel, x, x)
    first, second = (i for i in range(len(graph)) if graph[i].op == "copy_to")
    before = {second}
    for source, target in sorted(
        zip(graph.edges.source.tolist(), graph.edges.target.tolist(), strict=True), reverse=True
    ):
        before |= {source} if target in before else set()
    assert first not in before and len(before) == 2  # itself and its own load
    assert codes(kernel, x, x) == []


def view_out_of_its_scope(x: Any, how: str) -> Any:
    with tl.scratch_scope():
        a = tl.load(x[:, :])
        return {"slice": a[0:8, :], "transpose": a.T, "reshape": tl.reshape(a, (8, 32)), "whole": a}[how]


@pytest.mark.parametrize("how", ["slice", "transpose", "reshape", "whole"])
def test_a_view_returned_from_a_scope_is_found(how: str) -> None:
    """Case 11: through every kind of view, out of a helper function."""

    def kernel(x: Any) -> None:
        tl.exp(view_out_of_its_scope(x, how))

    assert "KS201" in codes(kernel, ks.hbm((16, 16), "f32"))


def test_made_outside_written_inside_read_after_is_right() -> None:
    """Case 12: nothing is wrong, and nothing is said."""

    def kernel(x: Any, o: Any) -> None:
        kept = tl.zeros((16, 16), tl.float32)
        for _ in range(3):
            with tl.scratch_scope():
                tl.copy_to(kept, kept + tl.load(x[:, :]))
        tl.store(o[:, :], kept)

    x = ks.hbm((16, 16), "f32")
    assert codes(kernel, x, x) == []


def test_a_live_range_does_not_end_where_a_scope_opens() -> None:
    """Case 13: what is read inside a scope was not given away at its opening."""

    def kernel(x: Any, o: Any) -> None:
        a = tl.load(x[:])
        with tl.scratch_scope():
            b = tl.load(x[:])
            tl.store(o[:], a + b)

    graph = ks.trace(kernel, hbm(1024), hbm(1024))
    live = ks.liveness(graph)
    add = next(i for i in range(len(graph)) if graph[i].op == "add")
    assert int(live.live_bytes[add]) == 3 * 1024
    assert codes(kernel, hbm(1024), hbm(1024)) == []


@pytest.mark.parametrize("policy", POLICIES)
def test_an_asynchronous_operations_buffer_lives_until_its_end(policy: str) -> None:
    """Case 14: a load is posted in one scope and never read; the next scope's writer of its bytes waits for it."""

    def kernel(x: Any, o: Any) -> None:
        with tl.scratch_scope():
            tl.load(x[:])
        with tl.scratch_scope():
            tl.store(o[:], tl.zeros((16 * KIB,), tl.float32))

    graph = ks.trace(kernel, hbm(64 * KIB), hbm(64 * KIB))
    schedule = ks.schedule(graph, policy)
    load, full = (next(i for i in range(len(graph)) if graph[i].op == op) for op in ("load", "fill"))
    assert schedule.start_ps[full] >= schedule.end_ps[load]
    assert "KS301" in codes(kernel, hbm(64 * KIB), hbm(64 * KIB))


def test_a_kernel_that_raised_leaves_the_linter_clean() -> None:
    """Case 15: in an open scope, past the budget; the next report is as if there had been none."""

    def raises(x: Any) -> None:
        with tl.scratch_scope():
            tl.load(x[:])
            raise KeyError("the kernel's own")

    before = str(ks.lint(store_then_load, hbm(1024), hbm(1024), hbm(1024)))
    with pytest.raises(KeyError):
        ks.lint(raises, hbm(1024))
    with pytest.raises(ks.ScratchOverflowError):
        ks.trace(eight_buffers, hbm(MIB))
    assert str(ks.lint(store_then_load, hbm(1024), hbm(1024), hbm(1024))) == before


# --- messages ---------------------------------------------------------------------------------------------------------


def one_buffer_ring(x: Any, receive_first: bool) -> None:
    """Receive, compute and send on one buffer, step after step."""
    buffer = tl.load(x[:])
    for _ in range(4):
        if not receive_first:
            tl.send("next", buffer)
        tl.recv("prev", (256,), "f32", out=buffer)
        tl.copy_to(buffer, buffer + 1)
        if receive_first:
            tl.send("next", buffer)
    tl.store(x[:], buffer)


def test_a_ring_that_receives_first_is_a_deadlock() -> None:
    """Case 21: said by the linter and by the schedule, with the line that waits, and not completed by a simulator."""
    assert "KS402" in codes(one_buffer_ring, hbm(1024), True, ranks=4)
    graph = ks.trace(one_buffer_ring, hbm(1024), True, ranks=4)
    for policy in POLICIES:
        with pytest.raises(ks.DeadlockError, match=r"test_faults\.py"):
            ks.schedule(graph, policy)


@pytest.mark.parametrize("policy", ("lazy", "queued", "list"))
def test_a_ring_that_sends_first_keeps_its_buffer_until_it_is_sent(policy: str) -> None:
    """Case 21: a message into the buffer is taken only when the one out of it has left, on every rank and step."""
    assert not {"KS401", "KS402"} & set(codes(one_buffer_ring, hbm(1024), False, ranks=4))
    graph = ks.trace(one_buffer_ring, hbm(1024), False, ranks=4)
    schedule = ks.schedule(graph, policy)
    assert list(ks.check(schedule)) == []
    for rank in range(4):
        nodes = [i for i in range(len(graph)) if graph[i].rank == rank]
        sends = [i for i in nodes if graph[i].op == "send"]
        receives = [i for i in nodes if graph[i].op == "recv"]
        assert len(sends) == len(receives) == 4
        assert all(schedule.end_ps[r] >= schedule.end_ps[s] for s, r in zip(sends, receives, strict=True))


def lonely_send(x: Any) -> None:
    if tl.program_id(0) == 0:
        tl.send("next", tl.load(x[:]))


@pytest.mark.parametrize("slots", ["1", "2"])
def test_a_send_without_a_receive_is_found_whatever_the_slots(slots: str) -> None:
    """Case 22: a channel that has room for the message hides nothing."""
    machine = ks.load_machine("ahbm-pe").override({"link.slots": slots})
    assert "KS401" in codes(lonely_send, hbm(1024), ranks=2, machine=machine)


def test_a_ring_with_an_idle_rank() -> None:
    """Case 22: rank 2 of 4 has nothing to do; messages to it and from it lack a partner, the others fit."""

    def kernel(x: Any) -> None:
        if tl.program_id(0) == 2:
            return
        tl.send("next", tl.load(x[:]))
        tl.store(x[:], tl.recv("prev", (256,), "f32"))

    report = ks.lint(kernel, hbm(1024), ranks=4)
    assert [d.code for d in report.at_least("error") if d.code != "KS502"] == ["KS401", "KS401"]
    sent, received = sorted(report.of("KS401"), key=lambda d: d.message, reverse=True)
    assert 'send to "next" of rank 1: rank 2 never receives it' in sent.message
    assert "of rank 3: rank 2 never sends it" in received.message
