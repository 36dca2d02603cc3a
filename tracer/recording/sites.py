"""Where in the user's source a call comes from: frames, call stacks, and the names that results are assigned to."""

from __future__ import annotations

import ast
import functools
import linecache
import sys
from collections.abc import Sequence
from types import CodeType, FrameType
from typing import NamedTuple

from ...ir.source.frames import CodePosition, OwnFolders, is_author_file, location_of
from ...ir.source.location import Location

__all__ = ["CallChain", "SiteTable"]

_Position = tuple[int, int, int, int]


class _Call(NamedTuple):
    """What is kept of a frame, which itself would keep all of its variables."""

    f_code: CodeType
    f_lasti: int
    f_lineno: int


CallChain = tuple[_Call, ...]


class SiteTable:
    """Call sites met while tracing, numbered: frames and stacks (see ``StackTable``), each stored once.

    ``boundary`` is the code that calls the kernel: stacks end below it. ``own`` are the folders of the front end that
    records, whose frames are never the author's; kernscope's are known.
    """

    def __init__(self, boundary: CodeType | None = None, own: OwnFolders = ()) -> None:
        self._boundary = boundary
        self._own_folders = own
        self._own: dict[int, bool] = {}
        self._codes: dict[int, CodeType] = {}  # keeps ids of code objects valid while we use them as keys
        self._chains: dict[tuple[int, ...], int] = {}
        self._stack_rows: dict[tuple[int, int], int] = {}
        self._frame_rows: dict[tuple[int, CodePosition], int] = {}
        self._positions: dict[int, list[CodePosition]] = {}  # by id of a code object: it decodes them all for one
        self._names: dict[int, str] = {}
        self._assignments: dict[str, dict[_Position, str | None]] = {}
        self.frames: list[Location] = []
        self.stacks: list[tuple[int, int]] = []

    def here(self) -> int:
        """The stack row of the author's innermost frame, with its callers up to the kernel."""
        own, boundary = self._own, self._boundary
        frame: FrameType | None = sys._getframe(2)  # who called is kernscope's own
        while frame is not None:
            code = frame.f_code
            skip = own.get(id(code))
            if skip is None:
                skip = self._judge(code)
            if not skip:
                break
            frame = frame.f_back
        if frame is None:
            return -1
        caller = frame.f_back
        if caller is not None and caller.f_code is boundary:  # the kernel itself: most calls of most kernels
            row = self._chains.get((id(code), frame.f_lasti))
            if row is not None:
                return row
        return self._deep(frame)

    def _deep(self, innermost: FrameType) -> int:
        """The stack row of a frame and all the user's frames that called it."""
        chain: list[int] = []
        kept: list[FrameType] = []
        frame: FrameType | None = innermost
        while frame is not None and frame.f_code is not self._boundary:
            code = frame.f_code
            skip = self._own.get(id(code))
            if skip is None:
                skip = self._judge(code)
            if not skip:
                chain += (id(code), frame.f_lasti)
                kept.append(frame)
            frame = frame.f_back
        key = tuple(chain)
        row = self._chains.get(key)
        if row is None:
            row = self._chains[key] = self._add(kept)
        return row

    def remember(self) -> CallChain:
        """The call that :meth:`here` would give a row, for the case that one is needed later."""
        own, boundary = self._own, self._boundary
        chain: list[_Call] = []
        frame: FrameType | None = sys._getframe(2)
        while frame is not None:
            code = frame.f_code
            if code is boundary:
                break
            skip = own.get(id(code))
            if skip is None:
                skip = self._judge(code)
            if not skip:
                chain.append(_Call(code, frame.f_lasti, frame.f_lineno))
            frame = frame.f_back
        return tuple(chain)

    def row(self, chain: CallChain) -> int:
        """The stack row of a remembered call."""
        return self._add(chain)

    def _judge(self, code: CodeType) -> bool:
        self._codes[id(code)] = code
        skip = self._own[id(code)] = not is_author_file(code.co_filename, self._own_folders)
        return skip

    def _add(self, frames: Sequence[FrameType | _Call]) -> int:
        caller = -1
        for frame in reversed(frames):
            site = (id(frame.f_code), self._position(frame))
            row = self._frame_rows.get(site)
            if row is None:
                row = self._frame_rows[site] = len(self.frames)
                self.frames.append(location_of(frame.f_code, site[1], frame.f_lineno))
            key = (row, caller)
            if key not in self._stack_rows:
                self._stack_rows[key] = len(self.stacks)
                self.stacks.append(key)
            caller = self._stack_rows[key]
        return caller

    def _position(self, frame: FrameType | _Call) -> CodePosition:
        """The expression that a frame evaluates. Of one that CPython has specialised (a call of a builtin, a subscript
        of the author's own that ran a few times) it tells another instruction: the expression is the same."""
        code = frame.f_code
        positions = self._positions.get(id(code))
        if positions is None:
            positions = self._positions[id(code)] = list(code.co_positions())
        return positions[frame.f_lasti // 2]

    def location(self, stack: int) -> Location | None:
        """The location of a stack row, with its callers; None for -1."""
        chain: list[Location] = []
        while stack >= 0:
            frame, stack = self.stacks[stack]
            chain.append(self.frames[frame])
        return chain[0].called_from(chain[1:]) if chain else None

    def name(self, stack: int) -> str:
        """The name that the result of the call at a stack row is assigned to; empty where there is none.

        A call whose value a function returns takes the name that its caller assigns.
        """
        if stack < 0:
            return ""
        known = self._names.get(stack)
        return self._find_name(stack)[0] if known is None else known

    def named_at(self, stack: int) -> Location | None:
        """The location of the assignment that gives a stack row its name: in a caller, where a function returns the
        value. Without a name, that of the call itself."""
        name, where = self._find_name(stack) if stack >= 0 else ("", stack)
        return self.location(where if name else stack)

    def _find_name(self, stack: int) -> tuple[str, int]:
        """The name, and the stack row that assigns it."""
        where = stack
        while where >= 0:
            frame, caller = self.stacks[where]
            place = self.frames[frame]
            position = (place.line, place.column, place.end_line, place.end_column)
            found = self._assigned(place.file).get(position, "")
            if found is not None:
                self._names[stack] = found
                return found, where
            where = caller
        self._names[stack] = ""
        return "", stack

    def _assigned(self, file: str) -> dict[_Position, str | None]:
        known = self._assignments.get(file)
        if known is None:
            linecache.checkcache(file)  # a module that was reloaded has other lines than before
            known = self._assignments[file] = _assignments("".join(linecache.getlines(file)))
        return known


@functools.lru_cache(maxsize=64)  # parsing a file takes longer than tracing a small kernel
def _assignments(source: str) -> dict[_Position, str | None]:
    """For each expression that is assigned as a whole: the target's name; for each that is returned: None."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return {}
    found: dict[_Position, str | None] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[target, *_], value=value):
                _pair(target, value, found)
            case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
                _pair(target, value, found)
            case ast.AugAssign(target=target):
                _pair(target, node, found)
            case ast.Return(value=ast.expr() as value):
                found[_position(value)] = None
            case ast.Lambda(body=value):
                found[_position(value)] = None
    return found


def _pair(target: ast.expr, value: ast.expr | ast.stmt, found: dict[_Position, str | None]) -> None:
    match target, value:
        case ((ast.Tuple(elts=targets) | ast.List(elts=targets)), (ast.Tuple(elts=values) | ast.List(elts=values))):
            if len(targets) == len(values):
                for one, its in zip(targets, values, strict=True):
                    _pair(one, its, found)
        case ((ast.Name() | ast.Attribute() | ast.Subscript()), _):
            found[_position(value)] = ast.unparse(target)


def _position(node: ast.expr | ast.stmt) -> _Position:
    end_line = node.lineno if node.end_lineno is None else node.end_lineno
    return node.lineno, node.col_offset, end_line, -1 if node.end_col_offset is None else node.end_col_offset
