"""Drawings: hostile names come back unharmed, the renderer chain says what it did, formats and files are checked."""

from __future__ import annotations

import html
import importlib.metadata
import json
import os
import re
import stat
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import networkx as nx
import picturekernels as pk
import pytest

import kernscope as ks
from kernscope import tl
from kernscope.backends.graph_picture import drawing, renderer
from kernscope.backends.graph_picture.dot import dot_text, label_text, node_label
from kernscope.backends.graph_picture.drawing import draw
from kernscope.backends.graph_picture.drawn_part import Selection
from kernscope.backends.graph_picture.folding import Grade, fold
from kernscope.backends.graph_picture.model_explorer import model_explorer_document
from kernscope.backends.graph_picture.renderer import find_renderers, render
from kernscope.ir.forms.text import quote
from kernscope.ir.tables import Reason

needs_renderer = pytest.mark.skipif(not find_renderers(), reason="neither dot nor graphviz-pure is installed")
needs_scripts = pytest.mark.skipif(os.name == "nt", reason="stands in for dot with a shell script")

QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
LABEL = re.compile(r'\blabel=("(?:[^"\\]|\\.)*"|[^\s"<>\[\]]+)', re.DOTALL)


def spoken(literal: str) -> list[str]:
    """What a label of DOT text says, line by line, by the rules of DOT's grammar (quoted strings), of its labels
    (escape sequences), and of HTML (entities)."""
    text = literal[1:-1].replace('\\"', '"') if literal.startswith('"') else literal
    lines, line, at = [], "", 0
    while at < len(text):
        if text[at] == "\\":
            following = text[at + 1]
            assert following in "\\nl", f"an escape sequence that is not ours: \\{following}"
            if following == "\\":
                line += "\\"
            else:
                lines.append(line)
                line = ""
            at += 2
        else:
            line += text[at]
            at += 1
    return [html.unescape(one) for one in [*lines, *([line] if line else [])]]


def said_in(dot: str) -> list[str]:
    """Every line of every label of DOT text; HTML-like labels (the legend, our own words) are left out."""
    return [line for literal in LABEL.findall(dot) for line in spoken(literal)]


# --- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", pk.HOSTILE)
def test_a_label_says_the_name(name: str) -> None:
    """Escaped for a label and quoted, a name reads back as it is shown everywhere: in one line, printable."""
    quoted = '"' + label_text(name).replace('"', '\\"') + '"'
    assert QUOTED.fullmatch(quoted)
    assert spoken(quoted) == [quote(name)]


@pytest.mark.parametrize("name", ["<b>name</b>", "<", "<>", "<<table>>", "</b>"])
def test_a_name_alone_is_no_html_label(name: str) -> None:
    """A label that is nothing but a name in angle brackets is still that name."""
    dot = dot_text(fold(pk.renamed(pk.unequal(8, 4), name), Grade.NODES))
    assert f'label="{name}"' in dot
    assert f"label={name} " not in dot


@pytest.mark.parametrize("grade", list(Grade))
@pytest.mark.parametrize("name", pk.HOSTILE)
def test_names_survive_in_the_dot_text(name: str, grade: Grade) -> None:
    """Kernel, tensors, scopes and files of a hostile name stand in the labels, and nothing else is broken."""
    graph = pk.renamed(pk.nested(2, 3), name)
    dot = dot_text(fold(graph, grade))
    assert re.findall(r"=<.{6}", dot) == ["=<<table"], "only the legend is HTML-like"
    said = said_in(dot)
    shown = quote(name)[:35]
    assert any(line.startswith(shown) and line.endswith("edges") for line in said), "the caption"
    assert any(shown in line and "nodes" not in line for line in said), "a frame or a box"


@needs_renderer
@pytest.mark.parametrize("name", pk.HOSTILE)
def test_names_survive_in_the_svg(name: str) -> None:
    """The renderer's SVG is well-formed and shows the name, in texts and in what is told when pointed at."""
    graph = pk.renamed(pk.messages(2, 1), name)
    made = draw(graph, format="svg")
    assert made.data is not None
    root = ElementTree.fromstring(made.data)
    texts = [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text")]
    told = [e.get("{http://www.w3.org/1999/xlink}title", "") for e in root.iter("{http://www.w3.org/2000/svg}a")]

    def plain(text: str) -> str:  # spaces in a row may be no-break spaces
        return re.sub(r"\s+", " ", text)

    assert any(plain(quote(name))[:35].strip() in plain(text) for text in texts)
    assert any(plain(quote(name)).strip() in plain(text) for text in told)
    assert not any(e.tag.endswith(("script", "img")) for e in root.iter())


# --- what a drawing shows ---------------------------------------------------------------------------------------------


def test_frames_nest_as_scopes_do() -> None:
    """A scope inside a scope is a cluster inside a cluster, and the number of iterations stands in its title."""
    dot = dot_text(fold(pk.nested(3, 5), Grade.ITERATIONS))
    clusters = [line.strip() for line in dot.splitlines() if "subgraph" in line or line.strip() == "}"]
    assert [c.partition(" ")[0] for c in clusters] == ["subgraph", "subgraph", "}", "}", "}"]
    assert {"row  x 3", "col  x 5  (15 in all)"} <= set(said_in(dot))


def test_ranks_are_frames_where_there_are_several() -> None:
    """Three ranks are three outer clusters; one rank has none."""
    assert {"rank 0", "rank 1", "rank 2"} <= set(said_in(dot_text(fold(pk.messages(3), Grade.NODES))))
    assert not any(line.startswith("rank") for line in said_in(dot_text(fold(pk.sweep(2), Grade.NODES))))


def test_every_edge_is_drawn_in_the_style_of_its_reason() -> None:
    """Unfolded, there is a line for each edge, with its reason's class, and a mark on recycled ones."""
    graph = pk.messages(3, 4)
    dot = dot_text(fold(graph, Grade.NODES))
    lines = [line for line in dot.splitlines() if re.match(r"\s*n\d+ -> n\d+ ", line)]
    assert len(lines) == len(graph.edges)
    for reason in ("data", "message", "credit", "fifo", "war"):
        wanted = sum(edge.reason.label == reason for node in graph for edge in node.edges_in)
        assert sum(f"reason-{reason}" in line for line in lines) == wanted
        assert (f"{reason}: " in dot) == (wanted > 0)
    assert sum("odiamond" in line for line in lines) == int(graph.edges.recycled.sum()) > 0


def test_a_load_names_its_tensor() -> None:
    """A box says which tensor in memory its nodes read; one that stands for loads of several names none of them."""

    @ks.kernel
    def two(x: ks.HbmTensor, y: ks.HbmTensor, o: ks.HbmTensor) -> None:
        for i in range(2):
            a = tl.load(x[i : i + 1, :])
            b, c = (tl.load(t[i : i + 1, :]) for t in (x, y))
            tl.store(o[i : i + 1, :], a + b + c)

    graph = ks.trace(two, *(ks.hbm((2, 64), "f32") for _ in range(3)))
    texts = {grade: dot_text(fold(graph, grade)) for grade in (Grade.NODES, Grade.LINES)}
    labels = {grade: re.findall(r'label="(load[^\\]*)\\n', text) for grade, text in texts.items()}
    assert sorted(labels[Grade.NODES]) == ["load x"] * 4 + ["load y"] * 2
    assert sorted(labels[Grade.LINES]) == ["load  x 4", "load x  x 2"]


def test_the_critical_chain_is_bold() -> None:
    """With a schedule exactly the boxes of its critical chain are critical; without one none is."""
    graph = pk.sweep(3)
    schedule = ks.schedule(graph, "lazy")
    folded = fold(graph, Grade.NODES)
    chain = schedule.critical_chain().nodes
    dot = dot_text(folded, chain=chain)
    bold = {line.split()[0] for line in dot.splitlines() if "engine-" in line and "critical" in line}
    assert bold == {f"n{folded.box_of[node]}" for node in chain if folded.box_of[node] >= 0}
    assert "critical" not in dot_text(folded)


def test_the_same_graph_gives_the_same_text() -> None:
    """Two traces of one kernel are drawn byte for byte alike."""
    assert draw(pk.messages(), format="dot").dot == draw(pk.messages(), format="dot").dot


def test_deep_nesting_is_no_deep_recursion() -> None:
    """Scopes nested a thousand deep are drawn."""

    @ks.kernel
    def deep(o: ks.HbmTensor) -> None:
        scopes = [ks.tl.scratch_scope() for _ in range(1000)]
        for scope in scopes:
            scope.__enter__()
        ks.tl.store(o[:], ks.tl.zeros((4,), ks.tl.float32))
        for scope in reversed(scopes):
            scope.__exit__(None, None, None)

    dot = draw(ks.trace(deep, ks.hbm((4,), "f32")), format="dot").dot
    assert dot.count("subgraph") == 1000


# --- formats and files ------------------------------------------------------------------------------------------------


def test_the_extension_decides_the_format(tmp_path: Path) -> None:
    """.dot needs no renderer and holds the text that the drawing holds."""
    made = draw(pk.sweep(2), tmp_path / "a.DOT")
    assert made.format == "dot"
    assert made.path == tmp_path / "a.DOT"
    assert made.path.read_text(encoding="utf-8") == made.dot


@pytest.mark.parametrize("name", ["a.gif", "a", "a.svgz"])
def test_an_unknown_format_is_refused_with_the_known_ones(tmp_path: Path, name: str) -> None:
    """The error names .svg, .png, .pdf and .dot, and nothing is written."""
    with pytest.raises(ks.OptionError) as caught:
        draw(pk.sweep(1), tmp_path / name)
    assert all(known in caught.value.help for known in (".svg", ".png", ".pdf", ".dot", ".json"))
    assert list(tmp_path.iterdir()) == []


def test_a_format_that_contradicts_the_extension_is_refused(tmp_path: Path) -> None:
    """No file of one kind gets the name of another."""
    with pytest.raises(ks.OptionError, match="contradicts"):
        draw(pk.sweep(1), tmp_path / "a.svg", format="png")
    assert draw(pk.sweep(1), tmp_path / "a.dot", format="dot").format == "dot"


def test_a_path_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    """A missing folder, and a folder in the file's place."""
    (tmp_path / "folder.svg").mkdir()
    for path in (tmp_path / "missing" / "a.svg", tmp_path / "folder.svg"):
        with pytest.raises(ks.OutputError, match="cannot write"):
            draw(pk.sweep(1), path)


def test_a_schedule_of_another_graph_is_refused() -> None:
    """Its critical chain would mark other nodes."""
    with pytest.raises(ks.TargetMismatchError):
        draw(pk.sweep(1), schedule=ks.schedule(pk.sweep(2)))


# --- the renderer chain -----------------------------------------------------------------------------------------------


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all of PATH; graphviz-pure is not installed."""

    def no_package(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(importlib.metadata, "files", no_package)
    return folder


def script(folder: Path, name: str, body: str) -> None:
    """A program of a shell's text: $2 is the option -oFILE, which names the picture."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


WRITES = 'printf \'<svg xmlns="http://www.w3.org/2000/svg"/>\' > "${2#-o}"'


def test_without_any_renderer_the_dot_text_is_written_and_both_remedies_named(programs: Path, tmp_path: Path) -> None:
    """No picture, no crash: the text lies beside, and the notes say what to install."""
    assert find_renderers() == ()
    made = draw(pk.sweep(2), tmp_path / "flash.svg")
    assert (made.rendered, made.renderer, made.path) == (False, "", tmp_path / "flash.svg.dot")
    assert (tmp_path / "flash.svg.dot").read_text(encoding="utf-8") == made.dot
    assert not (tmp_path / "flash.svg").exists()
    assert "dot" in str(made)
    assert "kernscope[draw]" in str(made)


@needs_scripts
def test_dot_on_path_comes_first(programs: Path, tmp_path: Path) -> None:
    """With dot there, it is dot that lays out."""
    script(programs, "dot", WRITES)
    script(programs, "graphviz-pure", "exit 1")
    made = draw(pk.sweep(2), tmp_path / "a.svg")
    assert (made.renderer, made.notes) == ("dot", ())
    assert (tmp_path / "a.svg").read_bytes() == made.data


@needs_scripts
@pytest.mark.parametrize("body", ["echo 'no such plugin' >&2; exit 1", "echo 'no such plugin' >&2; exit 0"])
def test_a_dot_that_fails_is_named_and_the_next_renderer_asked(programs: Path, body: str) -> None:
    """Its own words stand in the notes, also where it makes no picture and calls that success."""
    script(programs, "dot", body)
    script(programs, "graphviz-pure", WRITES)
    made = draw(pk.sweep(2), format="svg")
    assert made.renderer == "graphviz-pure"
    assert made.notes == ("dot failed: no such plugin",)


def test_graphviz_pure_is_found_without_an_activated_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The package says where its command lies, PATH or not."""
    try:
        importlib.metadata.files("graphviz-pure")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("graphviz-pure is not installed")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert [one.name for one in find_renderers()] == ["graphviz-pure"]


@needs_scripts
def test_a_format_that_no_renderer_makes_is_not_tried(programs: Path, tmp_path: Path) -> None:
    """graphviz-pure makes no PDF: it is not called, the graph is not folded for it, and the remedies are named."""
    script(programs, "graphviz-pure", f": > {tmp_path}/called; {WRITES}")
    made = draw(pk.sweep(9), tmp_path / "a.pdf")
    assert not (tmp_path / "called").exists()
    assert made.path == tmp_path / "a.pdf.dot"
    assert "graphviz-pure makes no .pdf" in made.notes
    assert "one box a node" in made.folding


@needs_scripts
def test_a_layout_that_does_not_end_is_stopped_with_its_children(programs: Path, tmp_path: Path) -> None:
    """The limit holds although a child of the renderer keeps its output open, and the child is ended, too."""
    alive = tmp_path / "alive"
    script(programs, "dot", f"(while :; do echo x > {alive}; /bin/sleep 0.05; done) &\nwait")
    began = time.monotonic()
    rendering = render("digraph {}", "svg", find_renderers(), limit_s=0.5)
    assert time.monotonic() - began < 5
    assert rendering.data is None
    assert rendering.problems == (
        f"dot was stopped after 0.5 s; it hangs ({programs / 'dot'} cannot lay out a single box)",
    )
    assert rendering.left == ()
    time.sleep(0.2)
    alive.unlink(missing_ok=True)
    time.sleep(0.3)
    assert not alive.exists()


@needs_scripts
def test_a_dot_that_hangs_is_followed_by_the_next_renderer(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that cannot even draw a box in time is not slow: the picture as it was asked for is made by another."""
    monkeypatch.setattr(drawing, "LAYOUT_LIMIT_S", 2.0)
    script(programs, "dot", f"echo >> {tmp_path}/calls; exec /bin/sleep 60")
    script(programs, "graphviz-pure", WRITES)
    made = draw(pk.sweep(9), format="svg", fold="none")
    assert made.renderer == "graphviz-pure" and "one box a node" in made.folding
    assert len(made.notes) == 1 and "dot was stopped after" in made.notes[0] and "it hangs" in made.notes[0]
    assert (tmp_path / "calls").read_text() == "\n\n", "asked once, and once whether it hangs"


@needs_scripts
def test_the_advice_fits_what_went_wrong(programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is told to install a renderer that is there and works; who has one that hangs is told of the other."""
    monkeypatch.setattr(drawing, "LAYOUT_LIMIT_S", 1.0)
    script(programs, "dot", 'case "$(cat "$3")" in *kernscope*) exit 3;; esac; ' + WRITES)
    assert "install" not in str(draw(pk.sweep(2), format="svg"))
    script(programs, "dot", "exec /bin/sleep 60")
    made = draw(pk.sweep(9), format="svg", fold="none")
    assert not made.rendered and "kernscope[draw]" in made.notes[-1]
    assert len(made.notes) == 2, "a renderer that hangs is not asked for a coarser picture"


@needs_scripts
def test_after_a_stopped_layout_a_coarser_one_is_tried(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second attempt draws folded iterations, within the same limit, and the notes tell both."""
    monkeypatch.setattr(drawing, "LAYOUT_LIMIT_S", 2.0)
    script(programs, "dot", f"if [ -e {tmp_path}/again ]; then {WRITES}; else : > {tmp_path}/again; /bin/sleep 60; fi")
    made = draw(pk.sweep(9), format="svg", fold="none")
    assert made.rendered
    assert made.notes[0].startswith("dot was stopped after ")
    assert "7 boxes" in made.notes[1]
    assert "7 boxes" in made.folding


def test_the_remedies_name_both_renderers() -> None:
    """The one sentence that every message ends with."""
    assert "dot is on PATH" in renderer.NO_RENDERER
    assert "kernscope[draw]" in renderer.NO_RENDERER


@needs_renderer
def test_many_boxes_are_laid_out_in_time(tmp_path: Path) -> None:
    """Near the limit of 800 boxes a layout still ends within the limit, unfolded."""
    made = draw(pk.sweep(150), tmp_path / "many.svg", fold="none")
    assert made.rendered
    assert made.notes == ()
    assert "one box a node" in made.folding


# --- what is drawn of a graph -----------------------------------------------------------------------------------------


def test_folding_is_a_choice() -> None:
    """``auto`` draws what repeats once, ``none`` every node, ``scope`` every scope as one box."""
    graph = pk.sweep(64)
    said = {how: draw(graph, format="dot", fold=how).folding for how in ("auto", "none", "scope")}
    assert said["auto"].startswith("7 boxes: what repeats is drawn once")
    assert said["none"].startswith("one box a node")
    assert said["scope"].startswith("2 boxes: one a scope")
    assert draw(graph, format="dot", fold="none").dot.count("engine-") == 322


def test_one_rank_is_drawn_alone() -> None:
    """Its nodes, its frame, and how many edges leave it."""
    graph = pk.messages(3, 4)
    made = draw(graph, format="dot", rank=1, fold="none")
    said = said_in(made.dot)
    assert "rank 1" in said
    assert not {"rank 0", "rank 2"} & set(said)
    crossing = sum((node.rank == 1) != (graph[edge.source].rank == 1) for node in graph for edge in node.edges_in)
    assert f"rank 1 of 3; {crossing} edges to what is left out are not drawn" in made.folding


@pytest.mark.parametrize("hops", [0, 1, 3])
def test_the_surroundings_of_a_node_are_drawn(hops: int) -> None:
    """Exactly the nodes up to so many edges away, with the node itself marked."""
    graph = pk.sweep(5)
    node = next(n.id for n in graph if n.op == "exp")
    near = nx.ego_graph(ks.to_networkx(graph).to_undirected(), node, radius=hops)
    made = draw(graph, format="dot", around=node, hops=hops)
    boxes = [line for line in made.dot.splitlines() if "engine-" in line]
    assert len(boxes) == len(near)
    assert sum("focus" in line for line in boxes) == 1


@pytest.mark.parametrize(
    "options",
    [{"fold": "al"}, {"rank": 3}, {"rank": -1}, {"around": 10_000}, {"around": -1}, {"around": 0, "hops": -1}],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, Any]) -> None:
    """Unknown foldings, and ranks and nodes that are not there: with what there is."""
    with pytest.raises(ks.OptionError) as caught:
        draw(pk.messages(3, 1), format="dot", **options)
    assert caught.value.help


def test_a_node_of_another_rank_is_no_neighbour() -> None:
    """``rank`` and ``around`` have to fit."""
    with pytest.raises(ks.OptionError, match="rank 0"):
        draw(pk.messages(3, 1), format="dot", rank=1, around=0)


def test_implied_data_edges_can_be_left_out() -> None:
    """``a -> b -> c`` makes ``a -> c`` superfluous; the picture says how many it leaves out, and draws the others."""

    @ks.kernel
    def diamond(o: ks.HbmTensor) -> None:
        a = tl.zeros((4,), tl.float32)
        tl.store(o[:], a + tl.exp(a))

    graph = ks.trace(diamond, ks.hbm((4,), "f32"))
    arrows = [draw(graph, format="dot", reduce=on).dot.count("reason-data") for on in (False, True)]
    assert arrows == [4, 3]
    assert "1 data edges that others imply are left out" in draw(graph, format="dot", reduce=True).folding


@pytest.mark.parametrize(("crowd", "hides"), [(9 / 7, False), (8.9 / 7, True)])
def test_a_crowd_of_reused_bytes_is_not_drawn(monkeypatch: pytest.MonkeyPatch, crowd: float, hides: bool) -> None:
    """Where war and waw edges outnumber the boxes by too much they are left out, and it is said how many; those along
    the critical chain stay, and so do all others."""

    @ks.kernel
    def crowded(x: ks.HbmTensor, o: ks.HbmTensor) -> None:
        for _ in range(30):
            with tl.scratch_scope("tile"):
                tile, *parts = (tl.load(x[:, :]) for _ in range(4))
                both = parts[0] + parts[1]
                tl.copy_to(tile, (both + parts[2] + tile) + both)
                tl.store(o[:, :], tile)

    graph = ks.trace(crowded, ks.hbm((8, 8), "f32"), ks.hbm((8, 8), "f32"))
    folded = fold(graph, Grade.ITERATIONS)
    edges = folded.edges
    weak = [Reason(reason) >= Reason.WAR for reason in edges.reason.tolist()]
    assert (len(folded.boxes), sum(weak)) == (7, 9)
    row = next(at for at, reason in enumerate(graph.edges.reason.tolist()) if Reason(reason) is Reason.WAR)
    chain = [int(graph.edges.source[row]), int(graph.edges.target[row])]
    along = tuple(folded.box_of[chain].tolist())
    monkeypatch.setattr(drawing, "_CROWD", crowd)
    for nodes in (chain, []):
        view = drawing._View(Selection(), nodes, reduce=False)
        prepared = view.prepare(folded)
        kept = [
            not hides or not bad or (nodes != [] and pair == along)
            for bad, pair in zip(weak, zip(edges.source.tolist(), edges.target.tolist(), strict=True), strict=True)
        ]
        assert len(re.findall(r"class=\"reason-", prepared.text)) == sum(kept)
        gone = sum(n for n, stays in zip(edges.count.tolist(), kept, strict=True) if not stays)
        assert (f"{gone:,} war and waw edges are not drawn" in prepared.said) is hides
        assert sum(kept) - sum(not bad for bad in weak) == (9 if not hides else 1 if nodes else 0)


def test_more_boxes_than_can_be_laid_out_are_refused(tmp_path: Path) -> None:
    """At once, with the alternatives; as DOT text they are written."""
    graph = pk.sweep(1001)
    with pytest.raises(ks.OptionError, match="5,007 boxes"):
        draw(graph, tmp_path / "a.svg", fold="none")
    assert draw(graph, tmp_path / "a.dot", fold="none").path == tmp_path / "a.dot"


# --- Model Explorer ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["kernel", *pk.HOSTILE])
def test_model_explorer_reads_what_it_needs(name: str, tmp_path: Path) -> None:
    """One graph of all nodes; identifiers are unique, every edge comes from a node, every value is a text, and scopes
    are namespaces of their own."""
    graph = pk.renamed(pk.nested(2, 3), name)
    draw(graph, tmp_path / "a.json")
    document = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert set(document) == {"label", "graphs"}
    (shown,) = document["graphs"]
    nodes = {node["id"]: node for node in shown["nodes"]}
    markers = graph.count("scope_enter") + graph.count("scope_exit")
    assert len(nodes) == len(shown["nodes"]) == len(graph) - markers
    edges = [edge for node in nodes.values() for edge in node["incomingEdges"]]
    assert len(edges) == len(graph.edges)
    assert {edge["sourceNodeId"] for edge in edges} <= set(nodes)
    pairs = [pair for node in nodes.values() for pair in node["attrs"]]
    pairs += [pair for edge in edges for pair in edge["metadata"]]
    assert all(set(pair) == {"key", "value"} and isinstance(pair["value"], str) for pair in pairs)
    assert len({node["namespace"] for node in nodes.values()} - {""}) == 2 + 2 * 3


def test_model_explorer_gets_large_graphs_folded() -> None:
    """Above 50,000 nodes what repeats is one node of the picture."""
    made = draw(pk.sweep(12_000), format="json")
    assert made.folding.startswith("7 boxes")


def test_model_explorer_tells_what_a_node_of_its_graph_stands_for() -> None:
    """A single operation: engine, the first node as text, its line. A box of several: how often each occurs."""

    def attributes(grade: Grade) -> list[dict[str, str]]:
        (shown,) = model_explorer_document(fold(pk.sweep(3), grade))["graphs"]
        return [{pair["key"]: pair["value"] for pair in node["attrs"]} for node in shown["nodes"]]

    (load,) = (known for known in attributes(Grade.ITERATIONS) if known["node"].split(" = ")[1].startswith("load"))
    assert (load["nodes"], load["engine"]) == ("3", "dma_read")
    assert load["source"].startswith("picturekernels.py:")
    boxes = attributes(Grade.SCOPES)
    assert {"nodes": "15", "load": "3", "dot": "3", "exp": "3", "add": "3", "copy_to": "3"} in boxes


def test_a_box_says_how_often_only_where_that_is_more_than_its_frame() -> None:
    """What runs once an iteration says nothing; what runs three times says so; a node of its own is one."""

    @ks.kernel
    def kernel(x: ks.HbmTensor) -> None:
        for _ in range(4):
            with tl.scratch_scope("tile"):
                a = tl.load(x[:, :])
                for _ in range(3):
                    a = tl.exp(a)

    graph = ks.trace(kernel, ks.hbm((8, 8), "f32"))
    folded = fold(graph, Grade.ITERATIONS)
    labels = {graph[box.node].op: node_label(folded, at) for at, box in enumerate(folded.boxes)}
    assert "  x " not in labels["load"] and "  x 3" in labels["exp"]
    single = fold(graph, Grade.NODES)
    assert not any("  x " in node_label(single, at) for at in range(len(single.boxes)))
