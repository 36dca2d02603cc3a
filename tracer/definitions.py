"""Where in its file a function is written: its tree, found by the first line of its code and its name."""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping

import attrs

__all__ = ["Definition", "definitions", "imports", "lambdas"]


@attrs.frozen
class Definition:
    """A function's tree, and the class that it is written in (empty: none). Trees are shared: copy before changing."""

    tree: ast.FunctionDef
    of_class: str = ""


@functools.lru_cache(maxsize=64)
def definitions(file: str, text: str) -> Mapping[tuple[int, str], Definition]:
    """A file's functions, by the first line of their code (that of the first decorator) and their name; none of a text
    that does not parse."""
    tree = _parsed(file, text)
    found: dict[tuple[int, str], Definition] = {}
    pending: list[tuple[ast.AST, str]] = [(tree, "")]
    while pending:
        node, of_class = pending.pop()
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *[d.lineno for d in node.decorator_list]])
            found[first, node.name] = Definition(node, of_class)
        inner = node.name if isinstance(node, ast.ClassDef) else of_class
        inner = "" if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) else inner
        pending += [(child, inner) for child in ast.iter_child_nodes(node)]
    return found


@functools.lru_cache(maxsize=64)
def lambdas(file: str, text: str) -> tuple[ast.Lambda, ...]:
    """A file's lambdas."""
    return tuple(node for node in ast.walk(_parsed(file, text)) if isinstance(node, ast.Lambda))


@functools.lru_cache(maxsize=64)
def imports(file: str, text: str) -> tuple[ast.stmt, ...]:
    """A module's own imports, of whatever blocks: CPython compiles calls of what they name in another way."""
    found: list[ast.stmt] = []
    pending: list[ast.AST] = [_parsed(file, text)]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.append(node)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.expr):
            pending += ast.iter_child_nodes(node)
    return tuple(node for node in found if not (isinstance(node, ast.ImportFrom) and node.module == "__future__"))


def _parsed(file: str, text: str) -> ast.Module:
    try:
        return ast.parse(text, file)
    except (SyntaxError, ValueError, RecursionError):
        return ast.Module([], [])
