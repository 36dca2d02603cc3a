"""The saved form of a graph: a versioned container that holds data only and is read as untrusted input.

Layout of a file: the magic line ``kernscope-graph\\n``; the length of the header as 8 bytes (little endian); the
header, JSON in UTF-8; the columns, raw little-endian bytes one after the other in the order that the header lists; the
offsets of the indices, likewise; the SHA-256 of everything before it. The header names the operations of the column
``nodes.op``, so that codes of another version's operation table keep their meaning.

Nothing is executed on reading. The file's own size bounds what is allocated: all lengths are checked against it, every
value is checked for its type, and :func:`kernscope.ir.load.load_graph` verifies the graph before anyone sees it.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from .. import dtypes
from ..columns import GraphColumns
from ..dtypes import DType
from ..errors import GraphFormatError, KernscopeError
from ..indices import Index
from ..layout import Layout, Shape
from ..memories import MOST_PARTITIONS, Memory
from ..ops import OPERATIONS, Kind
from ..output import check_output, write_output
from ..tables import (
    AccessTable,
    BoundsFault,
    ChannelTable,
    FrameTable,
    NodeTable,
    ScopeTable,
    StackTable,
    StorageTable,
    Table,
)
from ..target import Reach, Target
from .printable import printable
from .saved_branches import read_branches, written_branches
from .saved_facts import read_facts, written_facts

__all__ = ["TABLES", "VERSION", "brief", "is_saved_graph", "read_fields", "write_columns"]

VERSION = 4
_MAGIC = b"kernscope-graph\n"
_DIGEST = 32
TABLES: dict[str, type[Table]] = {
    "nodes": NodeTable,
    "accesses": AccessTable,
    "storages": StorageTable,
    "scopes": ScopeTable,
    "channels": ChannelTable,
    "frames": FrameTable,
    "stacks": StackTable,
}
_KINDS = {kind.value: kind for kind in Kind if kind is not Kind.NONE}
#: Sizes, offsets and strides stay far inside int64, so that sums and products of a few cannot overflow.
_LARGEST = 1 << 48
#: So much of a message is shown that quotes the file.
_BRIEF = 300
#: The attributes that hold a kernel's own numbers, and no sizes.
_NUMBERS = ("scalars", "value", "pad")


# --- writing --------------------------------------------------------------------------------------------------------


def write_columns(graph: GraphColumns, path: str | os.PathLike[str]) -> None:
    """Save a graph. The file appears whole or not at all. Raises ``OutputError`` where it cannot be written."""
    check_output(path)
    write_output(path, _dump(graph))


def _dump(graph: GraphColumns) -> bytes:
    columns = [
        np.ascontiguousarray(column).astype(column.dtype.newbyteorder("<"), copy=False).tobytes()
        for name in TABLES
        for column in getattr(graph, name).columns().values()
    ]
    indices = {value: None for entry in graph.attributes for value in entry.values() if isinstance(value, Index)}
    places = {index: place for place, index in enumerate(indices)}
    header: dict[str, Any] = {
        "version": VERSION,
        "kernel": graph.kernel,
        "machine": graph.machine,
        "machine_toml": graph.machine_toml,
        "digests": dict(graph.digests or {}),
        "ranks": graph.ranks,
        "buffers": graph.buffers,
        "grid": graph.grid,
        "target": attrs.asdict(graph.target),
        "operations": list(OPERATIONS.names),
        "layouts": [[layout.shape, layout.strides, layout.dtype.name] for layout in graph.layouts],
        "names": [name.encode("utf-8", "backslashreplace").decode("utf-8") for name in graph.names],
        "attributes": [{key: _encode(value, places) for key, value in entry.items()} for entry in graph.attributes],
        "indices": [[index.shape, index.offsets.shape, index.steps] for index in indices],
        "bounds_faults": [[f.node, f.storage, f.lower, f.upper] for f in graph.bounds_faults],
        "unentered_scopes": list(graph.unentered_scopes),
        "initial": [name.encode("utf-8", "backslashreplace").decode("utf-8") for name in graph.initial],
        "facts": None if graph.facts is None else written_facts(graph.facts),
        "branches": None if graph.branches is None else written_branches(graph.branches),
        "rows": {name: len(getattr(graph, name)) for name in TABLES},
    }
    if not graph.is_scoped:
        header["nodes_by_rank"] = np.bincount(graph.nodes.rank, minlength=graph.ranks).tolist()
    text = json.dumps(header, separators=(",", ":")).encode("utf-8")
    columns += [index.offsets.astype("<i8", copy=False).tobytes() for index in indices]
    body = b"".join([_MAGIC, len(text).to_bytes(8, "little"), text, *columns])
    return body + hashlib.sha256(body).digest()


def _encode(value: Any, places: Mapping[Index, int]) -> Any:
    match value:
        case bool() | int() | str() | None:
            return value
        case float():  # in hexadecimal: exact, and infinities and NaN have a form
            return {"float": value.hex()}
        case DType():
            return {"dtype": value.name}
        case Index():
            return {"index": places[value]}
        case tuple() | list():
            return [_encode(item, places) for item in value]
    raise AssertionError(f"an attribute of type {type(value)}")


# --- reading --------------------------------------------------------------------------------------------------------


def is_saved_graph(path: str | os.PathLike[str]) -> bool:
    """Whether a regular file begins like a saved graph: opening a FIFO would wait for a writer."""
    if not os.path.isfile(path):
        return False
    try:
        with open(path, "rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def read_fields(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The fields of a saved graph, each of its right type, but not yet verified. Raises ``GraphFormatError``."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise GraphFormatError(f"cannot read {str(path)!r}: {error.strerror}", help="give a file that exists") from None
    try:
        return _parse(data)
    except GraphFormatError as error:
        error.message = f"{str(path)!r}: {brief(error.message)}"
        raise
    except (KernscopeError, ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        what = error.message if isinstance(error, KernscopeError) else f"{type(error).__name__}: {error}"
        raise _bad(f"{str(path)!r}: its header does not hold together ({brief(what)})") from None


def brief(text: str) -> str:
    """What a file says, for a message: in one line, and not at any length."""
    shown = printable(text)
    return shown if len(shown) <= _BRIEF else f"{shown[:_BRIEF]}..."


def _bad(message: str, help: str = "save the graph again; a file changed by hand cannot be read") -> GraphFormatError:
    return GraphFormatError(message, help=help)


def _parse(data: bytes) -> dict[str, Any]:
    if not data.startswith(_MAGIC):
        raise _bad("not a saved graph", help="graph.save(path) or `kernscope trace -o` writes one")
    start = len(_MAGIC) + 8
    if len(data) < start + _DIGEST:
        raise _bad(f"cut short at {len(data):,} bytes")
    body = memoryview(data)[:-_DIGEST]
    if hashlib.sha256(body).digest() != data[-_DIGEST:]:
        raise _bad("damaged: its checksum does not match (cut short, or bytes changed)")
    length = int.from_bytes(data[len(_MAGIC) : start], "little")
    if length > len(body) - start:
        raise _bad(f"a header of {length:,} bytes in a file of {len(data):,}")
    header = json.loads(bytes(body[start : start + length]))
    if not isinstance(header, dict):
        raise _bad("its header is no object")
    version = header.get("version")
    if version != VERSION:
        raise _bad(
            f"version {version!r}, this kernscope reads {VERSION}",
            help="trace again, or use the kernscope that wrote it",
        )
    counts, columns_end = _row_counts(header["rows"], len(body) - start - length)
    indices = _indices(_of(list, header["indices"]), body[start + length + columns_end :])
    fields: dict[str, Any] = {
        "kernel": _of(str, header["kernel"]),
        "machine": _of(str, header["machine"]),
        "machine_toml": _of(str, header["machine_toml"]),
        "digests": {_of(str, k): _of(str, v) for k, v in _of(dict, header["digests"]).items()},
        "target": _target(header["target"]),
        "names": tuple(_of(str, name) for name in _of(list, header["names"])),
        "layouts": tuple(_layout(entry) for entry in _of(list, header["layouts"])),
        "attributes": tuple(
            {_of(str, key): _decode(value, key in _NUMBERS, indices) for key, value in _of(dict, entry).items()}
            for entry in _of(list, header["attributes"])
        ),
        "bounds_faults": tuple(_fault(entry) for entry in _of(list, header["bounds_faults"])),
        "unentered_scopes": tuple(_of(int, entry) for entry in _of(list, header.get("unentered_scopes", []))),
        "initial": tuple(_of(str, name) for name in _of(list, header.get("initial", []))),
        "branches": None if header.get("branches") is None else read_branches(header["branches"]),
    }
    if header.get("facts") is not None:
        digests = fields["digests"]
        fields["facts"] = read_facts(header["facts"], lambda file: digests.get(file, ""))
    columns = body[start + length : start + length + columns_end]
    fields.update(_columns(counts, columns, _of(list, header["operations"])))
    ranks = _integer(header["ranks"], 1)
    # Something that the file holds for each rank bounds their number: a scope, or where there is none, a count.
    counts = _of(list, header.get("nodes_by_rank", []))
    if counts and not len(fields["scopes"]) and len(counts) != ranks:
        raise _bad(f"{ranks:,} ranks, but counts of nodes for {len(counts):,}")
    if ranks > (len(fields["scopes"]) or len(counts)):
        raise _bad(f"{ranks:,} ranks, but only {len(fields['scopes']):,} scopes")
    grid = _shape(header.get("grid", []), 1)
    return {**fields, "ranks": ranks, "buffers": _integer(header["buffers"], 0), "grid": grid}


def _row_counts(rows: Any, room: int) -> tuple[dict[str, int], int]:
    """The rows of each table, and the bytes that their columns take of those there are."""
    counts = {name: _integer(_of(dict, rows)[name], 0) for name in TABLES}
    needed = sum(
        counts[name] * sum(np.dtype(dtype).itemsize for dtype in table.dtypes.values())
        for name, table in TABLES.items()
    )
    if needed > room:
        raise _bad(f"its columns take {needed:,} bytes, but there are {room:,}")
    return counts, needed


def _indices(entries: Sequence[Any], data: memoryview) -> list[Index]:
    """The indices, whose offsets are the rest of the file."""
    found: list[Index] = []
    at = 0
    for entry in entries:
        shape, own, steps = (_shape(part, 0) for part in _of(list, entry))
        nbytes = 8 * math.prod(own)
        if max(math.prod(shape), math.prod(own)) > _LARGEST or nbytes > len(data) - at:
            raise _bad("an index of more elements than the file has")
        offsets = np.frombuffer(data, dtype="<i8", count=nbytes // 8, offset=at).astype(np.int64).reshape(own)
        at += nbytes
        index = Index(shape, offsets, steps)
        if not index.is_sound or index.span > _LARGEST:
            raise _bad("an index that names no elements")
        found.append(index)
    if at != len(data):
        raise _bad(f"its columns take {at:,} bytes with the indices, but there are {len(data):,}")
    return found


def _columns(counts: Mapping[str, int], data: memoryview, operations: Sequence[Any]) -> dict[str, Table]:
    tables: dict[str, Table] = {}
    at = 0
    for name, table in TABLES.items():
        columns = {}
        for column, dtype in table.dtypes.items():
            stored = np.dtype(dtype).newbyteorder("<")
            columns[column] = np.frombuffer(data, dtype=stored, count=counts[name], offset=at)
            at += counts[name] * stored.itemsize
        if name == "nodes":
            columns["op"] = _renumbered(columns["op"], operations)
        tables[name] = table.make(**columns)
    return tables


def _renumbered(codes: np.ndarray[Any, Any], names: Sequence[Any]) -> np.ndarray[Any, Any]:
    """The operation codes of this process for those of the file."""
    used = np.unique(codes)
    if len(used) and not 0 <= int(used[0]) <= int(used[-1]) < len(names):
        raise _bad("an operation code without a name")
    table = np.zeros(len(names), dtype=np.int16)
    for code in used.tolist():
        name = _of(str, names[code])
        if name not in OPERATIONS:
            raise _bad(f"an operation {name!r} that this version does not know", help="use the kernscope that wrote it")
        table[code] = OPERATIONS.code(name)
    return table[codes] if len(codes) else codes


def _of(kind: type, value: Any) -> Any:
    if type(value) is not kind:
        raise _bad(f"a {type(value).__name__} where a {kind.__name__} belongs")
    return value


def _integer(value: Any, low: int = -_LARGEST, high: int = _LARGEST) -> int:
    number: int = _of(int, value)
    if not low <= number <= high:
        raise _bad(f"the number {number:,} is out of range" if abs(number) < 10**30 else "a number out of range")
    return number


def _shape(value: Any, low: int = -_LARGEST) -> Shape:
    return tuple(_integer(item, low) for item in _of(list, value))


def _layout(entry: Any) -> Layout:
    shape, strides, dtype = _of(list, entry)
    sizes, steps = _shape(shape, 1), _shape(strides, 0)
    if len(sizes) != len(steps) or len(sizes) > 64:
        raise _bad(f"a layout of {len(sizes)} sizes and {len(steps)} strides")
    extent = math.prod(sizes)
    span = sum((n - 1) * s for n, s in zip(sizes, steps, strict=True))
    if max(extent, span) > _LARGEST:
        raise _bad("a layout of more elements than any memory has")
    return Layout.of(sizes, steps, dtypes.of(_of(str, dtype)))


def _target(entry: Any) -> Target:
    values = dict(_of(dict, entry))
    target = Target(
        memories=tuple(_memory(memory) for memory in _of(list, values.pop("memories"))),
        results=_of(str, values.pop("results")),
        reaches=tuple(_reach(reach) for reach in _of(list, values.pop("reaches"))),
        places=tuple((_of(str, key), _of(str, name)) for key, name in _of(list, values.pop("places"))),
        strict_spaces=_of(bool, values.pop("strict_spaces")),
        topology=_of(str, values.pop("topology")),
        shape=_shape(values.pop("shape"), 1),
        wraps=_of(bool, values.pop("wraps")),
        slots=_integer(values.pop("slots"), 1),
    )
    names, own = target.memory_names, [memory.name for memory in target.memories if not memory.is_global]
    if len(set(names)) < len(names) or len(own) != len(names) - 1 or target.results not in own or len(names) > 255:
        raise _bad("memories that no machine has")
    reached = {n for reach in target.reaches for n in (*reach.reads, *reach.writes, *itertools.chain(*reach.operands))}
    if not reached <= set(names) or not {name for _, name in target.places} <= set(own):
        raise _bad("engines that reach what there is not")
    if values or target.topology not in ("ring", "mesh2d") or len(target.shape) not in (0, 2):
        raise _bad("a target that no machine has")
    return target


def _memory(entry: Any) -> Memory:
    values = dict(_of(dict, entry))
    memory = Memory(
        name=_of(str, values.pop("name")),
        bytes=_integer(values.pop("bytes"), 0),
        align=_integer(values.pop("align"), 1),
        is_global=_of(bool, values.pop("is_global")),
        partitions=_integer(values.pop("partitions", 0), 0, MOST_PARTITIONS),
    )
    if values:
        raise _bad("a memory that no machine has")
    return memory


def _reach(entry: Any) -> Reach:
    values = dict(_of(dict, entry))
    reach = Reach(
        kind=_kind(values.pop("kind")),
        reads=tuple(_of(str, name) for name in _of(list, values.pop("reads"))),
        writes=tuple(_of(str, name) for name in _of(list, values.pop("writes"))),
        ops=tuple(_of(str, name) for name in _of(list, values.pop("ops"))),
        operands=tuple(
            tuple(_of(str, name) for name in _of(list, each)) for each in _of(list, values.pop("operands", []))
        ),
    )
    if values:
        raise _bad("an engine that no machine has")
    return reach


def _kind(entry: Any) -> Kind:
    if not isinstance(entry, str) or entry not in _KINDS:
        raise _bad("an engine of a kind that no machine has")
    return _KINDS[entry]


def _fault(entry: Any) -> BoundsFault:
    node, storage, lower, upper = _of(list, entry)
    return BoundsFault(_integer(node, 0), _integer(storage, 0), _shape(lower), _shape(upper))


def _decode(value: Any, is_number: bool, indices: Sequence[Index]) -> Any:
    """An attribute; where it is a number that a kernel computes with, its operation's rule says how large it can be."""
    match value:
        case bool() | str() | None:
            return value
        case int():
            return value if is_number else _integer(value)
        case list():
            return tuple(_decode(item, is_number, indices) for item in value)
        case {"float": str(text)} if len(value) == 1:
            return float.fromhex(text)
        case {"dtype": str(name)} if len(value) == 1:
            return dtypes.of(name)
        case {"index": int(place)} if len(value) == 1 and 0 <= place < len(indices):
            return indices[place]
    raise _bad("an attribute of a kind that no operation has")
