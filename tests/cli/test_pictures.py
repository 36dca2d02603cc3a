"""``kernscope draw`` and ``report``: every option reaches the picture, and what makes no sense is one clear error."""

from __future__ import annotations

import json
import re
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
FLASH = "kernscope.kernels.flash_attention:flash_attention"
RING = "kernscope.kernels.gqa_attention_prefill_long:gqa_attention_prefill_long_kernel"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "26 boxes: what repeats is drawn once"),
        (("--fold", "none"), "one box a node"),
        (("--fold", "scope"), "2 boxes: one a scope"),
        (("--around", "20", "--hops", "1"), "up to 1 edge from node %20"),
        (("--reduce",), "data edges that others imply are left out"),
    ],
)
def test_draw_does_what_it_is_told(kernscope: Run, options: tuple[str, ...], said: str, tmp_path: Path) -> None:
    """The folding is printed, and the file is there."""
    path = tmp_path / "a.dot"
    status, text, _ = kernscope("draw", FLASH, "-o", str(path), *options)
    assert status == 0
    assert said in text
    assert path.read_text(encoding="utf-8").startswith("digraph")


def test_one_rank_can_be_drawn(kernscope: Run, tmp_path: Path) -> None:
    """Of four."""
    status, text, _ = kernscope("draw", RING, "--rank", "2", "-o", str(tmp_path / "a.dot"))
    assert status == 0
    assert "rank 2 of 4" in text


def test_json_is_for_model_explorer(kernscope: Run, tmp_path: Path) -> None:
    """By its extension."""
    path = tmp_path / "a.json"
    assert kernscope("draw", FLASH, "-o", str(path))[0] == 0
    assert json.loads(path.read_text(encoding="utf-8"))["label"] == "flash_attention"


@pytest.mark.parametrize(
    "options",
    [("--fold", "all"), ("--rank", "1"), ("--around", "99999"), ("--around", "1", "--hops", "-1"), ("-o", "a.gif")],
)
def test_options_that_mean_nothing_are_refused(kernscope: Run, options: tuple[str, ...], tmp_path: Path) -> None:
    """Exit status 2, and no file."""
    status, _, told = kernscope("draw", FLASH, *options)
    assert status == 2
    assert "Traceback" not in told
    assert list(tmp_path.iterdir()) == []


def test_a_report_against_another(kernscope: Run, tmp_path: Path) -> None:
    """Another argument, or a saved graph: what changed is printed, with lines, and stands in the page."""
    saved = tmp_path / "before.graph"
    assert kernscope("trace", FLASH, "--arg", "tile=64", "-o", str(saved))[0] == 0
    page = tmp_path / "a.html"
    for against in ((FLASH, "--against-arg", "tile=64"), (str(saved),)):
        status, text, _ = kernscope("report", FLASH, "--no-run", "-o", str(page), "--against", *against)
        assert status == 0
        told = text[text.index("against   flash_attention") :]
        assert ("with tile=64" in told) == (against[0] == FLASH)
        assert "peak 479,744 B -> 659,968 B" in told
        assert "flash_attention.py:" in told
        assert "What changed" in page.read_text(encoding="utf-8")


def test_a_launch_of_nothing_is_refused(kernscope: Run) -> None:
    """``--against-launch`` takes ``--against``."""
    status, _, told = kernscope("report", FLASH, "--against-launch", "2k")
    assert status == 2
    assert "--against TARGET" in told


def test_a_report_opens_in_the_browser(kernscope: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``--open`` hands the page's address to the browser; where none can be started it says so, and the page stays."""
    asked: list[str] = []
    for answer in (lambda _: True, lambda _: False, no_browser):
        monkeypatch.setattr(webbrowser, "open", lambda uri, answer=answer: (asked.append(uri), answer(uri))[1])
        told = kernscope("report", FLASH, "--no-run", "-o", "page.html", "--open")
        assert told.status == 0
        assert ("no browser could be started here; open page.html yourself" in told.out) is (len(asked) > 1)
    assert asked == [(tmp_path / "page.html").as_uri()] * 3
    kernscope("report", FLASH, "--no-run", "-o", "page.html")
    assert len(asked) == 3


def no_browser(_: str) -> bool:
    raise webbrowser.Error("could not locate runnable browser")


def test_a_summary_says_equal_ranks_once(kernscope: Run) -> None:
    """Of eight ranks the engines' shares stand by groups of equal ones, each rank in one of them."""
    told = kernscope("schedule", RING, "--launch", "8k", "--policy", "list").out
    engines = told.partition("engines\n")[2]
    assert len(engines.splitlines()) < 20
    for engine in ("dma_read", "gemm", "math"):
        groups = re.findall(rf"^  {engine} +ranks? (\d+)(?: to (\d+))? ", engines, re.MULTILINE)
        ranks = [rank for first, last in groups for rank in range(int(first), int(last or first) + 1)]
        assert sorted(ranks) == list(range(8))
