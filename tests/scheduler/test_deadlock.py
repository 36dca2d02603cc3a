"""Deadlocks: reported as the cycle of source lines, by every policy that has one and by no other."""

from pathlib import Path

import pytest

import kernscope as ks
from kernscope import DeadlockError, tl
from kernscope.scheduler.result.ladder import compare
from kernscope.scheduler.result.schedule import schedule

TILE, F16 = (64, 64), tl.float16
HERE = str(Path(__file__))
LINES = Path(__file__).read_text(encoding="utf-8").splitlines()


@ks.kernel
def receive_first(x, y):  # type: ignore[no-untyped-def]
    tile = tl.load(x[:, :])
    got = tl.recv("prev", TILE, F16)  # receives first
    tl.send("next", tile)
    tl.store(y[64 * tl.program_id(0) : 64 * tl.program_id(0) + 64, :], got)


@ks.kernel
def send_first(x, y):  # type: ignore[no-untyped-def]
    tl.send("next", tl.load(x[:, :]))
    got = tl.recv("prev", TILE, F16)
    tl.store(y[64 * tl.program_id(0) : 64 * tl.program_id(0) + 64, :], got)


@ks.kernel
def send_three_first(x, y):  # type: ignore[no-untyped-def]
    tile = tl.load(x[:, :])
    for _ in range(3):
        tl.send("next", tile)  # one too many
    for _ in range(3):
        tl.recv("prev", TILE, F16)


@ks.kernel
def post_first(x, y):  # type: ignore[no-untyped-def]
    future = tl.recv_async("prev", TILE, F16)
    tl.send("next", tl.load(x[:, :]))
    tl.wait(future)


@ks.kernel
def behind_on_the_engine(x, y):  # type: ignore[no-untyped-def]
    tile = tl.load(x[:, :])
    future = tl.recv_async("prev", TILE, F16)
    tl.exp(tl.wait(future))
    tl.send("next", tl.exp(tile))  # behind the other exp


@ks.kernel
def pass_on(x, y):  # type: ignore[no-untyped-def]
    got = tl.recv("prev", TILE, F16)
    for _ in range(5):
        got = got + 1.0
    tl.send("next", got)


@ks.kernel
def unmatched(x, y):  # type: ignore[no-untyped-def]
    if tl.program_id(0) == 0:
        tl.recv("prev", TILE, F16)
        tl.send("next", tl.load(x[:, :]))


def traced(kernel: ks.Kernel, ranks: int) -> ks.Graph:
    return ks.trace(kernel, ks.hbm((64, 64), "f16"), ks.hbm((64 * ranks, 64), "f16"), ranks=ranks)


def line_of(marker: str) -> int:
    (number,) = (n for n, text in enumerate(LINES, start=1) if text.endswith(f"# {marker}"))
    return number


@pytest.mark.parametrize("ranks", [2, 3, 8])
@pytest.mark.parametrize(
    ("kernel", "deadlocks"),
    [
        (receive_first, {"blocking", "lazy"}),
        (send_first, set()),
        (send_three_first, {"blocking", "lazy"}),
        (post_first, {"blocking"}),
        (behind_on_the_engine, {"blocking", "lazy", "queued"}),
        (pass_on, {"blocking", "lazy", "queued", "list"}),
    ],
)
def test_who_deadlocks(kernel: ks.Kernel, deadlocks: set[str], ranks: int) -> None:
    """The policies that deadlock are exactly those whose own waits close a cycle; the others have a schedule."""
    ladder = compare(traced(kernel, ranks))
    assert {row.policy for row in ladder if row.deadlock} == deadlocks
    for row in ladder:
        assert (row.schedule is None) == (row.makespan_ps is None) == (row.policy in deadlocks)
    assert (ladder.bounds is None) == ("list" in deadlocks)
    assert str(ladder).count("deadlock") == len(deadlocks)


def test_the_cycle_names_the_lines() -> None:
    """The error's places and ``cycle`` are the waiting lines of both ranks, its ``nodes`` the waiting nodes."""
    graph = traced(receive_first, 2)
    with pytest.raises(DeadlockError, match="deadlock under lazy: 4 commands wait for each other") as caught:
        schedule(graph, policy="lazy")
    error = caught.value
    receive = line_of("receives first")
    assert [place.line for place in error.cycle] == [receive + 1, receive, receive + 1, receive]
    assert {place.file for place in error.cycle} == {HERE}
    assert [graph[node].op for node in error.nodes] == ["send", "recv", "send", "recv"]
    assert [graph[node].rank for node in error.nodes] == [0, 0, 1, 1]
    assert f"{Path(HERE).name}:{receive}" in str(error)
    assert "(rank 0: recv waits for send of rank 1 (message))" in str(error)
    assert "tl.recv_async" in error.help


def test_a_full_channel_says_so() -> None:
    """Two slots, three sends: the third one waits for a credit. More slots cure it, as the help says."""
    with pytest.raises(DeadlockError) as caught:
        schedule(traced(send_three_first, 2), policy="lazy")
    assert "(credit)" in str(caught.value) and "slots" in caught.value.help
    assert line_of("one too many") in [place.line for place in caught.value.cycle]
    roomy = ks.load_machine("ahbm-pe").override({"link.slots": "3"})
    graph = ks.trace(send_three_first, ks.hbm((64, 64), "f16"), ks.hbm((128, 64), "f16"), ranks=2, machine=roomy)
    assert all(row.deadlock is None for row in compare(graph, roomy))


def test_an_engine_in_the_cycle() -> None:
    """In order, an exp that waits for a message holds up the one that the message needs."""
    with pytest.raises(DeadlockError) as caught:
        schedule(traced(behind_on_the_engine, 2), policy="queued")
    assert "exp waits for exp of rank 0 (engine)" in str(caught.value)
    assert line_of("behind the other exp") in [place.line for place in caught.value.cycle]


def test_a_chain_of_arithmetic_is_one_wait() -> None:
    """Five additions between receive and send are one line of the cycle."""
    with pytest.raises(DeadlockError, match="4 commands wait for each other") as caught:
        schedule(traced(pass_on, 2), policy="list")
    assert "send waits for recv of rank 0 (data, through 5 more)" in str(caught.value)


@ks.kernel
def nobody_receives(x, y):  # type: ignore[no-untyped-def]
    tl.send("next", tl.load(x[:, :]))


@ks.kernel
def another_tile(x, y):  # type: ignore[no-untyped-def]
    tl.send("next", tl.load(x[:, :]))
    tl.store(y[0:64, 0:32], tl.recv("prev", (64, 32), F16))


@pytest.mark.parametrize("kernel", [unmatched, nobody_receives, another_tile])
def test_what_lint_says_of_messages_a_schedule_says_too(kernel: ks.Kernel) -> None:
    """A message without its partner has no schedule under any policy, and no run: the error has the words, the place
    and the nodes of KS401."""
    graph = traced(kernel, 2)
    findings = ks.lint(graph, select=["KS401"])
    for refused in (
        *(lambda policy=policy: schedule(graph, policy=policy) for policy in ("blocking", "lazy", "queued", "list")),
        lambda: compare(graph),
        lambda: ks.run(graph),
    ):
        with pytest.raises(ks.UnmatchedMessageError) as caught:
            refused()
        assert any(caught.value.message.startswith(d.message.partition(", 2 times")[0]) for d in findings)
        assert caught.value.places[0][1] in [d.location for d in findings]
        assert {node for d in findings for node in d.nodes} == set(caught.value.nodes)
        assert caught.value.help in [d.help for d in findings]


def test_a_report_of_unmatched_messages_still_stands(tmp_path: Path) -> None:
    """Its findings are what is wanted: no policy has a row with a time."""
    data = ks.report(traced(unmatched, 2), tmp_path / "page.html")
    assert [row.verdict for row in data.policies] == ["unmatched"] * 4 and not data.lint.ok
    assert "unmatched" in (tmp_path / "page.html").read_text(encoding="utf-8")


@ks.kernel
def slow_receiver(x, y):  # type: ignore[no-untyped-def]
    if tl.program_id(0) == 0:
        tile = tl.load(x[:, :])
        for _ in range(3):
            tl.send("next", tile)
    else:
        tl.exp(tl.zeros((1024, 64), tl.float32))
        for _ in range(3):
            tl.recv("prev", TILE, F16)


@pytest.mark.parametrize("policy", ["blocking", "lazy"])
def test_a_full_channel_holds_the_cpu_before_the_issue(policy: str) -> None:
    """The third send waits for its credit (the first recv, behind a fill of 260 and an exp of 1,028 ns), then pays its
    issue of 10 ns, then takes 178 ns: under lazy as under blocking, so that lazy is never the slower one."""
    machine = ks.load_machine().override({"cpu.issue_cycles.send": "10"})
    found = schedule(traced(slow_receiver, 2), machine, policy)
    third = [node.id for node in found.graph if node.op == "send"][2]
    credit = (260 + 1028) * 1000
    assert (found.issue_ps[third], found.start_ps[third]) == (credit + 10_000, credit + 10_000)
    assert found.makespan_ps == found.end_ps[third] == credit + 188_000
    # Queued, nothing holds the recvs behind the exp.
    assert schedule(found.graph, machine, "queued").makespan_ps == credit


def test_a_posted_receive_under_blocking_is_told_to_send_first() -> None:
    """The author has posted it already: that advice would not help."""

    def exchange(x: ks.HbmTensor) -> None:
        row = tl.load(x[tl.program_id(0) : tl.program_id(0) + 1, :])
        future = tl.recv_async("prev", (1, 8), tl.float32)
        tl.send("next", row)
        tl.store(x[tl.program_id(0) : tl.program_id(0) + 1, :], tl.wait(future))

    graph = ks.trace(exchange, ks.hbm((2, 8), "f32"), ranks=2)
    with pytest.raises(ks.DeadlockError) as caught:
        ks.schedule(graph, "blocking")
    assert "send before it receives" in caught.value.help and "recv_async" not in caught.value.help
    assert ks.schedule(graph, "lazy").makespan_ps > 0
