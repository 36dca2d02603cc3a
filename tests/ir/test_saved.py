"""Saved graphs: what was saved comes back, and a file that says what cannot be is refused with the value it says,
although its checksum is right."""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kernscope as ks
from kernscope import tl
from kernscope.ir.columns import GraphColumns
from kernscope.ir.difference import first_difference
from kernscope.ir.forms.saved import is_saved_graph
from kernscope.ir.ops import OPERATIONS
from kernscope.machine.description import load_machine
from kernscope.tracer.trace import record_kernel

MAGIC = b"kernscope-graph\n"


@ks.kernel
def _varied(x: ks.HbmTensor, o: ks.HbmTensor) -> None:
    """Attributes of every kind: numbers, infinities, dtypes, booleans, tuples, texts and none."""
    a = tl.load(x[6:10, :], pad=float("-inf")) + tl.load(x[5:9, :])  # the second reads past the end: noted
    with tl.scratch_scope("inner"):
        b = tl.sum(a, axis=1, keep_dims=True)
        c = tl.composite("gemm", a, tl.ref(x[0:8, 0:4]), tile=(4, 4, 4))
        tl.send("next", b)
        d = tl.recv("prev", (4, 1), tl.float32)
    tl.store(o[tl.program_id(0), 0:4, 0:4], tl.maximum(c, -1.5) + d)


@functools.cache
def varied() -> ks.Graph:
    shapes = ks.hbm((8, 8), "f32"), ks.hbm((2, 4, 4), "f32")
    machine = load_machine("ahbm-pe")
    return record_kernel(_varied, shapes, {}, target=machine.target, machine=machine.name, ranks=2, on_bounds="record")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    saved = tmp_path / "varied.ksg"
    varied().save(saved)
    return saved


def parts(data: bytes) -> tuple[dict[str, Any], bytes]:
    """The header and the columns of a file."""
    size = int.from_bytes(data[len(MAGIC) : len(MAGIC) + 8], "little")
    start = len(MAGIC) + 8
    return json.loads(data[start : start + size]), data[start + size : -32]


def sealed(text: bytes, columns: bytes, size: int | None = None) -> bytes:
    """A file of a header and columns, whose checksum is right."""
    body = MAGIC + (len(text) if size is None else size).to_bytes(8, "little") + text + columns
    return body + hashlib.sha256(body).digest()


def refusal(path: Path) -> str:
    with pytest.raises(ks.GraphFormatError) as caught:
        ks.load(path)
    return caught.value.message


def test_what_was_saved_comes_back(path: Path) -> None:
    """Every column, name, layout, attribute and fault; and the file of what came back is the same bytes."""
    graph = varied()
    back = ks.load(path)
    assert isinstance(back, GraphColumns)
    assert first_difference(graph, back) is None
    assert back.attributes == graph.attributes
    assert back.bounds_faults == graph.bounds_faults != ()
    assert str(back) == str(graph)
    assert (back.kernel, back.machine, back.ranks, back.target) == (
        graph.kernel,
        graph.machine,
        graph.ranks,
        graph.target,
    )
    again = path.with_name("again.ksg")
    back.save(again)
    assert again.read_bytes() == path.read_bytes()


def test_a_saved_graph_is_told_by_its_beginning(path: Path, tmp_path: Path) -> None:
    """The file itself is one; a file cut within the first line, a folder, and nothing are none."""
    assert is_saved_graph(path)
    short = tmp_path / "short"
    short.write_bytes(MAGIC[:-1])
    assert not is_saved_graph(short)
    assert not is_saved_graph(tmp_path)
    assert not is_saved_graph(tmp_path / "nothing")


def _at(*keys: Any) -> Callable[[dict[str, Any], Any], None]:
    def put(header: dict[str, Any], value: Any) -> None:
        at: Any = header
        for key in keys[:-1]:
            at = at[key]
        at[keys[-1]] = value

    return put


LAYOUT = ("layouts", 0)
MEMORY = ("target", "memories", 1)
WRONG: list[tuple[tuple[Any, ...], Any, str]] = [
    (("version",), 1, "version 1, this kernscope reads 4"),
    (("kernel",), 5, "a int where a str belongs"),
    (("machine",), None, "a NoneType where a str belongs"),
    (("names",), "ab", "a str where a list belongs"),
    (("names", 0), 3, "a int where a str belongs"),
    (("ranks",), 0, "the number 0 is out of range"),
    (("ranks",), True, "a bool where a int belongs"),
    (("ranks",), 10_000, "10,000 ranks, but only 4 scopes"),
    (("rows", "nodes"), -1, "the number -1 is out of range"),
    (("rows", "nodes"), 10**40, "a number out of range"),
    (("rows", "nodes"), (1 << 48) + 1, "the number 281,474,976,710,657 is out of range"),
    (("rows", "nodes"), 2, "its columns take"),
    (("operations",), [], "an operation code without a name"),
    (("layouts",), {}, "a dict where a list belongs"),
    ((*LAYOUT, 0), [8], "a layout of 1 sizes and 2 strides"),
    ((*LAYOUT, 1), [], "a layout of 2 sizes and 0 strides"),
    ((*LAYOUT, 0, 0), 0, "the number 0 is out of range"),
    ((*LAYOUT, 1, 0), -1, "the number -1 is out of range"),
    ((*LAYOUT, 1, 0), (1 << 46), "a layout of more elements than any memory has"),
    ((*LAYOUT, 0), [1 << 40, 1 << 9], "a layout of more elements than any memory has"),
    (LAYOUT, [[1] * 65, [0] * 65, "float32"], "a layout of 65 sizes and 65 strides"),
    ((*LAYOUT, 2), "f99", "f99"),
    (("target", "more"), 1, "a target that no machine has"),
    (("target", "topology"), "star", "a target that no machine has"),
    (("target", "shape"), [2], "a target that no machine has"),
    (("target", "shape"), [0, 2], "the number 0 is out of range"),
    (("target", "wraps"), 1, "a int where a bool belongs"),
    (("target", "slots"), 0, "the number 0 is out of range"),
    (("target", "memories"), [], "memories that no machine has"),
    (("target", "results"), "nowhere", "memories that no machine has"),
    (("target", "results"), "hbm", "memories that no machine has"),
    ((*MEMORY, "is_global"), True, "memories that no machine has"),
    ((*MEMORY, "more"), 1, "a memory that no machine has"),
    ((*MEMORY, "bytes"), -1, "the number -1 is out of range"),
    ((*MEMORY, "align"), 0, "the number 0 is out of range"),
    (("attributes", 0), [], "a list where a dict belongs"),
    (("attributes", 0), {"a": {"float": 1}}, "an attribute of a kind that no operation has"),
    (("attributes", 0), {"a": {"float": "0x1p0", "dtype": "float32"}}, "an attribute of a kind that no operation has"),
    (("attributes", 0), {"a": 1.5}, "an attribute of a kind that no operation has"),
    (("attributes", 0), {"a": [1, [1 << 49]]}, "the number 562,949,953,421,312 is out of range"),
    (("bounds_faults",), [[-1, 0, [0], [1]]], "the number -1 is out of range"),
    (("bounds_faults",), [[0, -1, [0], [1]]], "the number -1 is out of range"),
    (("bounds_faults",), [[0, 0, [0]]], "its header does not hold together"),
    (("unentered_scopes",), [0.0], "a float where a int belongs"),
    (("initial",), "x", "a str where a list belongs"),
    (("initial",), [1], "a int where a str belongs"),
    (("initial",), ["nowhere"], "'nowhere' has initial values, and is no tensor"),
]


@pytest.mark.parametrize(
    ("keys", "value", "message"), WRONG, ids=[f"{'.'.join(map(str, w[0]))}={w[1]}"[:60] for w in WRONG]
)
def test_a_header_that_cannot_be_is_refused(path: Path, keys: tuple[Any, ...], value: Any, message: str) -> None:
    """Each part of the header has its type and its range: another value is one error that says it."""
    header, columns = parts(path.read_bytes())
    _at(*keys)(header, value)
    path.write_bytes(sealed(json.dumps(header).encode(), columns))
    assert message in refusal(path)


@pytest.mark.parametrize(
    "key", ["kernel", "machine", "target", "names", "layouts", "attributes", "rows", "ranks", "buffers"]
)
def test_a_header_with_a_part_missing_is_refused(path: Path, key: str) -> None:
    """The error names what is missing."""
    header, columns = parts(path.read_bytes())
    del header[key]
    path.write_bytes(sealed(json.dumps(header).encode(), columns))
    assert key in refusal(path)


def test_the_largest_numbers_are_within(path: Path) -> None:
    """A memory may have as many bytes as any number of a file, and one more is refused."""
    header, columns = parts(path.read_bytes())
    _at(*MEMORY, "bytes")(header, 1 << 48)
    path.write_bytes(sealed(json.dumps(header).encode(), columns))
    assert ks.load(path).target.memories[1].bytes == 1 << 48
    _at(*MEMORY, "bytes")(header, (1 << 48) + 1)
    path.write_bytes(sealed(json.dumps(header).encode(), columns))
    assert "the number 281,474,976,710,657 is out of range" in refusal(path)


def test_an_index_of_more_elements_than_a_file_can_have_is_refused(path: Path) -> None:
    """By the tile as much as by what is listed of it; an index that is not there leaves columns over."""
    header, columns = parts(path.read_bytes())
    zero = bytes(8)
    for entry, more, message in (
        ([[1 << 17, 1 << 17, 1 << 17], [1, 1, 1], [1, 1, 1]], zero, "an index of more elements than the file has"),
        ([[2], [2], [0]], zero, "an index of more elements than the file has"),
        ([[2], [1], [0]], zero, "an index that names no elements"),
        ([[2, 1], [1, 1], [1 << 48, 1 << 48]], zero, "an index that names no elements"),
        ([[2], [1], [1]], zero + zero, "with the indices"),
    ):
        header["indices"] = [entry]
        path.write_bytes(sealed(json.dumps(header).encode(), columns + more))
        assert message in refusal(path)
    header["indices"] = [[[2], [1], [1]]]
    path.write_bytes(sealed(json.dumps(header).encode(), columns + zero))
    assert str(ks.load(path)) == str(varied())


def test_operations_of_another_version_keep_their_meaning(path: Path) -> None:
    """A file names its operations: other codes for them read as the same graph, an unknown name as one error."""
    header, columns = parts(path.read_bytes())
    unknown = [name if name != "load" else "teleport" for name in header["operations"]]
    path.write_bytes(sealed(json.dumps({**header, "operations": unknown}).encode(), columns))
    assert "an operation 'teleport' that this version does not know" in refusal(path)
    more = [*header["operations"], "an operation of the future"]
    path.write_bytes(sealed(json.dumps({**header, "operations": more}).encode(), columns))
    assert str(ks.load(path)) == str(varied())
    assert len(more) == len(OPERATIONS.names) + 1


def _files(data: bytes) -> Iterator[tuple[bytes, str]]:
    header, columns = parts(data)
    text = json.dumps(header).encode()
    yield b"", "not a saved graph"
    yield data[1:], "not a saved graph"
    yield data[: len(MAGIC) + 39], "cut short at 55 bytes"
    yield data[: len(MAGIC) + 40], "damaged"
    yield data[:-1], "damaged"
    yield data[:-1] + bytes([data[-1] ^ 1]), "damaged"
    yield data[:60] + bytes([data[60] ^ 1]) + data[61:], "damaged"
    yield sealed(b"", b""), "its header does not hold together (JSONDecodeError"
    yield sealed(b"[]", columns), "its header is no object"
    yield sealed(text, columns, size=len(text) + len(columns) + 1), "a header of"
    yield sealed(text, columns[:-1]), "its columns take"
    yield sealed(text, columns + b"\0"), "its columns take"
    yield sealed(b"[" * 100_000, b""), "its header does not hold together (RecursionError"


def test_a_file_that_is_no_saved_graph_says_why(path: Path) -> None:
    """Cut, changed, too long or too short: an error each, with the file's name."""
    for data, message in _files(path.read_bytes()):
        path.write_bytes(data)
        said = refusal(path)
        assert message in said
        assert re.match(re.escape(repr(str(path))), said), said


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """With what the system says."""
    path = tmp_path / "nothing.ksg"
    assert refusal(path) == f"cannot read {str(path)!r}: No such file or directory"


def test_a_saved_graph_knows_which_tensors_had_values(path: Path) -> None:
    """So the linter says of it what it says of the trace: an output that began with an array keeps a part of it."""

    def halves(x: ks.HbmTensor, o: ks.HbmTensor) -> None:
        tl.store(o[:4, :], tl.load(x[:4, :]))

    x = np.ones((8, 8), np.float32)
    for began, expected in ((np.zeros((8, 8), np.float32), False), (ks.hbm((8, 8), "f32"), True)):
        graph = ks.trace(halves, x, began)
        graph.save(path)
        loaded = ks.load(path)
        assert loaded == graph and loaded.initial == graph.initial
        for each in (graph, loaded):
            assert bool(ks.lint(each).of("KS504")) is expected
