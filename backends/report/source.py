"""The source of a kernel, line by line: the functions that a graph's nodes come from, and what each line costs."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cached_property

import attrs
import numpy as np

from ...ir.columns import GraphColumns
from ...ir.source.digests import source_lines
from ...ir.tables import IntArray

__all__ = ["LineTable", "SourceText", "collect_sources"]

#: So many lines in all are shown.
_LINES_SHOWN = 3_000


@attrs.frozen
class SourceText:
    """A stretch of a source file: its path as the graph names it, the number of its first line, and its lines."""

    file: str
    first: int
    lines: tuple[str, ...]


def collect_sources(graph: GraphColumns) -> tuple[SourceText, ...]:
    """The functions of all source files, as far as they can be read, that a line of some node's call stack lies in:
    whole, with their decorators. Files in the order of their first node; at most 3,000 lines in all."""
    found: list[SourceText] = []
    left = _LINES_SHOWN
    for file, numbers in _lines_by_file(graph).items():
        lines = source_lines(file, graph.digest_of(file))
        for first, last in _spans(lines, [number for number in numbers if number <= len(lines)]):
            if last - first < left:
                found.append(SourceText(file, first, lines[first - 1 : last]))
                left -= last - first + 1
    return tuple(found)


def _lines_by_file(graph: GraphColumns) -> dict[str, list[int]]:
    """The lines of the frames of all call stacks of nodes, by file."""
    frames, stacks = graph.frames, graph.stacks
    rows: dict[int, None] = {}
    for stack in dict.fromkeys(graph.nodes.stack[graph.nodes.stack >= 0].tolist()):
        for row in _chain(graph, stack):
            rows.setdefault(int(stacks.frame[row]))
    found: dict[str, list[int]] = {}
    for frame in rows:
        found.setdefault(graph.names[frames.file[frame]], []).append(int(frames.line[frame]))
    return found


def _chain(graph: GraphColumns, stack: int) -> Iterator[int]:
    """The rows of a call stack, the innermost first."""
    while stack >= 0:
        yield stack
        stack = int(graph.stacks.caller[stack])


def _spans(lines: tuple[str, ...], numbers: list[int]) -> list[tuple[int, int]]:
    """The first and last lines of the outermost functions around some lines, in order; of a line that lies in none (or
    of a text that does not parse) the line alone."""
    try:
        tree = ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        functions = []
    else:
        functions = sorted(_functions(tree.body))
    spans = set()
    for number in numbers:
        around = [(first, last) for first, last in functions if first <= number <= last]
        spans.add(around[0] if around else (number, number))
    return sorted(spans)


def _functions(body: Iterable[ast.stmt]) -> Iterator[tuple[int, int]]:
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            # Launches above a kernel are many lines that no node comes from: the kernel's own decorator stays.
            yield statement.lineno, statement.end_lineno or statement.lineno
        elif isinstance(statement, ast.ClassDef | ast.If | ast.Try | ast.With):
            yield from _functions(statement.body)


@attrs.frozen(eq=False, slots=False)
class LineTable:
    """The lines of some texts, numbered through from 0, and which nodes come from them.

    ``of_stack[s]`` are the numbers of the lines that the call stack ``s`` passes through, the innermost first: a call
    of a helper counts what the helper does.
    """

    graph: GraphColumns
    texts: tuple[SourceText, ...]

    def __len__(self) -> int:
        return sum(len(text.lines) for text in self.texts)

    @cached_property
    def of_stack(self) -> tuple[tuple[int, ...], ...]:
        graph = self.graph
        known: dict[tuple[str, int], int] = {}
        for text in self.texts:
            for offset in range(len(text.lines)):
                known.setdefault((text.file, text.first + offset), len(known))
        frames = [
            known.get((graph.names[file], line), -1)
            for file, line in zip(graph.frames.file.tolist(), graph.frames.line.tolist(), strict=True)
        ]
        found: list[tuple[int, ...]] = []
        rows = zip(graph.stacks.frame.tolist(), graph.stacks.caller.tolist(), strict=True)
        for frame, caller in rows:  # a caller's row lies before its callee's
            around = found[caller] if caller >= 0 else ()
            own = frames[frame]
            found.append(around if own < 0 or own in around else (own, *around))
        return tuple(found)

    def sums(self, stack: IntArray, values: IntArray) -> list[int]:
        """By line the sum of some values, given with the row of the call stack that each comes from (-1: unknown)."""
        total: IntArray = np.zeros(len(self.graph.stacks), dtype=np.int64)
        known = stack >= 0
        np.add.at(total, stack[known], values[known])
        sums = [0] * len(self)
        for row in np.flatnonzero(total).tolist():
            for line in self.of_stack[row]:
                sums[line] += int(total[row])
        return sums
