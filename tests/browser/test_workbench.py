"""The report as a workbench: search, folding, slack, the graph's view, keys, splitters, themes, phones, paper."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import picturekernels as pk
import pytest
from browserpage import Browser

import kernscope as ks
from kernscope import tl
from kernscope.backends.report.data import ReportData
from kernscope.kernels.flash_attention import flash_attention
from kernscope.kernels.gqa_attention_prefill_long import gqa_attention_prefill_long_kernel as prefill_long
from kernscope.machine.units import format_ps

WIDE, PHONE = (1400, 900), (390, 844)


@pytest.fixture(scope="module")
def flash(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ReportData]:
    """A report on flash attention: 360 nodes, one rank."""
    page = tmp_path_factory.mktemp("flash") / "report.html"
    return page, ks.report(ks.trace(flash_attention.launch("2k")), page)


@pytest.fixture(scope="module")
def ring(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ReportData]:
    """A report on a ring attention: four ranks, 1,368 nodes."""
    page = tmp_path_factory.mktemp("ring") / "report.html"
    return page, ks.report(ks.trace(prefill_long.launch("small")), page)


def shown_and_silent(browser: Browser) -> None:
    """Nothing was logged, and nothing is wider than the window."""
    assert browser.errors() == []
    assert browser.run("return document.documentElement.scrollWidth <= innerWidth")


# --- search -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "kind"), [("dot", "op"), ("acc_new", "tensor"), ("K/V tile", "scope"), (":97", "line"), ("%21", "node")]
)
def test_search_finds_each_kind_of_thing(browser: Browser, flash: Any, words: str, kind: str) -> None:
    """``/`` goes to the field, what is typed is found as it is typed, Enter takes the first; exactly its nodes are
    selected."""
    page, data = flash
    graph = data.graph
    browser.open(page, size=WIDE)
    browser.keys("/")
    browser.type(words)
    kinds = browser.run("return [...document.querySelectorAll('#hits li')].map(li => li.children[0].innerText)")
    assert kinds[0] == kind
    browser.keys("Enter")
    chosen = browser.selected_nodes()
    wanted = {
        "op": [n.id for n in graph if n.op == "dot"],
        "tensor": [n.id for n in graph if any(a.storage.name == "acc_new" for a in n.accesses)],
        "scope": [n.id for n in graph if graph.describe_scope(n.scope) == "K/V tile" and not n.op.startswith("scope_")],
        "line": [n.id for n in graph if n.location is not None and n.location.line == 97],
        "node": [21],
    }[kind]
    assert chosen == wanted
    assert browser.run("return document.getElementById('hits').hidden")
    shown_and_silent(browser)


def test_search_says_that_nothing_is_found(browser: Browser, flash: Any) -> None:
    """And Escape leaves the field, with what was selected as it was; arrows choose among what is found."""
    browser.open(flash[0], size=WIDE)
    browser.run("kernscope.selection.select(3)")
    browser.keys("/")
    browser.type("no such thing")
    assert browser.text("#hits") == "nothing found"
    browser.keys("Enter")
    assert browser.selected() == 3
    browser.keys("Escape")
    assert browser.run("return document.activeElement === document.body")
    assert browser.selected() == 3
    browser.keys("/")
    browser.type("ex")
    second = browser.run("return document.querySelectorAll('#hits li')[1].children[1].innerText")
    browser.keys("ArrowDown")
    assert browser.text("#hits [aria-selected=true]").split("\n")[1] == second
    shown_and_silent(browser)


# --- the source -------------------------------------------------------------------------------------------------------


def test_what_costs_nothing_is_folded(browser: Browser, flash: Any) -> None:
    """Every line with nodes stands open, with the loops around it; a fold says how many lines it holds, and opens."""
    browser.open(flash[0], size=WIDE)
    rows = "[...document.querySelectorAll('.source tbody tr:not(.fold)')]"
    assert browser.run(f"return {rows}.filter(r => r.dataset.line && r.hidden).length") == 0
    hidden = browser.run(f"return {rows}.filter(r => r.hidden).length")
    assert hidden >= 4
    said = browser.run("return [...document.querySelectorAll('.fold button')].map(b => b.innerText)")
    assert sum(int(words.split()[1]) for words in said) == hidden
    assert "for key in range" in browser.text(".source tbody")
    browser.run("for (const one of document.querySelectorAll('.fold button')) one.click()")
    assert browser.run(f"return {rows}.filter(r => r.hidden).length") == 0
    assert browser.run("return document.querySelectorAll('.fold').length") == 0
    shown_and_silent(browser)


def test_the_gutters_follow_the_policy(browser: Browser, flash: Any) -> None:
    """``p`` shows the next policy everywhere: gutters, timeline, chain by cause, and the bold boxes of the graph."""
    page, data = flash
    browser.open(page, size=WIDE)
    shown = {r.policy: r.schedule for r in data.policies if r.schedule is not None}
    seen = []
    for _ in range(len(shown) + 1):
        policy = browser.run("return kernscope.timeline.schedule.policy")
        seen.append(policy)
        schedule = shown[policy]
        chain = schedule.critical_chain()
        bold = set(browser.run("return [...document.querySelectorAll('[data-box].critical')].map(b => +b.dataset.box)"))
        boxes = browser.run("return arguments[0].map(n => kernscope.model.boxes[n])", list(chain.nodes))
        assert bold == set(boxes) - {-1}
        assert policy in browser.text("#chain-of")
        assert browser.text("#causes-of") == f"of {policy}"
        assert browser.text("[data-policy][aria-pressed=true]").split()[0] == policy
        cause, ps = next(iter(chain.by_cause().items()))
        assert browser.text("#causes li").startswith(f"{cause}\n")
        assert f"{100 * ps / schedule.makespan_ps:.1f} %" in browser.text("#causes li")
        browser.keys("p")
    assert seen == [*dict.fromkeys(seen), seen[0]]
    shown_and_silent(browser)


def test_h_goes_through_the_hottest_lines(browser: Browser, flash: Any) -> None:
    """From the hottest on, each selected with its most critical node in the inspector."""
    page, data = flash
    browser.open(page, size=WIDE)
    chips = browser.run("return [...document.querySelectorAll('.hot .chip')].map(c => c.innerText.split(' ')[0])")
    for chip in chips:
        browser.keys("h")
        node = browser.selected()
        assert f":{data.graph[node].location.line}" == chip
        assert node in data.best.critical_chain().nodes
    shown_and_silent(browser)


# --- slack, measuring, neighbours -------------------------------------------------------------------------------------


def test_slack_is_the_schedulers(browser: Browser, ring: Any) -> None:
    """Of every node under every policy, to the picosecond; the inspector says it."""
    page, data = ring
    browser.open(page, size=WIDE)
    shown = {r.policy: r.schedule for r in data.policies if r.schedule is not None}
    for policy, slack in browser.run("return kernscope.model.schedules.map(s => [s.policy, Array.from(s.slack)])"):
        assert slack == shown[policy].slack_ps.tolist()
    late = max((n.id for n in data.graph if n.engine == "math"), key=lambda node: data.best.slack_ps[node])
    browser.run("kernscope.selection.select(arguments[0])", late)
    said = browser.text(".vitals div:nth-child(2)").split("\n")
    assert said == [format_ps(int(data.best.slack_ps[late])), "slack"]
    browser.run("kernscope.selection.select(arguments[0])", data.best.critical_chain().nodes[0])
    assert browser.text(".vitals div:nth-child(2)").split("\n") == ["none", "slack"]


def test_a_span_is_measured(browser: Browser, flash: Any) -> None:
    """Shift and drag: how long, and how busy each engine is in it, as the schedule says; Escape takes it away."""
    page, data = flash
    browser.open(page, size=WIDE)
    box = browser.box("#timeline-canvas")
    left, plot = browser.run("return [kernscope.timeline.left, kernscope.timeline.plot]")
    y = box["top"] + 20
    browser.drag((box["left"] + left, y), (box["left"] + left + plot, y), shift=True)
    lines = browser.text("#cursor").split("\n")
    busy = {line.rpartition(" ")[0].rpartition(" ")[0]: line.split()[-2] for line in lines[1:]}
    assert set(busy) == {e.name for e in data.best.engines}
    whole = browser.run("return kernscope.timeline.view.to")
    ps = int(data.best.busy_ps[[e.name for e in data.best.engines].index("gemm")])
    assert abs(int(busy["gemm"]) - 100 * ps / whole) <= 1
    assert browser.selected() == -1
    browser.keys("Escape")
    assert browser.run("return document.getElementById('cursor').hidden")
    shown_and_silent(browser)


def test_keys_go_along_the_engine_and_to_what_was_waited_for(browser: Browser, flash: Any) -> None:
    """``.`` and ``,`` are each other's inverse, on one lane; ``b`` goes to the node that the schedule names."""
    page, data = flash
    best = data.best
    browser.open(page, size=WIDE)
    node = int(best.critical_chain().nodes[5])
    browser.run("kernscope.selection.select(arguments[0])", node)
    browser.keys(".")
    after = browser.selected()
    assert best.engine[after] == best.engine[node]
    assert best.start_ps[after] >= best.end_ps[node]
    browser.keys(",")
    assert browser.selected() == node
    browser.keys("b")
    assert browser.selected() == int(best.cause_node[node])
    shown_and_silent(browser)


def test_keys_move_the_timeline_and_open_tabs(browser: Browser, flash: Any) -> None:
    """``w`` and ``s``, ``a`` and ``d``, ``0``, ``z``; digits open tabs; ``?`` lists every key; none acts in a field."""
    browser.open(flash[0], size=WIDE)
    view = "return [kernscope.timeline.view.from, kernscope.timeline.view.to]"
    whole = browser.run(view)
    browser.keys("w")
    near = browser.run(view)
    assert whole[0] < near[0] < near[1] < whole[1]
    browser.keys("d")
    assert browser.run(view)[0] > near[0]
    browser.keys("a", "0")
    assert browser.run(view) == whole
    browser.run("kernscope.selection.select(21)")
    browser.keys("z")
    start, end = browser.run(view)
    assert end - start < (whole[1] - whole[0]) / 2
    for key, tab in (("2", "ladder"), ("1", "graph")):
        browser.keys(key)
        (opened,) = browser.run(
            "return [...document.querySelectorAll('[data-tab]')].filter(a => a.ariaCurrent === 'true')"
            ".map(a => a.dataset.tab)"
        )
        assert opened == tab
        assert browser.run("return getComputedStyle(document.getElementById(arguments[0])).display", opened) != "none"
    browser.keys("/")
    browser.type("wsad0")
    assert browser.run(view) == [start, end]
    browser.keys("Escape", "?")
    told = browser.text("#help")
    for key in ("/", "h", "p", "b", "z", "w s a d", "f", "g", "t", "Esc"):
        assert key in told.split("\n")
    browser.keys("Escape")
    assert not browser.run("return document.getElementById('help').open")
    assert browser.selected() == 21  # Escape closed the dialog only
    shown_and_silent(browser)


# --- the graph's view -------------------------------------------------------------------------------------------------


def test_the_graph_zooms_and_its_map_leads(browser: Browser, ring: Any) -> None:
    """Ctrl and wheel keep the place under the pointer, dragging moves, the small map leads to a place and is gone
    where all is shown; a click selects a box still."""
    browser.open(ring[0], size=WIDE)
    view = "const {x, y, width, height} = kernscope.graph.view; return {x, y, width, height}"
    box = browser.box("#graph-view")
    x, y = box["left"] + 200, box["top"] + 100
    under = (
        "const v = kernscope.graph.view; return [v.x + 200 / kernscope.graph.scale, v.y + 100 / kernscope.graph.scale]"
    )
    before, place = browser.run(view), browser.run(under)
    browser.mouse("mouseWheel", x, y, deltaX=0, deltaY=-100, modifiers=2)
    browser.until(lambda: browser.run(view)["width"] < before["width"])
    assert browser.run(under) == pytest.approx(place, abs=0.5)
    before = browser.run(view)
    browser.drag((x, y), (x - 60, y - 30))
    after = browser.run(view)
    assert (after["x"] - before["x"], after["y"] - before["y"]) != (0, 0)
    assert after["width"] == before["width"]
    assert not browser.run("return document.getElementById('graph-map').hidden")
    little = browser.box("#graph-map")
    browser.click({"x": little["left"] + little["width"] - 3, "y": little["top"] + little["height"] - 3})
    assert browser.run(view)["y"] > after["y"]
    browser.keys("f")
    browser.settle()
    browser.settle()
    assert browser.run("return document.getElementById('graph-map').hidden")
    browser.run("kernscope.selection.clear()")
    chosen = browser.run(
        "const b = document.querySelectorAll('[data-box]')[3].getBoundingClientRect();"
        "return {x: b.x + b.width / 2, y: b.y + b.height / 2}"
    )
    browser.click(chosen)
    assert browser.selected() >= 0
    shown_and_silent(browser)


def test_words_stay_in_their_boxes(browser: Browser, ring: Any) -> None:
    """Whatever fonts there are: no text of a box is wider than the box."""
    browser.open(ring[0], size=WIDE)
    assert browser.run(
        "return [...document.querySelectorAll('[data-box]')].flatMap(b => [...b.querySelectorAll('text')]"
        ".map(t => t.getBBox().width - b.querySelector('path, polygon').getBBox().width)).every(w => w < 0)"
    )


# --- ranks, scratch, large selections ---------------------------------------------------------------------------------


def alike(ranks: int) -> ks.Graph:
    """A kernel that does the same on every rank, without a message."""

    @ks.kernel
    def copy(x: ks.HbmTensor, o: ks.HbmTensor) -> None:
        for i in range(4):
            tl.store(o[i : i + 1, :], tl.exp(tl.load(x[i : i + 1, :])))

    return ks.trace(copy, ks.hbm((4, 256), "f32"), ks.hbm((4, 256), "f32"), ranks=ranks)


def test_ranks_that_do_the_same_are_drawn_once(browser: Browser, folder: Path, ring: Any) -> None:
    """One stands for all, and says for how many; a node of another one opens its rank. Ranks that differ all stand."""
    page = folder / "alike.html"
    graph = alike(5)
    data = ks.report(graph, page)
    assert data.best is not None
    browser.open(page, size=WIDE)
    heads = "return kernscope.timeline.heads.map(h => h.title)"
    chain = sorted({graph[node].rank for node in data.best.critical_chain().nodes} - {0})
    others = [f"rank {rank}" for rank in chain]  # the critical chain is never out of sight
    assert len(others) <= 1
    assert browser.run(heads) == [f"rank 0 and {4 - len(chain)} ranks like it", *others]
    away = next(rank for rank in (1, 2, 3, 4) if rank not in chain)
    node = next(n.id for n in graph if n.rank == away and n.op == "load")
    browser.run("kernscope.selection.select(arguments[0])", node)
    browser.settle()
    assert f"rank {away}" in browser.run(heads)
    assert browser.run(heads)[0] == f"rank 0 and {3 - len(chain)} ranks like it"
    assert browser.marked_pixels("timeline-canvas") > 5
    browser.open(ring[0], size=WIDE)
    assert browser.run(heads) == ["rank 0", "rank 1", "rank 2", "rank 3"]
    shown_and_silent(browser)


def test_idle_scratch_is_hatched_and_held_bytes_are_exact(browser: Browser, flash: Any) -> None:
    """By time: what lies between accesses is idle, and the strip's stair is the sum of what is held."""
    page, data = flash
    best, graph = data.best, data.graph
    browser.open(page, size=WIDE)
    spans: dict[int, list[tuple[int, int]]] = {}
    for node in graph:
        for access in node.accesses:
            row = access.storage.row
            spans.setdefault(row, []).append((int(best.start_ps[node.id]), int(best.end_ps[node.id])))
    items = browser.run("return kernscope.scratch.items.map(i => [i.row, i.held, i.idle, i.high - i.low])")
    assert items
    held: dict[int, int] = {}
    for row, (start, end), idle, nbytes in items:
        assert (start, end) == (min(a for a, _ in spans[row]), max(b for _, b in spans[row]))
        for a, b in zip(idle[::2], idle[1::2], strict=True):
            assert start < a < b < end
            assert all(d <= a or b <= c for c, d in spans[row])
        covered = sum(b - a for a, b in zip(idle[::2], idle[1::2], strict=True))
        assert end - start - covered <= sum(b - a for a, b in spans[row])
        held[start] = held.get(start, 0) + nbytes
        held[end] = held.get(end, 0) - nbytes
    instants, sizes = browser.run(
        "const c = kernscope.scratch.curves[0]; return [Array.from(c.instants), Array.from(c.bytes)]"
    )
    assert instants == sorted(held)
    total = 0
    for at, size in zip(instants, sizes, strict=True):
        total += held[at]
        assert size == total
    assert total == 0
    shown_and_silent(browser)


def test_in_program_order_the_strip_is_the_liveness(browser: Browser, flash: Any) -> None:
    """Held and live bytes, node by node."""
    page, data = flash
    browser.open(page, size=WIDE)
    browser.choose("#scratch-axis", "program")
    held, live = browser.run("return kernscope.scratch.curves.map(c => Array.from(c.bytes))")
    assert held == data.liveness.cursor.tolist()
    assert live == data.liveness.live_bytes.tolist()
    shown_and_silent(browser)


def test_what_has_no_name_is_named_by_what_fills_it(browser: Browser, flash: Any) -> None:
    """Operation and line; nothing is called by its number alone."""
    page, data = flash
    browser.open(page, size=WIDE)
    for row, title in browser.run("return kernscope.scratch.items.map(i => [i.row, kernscope.scratch.title(i.row)])"):
        storage = data.graph.storage(row)
        if storage.name:
            assert title == storage.name
        else:
            first = next(n for n in data.graph if any(a.storage.row == row for a in n.accesses))
            assert title == f"#{row}, of {first.op} :{first.location.line}"


def test_many_selected_nodes_are_drawn_as_their_density(browser: Browser, folder: Path) -> None:
    """Of more than there are pixels the strip is as dark as they fill each pixel: a third of a lane's nodes does not
    paint the lane. Where they can be told from each other they are drawn one by one."""
    graph = pk.sweep(3000)
    ks.report(graph, folder / "many.html")
    browser.open(folder / "many.html", size=WIDE)
    browser.run(
        "const m = kernscope.model; const adds = kernscope.selection.nodesWhere(n => m.operations[m.op[n]] === 'add');"
        "kernscope.selection.set(adds, 'of add'); kernscope.timeline.view.fit()"
    )
    browser.settle()
    crowded = (
        "const t = kernscope.timeline; const at = t.rows.findIndex(r => r.about.name === 'math');"
        "return t.crowded(t.positions.marked[at])"
    )
    assert len(browser.selected_nodes()) >= 3000
    assert browser.run(crowded)
    plot = browser.run("return kernscope.timeline.plot")
    assert browser.marked_pixels("timeline-canvas") < plot / 2
    browser.run("kernscope.timeline.zoomTo(kernscope.selection.node)")
    browser.settle()
    assert not browser.run(crowded)
    assert browser.errors() == []


# --- layout -----------------------------------------------------------------------------------------------------------


def test_splitters_move_and_the_link_keeps_them(browser: Browser, flash: Any) -> None:
    """By dragging, by keys; a double click puts one back. Node, policy, window and splits are in the address, and a new
    page opened at it shows the same."""
    page, _ = flash
    browser.open(page, size=WIDE)
    assert browser.run("return location.hash") == ""
    bar, before = browser.box("[data-split=left]"), browser.box("#source")["width"]
    middle = bar["top"] + bar["height"] / 2
    browser.drag((bar["left"] + 2, middle), (bar["left"] + 202, middle))
    assert browser.box("#source")["width"] == pytest.approx(before + 200, abs=8)
    browser.run("document.querySelector('[data-split=top]').focus()")
    top = browser.box("#dock")["top"]
    browser.keys("ArrowUp")
    assert browser.box("#dock")["top"] < top
    browser.keys("p")
    browser.run("kernscope.selection.select(21); kernscope.timeline.view.set(2e6, 9e6)")
    state = (
        "return [kernscope.selection.node, kernscope.timeline.schedule.policy, kernscope.timeline.view.from,"
        " kernscope.timeline.view.to, [...kernscope.splitters.places].map(([k, v]) => `${k} ${v.toFixed(1)}`).sort()]"
    )
    kept = browser.run(state)
    browser.until(lambda: "window=2000000-9000000" in browser.run("return location.hash"))
    link = browser.run("return location.href")
    browser.open(page, size=WIDE, hash=link.partition("#")[2])
    assert browser.run(state) == kept
    for split in ("left", "top"):
        bar = browser.box(f"[data-split={split}]")
        browser.double_click({"x": bar["left"] + bar["width"] / 2, "y": bar["top"] + bar["height"] / 2})
    assert browser.run("return kernscope.splitters.places.size") == 0
    assert browser.box("#source")["width"] == pytest.approx(before, abs=1)
    shown_and_silent(browser)


@pytest.mark.parametrize(
    "hash", ["policy=none&node=-1&window=9-3&left=NaN", "window=a-b", "node=1e3", "scratch", "%zz"]
)
def test_a_link_that_means_nothing_is_no_harm(browser: Browser, flash: Any, hash: str) -> None:
    """The page opens as it would without."""
    browser.open(flash[0], size=WIDE, hash=hash)
    assert browser.selected() == -1
    assert browser.run("return kernscope.timeline.view.all")
    assert browser.run("return kernscope.splitters.places.size") == 0
    assert browser.errors() == []


def test_the_theme_button_goes_round(browser: Browser, flash: Any) -> None:
    """The system's, light, dark, the system's; canvases and graph follow."""
    browser.open(flash[0], size=WIDE)
    ground = "return getComputedStyle(document.querySelector('.pane')).backgroundColor"
    seen = []
    for name in ("auto", "light", "dark", "auto"):
        assert browser.text("[data-act=theme]") == name
        pixel = browser.run("return [...kernscope.timeline.context.getImageData(4, 4, 1, 1).data].join()")
        box = browser.run(
            "return getComputedStyle(document.querySelector('.drawing [data-box] :is(path, polygon)')).fill"
        )
        seen.append((browser.run(ground), pixel, box))
        browser.keys("t")
        browser.settle()
    assert seen[0] == seen[1] == seen[3]
    assert seen[2][0] != seen[1][0]
    assert seen[2][2] != seen[1][2]
    shown_and_silent(browser)


@pytest.mark.parametrize("size", [PHONE, (700, 900), (1400, 500), WIDE, (2560, 1440)])
def test_every_size_has_a_layout(browser: Browser, ring: Any, size: tuple[int, int]) -> None:
    """A workbench that fills the window, or one column that scrolls; nothing sticks out sideways, and a node can be
    selected and let go."""
    page, _ = ring
    browser.open(page, size=size)
    bench = size[0] >= 1200 and size[1] >= 560
    fills = browser.run("return document.documentElement.scrollHeight <= innerHeight")
    assert fills == bench
    lefts = {name: browser.box(f"#{name}")["left"] for name in ("source", "timeline", "dock")}
    assert (lefts["timeline"] > lefts["source"]) == bench
    assert lefts["timeline"] == browser.box("#map")["left"]
    browser.run("kernscope.selection.select(470)")
    sheet = browser.box("#inspector")
    assert sheet["height"] > 60
    assert sheet["bottom"] <= size[1] + 1
    browser.keys("Escape")
    assert (browser.run("return getComputedStyle(document.getElementById('inspector')).display") == "none") != bench
    shown_and_silent(browser)


def test_time_and_scratch_lie_on_one_axis(browser: Browser, flash: Any) -> None:
    """The same instants above each other at any zoom, in the workbench and on a phone."""
    for size in (WIDE, PHONE):
        browser.open(flash[0], size=size)
        browser.run("kernscope.timeline.view.set(3e6, 8e6)")
        browser.settle()
        axes = browser.run(
            "return [kernscope.timeline, kernscope.timeline.axisAbove, kernscope.scratch]"
            ".map(p => [p.left + p.canvas.getBoundingClientRect().left, p.plot])"
        )
        assert axes[0] == axes[1] == axes[2]


def test_paper_shows_all_of_it(browser: Browser, flash: Any) -> None:
    """One column: every section, no search field, no button; printing leaves the page as it was."""
    browser.open(flash[0], size=WIDE)
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        display = "return getComputedStyle(document.querySelector(arguments[0])).display"
        for hidden in ("#go-to", "#inspector", "#graph-map", "[data-act=theme]", ".split"):
            assert browser.run(display, hidden) == "none", hidden
        for there in ("#source", "#timeline", "#map", "#graph", "#ladder", "#scratch", "#operations"):
            assert browser.run(display, there) != "none", there
            assert browser.box(there)["height"] > 20
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    pdf = base64.b64decode(browser.driver.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})["data"])
    assert pdf.startswith(b"%PDF")
    browser.settle()
    assert browser.run("return kernscope.graph.svg.getAttribute('viewBox').split(' ')[2] == kernscope.graph.view.width")
    assert browser.errors() == []


def test_without_a_script_the_answers_stand(browser: Browser, flash: Any) -> None:
    """No script: the strip, the source unfolded with its costs, the graph, the tables; and it says what is missing."""
    page, data = flash
    browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.driver.get("about:blank")
        browser.driver.get(page.as_uri())
        text = browser.driver.find_element("tag name", "body").text
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert "Scripts are off" in text
    assert "def flash_attention(" in text
    assert "lines that cost nothing" not in text
    assert f"{data.liveness.peak_bytes:,} of" in text
    assert "Critical chain by cause" in text
    assert f"bold: critical chain of {data.best.policy}" in text
