"""What the values of a function's names come from: its parameters, and the program that asks. Read from its text,
without regard to the order of statements, so that it may name more than decides, and not less."""

from __future__ import annotations

import ast
from collections.abc import Iterator

__all__ = ["Origins"]

#: What tells programs and ranks apart.
_ASKED = frozenset({"program_id", "num_programs"})
#: Attributes of a parameter that are named with it; of any other the parameter alone.
_NAMED = frozenset({"shape", "dtype", "size", "ndim"})
_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


class Origins:
    """The origins of the names of one function, functions and lambdas written in it included."""

    def __init__(self, function: ast.FunctionDef | ast.Lambda) -> None:
        self._parameters = {
            argument.arg: None for node in ast.walk(function) if isinstance(node, ast.arg) for argument in [node]
        }
        self._of_name: dict[str, frozenset[str]] = {}
        assigned = list(_assignments(function, ()))
        changed = True
        while changed:
            changed = False
            for name, sources in assigned:
                known = self._of_name.get(name, frozenset())
                found = known.union(*map(self._of, sources))
                if found != known:
                    self._of_name[name] = found
                    changed = True

    def of(self, expression: ast.expr) -> tuple[str, ...]:
        """What an expression's value comes from, in alphabetical order."""
        found = self._of(expression)
        return tuple(sorted(found))

    def _of(self, expression: ast.expr) -> frozenset[str]:
        match expression:
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if name in self._parameters and attr in _NAMED:
                return frozenset({f"{name}.{attr}"}) | self._of_name.get(name, frozenset())
            case ast.Name(id=name):
                own = frozenset({name}) if name in self._parameters else frozenset()
                return own | self._of_name.get(name, frozenset())
            case ast.Call(func=ast.Attribute(attr=attr) | ast.Name(id=attr)) if attr in _ASKED:
                return frozenset({f"tl.{attr}"})
        parts = [child for child in ast.walk(expression) if child is not expression and isinstance(child, ast.expr)]
        # Only what stands directly below: what a part comes from, it says itself.
        direct = [child for child in _below(expression) if child in parts]
        return frozenset().union(*map(self._of, direct)) if direct else frozenset()


def _below(expression: ast.AST) -> Iterator[ast.expr]:
    """The outermost expressions within one."""
    for child in ast.iter_child_nodes(expression):
        if isinstance(child, ast.expr):
            yield child
        else:
            yield from _below(child)


def _assignments(node: ast.AST, under: tuple[ast.expr, ...]) -> Iterator[tuple[str, tuple[ast.expr, ...]]]:
    """The names that are assigned, each with what decides its value: the expressions, and the conditions ``under``
    which it is assigned."""
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                for one, its in _pairs(target, value):
                    yield from _named(one, (its, *under))
        case ast.AugAssign(target=target, value=value):
            yield from _named(target, (value, *under))
        case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
            yield from _named(target, (value, *under))
        case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
            yield from _named(target, (value, *under))
            under = (*under, value) if isinstance(node, ast.For) else under
        case ast.withitem(context_expr=value, optional_vars=ast.expr() as target):
            yield from _named(target, (value, *under))
        case ast.If(test=test) | ast.While(test=test):
            under = (*under, test)
        case ast.Match(subject=subject, cases=cases):
            for case in cases:
                for pattern in ast.walk(case.pattern):
                    name = getattr(pattern, "name", None) or getattr(pattern, "rest", None)
                    if isinstance(name, str):
                        yield name, (subject, *under)
            under = (*under, subject)
    for child in ast.iter_child_nodes(node):
        yield from _assignments(child, under)


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What is assigned to what, where both sides are written out."""
    match target, value:
        case ((ast.Tuple(elts=targets) | ast.List(elts=targets)), (ast.Tuple(elts=values) | ast.List(elts=values))):
            if len(targets) == len(values) and not any(isinstance(one, ast.Starred) for one in (*targets, *values)):
                for one, its in zip(targets, values, strict=True):
                    yield from _pairs(one, its)
                return
    yield target, value


def _named(target: ast.expr, sources: tuple[ast.expr, ...]) -> Iterator[tuple[str, tuple[ast.expr, ...]]]:
    """The names that an assignment gives a value to; a part of an object counts as the whole."""
    for node in ast.walk(target):
        if isinstance(node, ast.Name):
            yield node.id, sources
