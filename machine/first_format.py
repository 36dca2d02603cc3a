"""The first format of machine files, which knew one scratch memory and five engines: read, and turned into the second.

Only names differ: ``[scratch]`` is ``[memory.tcm]``, ``[gemm]`` is ``[engine.gemm]``, channels are lanes of work.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from ..ir.errors import did_you_mean
from ..ir.memories import HBM, TCM
from ..ir.ops import Kind
from ..ir.target import OPPOSITE

__all__ = ["first_path", "is_first", "second_path", "without_first"]

_SECTIONS: Mapping[str, str] = MappingProxyType(
    {
        "scratch": f"memory.{TCM}",
        **{name: f"engine.{name}" for name in ("dma_read", "dma_write", "gemm", "math", "link")},
    }
)
#: What else stands at the top of a file, in both formats.
_COMMON = ("name", "clock_ghz", "cpu", "topology")
_PORT = ("channels", "latency_ns", "bytes_per_ns")
_KEYS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "scratch": ("bytes", "align"),
        "dma_read": _PORT,
        "dma_write": _PORT,
        "gemm": ("rows", "cols", "startup_cycles", "rate"),
        "math": ("lanes", "startup_cycles", "cycles"),
        "link": ("latency_ns", "bytes_per_ns", "slots", *OPPOSITE),
    }
)
#: The keys that only the second format has, at the top.
_SECOND = ("memory", "engine", "place", "sustained", "strict_spaces")
_RENAMED = {"channels": "lanes_of_work"}


def _engine(kind: Kind, reads: str = TCM, writes: str = TCM) -> dict[str, Any]:
    return {"kind": kind.value, "reads": [reads], "writes": [writes]}


#: What every machine of the first format has, whatever its file says.
_FIXED: Mapping[str, Any] = MappingProxyType(
    {
        "memory": {HBM: {"scope": "global"}, TCM: {}},
        "engine": {
            "dma_read": _engine(Kind.TRANSFER, reads=HBM),
            "dma_write": _engine(Kind.TRANSFER, writes=HBM),
            "gemm": _engine(Kind.MATMUL),
            "math": _engine(Kind.ELEMENTWISE),
            "link": _engine(Kind.LINK),
        },
    }
)


def is_first(data: Mapping[str, Any]) -> bool:
    """Whether a file's tables are of the first format: it has sections that only that one knows, and none of those
    that it does not."""
    return any(key in data for key in _SECTIONS) and not any(key in data for key in _SECOND)


def without_first(data: Mapping[str, Any], *, whole: bool) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """The tables of a file of the first format as those of the second, and its mistakes. ``whole``: it stands on no
    base, and has to say everything."""
    mistakes = [(name, "is missing") for name in _SECTIONS if whole and name not in data]
    made: dict[str, Any] = {key: value for key, value in data.items() if key in _COMMON}
    made["memory"] = {name: dict(table) for name, table in _FIXED["memory"].items()}
    made["engine"] = {name: dict(table) for name, table in _FIXED["engine"].items()}
    for key, value in data.items():
        if key in _SECTIONS and isinstance(value, dict):
            room, name = _SECTIONS[key].split(".")
            for inner, given in value.items():
                if inner in _KEYS[key]:
                    made[room][name][_RENAMED.get(inner, inner)] = given
                else:
                    mistakes.append((f"{key}.{inner}", f"unknown key; {did_you_mean(inner, _KEYS[key], what='known')}"))
        elif key in _SECTIONS:
            mistakes.append((key, "must be a table, not " + _plainly(value)))
        elif key not in _COMMON:
            known = ("name", "clock_ghz", *_SECTIONS, "cpu", "topology")
            mistakes.append((key, f"unknown key; {did_you_mean(key, known, what='known')}"))
    missing = {path for path, _ in mistakes}
    for key, where in _SECTIONS.items():
        if key in missing:
            room, name = where.split(".")
            del made[room][name]
    return made, mistakes


def _plainly(value: Any) -> str:
    return str(value) if isinstance(value, int | str) else "a list" if isinstance(value, list) else str(value)


def first_path(path: str) -> str:
    """What the first format calls a path of the second."""
    for first, second in _SECTIONS.items():
        if path == second or path.startswith(f"{second}."):
            rest = path[len(second) :]
            return first + next((f".{old}" for old, new in _RENAMED.items() if rest == f".{new}"), rest)
    return path


def second_path(path: str, engines: Iterable[str], memories: Iterable[str], results: str) -> str:
    """A path as the second format has it: what the first one called it, or one that begins with the name of an engine
    or a memory."""
    head, dot, rest = path.partition(".")
    rest = _RENAMED.get(rest, rest) if head in engines else rest
    if head == "scratch":
        return f"memory.{results}{dot}{rest}"
    if head in engines:
        return f"engine.{head}{dot}{rest}"
    return f"memory.{path}" if head in memories else path
