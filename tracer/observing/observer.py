"""Who watches a trace: runs copies of an author's functions that tell which way their branches go."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import CodeType, FrameType, FunctionType, MemberDescriptorType, MethodType
from typing import Any

import numpy as np

from ...ir.branches import Branch, Branches, Way, as_runs
from ...ir.dtypes import DType
from ..kernel import Kernel
from ..values.handles import TensorHandle
from ..values.hbm import HbmTensor
from .copies import Authors, copied_code, with_code
from .sites import NAMES, Site

__all__ = ["Observer"]

#: So much of a value is shown, and so many parts of a tuple.
_LONGEST, _MOST = 40, 8
#: What of tensors and arrays is a number, or numbers.
_ATTRIBUTES = ("shape", "dtype", "ndim", "size")


class _Taken:
    """What is known of one way: how often, in which programs, and with which values the first time."""

    __slots__ = ("label", "last", "programs", "times", "values")

    def __init__(self, label: str, values: tuple[tuple[str, str], ...]) -> None:
        self.label = label
        self.values = values
        self.times = 0
        self.programs: list[int] = []
        self.last = -1


class Observer:
    """Counts the ways of one trace. ``program`` is the number of the program that runs: who traces sets it."""

    def __init__(self) -> None:
        self.program = 0
        self._sites: list[Site] = []
        self._ways: list[dict[object, _Taken]] = []
        self._trips: list[tuple[int, int] | None] = []
        self._open: dict[int, tuple[tuple[str, str], ...]] = {}  # by site of a ``match``: none of its cases so far
        # By id, with the codes kept alive: alike functions of two files have codes that are equal.
        self._copies: dict[int, tuple[CodeType, CodeType | None]] = {}
        self._ours: dict[int, CodeType] = {}
        self._authors: Authors | None = None
        self._unseen: list[str] = []
        asked = (self._truth, self._value, self._loop, self._asked, self._came, self.of)
        self._questions: Mapping[str, Callable[..., Any]] = dict(zip(NAMES, asked, strict=True))

    def begin_again(self) -> None:
        """Forget what was taken: the kernel is called anew. Its copies are the same, and so are their lines."""
        for ways in self._ways:
            ways.clear()
        self._trips = [None] * len(self._sites)
        self._open.clear()

    # --- functions ------------------------------------------------------------------------------------------------

    def of(self, function: Any) -> Any:
        """What runs in the place of something that is called: a copy that tells of its branches, where it is a function
        of the author's, a method, or made of one; else the same."""
        kind = type(function)
        if kind is FunctionType:
            return self._of_function(function)
        if kind is MethodType:
            inner = self.of(function.__func__)
            return function if inner is function.__func__ else MethodType(inner, function.__self__)
        if kind is staticmethod:
            return self.of(function.__func__)
        if kind is Kernel:
            return self.of(function.function)
        if kind is functools.partial:
            inner = self.of(function.func)
            made = functools.partial(inner, *function.args, **function.keywords)
            return function if inner is function.func else made
        return function

    def _of_function(self, function: FunctionType) -> Any:
        code = function.__code__
        if id(code) in self._ours:
            return function
        if self._authors is None:  # the kernel's own is the first
            self._authors = Authors.of(code.co_filename)
        if not self._authors.wrote(code.co_filename):
            return function
        if id(code) not in self._copies:
            made = copied_code(function, self._add, self._authors)
            self._copies[id(code)] = (code, made)
            if made is None:
                self._unseen.append(code.co_qualname)
            else:
                self._ours.update((id(one), one) for one in _codes(made))
        copied = self._copies[id(code)][1]
        return function if copied is None else with_code(function, copied, self._questions)

    def _add(self, site: Site) -> int:
        self._sites.append(site)
        self._ways.append({})
        self._trips.append(None)
        return len(self._sites) - 1

    # --- what they tell -------------------------------------------------------------------------------------------

    def _truth(self, site: int, value: Any) -> bool:
        truth = bool(value)
        self._note(site, truth, sys._getframe(1))
        return truth

    def _value(self, site: int, value: Any) -> Any:
        self._note(site, bool(value), sys._getframe(1))
        return value

    def _loop(self, site: int, iterated: Iterable[Any]) -> Iterator[Any]:
        values = self._values(site, sys._getframe(1)) if len(self._ways[site]) < 2 else ()
        return self._counted(site, iter(iterated), values)

    def _counted(self, site: int, iterated: Iterator[Any], values: tuple[tuple[str, str], ...]) -> Iterator[Any]:
        trips = 0
        try:
            for item in iterated:
                trips += 1
                yield item
        finally:
            self._note(site, trips > 0, values)
            if trips:
                least, most = self._trips[site] or (trips, trips)
                self._trips[site] = (min(least, trips), max(most, trips))

    def _asked(self, site: int, subject: Any) -> Any:
        self._close(site)
        self._open[site] = self._values(site, sys._getframe(1))
        return subject

    def _came(self, site: int, label: str) -> None:
        self._note(site, label, self._open.pop(site, ()))

    def _close(self, site: int) -> None:
        values = self._open.pop(site, None)
        if values is not None:
            self._note(site, "no case", values)

    def _note(self, site: int, key: object, where: FrameType | tuple[tuple[str, str], ...]) -> None:
        ways = self._ways[site]
        way = ways.get(key)
        if way is None:
            values = where if isinstance(where, tuple) else self._values(site, where)
            way = ways[key] = _Taken(_label(self._sites[site].kind, key), values)
        way.times += 1
        if way.last != self.program:
            way.last = self.program
            way.programs.append(self.program)

    def _values(self, site: int, frame: FrameType) -> tuple[tuple[str, str], ...]:
        """What the names of a condition stand for, as far as a few words say it."""
        paths = self._sites[site].values
        if not paths:
            return ()
        local, outer = frame.f_locals, frame.f_globals
        found = []
        for name, *attributes in paths:
            value = local[name] if name in local else outer.get(name)
            for attribute in attributes:
                value = _attribute(value, attribute)
            text = _text(value)
            if text and (value is not None or name in local):
                found.append((".".join([name, *attributes]), text))
        return tuple(found)

    # --- what comes of it -----------------------------------------------------------------------------------------

    def branches(self) -> Branches:
        """What was taken, once the trace is done."""
        for number in list(self._open):
            self._close(number)
        evaluated: dict[str, set[tuple[str, tuple[int, int]]]] = {site.place.file: set() for site in self._sites}
        for site, ways in zip(self._sites, self._ways, strict=True):
            if ways:
                evaluated[site.place.file].add((site.kind, site.whole))
        rows = [
            Branch(site.place, site.kind, site.text, _ways(ways), site.depends, trips)
            for site, ways, trips in zip(self._sites, self._ways, self._trips, strict=True)
            # A part that was never evaluated of a condition that was; a block that never ran says nothing.
            if ways or (site.kind, site.whole) in evaluated[site.place.file]
        ]
        order = {file: number for number, file in enumerate(evaluated)}
        return Branches(tuple(sorted(rows, key=lambda row: (order[row.place.file], row.place))), tuple(self._unseen))


def _label(kind: str, key: object) -> str:
    if kind == "for":
        return "ran" if key else "did not run"
    return ("true" if key else "false") if isinstance(key, bool) else str(key)


def _ways(ways: Mapping[object, _Taken]) -> tuple[Way, ...]:
    found = [Way(way.label, way.times, as_runs(way.programs), way.values) for way in ways.values()]
    return tuple(sorted(found, key=lambda way: (way.label != "true", way.label != "ran", way.label)))


def _codes(code: CodeType) -> Iterator[CodeType]:
    """A code object, and those of the functions written in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _attribute(value: Any, name: str) -> Any:
    """An attribute, where asking for it runs nobody's code; None otherwise."""
    if isinstance(value, HbmTensor | TensorHandle | np.ndarray):
        return getattr(value, name) if name in _ATTRIBUTES and hasattr(value, name) else None
    held = getattr(type(value), name, None)
    if isinstance(held, MemberDescriptorType):
        return held.__get__(value)
    return vars(value).get(name) if hasattr(value, "__dict__") else None


def _text(value: Any) -> str:
    """A value in a few words; empty where they would not do."""
    if isinstance(value, tuple):
        parts = [_text(part) for part in value]
        whole = len(value) <= _MOST and all(parts)
        return f"({', '.join(parts)}{',' if len(value) == 1 else ''})" if whole else ""
    if value is None or isinstance(value, str | bool | int | float | np.generic | DType):
        text = value.short if isinstance(value, DType) else str(value) if isinstance(value, np.generic) else repr(value)
        return text if len(text) <= _LONGEST else ""
    return ""
