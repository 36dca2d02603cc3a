"""The page of published times: made from the benchmark's own files, so that it says what its last run said."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from published_goals import Compared, goals, ratios, stored
from published_timings import parameters, stored_fits

__all__ = ["published_page"]

_HEAD = """# Published times beside ours

Times that others measured and published, each with the kernel in this language that makes it: with the tiling and the
order of its source, traced and scheduled like any other. `python benchmarks/run.py machines` in a checkout prints this
table; what the page shows is what `--fit` stored last.

- *documented*: with the numbers of public documents alone, and those that are assumed. They leave out what no document
  tells, so this is what a kernel takes at best.
- *fitted*: with two numbers a machine at most fitted to its rows; they are listed below.
- *left out*: fitted without the rows of the row's own family: what is said of a kernel that nobody has measured.
- A *ratio* is that of two versions of one kernel on one machine, which is what the tool is for.

"""

_CHOICES = """## What flatters, and what is traced

Choices that were made when the measurement was known: DRAM of the n150 at its measured rate for random placement, not
in theory; the 910B2's memory at 32 bytes a cycle and core, not at the 1.6 TB/s that the vendor also gives; the kernel
that its source does not name (fast.cu), the steps of K that `ttnn` chose and did not tell, the configuration of Pallas'
step 0 (the widest of those tried that fits beside its staged block). Wormhole's times are the device's cycles; the
host's clock in the same table shows more. Which of a machine's numbers are fitted: of both NVIDIA chips the share of
their clocks at which they keep running. The rate of the B200's L2, which was fitted before, leaves two rows more beyond
25 % where their family is left out.

Where a machine runs the same work many times over, a part of it is traced. What all ranks share is then shared by those
that are traced, in their proportion.

"""


def published_page() -> str:
    """The page."""
    found = stored()
    return "".join((_HEAD, _goals(found), _rows(found), _fitted(found), _ratios(found), _CHOICES, _parts(found)))


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    names = list(head)
    lines = [names, ["---"] * len(names), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines) + "\n"


def _percent(error: float) -> str:
    return f"{100 * error:+.0f} %"


def _goals(found: list[Compared]) -> str:
    lines = [
        (goal.what, goal.wanted, goal.reached, "met" if goal.met else "**missed**", ", ".join(goal.missed))
        for goal in goals(found)
    ]
    return "## Goals\n\n" + _table(("goal", "wanted", "reached", "", "not"), lines)


def _rows(found: list[Compared]) -> str:
    text = "## Times\n\n"
    for machine, some in groupby(sorted(found, key=lambda one: one.row.machine), lambda one: one.row.machine):
        lines = [
            (
                f"`{one.row.id}`",
                f"[{one.row.what}]({one.row.url}), {one.row.shape}, {one.row.dtype}; {one.row.tiling}",
                f"{one.row.ns / 1000:,.1f} us",
                _percent(one.error(one.documented_ns)),
                _percent(one.error(one.fitted_ns)),
                "" if one.left_out_ns is None else _percent(one.error(one.left_out_ns)),
            )
            for one in some
        ]
        text += f"### {machine}\n\n"
        text += _table(("row", "kernel, shape, dtype; tiling", "measured", "documented", "fitted", "left out"), lines)
    return text


def _fitted(found: list[Compared]) -> str:
    lines = [
        (machine, f"`{name}`", value, "fitted to " + ", ".join(o.row.id for o in found if o.row.machine == machine))
        for (machine, left_out), values in sorted(stored_fits().items())
        for name, value in values.items()
        if not left_out
    ]
    machines = dict.fromkeys(one.row.machine for one in found)
    alone = [machine for machine in machines if not parameters(machine)]
    return (
        "## Fitted numbers\n\nThe presets keep their documented ones. `host_us` is no field of a machine: what every "
        "time holds besides, in microseconds.\n\n"
        + _table(("machine", "field", "value", ""), lines)
        + (f"Nothing was fitted of {', '.join(alone)}.\n\n" if alone else "")
    )


def _ratios(found: list[Compared]) -> str:
    documented = ratios(found, lambda one: one.documented_ns)
    fitted = ratios(found, lambda one: one.fitted_ns)
    lines = [
        (f"`{a.first}`", f"`{a.second}`", f"{a.published:.2f}", f"{a.predicted:.2f}", f"{b.predicted:.2f}")
        for a, b in zip(documented, fitted, strict=True)
    ]
    return "## Ratios of versions\n\n" + _table(
        ("the first", "takes the second", "times", "documented", "fitted"), lines
    )


def _parts(found: list[Compared]) -> str:
    lines = [
        (f"`{one.row.id}`", f"`{one.row.kernel}`", one.row.policy, one.row.part or "all of it", one.row.note)
        for one in found
    ]
    return _table(("row", "kernel in `benchmarks/kernels`", "policy", "traced", "note"), lines)
