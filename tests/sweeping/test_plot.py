"""The front of a sweep as a picture."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree

import pytest

import kernscope as ks
from kernscope.face.sweeping.result import Sweep, SweepRow

matplotlib = pytest.importorskip("matplotlib")


#: A front of more points than are named.
LONG = tuple((99 - n, n) for n in range(60))


def sweep(*costs: tuple[int, int] | None, name: str = "tile") -> Sweep:
    """Rows of these makespans and peaks; None: does not fit."""
    rows = [
        SweepRow({name: n}, "overflow", "too large", 1 << 20)
        if cost is None
        else SweepRow({name: n}, "fits", "", cost[1], cost[0], cost[0])
        for n, cost in enumerate(costs)
    ]
    return Sweep("mine", (name,), tuple(rows))


@pytest.mark.parametrize(("suffix", "begin"), [(".svg", b"<?xml"), (".png", b"\x89PNG"), (".pdf", b"%PDF")])
@pytest.mark.parametrize(
    "costs", [((300, 10), (200, 20), None), (None,), ((0, 0),), tuple((99 - n, n) for n in range(60))]
)
def test_every_sweep_has_a_picture_and_always_the_same(tmp_path, costs, suffix, begin):
    """Also where nothing fits, where a makespan is 0, and where the front has more points than are named."""
    paths = [tmp_path / f"one{suffix}", tmp_path / f"two{suffix}"]
    for path in paths:
        sweep(*costs).plot(path)
    first, second = (path.read_bytes() for path in paths)
    assert first.startswith(begin) and first == second


def test_the_names_of_points_are_texts(tmp_path):
    """Neither formulas of matplotlib's nor markup."""
    for name in ("$x^2$", "<script>", "a$", "_hidden"):
        sweep((300, 10), (200, 20), name=name).plot(tmp_path / "front.svg")
        root = ElementTree.parse(tmp_path / "front.svg").getroot()
        assert not [part for part in root.iter() if "script" in part.tag]


def test_what_cannot_be_written_is_said_before_any_work(tmp_path, monkeypatch):
    with pytest.raises(ks.OptionError, match=r"unknown format '\.gif'"):
        sweep((1, 1)).plot(tmp_path / "front.gif")
    with pytest.raises(ks.OutputError):
        sweep((1, 1)).plot(tmp_path / "no" / "front.svg")
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "kernscope.backends.front_plot")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ks.MissingExtraError, match="matplotlib"):
        sweep((1, 1)).plot(tmp_path / "front.svg")


def test_points_off_the_front_are_explained(tmp_path, monkeypatch):
    """A legend says what grey is; where all are of the front there is nothing to say."""
    monkeypatch.setitem(matplotlib.rcParams, "svg.fonttype", "none")
    for costs, said in (((300, 10), (200, 20), (400, 30)), True), (((300, 10), (200, 20)), False):
        sweep(*costs).plot(tmp_path / "front.svg")
        text = (tmp_path / "front.svg").read_text()
        assert ("another point is as good in both and better in one" in text) == said
