"""A kernel's source as Python runs it for all programs at once: what Python decides with ``bool`` is asked of values.

Four things are rewritten, and nothing else: conditions (``if``, ``while``, ``a if c else b``, ``and``, ``or``, ``not``,
chained comparisons), ``assert``, and attributes that Triton gives to numbers (``1 .to(tl.int64)``, ``BLOCK.value``).
Every expression keeps the file, the lines and the columns of its source, and runs in the frame of its function, so that
what is recorded is the author's. The function looks names up where they are (its closure, its module) and writes into
neither: its module stays as it was.
"""

from __future__ import annotations

import ast
import builtins
import copy
import linecache
import textwrap
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, TypeVar, cast

from ...ir.errors import TritonSourceError
from ...ir.source.location import Location
from ..definitions import definitions
from . import truth
from .constexpr import bare
from .language.builtins import BUILTINS, kernel_assert
from .values.value import Value

__all__ = ["rewritten", "source_of"]

_PREFIX = "__kernscope_"
#: Attributes of a kernel's values that Python's numbers lack.
_ATTRIBUTES = frozenset({"T", "cast", "dtype", "numel", "shape", "to", "type", "value"})


def source_of(function: FunctionType) -> str:
    """The text of a function, decorators left out, as Triton's ``JITFunction.src`` has it. Raises
    ``TritonSourceError``."""
    definition, lines = _definition(function)
    return textwrap.dedent("".join(lines[definition.lineno - 1 : definition.end_lineno]))


def rewritten(function: FunctionType, source: str | None = None) -> Callable[..., Any]:
    """The function that runs a kernel's source for all programs. ``source``: a text that takes the place of its own,
    its first line where ``def`` stands. Raises ``TritonSourceError`` for a function without a source."""
    if source is None:
        definition, _ = _definition(function)
    else:
        definition = _parsed_alone(function, source)
    made = _compiled(definition, function)
    made.__defaults__, made.__kwdefaults__ = _bare_defaults(function)
    made.__qualname__, made.__module__, made.__doc__ = function.__qualname__, function.__module__, function.__doc__
    return made


def _bare_defaults(function: FunctionType) -> tuple[tuple[Any, ...] | None, dict[str, Any] | None]:
    positional, by_name = function.__defaults__, function.__kwdefaults__
    return (
        None if positional is None else tuple(bare(v) for v in positional),
        None if by_name is None else {name: bare(v) for name, v in by_name.items()},
    )


# --- where the text is ------------------------------------------------------------------------------------------------


def _definition(function: FunctionType) -> tuple[ast.FunctionDef, list[str]]:
    code = function.__code__
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, function.__globals__)
    found = definitions(code.co_filename, "".join(lines)).get((code.co_firstlineno, code.co_name))
    if found is None:
        raise TritonSourceError(
            f"the source of kernel {code.co_name} is not in {code.co_filename!r}, line {code.co_firstlineno}",
            help="a kernel is a function with `def` in a file that has not changed since it was imported",
        ).at(Location(code.co_filename, code.co_firstlineno, code.co_name))
    # A tree is changed as it is rewritten: parse it anew from the lines that are its own.
    return found.tree, lines


def _parsed_alone(function: FunctionType, source: str) -> ast.FunctionDef:
    code = function.__code__
    try:
        tree = ast.parse(source, code.co_filename)
    except SyntaxError as error:
        raise TritonSourceError(
            f"the replaced source of kernel {code.co_name}: {error.msg}", help="it must be Python"
        ).at(Location(code.co_filename, code.co_firstlineno, code.co_name)) from error
    definitions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    if len(definitions) != 1:
        raise TritonSourceError(
            f"the replaced source of kernel {code.co_name} holds {len(definitions)} functions", help="it must hold one"
        ).at(Location(code.co_filename, code.co_firstlineno, code.co_name))
    try:
        first = _definition(function)[0].lineno
    except TritonSourceError:
        first = code.co_firstlineno
    return ast.increment_lineno(definitions[0], first - definitions[0].lineno)


# --- what it calls ----------------------------------------------------------------------------------------------------


def _both_is_open(left: Any) -> bool:
    """Whether ``left and right`` depends on what is on the right."""
    return isinstance(left, Value) or bool(left)


def _either_is_open(left: Any) -> bool:
    """Whether ``left or right`` does."""
    return isinstance(left, Value) or not left


_RUNTIME: Mapping[str, Any] = {
    f"{_PREFIX}truth": truth.truth,
    f"{_PREFIX}both": lambda left, right: truth.both(left, lambda: right),
    f"{_PREFIX}both_is_open": _both_is_open,
    f"{_PREFIX}either": lambda left, right: truth.either(left, lambda: right),
    f"{_PREFIX}either_is_open": _either_is_open,
    f"{_PREFIX}negated": truth.negated,
    f"{_PREFIX}attribute": truth.attribute,
    f"{_PREFIX}assert": kernel_assert,
}


# --- how it is run ----------------------------------------------------------------------------------------------------


class _Names(dict[str, Any]):
    """A kernel's global names, as they are when asked for: those of its closure, of its module, of ``tl`` in the place
    of Python's. Neither is written to, and a ``constexpr`` is its value."""

    def __init__(self, function: FunctionType) -> None:
        super().__init__(_RUNTIME, __builtins__=builtins, __name__=function.__module__)
        self._cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        self._module = function.__globals__

    def __missing__(self, name: str) -> Any:
        cell = self._cells.get(name)
        if cell is not None:
            return bare(cell.cell_contents)
        if name in self._module:
            return bare(self._module[name])
        return BUILTINS[name]


def _compiled(definition: ast.FunctionDef, function: FunctionType) -> FunctionType:
    tree = ast.Module([_Rewriter().visit(_copied(definition))], [])
    found: dict[str, Any] = {}
    exec(compile(ast.fix_missing_locations(tree), function.__code__.co_filename, "exec"), _Names(function), found)
    made: FunctionType = found[definition.name]
    return made


def _copied(definition: ast.FunctionDef) -> ast.FunctionDef:
    """A function's tree without what Python evaluated when it defined it: not again, and not with a kernel's names."""
    made = copy.deepcopy(definition)
    made.decorator_list, made.returns = [], None
    arguments = made.args
    for argument in ast.walk(arguments):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    arguments.defaults = [ast.Constant(None) for _ in arguments.defaults]
    arguments.kw_defaults = [None if d is None else ast.Constant(None) for d in arguments.kw_defaults]
    return made


def _call(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(_PREFIX + name, ast.Load()), list(args), [])


class _Rewriter(ast.NodeTransformer):
    """Asks values where Python would ask ``bool``. A place is that of what it takes the place of."""

    def __init__(self) -> None:
        self._temporaries = 0

    def _temporary(self) -> str:
        self._temporaries += 1
        return f"{_PREFIX}{self._temporaries}"

    def _condition(self, test: ast.expr) -> ast.expr:
        return _placed(_call("truth", test), test)

    def _joined(self, values: list[ast.expr], name: str, whole: ast.expr) -> ast.expr:
        """``a and b``: what is on the right is evaluated only where the left one leaves it open, in the same frame."""
        first, *rest = values
        if not rest:
            return first
        kept = self._temporary()
        left = ast.NamedExpr(ast.Name(kept, ast.Store()), first)
        joined = _call(name, ast.Name(kept, ast.Load()), self._joined(rest, name, whole))
        made = ast.IfExp(_call(f"{name}_is_open", left), joined, ast.Name(kept, ast.Load()))
        return _placed(made, whole)

    def _visit_test(self, node: Any) -> ast.AST:
        self.generic_visit(node)
        node.test = self._condition(node.test)
        return cast(ast.AST, node)

    visit_If = visit_While = visit_IfExp = _visit_test

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        self.generic_visit(node)
        node.ifs = [self._condition(test) for test in node.ifs]
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        return self._joined(node.values, "both" if isinstance(node.op, ast.And) else "either", node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return _placed(_call("negated", node.operand), node) if isinstance(node.op, ast.Not) else node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) == 1:
            return node
        parts: list[ast.expr] = []
        left = node.left
        for n, (operator, right) in enumerate(zip(node.ops, node.comparators, strict=True)):
            name = self._temporary() if n + 1 < len(node.ops) else ""
            kept = ast.NamedExpr(ast.Name(name, ast.Store()), right) if name else right
            parts.append(_placed(ast.Compare(left, [operator], [kept]), node))
            left = ast.Name(name, ast.Load())
        return self._joined(parts, "both", node)

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        self.generic_visit(node)
        message = [] if node.msg is None else [node.msg]
        return _placed(ast.Expr(_call("assert", node.test, *message)), node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if node.attr not in _ATTRIBUTES or not isinstance(node.ctx, ast.Load):
            return node
        return _placed(_call("attribute", node.value, ast.Constant(node.attr)), node)


_Placed = TypeVar("_Placed", bound=ast.AST)


def _placed(made: _Placed, old: ast.AST) -> _Placed:
    """A tree whose new parts stand where the old one does."""
    for node in ast.walk(made):
        if isinstance(node, ast.expr | ast.stmt) and not hasattr(node, "lineno"):
            ast.copy_location(node, old)
    return made
