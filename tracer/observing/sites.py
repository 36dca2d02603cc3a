"""The places in a function where it may go one way or another, and its tree with a question at each."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from typing import Any

import attrs

from ...ir.source.location import Location
from .origins import Origins

__all__ = ["NAMES", "Site", "instrumented"]

#: What an instrumented function asks, as names of its closure: no name of an author's begins like this.
NAMES = tuple(f"_kernscope_{what}" for what in ("truth", "value", "loop", "asked", "came", "called"))
_TRUTH, _VALUE, _LOOP, _ASKED, _CAME, _CALLED = NAMES
#: So much of a condition's text is kept.
_LONGEST = 100


@attrs.frozen
class Site:
    """A branch of the text, as in :class:`kernscope.ir.branches.Branch`. ``values`` are the names in it, and
    their attributes, as paths; ``whole`` is the place of the condition that it is a part of."""

    place: Location
    kind: str
    text: str
    depends: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]
    whole: tuple[int, int]


def instrumented(
    tree: ast.FunctionDef | ast.Lambda, file: str, add: Callable[[Site], int], may_be_author: Callable[[ast.expr], bool]
) -> Any:
    """A copy of a function's tree that tells each of its branches by the number that ``add`` gives its site, and hands
    on what it calls where that ``may_be_author``'s. Every expression keeps its place."""
    return _Questions(tree, file, add, may_be_author).visit(copy.deepcopy(tree))


class _Questions(ast.NodeTransformer):
    def __init__(
        self,
        tree: ast.FunctionDef | ast.Lambda,
        file: str,
        add: Callable[[Site], int],
        may_be_author: Callable[[ast.expr], bool],
    ) -> None:
        self._file = file
        self._add = add
        self._may_be_author = may_be_author
        self._origins = Origins(tree)
        self._function = tree.name if isinstance(tree, ast.FunctionDef) else "<lambda>"

    # --- what is asked -------------------------------------------------------------------------------------------

    def _site(self, kind: str, what: Any, text: str, *decides: ast.expr, whole: ast.expr | None = None) -> ast.Constant:
        place = Location(
            self._file,
            what.lineno,
            self._function,
            what.col_offset,
            what.end_lineno,
            what.end_col_offset,
        )
        depends = sorted({origin for one in decides for origin in self._origins.of(one)})
        values = tuple(dict.fromkeys(path for one in decides for path in _paths(one)))
        around = what if whole is None else whole
        site = Site(place, kind, _short(text), tuple(depends), values, (around.lineno, around.col_offset))
        return ast.Constant(self._add(site))

    def _truth(self, test: ast.expr, kind: str, whole: ast.expr | None = None) -> ast.expr:
        """A condition whose parts say what they are, each as it is evaluated."""
        whole = test if whole is None else whole
        match test:
            case ast.BoolOp(values=values):
                test.values = [self._truth(value, kind, whole) for value in values]
                return test
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                test.operand = self._truth(operand, kind, whole)
                return test
            case ast.Constant():
                return test  # decided where it is written
        site = self._site(kind, test, ast.unparse(test), test, whole=whole)
        return self._ask(_TRUTH, site, self.visit(test), test)

    def _ask(self, name: str, site: ast.expr, value: ast.expr, place: ast.AST) -> ast.expr:
        made: ast.expr = _placed(ast.Call(ast.Name(name, ast.Load()), [site, value], []), place)
        return made

    def _came(self, site: ast.expr, label: str, place: ast.AST) -> ast.stmt:
        call = ast.Call(ast.Name(_CAME, ast.Load()), [site, ast.Constant(label)], [])
        made: ast.stmt = _placed(ast.Expr(call), place)
        return made

    # --- where ---------------------------------------------------------------------------------------------------

    def visit_If(self, node: ast.If) -> ast.AST:
        refuses = len(node.body) == 1 and isinstance(node.body[0], ast.Raise) and not node.orelse
        node.test = self._truth(node.test, "check" if refuses else "if")
        node.body, node.orelse = self._all(node.body), self._all(node.orelse)
        return node

    def visit_While(self, node: ast.While) -> ast.AST:
        node.test = self._truth(node.test, "while")
        node.body, node.orelse = self._all(node.body), self._all(node.orelse)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        node.test = self._truth(node.test, "conditional")
        node.body, node.orelse = self.visit(node.body), self.visit(node.orelse)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        """One whose value is used: each part but the last decides whether the next is evaluated."""
        kind = "and" if isinstance(node.op, ast.And) else "or"
        *asked, last = node.values
        sites = [self._site(kind, part, ast.unparse(part), part, whole=node) for part in asked]
        found = [self._ask(_VALUE, site, self.visit(part), part) for site, part in zip(sites, asked, strict=True)]
        node.values = [*found, self.visit(last)]
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        """What an assertion says holds, or there is no trace."""
        return node

    def visit_For(self, node: ast.For) -> ast.AST:
        node.iter = self._loop(node.iter)
        node.target = self.visit(node.target)
        node.body, node.orelse = self._all(node.body), self._all(node.orelse)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        if not node.is_async:
            node.iter = self._loop(node.iter)
        node.ifs = [self._truth(test, "if") for test in node.ifs]
        return node

    def _loop(self, iterated: ast.expr) -> ast.expr:
        site = self._site("for", iterated, ast.unparse(iterated), iterated)
        return self._ask(_LOOP, site, self.visit(iterated), iterated)

    def visit_Match(self, node: ast.Match) -> ast.AST:
        subject = node.subject
        site = self._site("match", subject, ast.unparse(subject), subject)
        node.subject = self._ask(_ASKED, site, self.visit(subject), subject)
        for case in node.cases:
            label = f"case {_short(ast.unparse(case.pattern))}"
            if case.guard is not None:
                case.guard = self._truth(case.guard, "if")
            case.body = [self._came(site, label, case.pattern), *self._all(case.body)]
        return node

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        text = "except" if node.type is None else f"except {ast.unparse(node.type)}"
        site = self._site("except", node, text)
        node.body = [self._came(site, "caught", node), *self._all(node.body)]
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        is_author = self._may_be_author(node.func)
        self.generic_visit(node)
        if is_author:
            node.func = _placed(ast.Call(ast.Name(_CALLED, ast.Load()), [node.func], []), node.func)
        return node

    def _all(self, body: list[Any]) -> list[Any]:
        return [self.visit(statement) for statement in body]


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 3]}..."


def _paths(expression: ast.expr) -> list[tuple[str, ...]]:
    """The names in an expression and the attributes of names, but not those that are called."""
    match expression:
        case ast.Name(id=name):
            return [(name,)]
        case ast.Attribute(value=ast.Name(id=name), attr=attr):
            return [(name, attr)]
        case ast.Call(func=function, args=args, keywords=keywords):
            inner = [function.value] if isinstance(function, ast.Attribute) else []
            return [path for one in [*inner, *args, *(k.value for k in keywords)] for path in _paths(one)]
        case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return []  # names of their own
    parts = [child for child in ast.iter_child_nodes(expression) if isinstance(child, ast.expr)]
    return [path for part in parts for path in _paths(part)]


def _placed(made: Any, old: ast.AST) -> Any:
    """A tree whose new parts stand where the old one does."""
    for node in ast.walk(made):
        if isinstance(node, ast.expr | ast.stmt) and not hasattr(node, "lineno"):
            ast.copy_location(node, old)
    return made
