"""``ks.sweep``: every combination is a row, and each says what a trace and a schedule of its own would say."""

from __future__ import annotations

import csv
import io
import itertools

import pytest

import kernscope as ks
from kernscope import tl
from kernscope.face.sweeping.result import MEASURES, Sweep, SweepRow


@ks.launch("one", x=ks.hbm((64, 64), "f32"), o=ks.hbm((64, 64), "f32"))
@ks.launch("two", x=ks.hbm((128, 64), "f32"), o=ks.hbm((128, 64), "f32"))
@ks.kernel
def scale(x, o, *, tile=16, policy=1):
    """o = 2 x, a block of rows at a time."""
    if tile == 13:
        raise RuntimeError("thirteen")
    for i in range(0, x.shape[0], tile):
        with tl.scratch_scope():
            tl.store(o[i : i + tile, :], tl.load(x[i : i + tile, :]) * 2.0)


def test_every_combination_is_a_row_in_order():
    """The last axis varies fastest, and each row is what the single stages say."""
    axes = {"tile": [16, 32], "launch": ["one", "two"], "buffers": [1, 2], "machine.dma_read.channels": [1, 2]}
    found = ks.sweep(scale, axes, effort="normal")
    assert [tuple(row.point.values()) for row in found] == list(itertools.product(*axes.values()))
    for row in found:
        machine = ks.load_machine().override({"dma_read.channels": str(row.point["machine.dma_read.channels"])})
        launch = scale.launch(row.point["launch"])
        graph = ks.rebuffer(ks.trace(launch, tile=row.point["tile"], machine=machine), row.point["buffers"])
        schedule = ks.schedule(graph, "list", machine, effort="normal")
        assert (row.makespan_ps, row.bound_ps) == (schedule.makespan_ps, schedule.bound_ps)
        assert row.peak_bytes == ks.liveness(graph).peak_bytes and row.fits


def test_a_parameter_comes_before_an_axis_of_its_name():
    """This kernel's own ``policy`` is varied; elsewhere it is the policy of the schedule."""
    assert {row.makespan_ps for row in ks.sweep(scale, {"policy": [1, 2]})} == {
        ks.schedule(ks.trace(scale), effort="fast").makespan_ps
    }


def test_what_a_point_cannot_do_is_its_row():
    """A kernel that raises, one that overflows, an unknown launch, a machine that is none."""
    found = ks.sweep(scale, {"tile": [16, 13]}, machine="ahbm-pe")
    assert [row.verdict for row in found] == ["fits", "refused"] and "RuntimeError: thirteen, at " in found.rows[
        1
    ].reason
    small = ks.sweep(scale, {"machine.scratch.bytes": [1 << 20, 512]})
    assert [row.verdict for row in small] == ["fits", "overflow"] and "512 B in use" in small.rows[1].reason
    for axis, values in {"launch": ["one", "onne"], "machine": ["ahbm-pe", "none"], "buffers": [1, 0]}.items():
        rows = ks.sweep(scale, {axis: values}).rows
        assert [row.verdict for row in rows] == ["fits", "failed"] and rows[1].reason


@pytest.mark.parametrize(
    ("axes", "said"),
    [
        ({}, "axes"),
        ({"tyle": [1]}, "did you mean 'tile'"),
        ({"machine.gem.rows": [1]}, "did you mean 'machine.gemm.rows'"),
        ({"tile": []}, "no values"),
        ({"tile": "16"}, "pass a list"),
        ({"tile": 16}, "pass a list"),
        ({3: [1]}, "no name"),
        ({"tile": range(1000), "ranks": range(1000)}, "1,000,000 points"),
    ],
)
def test_axes_that_are_none_are_refused(axes, said):
    """One typed error, before anything is traced."""
    with pytest.raises(ks.ArgumentError) as caught:
        ks.sweep(scale, axes)
    assert said in str(caught.value)


def test_unknown_policies_and_efforts_are_refused():
    """As in ``ks.schedule``."""
    for wrong in ({"policy": "lst"}, {"effort": "hihg"}):
        with pytest.raises(ks.PolicyError):
            ks.sweep(scale, {"tile": [16]}, **wrong)


def row(makespan: int | None, peak: int | None, name: str = "") -> SweepRow:
    fits = makespan is not None
    return SweepRow({"n": name}, "fits" if fits else "refused", "", peak, makespan, makespan)


def test_the_front_is_what_nothing_beats():
    """Compared with the definition, over all small sets of costs; of equal rows the first one is in it."""
    costs = [(1, 3), (2, 2), (3, 1), (2, 3), (1, 3)]
    for chosen in itertools.permutations(costs, 4):
        rows = tuple(row(*pair, str(number)) for number, pair in enumerate(chosen))
        expected = [
            one
            for n, one in enumerate(rows)
            if not any(
                (a.makespan_ps <= one.makespan_ps and a.peak_bytes <= one.peak_bytes)
                and ((a.makespan_ps, a.peak_bytes) != (one.makespan_ps, one.peak_bytes) or m < n)
                for m, a in enumerate(rows)
                if m != n
            )
        ]
        front = Sweep("k", ("n",), (*rows, row(None, None, "lost"))).pareto
        assert sorted(front, key=lambda r: r.point["n"]) == sorted(expected, key=lambda r: r.point["n"])
        assert [r.makespan_ps for r in front] == sorted(r.makespan_ps for r in front)


def test_files_hold_what_the_rows_say():
    """CSV: axes, then the measures; nothing where nothing is known; the front marked."""
    found = ks.sweep(scale, {"tile": [16, 13, 32]})
    rows = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert list(rows[0]) == ["tile", *MEASURES]
    assert [r["tile"] for r in rows] == ["16", "13", "32"] and rows[1]["makespan_ps"] == ""
    assert [r["pareto"] == "True" for r in rows] == [any(r is f for f in found.pareto) for r in found]
    assert found.columns()["makespan_ps"] == [r.makespan_ps for r in found]


def test_the_table_names_the_fastest():
    """Text for a terminal and HTML for a notebook say the same of it; with nothing that fits, that."""
    found = ks.sweep(scale, {"tile": [16, 13, 64]})
    assert found.best is not None and f"fastest: tile={found.best.point['tile']}" in str(found)
    assert "1 refused" in str(found) and "thirteen" in found._repr_html_()
    assert "no point fits" in str(ks.sweep(scale, {"tile": [13]}))


def test_the_launch_is_named():
    """By name beside the kernel, unless launches are what is varied; a kernel without launches stands alone."""

    @ks.launch("small", x=ks.hbm((64, 64), "f32"), o=ks.hbm((64, 64), "f32"))
    @ks.kernel
    def copied(x, o, *, tile=32):
        for i in range(0, 64, tile):
            with tl.scratch_scope():
                tl.store(o[i : i + tile, :], tl.load(x[i : i + tile, :]))

    assert str(ks.sweep(copied, {"tile": [32]})).startswith("copied:small: 1 point of tile\n")
    assert str(ks.sweep(copied, {"launch": ["small"]})).startswith("copied: 1 point of launch\n")
