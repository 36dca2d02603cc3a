"""A source file's syntax tree, asked the questions an edit has: which statement, block, loop and function is this?"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property, lru_cache

import attrs

from ...ir.source.digests import lines_at
from ...ir.source.location import Location

__all__ = ["COMPREHENSIONS", "Loop", "Syntax", "enclosing_loop", "loaded_names", "stored_names", "syntax_of"]

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@attrs.frozen
class Loop:
    """A loop in the source: the line of its ``for`` or ``while``, and the first and last line of its body."""

    line: int
    first: int
    last: int

    @classmethod
    def of(cls, node: ast.For | ast.While) -> Loop:
        """The lines of a statement."""
        last = node.body[-1]
        return cls(node.lineno, node.body[0].lineno, last.end_lineno or last.lineno)


@attrs.frozen(eq=False, slots=False)
class Syntax:
    """The tree of a file, and by node its parent. What is asked again and again, for finding after finding in a file of
    thousands of lines, is looked up in tables that are made once."""

    file: str
    lines: tuple[str, ...]
    tree: ast.Module
    parents: dict[ast.AST, ast.AST]

    def node_at(self, location: Location) -> ast.expr | ast.stmt | None:
        """The expression or statement at exactly this place; of a call that is a statement the call."""
        wanted = (location.line, location.column, location.end_line, location.end_column)
        for node in self.enclosing(location):
            if isinstance(node, ast.expr | ast.stmt) and _position(node) == wanted:
                return node
        return None

    def statement(self, location: Location) -> ast.stmt | None:
        """The innermost statement around a place."""
        return next((node for node in self.enclosing(location) if isinstance(node, ast.stmt)), None)

    def enclosing(self, location: Location) -> list[ast.AST]:
        """All nodes around a place, the innermost first."""
        found: list[ast.AST] = []
        node: ast.AST | None = self.tree
        while node is not None:
            node = next((child for child in self._children(node, location.line) if _holds(child, location)), None)
            if node is not None:
                found.append(node)
        return found[::-1]

    def _children(self, node: ast.AST, line: int) -> list[ast.AST]:
        """The children of a node that may hold a place on this line."""
        if node not in self._children_by_line:
            by_line: dict[int, list[ast.AST]] = {}
            for child in ast.iter_child_nodes(node):
                for at in _lines_of(child):
                    by_line.setdefault(at, []).append(child)
            self._children_by_line[node] = by_line
        return self._children_by_line[node].get(line, [])

    @cached_property
    def _children_by_line(self) -> dict[ast.AST, dict[int, list[ast.AST]]]:
        return {}

    def naming(self, name: str, around: ast.AST) -> Iterator[ast.Name | ast.Global | ast.Nonlocal]:
        """The nodes inside a node that say a name: as an expression or a target, or to declare whose it is."""
        return (node for node in self._naming.get(name, ()) if any(n is around for n in self.above(node)))

    @cached_property
    def _naming(self) -> dict[str, list[ast.Name | ast.Global | ast.Nonlocal]]:
        found: dict[str, list[ast.Name | ast.Global | ast.Nonlocal]] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Name):
                found.setdefault(node.id, []).append(node)
            elif isinstance(node, ast.Global | ast.Nonlocal):
                for name in node.names:
                    found.setdefault(name, []).append(node)
        return found

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, the innermost first."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def function(self, node: ast.AST) -> Function | None:
        """The function whose body a node lies in."""
        return next((n for n in self.above(node) if isinstance(n, Function)), None)

    def block(self, statement: ast.stmt) -> list[ast.stmt]:
        """The statements among which a statement stands."""
        parent = self.parents[statement]
        blocks: list[list[ast.stmt]] = [getattr(parent, name, []) for name in ("body", "orelse", "finalbody")]
        return next(block for block in blocks if statement in block)

    def text(self, node: ast.expr | ast.stmt) -> str:
        """The source of a node."""
        return ast.get_source_segment("\n".join(self.lines), node) or ast.unparse(node)

    @cached_property
    def language(self) -> str | None:
        """How this file calls the kernel language: ``tl``, another name, ``ks.tl``; None where it does not."""
        module = None
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    if alias.name == "tl":
                        return alias.asname or "tl"
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.name == "kernscope":
                        module = f"{alias.asname or alias.name}.tl"
        return module


def _position(node: ast.AST) -> tuple[int | None, ...]:
    return tuple(getattr(node, name, None) for name in ("lineno", "col_offset", "end_lineno", "end_col_offset"))


def _lines_of(node: ast.AST) -> range:
    """The lines of a node, with its decorators'; of one without a position those of what it holds."""
    line = getattr(node, "lineno", None)
    if line is None:
        inside = [lines for lines in map(_lines_of, ast.iter_child_nodes(node)) if lines]
        return range(min(lines.start for lines in inside), max(lines.stop for lines in inside)) if inside else range(0)
    first = min([line, *(d.lineno for d in getattr(node, "decorator_list", ()))])
    return range(first, node.end_lineno + 1)  # type: ignore[attr-defined]


def _holds(node: ast.AST, location: Location) -> bool:
    """Whether a place begins in a node. A node without a position of its own (a list of arguments, a comprehension's
    ``for``) holds what its children hold."""
    line = getattr(node, "lineno", None)
    if line is None:
        return any(_holds(child, location) for child in ast.iter_child_nodes(node))
    first = min([line, *(d.lineno for d in getattr(node, "decorator_list", ()))])
    end_line, end_column = node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]
    if location.column < 0:
        return bool(first <= location.line <= end_line)
    start = (line, node.col_offset) if first == line else (first, 0)  # type: ignore[attr-defined]
    return bool(start <= (location.line, location.column) < (end_line, end_column))


def enclosing_loop(location: Location) -> Loop | None:
    """The loop that runs a line again and again: the innermost one around it in its own function, else around the call
    of that function, and so on outward. None where there is none, where it is a comprehension, or without source."""
    for frame in (location, *location.stack):
        syntax = syntax_of(frame)
        for node in syntax.enclosing(frame) if syntax is not None and frame.function != "<lambda>" else ():
            if isinstance(node, ast.For | ast.While):
                if _in_body(node, frame):
                    return Loop.of(node)
            elif isinstance(node, COMPREHENSIONS):
                return None
            elif isinstance(node, Function):
                break
    return None


def _in_body(loop: ast.For | ast.While, location: Location) -> bool:
    lines = Loop.of(loop)
    return lines.first <= location.line <= lines.last and any(_holds(child, location) for child in loop.body)


def loaded_names(node: ast.AST) -> set[str]:
    """The names that a piece of source reads."""
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def stored_names(node: ast.AST) -> set[str]:
    """The names that a piece of source assigns or deletes, as a loop's variable or a parameter, too."""
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    names |= {n.arg for n in ast.walk(node) if isinstance(n, ast.arg)}
    return names | {n.name for n in ast.walk(node) if isinstance(n, ast.FunctionDef | ast.ClassDef)}


def syntax_of(location: Location) -> Syntax | None:
    """The tree of a place's file; None where there is no source, or another than was traced, or none that parses."""
    lines = lines_at(location)
    return _parsed(location.file, lines) if lines else None


@lru_cache(maxsize=16)
def _parsed(file: str, lines: tuple[str, ...]) -> Syntax | None:
    try:
        tree = ast.parse("\n".join(lines))
        parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return Syntax(file, lines, tree, parents)
