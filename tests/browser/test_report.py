"""The report in a real browser: a node selected anywhere is found everywhere, zooming works, nothing is logged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import picturekernels as pk
import pytest
from browserpage import Browser

import kernscope as ks
from kernscope import tl
from kernscope.backends.report.data import ReportData
from kernscope.ir.forms.text import quote
from kernscope.kernels.gqa_attention_prefill_long import gqa_attention_prefill_long_kernel as prefill_long


def write(graph: ks.Graph, folder: Path, **options: Any) -> tuple[Path, ReportData]:
    """A report in a folder, and what it shows."""
    page = folder / "report.html"
    return page, ks.report(graph, page, **options)


def look_for_a_node(browser: Browser, data: ReportData) -> int:
    """Click a node of the last rank in the timeline and find it in every panel; returns it."""
    graph, best = data.graph, data.best
    assert best is not None
    dots = [node for node in np.flatnonzero(graph.nodes.rank == graph.ranks - 1).tolist() if graph[node].op == "dot"]
    node = dots[len(dots) // 2]
    browser.run("kernscope.timeline.zoomTo(arguments[0])", node)
    browser.bring(node)
    browser.click(browser.place_of_node(node))
    assert browser.selected() == node
    place = graph[node].location
    assert place is not None
    inspector = browser.text("#inspector")
    assert f"%{node} dot" in inspector
    assert place.short in inspector
    assert f"rank {graph.ranks - 1}" in inspector
    # The source line: its number, and the line's own text.
    cells = browser.text(".source tr.current").split()
    assert cells[0] == str(place.line)
    assert "tl.dot" in browser.text(".source tr.current")
    assert browser.run("return document.querySelector('.panel.source').scrollLeft") == 0
    browser.until(lambda: f"node={node}" in browser.run("return location.hash"))
    # The graph: one box is current, and the node is in it.
    box = int(browser.run("return Number(document.querySelector('.drawing .current').dataset.box)"))
    assert box == browser.run("return kernscope.model.boxes[arguments[0]]", node)
    # The scratch map shows its rank, and its allocations are framed; so is its slice.
    assert browser.run("return kernscope.scratch.rank") == graph.ranks - 1
    assert browser.marked_pixels("scratch-canvas") > 20
    assert browser.marked_pixels("timeline-canvas") > 20
    return node


def zoom(browser: Browser, node: int) -> None:
    """The wheel with Ctrl, keys and buttons change what is shown; the node stays where the pointer is."""
    span = "return kernscope.timeline.view.to - kernscope.timeline.view.from"
    browser.bring(node)
    before, place = browser.run(span), browser.place_of_node(node)
    browser.mouse("mouseWheel", place["x"], place["y"], deltaX=0, deltaY=-200, modifiers=2)
    browser.until(lambda: 0 < browser.run(span) < before)
    assert abs(browser.place_of_node(node)["x"] - place["x"]) < 1
    for key, shorter in (("+", True), ("-", False)):
        before = browser.run(span)
        browser.run("document.getElementById('timeline-canvas').focus({preventScroll: true})")
        for kind in ("keyDown", "keyUp"):
            browser.driver.execute_cdp_cmd("Input.dispatchKeyEvent", {"type": kind, "key": key, "text": key})
        browser.settle()
        assert (browser.run(span) < before) is shorter
    browser.run("document.querySelector('[data-zoom=\"timeline fit\"]').click()")
    browser.settle()
    assert browser.run("return kernscope.timeline.view.from") == 0
    browser.bring(node)
    browser.click(browser.place_of_node(node))
    assert browser.selected() >= 0


def test_a_node_is_found_everywhere(browser: Browser, folder: Path) -> None:
    """prefill_long, small: a click in the timeline shows the node in all panels; zooming works; no error."""
    graph = ks.trace(prefill_long.launch("small"))
    page, data = write(graph, folder)
    browser.open(page)
    zoom(browser, look_for_a_node(browser, data))
    assert browser.errors() == []


@pytest.mark.slow
def test_128k_is_usable(browser: Browser, folder: Path) -> None:
    """prefill_long at 128K, 375k nodes on 8 ranks: a page below 30 MB, the same clicks, and no frame takes half a
    second, on a busy machine either."""
    graph = ks.trace(prefill_long.launch("128k"))
    page, data = write(graph, folder)
    assert page.stat().st_size < 30e6
    browser.open(page, wait_s=120)
    look_for_a_node(browser, data)
    took = browser.run(
        "kernscope.timeline.view.fit(); const from = performance.now();"
        "for (let i = 0; i < 5; i++) { kernscope.timeline.draw(); kernscope.scratch.draw(); }"
        "return (performance.now() - from) / 5"
    )
    assert took < 500
    zoom(browser, browser.selected())
    assert browser.errors() == []


def test_a_link_leads_to_a_node(browser: Browser, folder: Path) -> None:
    """``#node=3`` selects it; of a node that is not there nothing comes. So does the form at the top."""
    page, _ = write(pk.sweep(3), folder)
    browser.open(page)
    for hash, node in (("#node=3", 3), ("#node=99999", -1)):
        browser.driver.get("about:blank")
        browser.driver.get(page.as_uri() + hash)
        browser.until(lambda: bool(browser.run("return document.documentElement.dataset.ready")), wait_s=30)
        assert browser.selected() == node
    for typed, node in (("%5", 5), ("nothing of it", 5), ("", 5), ("7", 7)):
        browser.run(
            "document.querySelector('#go-to input').value = arguments[0];"
            "document.querySelector('#go-to').dispatchEvent(new Event('submit', {cancelable: true}))",
            typed,
        )
        assert browser.selected() == node
    assert browser.errors() == []


def test_every_number_is_the_schedules(browser: Browser, folder: Path) -> None:
    """Times, causes, boxes, accesses and edges that the page unpacks are those of the graph and its schedules."""
    graph = ks.trace(prefill_long.launch("small"))
    page, data = write(graph, folder)
    browser.open(page)
    shown = {r.policy: r.schedule for r in data.policies if r.schedule is not None}
    count = browser.run("return kernscope.model.schedules.length")
    assert count == len(shown)
    for at in range(count):
        policy, start, end, chain = browser.run(
            "const s = kernscope.model.schedules[arguments[0]];"
            "return [s.policy, Array.from(s.start), Array.from(s.end), Array.from(s.chain)]",
            at,
        )
        assert start == shown[policy].start_ps.tolist()
        assert end == shown[policy].end_ps.tolist()
        assert chain == list(shown[policy].critical_chain().nodes)
    sources = browser.run(
        "const m = kernscope.model; const found = [];"
        "for (let n = 0; n < m.count; n++) for (let i = m.edgeStart[n]; i < m.edgeStart[n + 1]; i++)"
        " found.push([n - m.edges.back[i], n, m.edges.kind[i]]); return found"
    )
    e = graph.edges
    wanted = zip(e.source.tolist(), e.target.tolist(), (e.reason * 2 + e.recycled).tolist(), strict=True)
    assert [tuple(row) for row in sources] == list(wanted)
    assert browser.run("return Array.from(kernscope.model.accesses.storage)") == graph.accesses.storage.tolist()
    assert browser.run("return Array.from(kernscope.model.storages.address)") == graph.storages.address.tolist()
    assert browser.run("return Array.from(kernscope.model.cursor)") == data.liveness.cursor.tolist()


def test_an_allocation_selects_the_nodes_that_access_it(browser: Browser, folder: Path) -> None:
    """A click on a rectangle of the scratch map, by time and in program order."""
    graph = pk.sweep(4)
    page, _ = write(graph, folder)
    row = next(r for r in range(len(graph.storages)) if graph.storage(r).name == "total")
    wanted = sorted({node.id for node in graph if any(a.storage.row == row for a in node.accesses)})
    browser.open(page)
    for axis in ("time", "program"):
        browser.run(
            "const c = document.getElementById('scratch-axis'); c.value = arguments[0];"
            "c.dispatchEvent(new Event('change'))",
            axis,
        )
        browser.show("#scratch-canvas")
        browser.run("scrollBy(0, -80)")
        browser.settle()
        browser.click(browser.run("return kernscope.scratch.place(arguments[0])", row))
        assert browser.selected_nodes() == wanted
        browser.run("kernscope.selection.clear()")
    assert browser.errors() == []


def test_boxes_lines_and_findings_select_their_nodes(browser: Browser, folder: Path) -> None:
    """Each stands for exactly its nodes; the inspector steps through them; Escape lets go."""

    @ks.kernel
    def wasteful(x: ks.HbmTensor, o: ks.HbmTensor) -> None:
        for i in range(3):
            with tl.scratch_scope("tile"):
                a = tl.load(x[i : i + 1, :])
                tl.exp(a)
                tl.store(o[i : i + 1, :], a)

    graph = ks.trace(wasteful, ks.hbm((3, 64), "f32"), ks.hbm((3, 64), "f32"))
    page, data = write(graph, folder)
    (finding,) = data.lint.of("KS302")
    exps = [node.id for node in graph if node.op == "exp"]
    assert sorted(finding.nodes) == exps
    browser.open(page)
    box = browser.run("return kernscope.model.boxes[arguments[0]]", exps[0])
    line = browser.run("return kernscope.model.lines[kernscope.model.stack[arguments[0]]][0]", exps[0])
    at = data.lint.diagnostics.index(finding)
    for selector in (f"[data-box='{box}']", f"[data-line='{line}']", f"[data-select-finding='{at}']"):
        browser.run(
            "document.querySelector(arguments[0]).dispatchEvent(new MouseEvent('click', {bubbles: true}))", selector
        )
        chosen = browser.selected_nodes()
        assert chosen == (exps if "box" not in selector else [n for n in exps if n in chosen])
        assert browser.run("return document.querySelector('[data-finding].selected') !== null")
        assert f"%{chosen[0]} exp" in browser.text("#inspector")
    browser.run("document.querySelector('[data-act=\"next\"]').click()")
    assert browser.selected() == exps[1]
    browser.driver.execute_cdp_cmd("Input.dispatchKeyEvent", {"type": "keyDown", "key": "Escape"})
    assert browser.selected() == -1
    assert browser.run("return document.querySelectorAll('.selected, .current').length") == 0
    assert browser.errors() == []


@pytest.mark.parametrize("name", pk.HOSTILE)
def test_hostile_names_are_only_text(browser: Browser, folder: Path, name: str) -> None:
    """The page is titled by the name, nothing of it runs, and its panels work."""
    graph = pk.renamed(pk.sweep(2), name)
    page, _ = write(graph, folder, against=pk.renamed(pk.sweep(3), name))
    browser.open(page)
    assert browser.run("return document.title").split() == quote(name).split()
    browser.run("kernscope.selection.select(1)")
    assert quote(name) in browser.run("return document.querySelector('#inspector').textContent")
    assert browser.run("return document.scripts.length") == 2
    assert browser.run("return document.images.length") == 0
    assert browser.errors() == []


def test_a_page_without_schedules_works(browser: Browser, folder: Path) -> None:
    """Every policy deadlocks: no timeline, but scratch, graph and source; a node can be selected."""

    @ks.kernel
    def stuck(o: ks.HbmTensor) -> None:
        here = tl.recv("prev", (8, 8), tl.float32)
        tl.send("next", here)
        tl.store(o[:, :], here)

    page, data = write(ks.trace(stuck, ks.hbm((8, 8), "f32"), ranks=2), folder)
    assert data.best is None
    browser.open(page)
    browser.run("kernscope.selection.select(1)")
    assert "%1 send" in browser.text("#inspector")
    assert browser.errors() == []


def test_both_themes_and_paper(browser: Browser, folder: Path) -> None:
    """The page follows the theme, canvases included, and can be printed."""
    page, _ = write(pk.sweep(8), folder)
    browser.open(page)
    seen = []
    for theme in ("light", "dark"):
        features = [{"name": "prefers-color-scheme", "value": theme}]
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        browser.settle()
        corner = "document.getElementById('timeline-canvas').getContext('2d').getImageData(400, 40, 1, 1).data"
        seen.append(
            (
                browser.run("return getComputedStyle(document.body).backgroundColor"),
                browser.run(f"return [...{corner}]"),
            )
        )
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert seen[0][0] != seen[1][0]
    assert browser.driver.execute_cdp_cmd("Page.printToPDF", {})["data"]
    assert browser.errors() == []
