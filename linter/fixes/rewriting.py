"""From places in a syntax tree to edits of whole lines."""

from __future__ import annotations

import ast

from ..edits import Edit
from .syntax import Syntax

__all__ = ["Rewriting", "indentation"]


def indentation(syntax: Syntax, statement: ast.stmt) -> str:
    """The blanks before the line on which a statement begins."""
    line = syntax.lines[statement.lineno - 1]
    return line[: len(line) - len(line.lstrip())]


class Rewriting:
    """Changes of one file, collected place by place; none may overlap another. Of several at one place the first that
    was made comes first."""

    def __init__(self, syntax: Syntax) -> None:
        self.syntax = syntax
        self._changes: list[tuple[tuple[int, int], tuple[int, int], str]] = []

    def replace(self, start: tuple[int, int], stop: tuple[int, int], text: str) -> None:
        """Replace what lies between two places: (line, column in characters)."""
        self._changes.append((start, stop, text))

    def put(self, line: int, column: int, text: str) -> None:
        """Insert text at a place."""
        self.replace((line, column), (line, column), text)

    def put_line(self, before: int, text: str) -> None:
        """Insert a whole line above another one."""
        self.put(before, 0, f"{text}\n")

    def delete(self, statement: ast.stmt) -> None:
        """Take a statement out; ``pass`` stands in for one that shares its lines, or is alone in its block."""
        syntax = self.syntax
        start, stop = self.start(statement), self.stop(statement)
        before = syntax.lines[start[0] - 1][: start[1]]
        after = syntax.lines[stop[0] - 1][stop[1] :]
        alone = len(syntax.block(statement)) == 1
        if alone or before.strip() or (after.strip() and not after.strip().startswith("#")):
            self.replace(start, stop, "pass")
            return
        self.replace((start[0], 0), (stop[0] + 1, 0), "")

    def assignment_head(self, statement: ast.Assign | ast.AugAssign | ast.AnnAssign) -> tuple[int, int]:
        """The place behind a statement's ``=`` and the blanks after it, on the line of the ``=``."""
        last = statement.targets[-1] if isinstance(statement, ast.Assign) else statement.target
        if isinstance(statement, ast.AnnAssign):
            last = statement.annotation
        line, column = self.stop(last)
        while "=" not in self.syntax.lines[line - 1][column:]:
            line, column = line + 1, 0
        text = self.syntax.lines[line - 1]
        column = text.index("=", column) + 1
        return line, column + len(text[column:]) - len(text[column:].lstrip())

    def start(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Where a node begins; its column in characters."""
        return node.lineno, self._column(node.lineno, node.col_offset)

    def stop(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """The place behind a node's last character."""
        assert node.end_lineno is not None and node.end_col_offset is not None
        return node.end_lineno, self._column(node.end_lineno, node.end_col_offset)

    def _column(self, line: int, in_bytes: int) -> int:
        return len(self.syntax.lines[line - 1].encode()[:in_bytes].decode())

    def edits(self) -> tuple[Edit, ...]:
        """The changes as edits of whole lines."""
        ordered = sorted(self._changes, key=lambda change: (change[0], change[1]))
        groups: list[list[tuple[tuple[int, int], tuple[int, int], str]]] = []
        for change in ordered:
            if groups and change[0][0] <= max(stop[0] for _, stop, _ in groups[-1]):
                groups[-1].append(change)
            else:
                groups.append([change])
        return tuple(self._edit(group) for group in groups)

    def _edit(self, group: list[tuple[tuple[int, int], tuple[int, int], str]]) -> Edit:
        lines = self.syntax.lines
        first, last = group[0][0][0], max(stop[0] for _, stop, _ in group)
        text, at = "", (first, 0)
        for start, stop, new in group:
            text += self._between(at, start) + new
            at = stop
        if at[1] == 0 and at[0] == last > first:
            last -= 1  # whole lines were deleted: the next one is untouched
        else:
            text += self._between(at, (last, len(lines[last - 1]))) + "\n"
        return Edit(self.syntax.file, first, last, text)

    def _between(self, start: tuple[int, int], stop: tuple[int, int]) -> str:
        lines = self.syntax.lines
        if start[0] == stop[0]:
            return lines[start[0] - 1][start[1] : stop[1]]
        middle = lines[start[0] : stop[0] - 1]
        last = lines[stop[0] - 1][: stop[1]] if stop[0] <= len(lines) else ""
        return "\n".join([lines[start[0] - 1][start[1] :], *middle, last])
