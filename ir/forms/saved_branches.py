"""The branches of a trace in the header of a saved graph: plain JSON, read as untrusted input."""

from __future__ import annotations

from typing import Any

from ..branches import Branch, Branches, Way
from .saved_values import count, of, place, safe, written_place

__all__ = ["read_branches", "written_branches"]


def written_branches(branches: Branches) -> dict[str, Any]:
    """Branches as JSON has them."""
    return {"rows": [_written(row) for row in branches.rows], "unseen": [safe(name) for name in branches.unseen]}


def read_branches(entry: Any) -> Branches:
    """The same from JSON, every value of its right type. Raises ``GraphFormatError``, and ``KeyError`` for what is not
    there."""
    entry = of(dict, entry)
    rows = tuple(_row(row) for row in of(list, entry["rows"]))
    return Branches(rows, tuple(of(str, name) for name in of(list, entry["unseen"])))


def _written(row: Branch) -> dict[str, Any]:
    return {
        "place": written_place(row.place),
        "kind": row.kind,
        "text": safe(row.text),
        "ways": [
            [safe(way.label), way.times, way.programs, [[safe(name), safe(value)] for name, value in way.values]]
            for way in row.ways
        ],
        "depends": [safe(name) for name in row.depends],
        "trips": row.trips,
    }


def _row(entry: Any) -> Branch:
    entry = of(dict, entry)
    trips = entry["trips"]
    return Branch(
        place(entry["place"]),
        of(str, entry["kind"]),
        of(str, entry["text"]),
        tuple(_way(way) for way in of(list, entry["ways"])),
        tuple(of(str, name) for name in of(list, entry["depends"])),
        None if trips is None else _pair(trips),
    )


def _way(entry: Any) -> Way:
    label, times, programs, values = of(list, entry)
    named = [of(list, pair) for pair in of(list, values)]
    return Way(
        of(str, label),
        count(times),
        tuple(_pair(run) for run in of(list, programs)),
        tuple((of(str, name), of(str, value)) for name, value in named),
    )


def _pair(entry: Any) -> tuple[int, int]:
    first, last = of(list, entry)
    return count(first), count(last)
