"""How a value outlives a scope: by writing it over a handle made outside, the one of the same name or a new one.

Both change what later reads of a name see, so both are proposed only where the trace shows that every read still gets
the value that it means.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from itertools import pairwise

import attrs
import numpy as np

from ...ir.forms.text import quote
from ...ir.tables import Mode
from ..edits import Fix
from ..rule import LintContext
from .rewriting import Rewriting, indentation
from .sites import Body, body_of
from .syntax import Syntax, loaded_names, stored_names

__all__ = ["Kept", "as_fix", "find_kept", "write_over"]

Block = ast.With | ast.For | ast.While


@attrs.frozen(eq=False)
class Kept:
    """How the allocations of one line outlive ``block``. ``write`` is the statement that changes: the one that makes
    them, which becomes ``tl.copy_to(name, ...)``; or, where ``source`` is a name, a later assignment of that one. An
    ``empty`` line (``tl.empty(...)``) is put above the statement ``above``, where the handle is a new one."""

    syntax: Syntax
    write: ast.Assign | ast.AugAssign
    name: str
    source: str = ""
    above: ast.stmt | None = None
    empty: str = ""

    @property
    def _moved(self) -> bool:
        """Whether the line is an empty handle itself, and goes."""
        return self.above is not None and not self.source and _is_call(self.syntax, self.write.value, "empty")

    @property
    def title(self) -> str:
        """The change in words, with the lines as they are now."""
        language, line = self.syntax.language, self.write.lineno
        target = _target(self.write)
        if self._moved and self.above is not None:
            return f"move line {line} above line {self.above.lineno}"
        if self.source:
            copy = f"`{language}.copy_to({self.name}, {self.source})` instead of `{self.name} = {self.source}`"
        elif _is_load(self.syntax, self.write):
            copy = f"`{language}.load(..., out={self.name})`"
        else:
            copy = f"`{language}.copy_to({self.name}, ...)` with what is now assigned to `{target}`"
        if self.above is None:
            return f"at line {line} write {copy}"
        then = f", then `{target} = {self.name}`" if target != self.name else ""
        return f"above line {self.above.lineno} make `{self.empty}`, and at line {line} write {copy}{then}"

    def apply(self, rewriting: Rewriting, deeper: Callable[[ast.stmt], str] = lambda statement: "") -> None:
        """Make the change. ``deeper`` is by how much the same rewriting indents a statement's lines."""
        if self.above is not None:
            blanks = f"{indentation(self.syntax, self.above)}{deeper(self.above)}"
            rewriting.put_line(self.above.lineno, f"{blanks}{self.empty}")
        language, write = self.syntax.language, self.write
        if self._moved:
            rewriting.delete(write)
            return
        start, head, stop = rewriting.start(write), rewriting.assignment_head(write), rewriting.stop(write)
        target = _target(write)
        if isinstance(write, ast.AugAssign):
            wrapped = isinstance(write.value, ast.Call | ast.Name | ast.Attribute | ast.Subscript | ast.Constant)
            wrapped = wrapped or rewriting.start(write.value) != head  # in parentheses of its own
            opening, closing = ("", "") if wrapped else ("(", ")")
            symbol = _SYMBOLS[type(write.op)]
            rewriting.replace(start, head, f"{language}.copy_to({self.name}, {target} {symbol} {opening}")
            rewriting.put(*stop, f"{closing})")
        elif _is_load(self.syntax, write) and not self.source:
            call = write.value
            assert isinstance(call, ast.Call)
            line, column = rewriting.stop(call)
            rewriting.replace(start, head, "")
            rewriting.put(line, column - 1, f", out={self.name}")
        else:
            rewriting.replace(start, head, f"{language}.copy_to({self.name}, ")
            rewriting.put(*stop, ")")
        if target != self.name:
            before = "; " if _shares(self.syntax, write) else f"\n{indentation(self.syntax, write)}{deeper(write)}"
            rewriting.put(*stop, f"{before}{target} = {self.name}")


_SYMBOLS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
}


def _target(statement: ast.Assign | ast.AugAssign) -> str:
    target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
    assert isinstance(target, ast.Name)
    return target.id


def _shares(syntax: Syntax, statement: ast.stmt) -> bool:
    """Whether a statement has others on its lines."""
    before = syntax.lines[statement.lineno - 1].encode()[: statement.col_offset]
    end = statement.end_lineno or statement.lineno
    after = syntax.lines[end - 1].encode()[statement.end_col_offset or 0 :].strip()
    return bool(before.strip() or (after and not after.startswith(b"#")))


def _is_call(syntax: Syntax, value: ast.expr, *names: str) -> bool:
    return isinstance(value, ast.Call) and syntax.text(value.func) in {f"{syntax.language}.{name}" for name in names}


def _is_load(syntax: Syntax, statement: ast.Assign | ast.AugAssign) -> bool:
    """Whether a statement assigns a plain load, to whose call ``out=`` can be added."""
    value = statement.value
    if isinstance(statement, ast.AugAssign) or not _is_call(syntax, value, "load"):
        return False
    assert isinstance(value, ast.Call)
    end = syntax.lines[(value.end_lineno or 1) - 1].encode()[: (value.end_col_offset or 1) - 1].rstrip()
    plain = all(keyword.arg not in (None, "out") for keyword in value.keywords)
    return bool(value.args) and plain and bool(end) and not end.endswith(b",")


def as_fix(kept: Kept) -> Fix:
    """The change alone."""
    rewriting = Rewriting(kept.syntax)
    kept.apply(rewriting)
    return Fix(kept.title, rewriting.edits())


# --- finding ----------------------------------------------------------------------------------------------------------


def find_kept(body: Body, block: Block, rows: Sequence[int]) -> Kept | None:
    """How allocations of one line outlive ``block``, a statement of ``body``; None where no change is sure to be
    right. ``rows``: all storages that the line makes, in order."""
    made = _made_by(body, block, rows)
    if made is None or body.syntax.language is None:
        return None
    write, name = made
    outer = _outer_handles(body, block, rows, name)
    if outer[0] is not None:
        meant = _written_over(body, block, rows, outer, write, name)
        return Kept(body.syntax, write, name) if meant else None
    renamed = _assigned_on(body, block, rows, name, write)
    return renamed or _made_outside(body, block, rows, write, name)


def _made_by(body: Body, block: Block, rows: Sequence[int]) -> tuple[ast.Assign | ast.AugAssign, str] | None:
    """The assignment to one name that makes the allocations, and that name."""
    graph = body.graph
    statement = body.statement(int(graph.storages.stack[rows[0]]))
    if not isinstance(statement, ast.Assign | ast.AugAssign) or not body.lies_in(statement, block):
        return None
    if any(isinstance(node, ast.NamedExpr) for node in ast.walk(statement)):
        return None
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    if len(targets) != 1 or not isinstance(targets[0], ast.Name):
        return None
    name = targets[0].id
    named = all(quote(graph.names[graph.storages.name[row]]) == name for row in rows)
    layouts = {int(graph.storages.layout[row]) for row in rows}
    return (statement, name) if named and len(layouts) == 1 else None


def _outer_handles(body: Body, block: Block, rows: Sequence[int], name: str) -> list[int | None]:
    """For each of some allocations the one that a name meant before ``block``: the last one made by the same function
    outside and before it, of the same layout; None where there is none, or it is gone."""
    storages = body.graph.storages
    if name not in body.graph.names:
        return [None] * len(rows)
    like = (storages.name == body.graph.names.index(name)) & (storages.layout == storages.layout[rows[0]])
    like &= storages.memory == storages.memory[rows[0]]
    outside = [stack for stack in np.unique(storages.stack[like]).tolist() if _is_before(body, block, stack)]
    candidates = np.flatnonzero(like & np.isin(storages.stack, outside))
    found: list[int | None] = []
    for row, place in zip(rows, np.searchsorted(candidates, rows).tolist(), strict=True):
        handle = int(candidates[place - 1]) if place else row
        freed = int(storages.freed[handle])
        there = place and storages.rank[handle] == storages.rank[row] and (freed < 0 or freed > storages.born[row])
        found.append(handle if there else None)
    return found


def _is_before(body: Body, block: Block, stack: int) -> bool:
    statement = body.statement(stack) if stack >= 0 else None
    return statement is not None and statement.lineno <= block.lineno and not body.lies_in(statement, block)


def _written_over(
    body: Body,
    block: Block,
    rows: Sequence[int],
    outer: Sequence[int | None],
    write: ast.Assign | ast.AugAssign,
    name: str,
) -> bool:
    """Whether the values that ``write`` gives to ``name`` can be written over the handle that it means before
    ``block``: every read by then still gets the value it means.

    ``rows`` are written over ``outer`` one after the other. That happens where they are made; or, where ``write``
    assigns another name, further down: until then the old value and the new one are both there.
    """
    by_outer: dict[int, list[int]] = {}
    for row, handle in zip(rows, outer, strict=True):
        if handle is None:
            return False
        by_outer.setdefault(handle, []).append(row)
    made = body.statement(int(body.graph.storages.stack[rows[0]]))
    assert made is not None
    if not _is_meant(body, block, next(iter(by_outer)), name):
        return False
    born = body.graph.storages.born
    for handle, inner in by_outer.items():
        values = [handle, *inner]
        for value, following, after in zip(values, values[1:], [*values[2:], None], strict=False):
            limit = len(body.graph) if after is None else int(born[after])
            for node in body.readers.of(value).tolist():
                if node <= born[following]:
                    continue
                statement = body.statement_of(node)
                before = body.lies_in(statement, block) and statement is not None and statement.lineno < write.lineno
                if made is write or node > limit or not before:
                    return False
        if made is not write and not all(_means(body, block, v, n, made, name) for v, n in pairwise([*inner, None])):
            return False
    return True


def _is_meant(body: Body, block: Block, handle: int, name: str) -> bool:
    """Whether a name means a handle before ``block``: by no other assignment, or because the block reads it so."""
    syntax = body.syntax
    function = syntax.function(block)
    around: ast.AST = syntax.tree if function is None else function
    writers = [n for n in _writers(around, name) if n is not block and block not in syntax.above(n)]
    if len(writers) == 1:
        return True
    for node in body.readers.of(handle).tolist():
        statement = body.statement_of(node)
        if statement is not None and body.lies_in(statement, block) and body.loads(statement, name):
            return True
        if isinstance(statement, ast.AugAssign) and statement.target in _names(statement, name):
            return True
    return False


def _names(node: ast.AST, name: str) -> list[ast.AST]:
    return [n for n in ast.walk(node) if isinstance(n, ast.Name) and n.id == name]


def _means(body: Body, block: Block, value: int | None, following: int | None, made: ast.stmt, name: str) -> bool:
    """Whether all reads of a value outside of its own iteration are by this name."""
    assert value is not None
    next_born = len(body.graph) if following is None else int(body.graph.storages.born[following])
    for node in body.readers.of(value).tolist():
        statement = body.statement_of(node)
        if statement is None:
            return False
        own = body.lies_in(statement, block) and node < next_born and statement.lineno >= made.lineno
        if not own and not body.loads(statement, name):
            return False
    return True


def _assigned_on(body: Body, block: Block, rows: Sequence[int], source: str, made: ast.stmt) -> Kept | None:
    """``m = m_new`` further down in the block: the value is meant to go on under another name."""
    for statement in body.syntax.block(made):
        if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Name):
            continue
        targets = statement.targets
        if statement.value.id != source or len(targets) != 1 or not isinstance(targets[0], ast.Name):
            continue
        name = targets[0].id
        outer = _outer_handles(body, block, rows, name)
        if statement.lineno > made.lineno and _written_over(body, block, rows, outer, statement, name):
            return Kept(body.syntax, statement, name, source)
    return None


def _made_outside(
    body: Body, block: Block, rows: Sequence[int], write: ast.Assign | ast.AugAssign, name: str
) -> Kept | None:
    """A new handle above the block: one for all iterations, or one for each where two values are there at a time."""
    graph, syntax = body.graph, body.syntax
    storages = graph.storages
    together = any(
        body.readers.last_access(row) > storages.born[following] and storages.rank[row] == storages.rank[following]
        for row, following in pairwise(rows)
    )
    inner = [n for n in syntax.above(write) if isinstance(n, ast.For | ast.While) and block in syntax.above(n)]
    if together and (inner or not isinstance(block, ast.With)):
        return None
    above: ast.stmt = block
    if not together:
        for node in syntax.above(block):
            if isinstance(node, ast.For | ast.While):
                above = node
            elif isinstance(node, ast.With | ast.FunctionDef | ast.Lambda):
                break
    if body.callers and not together and len(rows) > 2:
        return None  # a helper called again and again would make one anew each time
    once = _only_assigned_here(syntax, write, name) and (not together or write in block.body)
    if np.any(storages.memory[list(rows)] != graph.target.results_memory):
        return None
    if _is_call(syntax, write.value, "empty") and not once:
        return None
    kept = name if once else _free_name(syntax, f"{name}_kept")
    layout = graph.layouts[storages.layout[rows[0]]]
    dtype = f"{syntax.language}.{repr(layout.dtype).removeprefix('tl.')}"
    empty = f"{kept} = {syntax.language}.empty({layout.shape}, {dtype})"
    return Kept(syntax, write, kept, "", above, empty)


def _only_assigned_here(syntax: Syntax, write: ast.stmt, name: str) -> bool:
    """Whether a function gives this name in this one statement only, by a value without it."""
    function = syntax.function(write)
    around: ast.AST = syntax.tree if function is None else function
    once = len(_writers(around, name)) == 1
    return once and isinstance(write, ast.Assign) and name not in loaded_names(write.value)


def _writers(around: ast.AST, name: str) -> list[ast.AST]:
    """The statements, parameters and comprehensions that give a name a value."""
    kinds = ast.stmt | ast.arg | ast.comprehension
    return [n for n in ast.walk(around) if isinstance(n, kinds) and n is not around and name in _stores_itself(n)]


def _stores_itself(node: ast.AST) -> set[str]:
    if isinstance(node, ast.For):
        return stored_names(node.target)
    if isinstance(node, ast.With):
        return {name for item in node.items if item.optional_vars for name in stored_names(item.optional_vars)}
    if isinstance(node, ast.While | ast.If | ast.Try):
        return set()
    return stored_names(node)


def _free_name(syntax: Syntax, wanted: str) -> str:
    taken = {node.id for node in ast.walk(syntax.tree) if isinstance(node, ast.Name)} | stored_names(syntax.tree)
    name, number = wanted, 2
    while name in taken:
        name, number = f"{wanted}_{number}", number + 1
    return name


def write_over(context: LintContext, rows: Sequence[int]) -> Fix | None:
    """``acc += x`` in a helper, whose result nobody reads: the change of ``acc`` itself, which is read on."""
    graph = context.graph
    body = body_of(context, int(graph.storages.stack[rows[0]]))
    statement = body.statement(int(graph.storages.stack[rows[0]])) if body is not None else None
    if body is None or body.syntax.language is None or not isinstance(statement, ast.Assign | ast.AugAssign):
        return None
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    if len(targets) != 1 or not isinstance(targets[0], ast.Name):
        return None
    name = targets[0].id
    if isinstance(statement, ast.Assign) and name not in loaded_names(statement.value):
        return None
    accesses = graph.accesses
    for row in rows:
        made = int(graph.storages.born[row])
        mine = range(int(graph.access_start[made]), int(graph.access_start[made + 1]) - 1)
        read = {int(accesses.storage[i]) for i in mine if accesses.mode[i] == Mode.READ}
        read = {s for s in read if graph.storages.layout[s] == graph.storages.layout[row] and graph.in_scratch[s]}
        named = [s for s in sorted(read) if graph.names[graph.storages.name[s]] == name]
        if len(named) != 1 or not np.any(context.readers.of(named[0]) > made):
            return None
    return as_fix(Kept(body.syntax, statement, name))
