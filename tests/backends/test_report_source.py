"""The source beside its costs: whole functions, each line's sum exact, and columns that unpack to what was packed."""

from __future__ import annotations

import base64
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import picturekernels as pk
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernscope as ks
from kernscope import tl
from kernscope.backends.report.columns import pack
from kernscope.backends.report.source import LineTable, SourceText, collect_sources
from kernscope.backends.report.source import _spans as spans_of


def _twice(value: ks.TensorHandle) -> ks.TensorHandle:
    return tl.exp(value) + tl.exp(value)


@ks.kernel
def _calls(o: ks.HbmTensor) -> None:
    value = tl.zeros((4, 4), tl.float32)
    for _ in range(3):
        value = _twice(value)
    tl.store(o[:, :], value)


def calls() -> ks.Graph:
    """A kernel that calls a helper three times."""
    return ks.trace(_calls, ks.hbm((4, 4), "f32"))


def test_whole_functions_are_shown() -> None:
    """The kernel and the helper, from ``def`` to their last lines, and nothing else of the file."""
    texts = collect_sources(calls())
    assert [text.lines[0].split("(")[0] for text in texts] == ["def _twice", "def _calls"]
    assert all(text.file == __file__ for text in texts)
    assert [text.lines[-1].strip() for text in texts] == [
        "return tl.exp(value) + tl.exp(value)",
        "tl.store(o[:, :], value)",
    ]


def test_a_call_counts_what_it_calls() -> None:
    """The helper's line has its nine nodes, and so has the line that calls it."""
    graph = calls()
    lines = LineTable(graph, collect_sources(graph))
    counts = lines.sums(graph.nodes.stack, np.ones(len(graph), dtype=np.int64))
    shown = [line.strip() for text in lines.texts for line in text.lines]
    by_line = {line: count for line, count in zip(shown, counts, strict=True) if count}
    assert by_line == {
        "return tl.exp(value) + tl.exp(value)": 9,
        "value = _twice(value)": 9,
        "value = tl.zeros((4, 4), tl.float32)": 1,
        "tl.store(o[:, :], value)": 1,
    }


def test_a_source_that_is_not_there_is_left_out() -> None:
    """A graph from elsewhere has no texts, and all its sums are empty."""
    graph = pk.renamed(pk.sweep(2), "no such file.py")
    assert collect_sources(graph) == ()
    assert LineTable(graph, ()).sums(graph.nodes.stack, np.ones(len(graph), dtype=np.int64)) == []


@pytest.mark.parametrize(("length", "shown"), [(2_999, True), (3_000, True), (3_001, False)])
def test_a_page_shows_so_many_lines_at_most(tmp_path: Path, length: int, shown: bool) -> None:
    """A function of 3,000 lines is shown whole, a longer one is left out."""
    body = "    pass\n" * (length - 2) + "    tl.store(o[:], tl.zeros((4,), tl.float32))\n"
    text = f"from kernscope import tl\ndef kernel(o):\n{body}"
    path = tmp_path / "long.py"
    path.write_text(text)
    space: dict[str, Any] = {}
    exec(compile(text, str(path), "exec"), space)
    texts = collect_sources(ks.trace(space["kernel"], ks.hbm((4,), "f32")))
    assert [(one.first, len(one.lines)) for one in texts] == [(2, length)] * shown


@pytest.mark.parametrize("text", ["def f(:\n    x\n", "x = 1\ny = 2\n"])
def test_a_line_in_no_function_is_shown_alone(text: str) -> None:
    """Of a module's own body, and of a text that does not parse."""
    assert spans_of(tuple(text.splitlines()), [2, 1, 2]) == [(1, 1), (2, 2)]


def test_a_line_is_counted_once_for_a_recursive_call() -> None:
    """A stack that passes a line twice counts for it once."""

    def down(value: ks.TensorHandle, depth: int) -> ks.TensorHandle:
        return tl.exp(value) if depth == 0 else down(value, depth - 1)

    @ks.kernel
    def kernel(o: ks.HbmTensor) -> None:
        tl.store(o[:], down(tl.zeros((4,), tl.float32), 5))

    graph = ks.trace(kernel, ks.hbm((4,), "f32"))
    lines = LineTable(graph, collect_sources(graph))
    counts = lines.sums(graph.nodes.stack, np.ones(len(graph), dtype=np.int64))
    assert max(counts) <= len(graph)


@pytest.mark.parametrize("delta", [False, True])
@given(values=st.lists(st.integers(-(2**51), 2**51), max_size=40))
def test_columns_come_back(values: list[int], delta: bool) -> None:
    """Of any integers that a script's numbers hold, in the narrowest type."""
    packed = pack(np.array(values, dtype=np.int64), delta=delta)
    raw = np.frombuffer(zlib.decompress(base64.b64decode(packed["data"])), dtype=f"<{packed['type']}")
    back = raw.astype(np.int64)
    assert (np.cumsum(back) if delta else back).tolist() == values
    assert packed["size"] == len(values)


@pytest.mark.parametrize(("largest", "kind"), [(127, "i1"), (128, "i2"), (40_000, "i4"), (2**31, "f8")])
def test_columns_are_narrow(largest: int, kind: str) -> None:
    """No wider than the largest value needs."""
    assert pack(np.array([largest, 0]))["type"] == kind


def test_texts_of_one_file_are_told_apart() -> None:
    """Lines are numbered through over several stretches."""
    lines = LineTable(calls(), (SourceText("a", 3, ("x", "y")), SourceText("a", 9, ("z",))))
    assert len(lines) == 3
