"""The stable text form of a graph, for reading and for golden tests.

One line a node: ``%12 = exp x@0x400 f32[128,256]  # flash.py:14``. No absolute path and no address of this process is
in it, so that the same kernel gives the same text everywhere.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ..columns import GraphColumns
from ..dtypes import DType
from ..memories import Memory
from ..ops import OPERATIONS, End
from ..tables import UNPLACED, Mode
from ..target import Target
from .printable import printable as quote

__all__ = ["describe_access", "format_graph", "format_node", "quote"]


def _escaped(name: str) -> str:
    """As :func:`quote`, and different names stay different: a backslash is doubled, so that a line break and a name
    that spells one with a backslash do not look alike."""
    return quote(name.replace("\\", "\\\\"))


def describe_access(graph: GraphColumns, row: int) -> str:
    """``k[0:128, 0:64]`` of an HBM tensor, ``m@0x400 f32[128,1]`` of scratch."""
    accesses, storages = graph.accesses, graph.storages
    storage = int(accesses.storage[row])
    view = graph.layouts[accesses.layout[row]]
    whole = graph.layouts[storages.layout[storage]]
    offset = int(accesses.offset[row])
    name = _escaped(graph.names[storages.name[storage]])
    if not graph.in_scratch[storage]:
        return f"{name}+{offset} {view!r}"
    start = int(storages.address[storage])
    address = "?" if start == UNPLACED else f"{start + offset * view.dtype.itemsize:#x}"
    memory = graph.target.memory_names[storages.memory[storage]]
    where = "" if memory == graph.target.results else f"{_escaped(memory)}:"
    text = f"{name or f'#{storage}'}@{where}{address} {view!r}"
    return text if view is whole else f"{text} of {whole!r}"


def _value(value: Any) -> str:
    if isinstance(value, DType):
        return value.short
    if isinstance(value, str):
        return repr(value)
    if isinstance(value, tuple):
        return "(" + ",".join(map(_value, value)) + ")"
    return repr(value)


def _static(attributes: Mapping[str, Any], name: str) -> str:
    shown = [
        f"{key}={_value(value)}" for key, value in attributes.items() if not (name == "load" and key in _FROM_RESULT)
    ]
    return f" {{{', '.join(shown)}}}" if shown else ""


#: What a load's result says anyway.
_FROM_RESULT = ("shape", "dtype")


def format_node(graph: GraphColumns, index: int) -> str:
    """One node as one line, without indentation."""
    nodes, accesses = graph.nodes, graph.accesses
    operation = OPERATIONS.by_code(int(nodes.op[index]))
    start, stop = (int(graph.access_start[i]) for i in (index, index + 1))
    reads = [describe_access(graph, row) for row in range(start, stop) if accesses.mode[row] == Mode.READ]
    writes = [describe_access(graph, row) for row in range(start, stop) if accesses.mode[row] == Mode.WRITE]
    text = f"%{index} = {operation.name}"
    if nodes.channel[index] >= 0:
        channel = int(nodes.channel[index])
        side = graph.channels.direction if operation.end is End.SENDS else graph.channels.arrival
        text += f" {graph.target.directions[side[channel]]}"
    if reads:
        text += " " + ", ".join(reads)
    text += _static(graph.attributes[nodes.attributes[index]], operation.name)
    if writes:
        text += " -> " + ", ".join(writes)
    if operation.is_marker:
        scope = int(nodes.scope[index])
        name = _escaped(graph.names[graph.scopes.name[scope]])
        text += f" {name + ' ' if name else ''}cursor={int(graph.scopes.base[scope])}"
    place = graph.location(int(nodes.stack[index]))
    return f"{text}  # {_escaped(os.path.basename(place.file))}:{place.line}" if place else text


def _memories(target: Target) -> str:
    """``scratch=1048576 align=16``: the memory where results go, and the further ones by name."""
    own: list[Memory] = [target.memories[place] for place in target.scratch_memories]
    own.sort(key=lambda memory: memory.name != target.results)
    return " ".join(
        f"{'scratch' if memory.name == target.results else _escaped(memory.name)}={memory.bytes} align={memory.align}"
        for memory in own
    )


def format_graph(graph: GraphColumns) -> str:
    """The whole graph: target, tensors, then each rank's nodes, indented by scope."""
    t = graph.target
    lines = [
        f"kernel {_escaped(graph.kernel)} ranks={graph.ranks}"
        + (f" buffers={graph.buffers}" if graph.buffers else "")
        + ("" if graph.is_scoped else " lifetimes=automatic"),
        f"target {_memories(t)} topology={t.topology}"
        + (f"({','.join(map(str, t.shape))}{' wraps' if t.wraps else ''})" if t.shape else "")
        + f" slots={t.slots}",
    ]
    lines += [
        f"hbm {_escaped(name)} {graph.layouts[graph.storages.layout[row]]!r}" for name, row in graph.tensors.items()
    ]
    depth, rank = 0, -1
    for index, code in enumerate(graph.nodes.op.tolist()):
        if graph.nodes.rank[index] != rank:
            rank, depth = int(graph.nodes.rank[index]), 0
            lines.append(f"rank {rank}")
        name = OPERATIONS.by_code(code).name
        depth -= name == "scope_exit"
        lines.append("  " * (depth + 1) + format_node(graph, index))
        depth += name == "scope_enter"
    lines += [
        f"out of bounds: %{f.node} {_escaped(graph.names[graph.storages.name[f.storage]])} {[*f.lower]}..{[*f.upper]}"
        for f in graph.bounds_faults
    ]
    return "\n".join(lines) + "\n"
