"""Values in the header of a saved graph: plain JSON, read as untrusted input, each of its right type."""

from __future__ import annotations

from typing import Any

from ..errors import GraphFormatError
from ..source.location import Location

__all__ = ["bad", "bounded", "count", "of", "place", "safe", "written_place"]

#: Times and numbers of programs stay below this, as all numbers of a saved graph.
_LARGEST = 1 << 48


def safe(text: str) -> str:
    """A text that UTF-8 can hold."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def of(kind: type, value: Any) -> Any:
    """A value of a type. Raises ``GraphFormatError``."""
    if type(value) is not kind:
        raise bad(f"a {type(value).__name__} where a {kind.__name__} belongs")
    return value


def bounded(value: Any, low: int, high: int) -> int:
    """An integer within limits. Raises ``GraphFormatError``."""
    number: int = of(int, value)
    if not low <= number <= high:
        raise bad("a number that is out of range")
    return number


def count(value: Any) -> int:
    """A count, a line or a column; -1 where it is not known. Raises ``GraphFormatError``."""
    return bounded(value, -1, _LARGEST)


def written_place(at: Location) -> list[Any]:
    """A place without its callers, as JSON has it."""
    return [safe(at.file), at.line, safe(at.function), at.column, at.end_line, at.end_column]


def place(entry: Any) -> Location:
    """The same from JSON. Raises ``GraphFormatError``."""
    file, line, function, column, end_line, end_column = of(list, entry)
    return Location(of(str, file), count(line), of(str, function), count(column), count(end_line), count(end_column))


def bad(message: str) -> GraphFormatError:
    """The error of a file that was changed by hand."""
    return GraphFormatError(message, help="save the graph again; a file changed by hand cannot be read")
