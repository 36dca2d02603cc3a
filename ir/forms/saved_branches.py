"""The branches of a trace in the header of a saved graph: plain JSON, read as untrusted input."""

from __future__ import annotations

from typing import Any

from ..branches import Branch, Branches, Way
from ..errors import GraphFormatError
from ..source.location import Location

__all__ = ["read_branches", "written_branches"]

#: Times and numbers of programs stay below this, as all numbers of a saved graph.
_LARGEST = 1 << 48


def written_branches(branches: Branches) -> dict[str, Any]:
    """Branches as JSON has them."""
    return {"rows": [_written(row) for row in branches.rows], "unseen": [_safe(name) for name in branches.unseen]}


def read_branches(entry: Any) -> Branches:
    """The same from JSON, every value of its right type. Raises ``GraphFormatError``, and ``KeyError`` for what is not
    there."""
    entry = _of(dict, entry)
    rows = tuple(_row(row) for row in _of(list, entry["rows"]))
    return Branches(rows, tuple(_of(str, name) for name in _of(list, entry["unseen"])))


def _written(row: Branch) -> dict[str, Any]:
    at = row.place
    return {
        "place": [_safe(at.file), at.line, _safe(at.function), at.column, at.end_line, at.end_column],
        "kind": row.kind,
        "text": _safe(row.text),
        "ways": [
            [_safe(way.label), way.times, way.programs, [[_safe(name), _safe(value)] for name, value in way.values]]
            for way in row.ways
        ],
        "depends": [_safe(name) for name in row.depends],
        "trips": row.trips,
    }


def _safe(text: str) -> str:
    """A text that UTF-8 can hold."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _row(entry: Any) -> Branch:
    entry = _of(dict, entry)
    file, line, function, column, end_line, end_column = _of(list, entry["place"])
    trips = entry["trips"]
    return Branch(
        Location(
            _of(str, file), _count(line), _of(str, function), _count(column), _count(end_line), _count(end_column)
        ),
        _of(str, entry["kind"]),
        _of(str, entry["text"]),
        tuple(_way(way) for way in _of(list, entry["ways"])),
        tuple(_of(str, name) for name in _of(list, entry["depends"])),
        None if trips is None else _pair(trips),
    )


def _way(entry: Any) -> Way:
    label, times, programs, values = _of(list, entry)
    named = [_of(list, pair) for pair in _of(list, values)]
    return Way(
        _of(str, label),
        _count(times),
        tuple(_pair(run) for run in _of(list, programs)),
        tuple((_of(str, name), _of(str, value)) for name, value in named),
    )


def _pair(entry: Any) -> tuple[int, int]:
    first, last = _of(list, entry)
    return _count(first), _count(last)


def _count(value: Any) -> int:
    number: int = _of(int, value)
    if not -1 <= number <= _LARGEST:
        raise _bad("a number of a branch that is out of range")
    return number


def _of(kind: type, value: Any) -> Any:
    if type(value) is not kind:
        raise _bad(f"a {type(value).__name__} where a {kind.__name__} belongs")
    return value


def _bad(message: str) -> GraphFormatError:
    return GraphFormatError(message, help="save the graph again; a file changed by hand cannot be read")
