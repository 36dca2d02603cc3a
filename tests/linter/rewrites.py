"""Other ways to write the same kernel: each changes a module's syntax tree, and nothing of what it computes."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

__all__ = ["REWRITES"]

SIMPLE = (ast.Assign, ast.AugAssign, ast.Expr)


def parsed(text: str) -> ast.stmt:
    (statement,) = ast.parse(text).body
    return statement


def expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


class Statements(ast.NodeTransformer):
    """Puts others in the place of the simple statements of functions."""

    def __init__(self, change: Callable[[ast.stmt], list[ast.stmt]]) -> None:
        self.change = change
        self.depth = 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.depth += 1
        self.generic_visit(node)
        self.depth -= 1
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if self.depth and isinstance(block, list):
                setattr(node, name, [new for old in block for new in self.changed(old)])
        return node

    def changed(self, statement: ast.stmt) -> list[ast.stmt]:
        return self.change(statement) if isinstance(statement, SIMPLE) else [statement]


def named(statement: ast.stmt) -> str | None:
    """The one name that an assignment gives."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name):
        return statement.targets[0].id
    return None


def statements(change: Callable[[ast.stmt], list[ast.stmt]]) -> Callable[[ast.Module], None]:
    return lambda tree: Statements(change).visit(tree)


def assignments(change: Callable[[ast.Assign, str], list[ast.stmt]]) -> Callable[[ast.Module], None]:
    def each(statement: ast.stmt) -> list[ast.stmt]:
        name = named(statement)
        return [statement] if name is None else change(statement, name)  # type: ignore[arg-type]

    return statements(each)


def loads(change: Callable[[ast.Call], ast.expr]) -> Callable[[ast.Module], None]:
    class Loads(ast.NodeTransformer):
        def visit_Call(self, node: ast.Call) -> ast.AST:
            self.generic_visit(node)
            return change(node) if ast.unparse(node.func) == "tl.load" else node

    return lambda tree: Loads().visit(tree)


def calls(change: Callable[[ast.Call], ast.expr]) -> Callable[[ast.Module], None]:
    class Calls(ast.NodeTransformer):
        def visit_Call(self, node: ast.Call) -> ast.AST:
            self.generic_visit(node)
            plain = ast.unparse(node.func).startswith("tl.") and "scope" not in ast.unparse(node.func)
            return change(node) if plain else node

    return lambda tree: Calls().visit(tree)


def under(header: str) -> Callable[[ast.stmt], list[ast.stmt]]:
    def change(statement: ast.stmt) -> list[ast.stmt]:
        outer = parsed(f"{header} pass" if "\n" not in header else header)
        holder = outer.cases[0] if isinstance(outer, ast.Match) else outer
        holder.body = [statement]  # type: ignore[attr-defined]
        return [outer]

    return change


def kernels(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and "kernel" in "".join(map(ast.unparse, node.decorator_list)):
            yield node


def inner_function(tree: ast.Module) -> None:
    for kernel in kernels(tree):
        inner = parsed("def inner(): pass")
        assert isinstance(inner, ast.FunctionDef)
        inner.body = kernel.body
        kernel.body = [inner, parsed("inner()")]


def names_read_on(tree: ast.Module) -> None:
    for kernel in kernels(tree):
        kernel.body.append(parsed("kept = dict(locals())"))
        names = {name for node in ast.walk(kernel) if isinstance(node, ast.stmt) and (name := named(node))}
        kernel.body.append(parsed(f"kept = [{', '.join(sorted(names - {'kept'}))}]"))


def names_are_global(tree: ast.Module) -> None:
    for kernel in kernels(tree):
        names = {name for node in ast.walk(kernel) if isinstance(node, ast.stmt) and (name := named(node))}
        taken = {argument.arg for argument in kernel.args.args}
        if names - taken and not any(
            isinstance(node, ast.FunctionDef) for node in ast.walk(kernel) if node is not kernel
        ):
            kernel.body.insert(0, parsed(f"global {', '.join(sorted(names - taken))}"))


def closures_read(tree: ast.Module) -> None:
    for kernel in kernels(tree):
        names = {name for node in ast.walk(kernel) if isinstance(node, ast.stmt) and (name := named(node))}
        kernel.body.append(parsed(f"def later(): return [{', '.join(sorted(names))}]"))


def call_text(text: str) -> Callable[[ast.Call], ast.expr]:
    def change(call: ast.Call) -> ast.expr:
        return expression(text.replace("CALL", ast.unparse(call)))

    return change


def starred(call: ast.Call) -> ast.expr:
    call.args = [ast.Starred(ast.List(call.args, ast.Load()), ast.Load())] if call.args else []
    return call


def keywords(call: ast.Call) -> ast.expr:
    call.keywords.append(ast.keyword(None, expression("{}")))
    return call


def text_of(name: str, text: str) -> list[ast.stmt]:
    return ast.parse(text.replace("NAME", name)).body


def with_value(text: str) -> Callable[[ast.Assign, str], list[ast.stmt]]:
    """The statements of a text in the place of ``NAME = VALUE``."""
    return lambda statement, name: text_of(name, text.replace("VALUE", f"({ast.unparse(statement.value)})"))


TREES: dict[str, Callable[[ast.Module], None]] = {
    "plain": lambda tree: None,
    "under a condition": statements(under("if True:")),
    "in a try": statements(lambda s: [ast.Try([s], [], [], [parsed("pass")])]),
    "in a handler": statements(
        lambda s: [ast.Try([parsed("raise KeyError")], [ast.ExceptHandler(expression("KeyError"), None, [s])], [], [])]
    ),
    "in a match": statements(under("match 0:\n case _: pass")),
    "in a loop of one": statements(under("for _once in (0,):")),
    "in an else": statements(lambda s: [ast.If(expression("False"), [parsed("pass")], [s])]),
    "with an annotation": assignments(with_value("NAME: object = VALUE")),
    "to two names": assignments(with_value("NAME = NAME_too = VALUE")),
    "to a tuple": assignments(with_value("NAME, _rest = VALUE, 0")),
    "as an expression": assignments(with_value("(NAME := VALUE)")),
    "given before": assignments(with_value("if False: NAME = None\nNAME = VALUE")),
    "given behind": assignments(with_value("NAME = VALUE\nif False: NAME = None")),
    "given again": assignments(with_value("NAME = VALUE\nNAME = NAME")),
    "deleted never": assignments(with_value("NAME = VALUE\nif False: del NAME")),
    "by a lambda": loads(call_text("(lambda: CALL)()")),
    "by a conditional": loads(call_text("(CALL if True else None)")),
    "by a comprehension": loads(call_text("[CALL for _ in (0,)][0]")),
    "by a generator": loads(call_text("next(CALL for _ in (0,))")),
    "by a walrus": loads(call_text("(loaded_here := CALL)")),
    "by a subscript": loads(call_text("(CALL,)[0]")),
    "by and": loads(call_text("(True and CALL)")),
    "with starred arguments": calls(starred),
    "with more keywords": calls(keywords),
    "in a function": inner_function,
    "names read on": names_read_on,
    "names read by a closure": closures_read,
    "names of the module": names_are_global,
}  # fmt: skip


def of_tree(change: Callable[[ast.Module], None]) -> Callable[[str], str]:
    def rewrite(text: str) -> str:
        tree = ast.parse(text)
        change(tree)
        return ast.unparse(ast.fix_missing_locations(tree)) + "\n"

    return rewrite


def tabs(text: str) -> str:
    """Tabs in the place of four blanks."""
    lines = [line.expandtabs() for line in ast.unparse(ast.parse(text)).splitlines()]
    return "".join("\t" * ((len(line) - len(line.lstrip())) // 4) + line.lstrip() + "\n" for line in lines)


def over_lines(text: str) -> str:
    """Every call of the language with its arguments on lines of their own."""
    lines = ast.unparse(ast.parse(text)).splitlines()
    return "".join(line.replace("tl.load(", "tl.load(\n  ").replace(" = ", " = \\\n  ", 1) + "\n" for line in lines)


def behind_a_text(text: str) -> str:
    """Every simple statement behind another one on its line, whose characters take two bytes each."""

    def change(tree: ast.Module) -> None:
        Statements(lambda s: [parsed("'behind'"), s]).visit(tree)

    return re.sub(r"'behind'\n *", "'ü'; ", of_tree(change)(text))


#: By name, a change of a module's text.
REWRITES: dict[str, Callable[[str], str]] = {
    **{name: of_tree(change) for name, change in TREES.items()},
    "tabs": tabs,
    "over lines": over_lines,
    "behind a text": behind_a_text,
}
