"""``kernscope schedule``: buffers, the exact policy, and what reordering gains."""

from __future__ import annotations

import json

import pytest

import kernscope as ks
from kernscope.machine.units import format_ps

SWEEP = """
    @ks.launch("four", x=ks.hbm((256, 128), "f32"), o=ks.hbm((64, 128), "f32"))
    @ks.kernel
    def sweep(x, o):
        top = tl.load(x[:64, :])
        for i in range(4):
            with tl.scratch_scope():
                tile = tl.load(x[i * 64 : (i + 1) * 64, :])
                tl.copy_to(top, tl.maximum(top, tl.exp(tl.exp(tile))))
        tl.store(o[:, :], top)
"""
PEAK = {
    "as traced": 163840,
    "1": 163840,
    "2": 294912,
    "3": 425984,
    "4": 557056,
}  # a tile is 32,768 B, a scope 4 of them


@pytest.fixture
def sweep(write):
    return write(SWEEP, "sweep.py")


def rows_of(text):
    """The table of the trade: its head, then its rows by their first column."""
    lines = [line.strip().split("  ") for line in text.splitlines() if line.startswith("  ")]
    cells = [[cell.strip() for cell in line if cell.strip()] for line in lines]
    head = next(row for row in cells if row[0] == "buffers")
    return head, {row[0]: row[1:] for row in cells if row[0] in PEAK}


def test_a_range_of_buffers_is_a_table_of_makespan_against_scratch(kernscope, sweep):
    """A row as traced and one for each number: the peak, its share, each policy's makespan and the bound, all as the
    Python interface has them."""
    done = kernscope("schedule", sweep, "--buffers", "1-4")
    assert done.status == 0
    assert done.err == ""
    head, rows = rows_of(done.out)
    assert head == ["buffers", "scratch", "of budget", "blocking", "lazy", "queued", "list", "bound"]
    assert list(rows) == list(PEAK)
    kernscope("trace", sweep, "-o", "sweep.ksg")
    graph = ks.load("sweep.ksg")
    for label, row in rows.items():
        made = graph if label == "as traced" else ks.rebuffer(graph, int(label))
        ladder = ks.compare(made)
        assert row[0] == f"{PEAK[label]:,} B"
        assert row[1] == f"{100 * PEAK[label] / (1 << 20):.1f} %"
        assert row[2:] == [*(format_ps(each.makespan_ps) for each in ladder), format_ps(ladder.bound_ps)]
    assert rows["2"][5] != rows["1"][5]


def test_one_number_schedules_the_graph_with_so_many(kernscope, sweep):
    """The ladder and the JSON are those of the rebuffered graph; the table shows it beside the traced one."""
    done = kernscope("schedule", sweep, "--buffers", "2")
    assert done.status == 0
    assert list(rows_of(done.out)[1]) == ["as traced", "2"]
    assert "ahbm-pe, buffers=2\n" in done.out
    document = json.loads(kernscope("schedule", sweep, "--buffers", "2", "--json").out)
    kernscope("trace", sweep, "-o", "sweep.ksg")
    made = ks.rebuffer(ks.load("sweep.ksg"), 2)
    assert document["makespan_ps"] == ks.schedule(made).makespan_ps
    assert [row["address"] for row in document["storages"]] == made.storages.address.tolist()


def test_what_does_not_fit_is_refused_and_marked(kernscope, sweep):
    """One number past the budget: an error with both sizes and the largest that fits. In a table: a mark."""
    small = ("--set", "scratch.bytes=300000")
    done = kernscope("schedule", sweep, *small, "--buffers", "4")
    assert done.status == 2
    assert done.out == ""
    assert "does not fit with --buffers 4: 557,056 B of scratch, the budget is 300,000 B" in done.err
    assert "help: 2 is the most that fits; --buffers 1-4 shows the trade" in done.err
    rows = rows_of(kernscope("schedule", sweep, *small, "--buffers", "2-3").out)[1]
    assert rows["2"][1] == "98.3 %"
    assert rows["3"][1] == "142.0 %, too much"


def test_a_kernel_with_lifetime_findings_has_no_buffers(kernscope, stale):
    """The error names the rule, its count and the line."""
    done = kernscope("schedule", stale, "--buffers", "2")
    assert done.status == 2
    assert "KS201 use-after-scope (1 x)" in done.err
    assert "stale.py:" in done.err


@pytest.mark.parametrize("wrong", ["0", "-1", "2-1", "1-", "two", "65", "1-65", "", "1.5"])
def test_buffers_are_a_number_or_a_range(kernscope, sweep, wrong):
    """Anything else is one clear error."""
    done = kernscope("schedule", sweep, f"--buffers={wrong}")
    assert done.status == 2
    assert "help: write a number from 1 to 64, or a range such as 1-4" in done.err


def test_json_holds_one_schedule(kernscope, sweep):
    """A range of buffers and ``--json`` do not go together."""
    done = kernscope("schedule", sweep, "--buffers", "1-2", "--json")
    assert done.status == 2
    assert "give one number of buffers" in done.err


def test_what_reordering_gains_is_shown(kernscope, sweep, good):
    """The gain of list over queued, with the lines that overtake most, apart from that of queued over lazy, for which
    nothing is reordered. Where nothing is gained, nothing is said."""
    out = kernscope("schedule", sweep, "--buffers", "2").out
    assert "what queueing gains: " in out and "what reordering gains" not in out
    out = kernscope("schedule", "kernscope.kernels.flash_attention:flash_attention", "--launch", "2k").out
    rows = {line.split()[0]: line.split() for line in out.splitlines()[2:6]}
    gained = {what: float(out.split(f"what {what} gains: ")[1].split()[0]) for what in ("queueing", "reordering")}
    assert gained["queueing"] == pytest.approx(float(rows["lazy"][1]) - float(rows["queued"][1]))
    assert gained["reordering"] == pytest.approx(float(rows["queued"][1]) - float(rows["list"][1]))
    first = out.split("what reordering gains: ")[1].splitlines()[2].split()
    assert first[0].startswith("flash_attention.py:")
    assert " gains: " not in kernscope("schedule", good).out


def test_schedule_and_report_explain_one_policy(kernscope, sweep, good):
    """That of the shortest schedule, of equal ones the first in the ladder."""
    for target in (sweep, good):
        told = [kernscope(command, target).out for command in ("schedule", "report")]
        ladder = [line.split() for line in told[0].splitlines()[2:6]]
        least = min(float(row[1]) for row in ladder)
        best = next(row[0] for row in ladder if float(row[1]) == least)
        assert all(f"\n{best}: where the " in text for text in told)


def test_the_exact_policy_says_whether_it_proved_it(kernscope, sweep, good):
    """A small kernel is proved; a search that is cut off says how far from the optimum it can be."""
    pytest.importorskip("ortools")
    done = kernscope("schedule", good, "--policy", "optimal", "--time-limit", "10", "--seed", "3")
    assert done.status == 0
    assert "optimal: proved, no schedule is shorter" in done.out
    assert [line.split()[0] for line in done.out.splitlines()[1:4]] == ["policy", "optimal", "bound"]
    cut = kernscope(
        "schedule",
        "kernscope.kernels.flash_attention:flash_attention",
        "--launch",
        "2k-causal",
        "--policy",
        "optimal",
        "--time-limit",
        "0.01",
    )
    assert cut.status == 0
    assert "optimal: not proved within 0.01 s, at most " in cut.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--time-limit", "5"), "--time-limit without --policy optimal"),
        (("--policy", "list", "--seed", "1"), "--seed without --policy optimal"),
        (("--policy", "optimal", "--time-limit", "0"), "a time limit of 0.0"),
        (("--policy", "optimal", "--seed", "-1"), "a seed of -1"),
    ],
)
def test_limits_belong_to_the_exact_policy(kernscope, sweep, arguments, message):
    """No limit is ignored in silence, and none is senseless."""
    done = kernscope("schedule", sweep, *arguments)
    assert done.status == 2
    assert message in done.err
