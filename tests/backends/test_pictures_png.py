"""What matplotlib draws: every mark at the place that its numbers say, in its engine's colour."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import picturekernels as pk
import pytest

import kernscope as ks
from kernscope.backends.palette import ENGINE_COLOURS, engine_kind
from kernscope.machine.units import format_ps

pytest.importorskip("matplotlib")
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from kernscope.backends.front_plot import FrontPoint, front_plot
from kernscope.backends.timelines import gantt_png
from kernscope.backends.timelines.gantt_slices import slices_of

SCHEDULES = {
    "one rank": ks.schedule(pk.sweep(3), "blocking"),
    "three ranks": ks.schedule(pk.messages(), "list"),
    "nothing": ks.schedule(ks.trace(lambda: None)),
}


def drawn(schedule: ks.Schedule, span: int) -> tuple[Any, list[str]]:
    """The axes of a chart, and its rows."""
    axes = Figure().add_subplot()
    names, row_of = gantt_png._rows(schedule)
    gantt_png._draw(axes, schedule, names, row_of, span)
    return axes, names


def boxes_of(axes: Any) -> list[tuple[str, float, float, float, float, float]]:
    """Of each slice its colour, its share that is busy, and its box: begin, end, top, bottom."""
    found = []
    for collection in axes.collections:
        if not isinstance(collection, PolyCollection):
            continue
        for path, colour in zip(collection.get_paths(), collection.get_facecolor(), strict=True):
            (left, top), (right, bottom) = path.vertices.min(axis=0), path.vertices.max(axis=0)
            found.append((to_hex(colour[:3]), colour[3], left, right, top, bottom))
    return found


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_chart_has_every_slice_at_its_place(name: str) -> None:
    """In the colour of its engine's kind, opaque, in its lane's row; the chain underlined; makespan and bound as lines;
    a row for each lane of an engine that works, named with its rank where there are several."""
    schedule = SCHEDULES[name]
    span = max(schedule.makespan_ps, schedule.bound_ps, 1) + 1_000
    axes, names = drawn(schedule, span)
    slices = slices_of(schedule)
    busy = [number for number in range(len(schedule.engines)) if number in set(schedule.engine.tolist())]
    several = schedule.graph.ranks > 1
    rows: dict[int, int] = {}
    wanted: list[str] = []
    for number in busy:
        engine = schedule.engines[number]
        rows[number] = len(wanted)
        wanted.append(f"rank {engine.rank} {engine.name}" if several else engine.name)
        wanted += [f"lane {lane}" for lane in range(1, engine.channels)]
    assert names == wanted == [label.get_text() for label in axes.get_yticklabels()]
    assert axes.get_yticks().tolist() == [at + 0.5 for at in range(len(names))]
    assert (axes.get_xlim(), axes.get_ylim()) == ((0, span), (max(len(names), 1), 0))

    expected = Counter()
    for at in range(len(slices)):
        engine = schedule.engines[slices.engine[at]]
        row = rows[slices.engine[at]] + int(slices.lane[at])
        colour = ENGINE_COLOURS[engine_kind(engine.name, engine.kind)].solid
        expected[colour, 1.0, int(slices.start_ps[at]), int(slices.end_ps[at]), row + 0.08, row + 0.92] += 1
    assert Counter(boxes_of(axes)) == expected

    chain = set(schedule.critical_chain().nodes)
    lines = next(c for c in axes.collections if isinstance(c, LineCollection))
    underlined = [
        [(float(slices.start_ps[at]), row + 0.87), (float(slices.end_ps[at]), row + 0.87)]
        for at in range(len(slices))
        if slices.node[at] in chain
        for row in [rows[slices.engine[at]] + int(slices.lane[at])]
    ]
    assert [[tuple(end) for end in segment.tolist()] for segment in lines.get_segments()] == underlined
    assert [line.get_xdata()[0] for line in axes.lines] == [schedule.makespan_ps, schedule.bound_ps]
    assert [line.get_linestyle() for line in axes.lines] == ["-", "--"]
    title = axes.get_title(loc="left")
    assert f", {schedule.policy}: {format_ps(schedule.makespan_ps)}" in title
    bound = f", {schedule.ratio:.3f} x the bound (dashed)" if schedule.bound_ps else ""
    assert title.endswith(f"{bound}; critical chain underlined")


@pytest.mark.parametrize("more", [0, 1])
def test_a_chart_of_many_slices_merges_those_narrower_than_a_pixel(monkeypatch: pytest.MonkeyPatch, more: int) -> None:
    """Above the limit only; what is merged is as pale as the lane rests in it."""
    schedule = ks.schedule(pk.sweep(300), "blocking")
    count = len(slices_of(schedule))
    monkeypatch.setattr(gantt_png, "MERGE_ABOVE", count - more)
    axes, _ = drawn(schedule, 40 * schedule.makespan_ps)
    boxes = boxes_of(axes)
    assert (len(boxes) < count) is bool(more)
    assert bool(min(busy for _, busy, *_ in boxes) < 1) is bool(more)


def test_a_chart_s_size_is_that_of_its_rows() -> None:
    """One more schedule makes it higher by a title and its rows, and never higher than viewers open."""

    def pixels(schedules: list[ks.Schedule]) -> tuple[int, int]:
        data, notes = gantt_png.gantt_png(schedules)
        assert notes == ()
        return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")

    one = SCHEDULES["one rank"]
    rows = len(gantt_png._rows(one)[0])
    sizes = [pixels([one] * count) for count in (1, 3)]
    assert [width for width, _ in sizes] == [1560] * 2
    heights = [120 * (0.45 + count * (0.42 + 0.19 * rows)) for count in (1, 3)]
    assert [height for _, height in sizes] == pytest.approx(heights, abs=1)


# --- the front of a sweep ---------------------------------------------------------------------------------------------


POINTS = [
    FrontPoint(3000, 4000, "b $x$", True),
    FrontPoint(1000, 9000, "a", True),
    FrontPoint(4000, 8000, "c", False),
    FrontPoint(2000, 9500, "d", False),
]


def marks(svg: str, colour: str) -> list[tuple[float, float]]:
    """Where marks of a colour are drawn."""
    found = re.findall(rf'<use xlink:href="#\w+" x="([\d.]+)" y="([\d.]+)" style="fill: {colour}', svg)
    return [(float(x), float(y)) for x, y in found]


def test_points_stand_at_their_scratch_and_makespan() -> None:
    """Those of the front in its colour, in order of scratch, joined by steps; the others pale; both axes begin at 0 and
    reach a bit further than the largest."""
    svg = front_plot(POINTS, "title", "note", ".svg").decode()
    front, others = marks(svg, "#0072b2")[:-1], marks(svg, "#b9c0c9")[:-1]  # the last are the legend's
    assert (len(front), len(others)) == (2, 2)
    per_byte = (front[1][0] - front[0][0]) / 2000
    per_ps = (front[0][1] - front[1][1]) / -5000
    origin = front[0][0] - 1000 * per_byte, front[0][1] + 9000 * per_ps
    for (x, y), (nbytes, ps) in zip(
        (*front, *others), ((1000, 9000), (3000, 4000), (4000, 8000), (2000, 9500)), strict=True
    ):
        assert (x, y) == pytest.approx((origin[0] + nbytes * per_byte, origin[1] - ps * per_ps), abs=0.01)
    texts = re.findall(r"<!-- (.*?) -->", svg)
    assert texts[-2:] == ["1  a: 9 ns, 1,000 B", "2  b $x$: 4 ns, 3,000 B"]
    assert {"title", "note", "makespan", "peak of scratch a rank", "0 B"} <= set(texts)
    (right, top), (left, bottom) = (4600, 10925), origin
    frame = re.search(r'id="patch_2">\s*<path d="M ([\d.]+) ([\d.]+) \nL ([\d.]+) ([\d.]+) \nL ([\d.]+) ([\d.]+)', svg)
    assert frame is not None
    corners = [float(number) for number in frame.groups()]
    assert (min(corners[0::2]), max(corners[1::2])) == pytest.approx((left, bottom), abs=0.01)
    assert max(corners[0::2]) == pytest.approx(left + right * per_byte, abs=0.01)
    assert min(corners[1::2]) == pytest.approx(bottom - top * per_ps, abs=0.01)


@pytest.mark.parametrize("count", [6, 7])
def test_more_than_six_names_stand_in_two_columns(count: int) -> None:
    """Six fit below one another."""
    points = [FrontPoint(1000 * n, 9000 - n, "p", True) for n in range(1, count + 1)]
    svg = front_plot(points, "", "", ".svg").decode()
    at = re.findall(r"<!-- \d+  p.*? -->\s*<g [^>]*translate\(([\d.]+)", svg)
    assert len(at) == count and len(set(at)) == (1 if count == 6 else 2)


@pytest.mark.parametrize("suffix", [".svg", ".png"])
def test_a_name_that_no_font_has_is_no_warning(suffix: str) -> None:
    """Warnings are errors here; without any point there is a picture, too."""
    assert front_plot([FrontPoint(1, 1, "\U00012000", True)], "\U00012000", "", suffix)
    assert front_plot([], "", "", suffix)
