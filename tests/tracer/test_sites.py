"""Source locations and names: each node's own line in the author's source, and what its result was called."""

import functools
import linecache
import os
import sys
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import kernscope as ks
from kernscope import tl
from kernscope.ir.source.location import CALLERS_KEPT

X = ks.hbm((8, 8), "f32")
HERE = __file__


def trace(body: Callable[..., Any], **options: Any) -> ks.Graph:
    return ks.trace(body, X, **options)


def at(function: Callable[..., Any], offset: int = 0) -> int:
    """A line of a function: its first (or its decorator's) is 0."""
    return function.__code__.co_firstlineno + offset


def place(node: ks.ir.graph.Node) -> tuple[int, str]:
    """A node's line and function; in this file."""
    location = node.location
    assert location is not None
    assert location.file == HERE
    return location.line, location.function


def callers(node: ks.ir.graph.Node) -> list[tuple[int, str]]:
    """The lines and functions that called, the innermost first, up to the kernel."""
    assert node.location is not None
    return [(frame.line, frame.function) for frame in node.location.stack]


def helper(h: Any) -> Any:
    return tl.exp(h)


def outer_helper(h: Any) -> Any:
    return helper(h)


def logged(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


@logged
def decorated(h: Any) -> Any:
    return tl.abs(h)


def test_a_node_has_its_own_line() -> None:
    """Line, columns and function of the call itself, also where it goes over several lines or shares one."""

    def kernel(x: Any) -> None:
        h = tl.load(x)  # 1
        a, b = tl.exp(h), tl.abs(h)  # 2
        _ = tl.maximum(  # 3
            a,
            b * 2.0,  # 5
        )

    graph = trace(kernel)
    assert [place(node) for node in graph] == [(at(kernel, n), "kernel") for n in (1, 2, 2, 5, 3)]
    exp, abs_, *_, maximum = (node.location for node in graph if node.location and node.op != "load")
    assert exp.column < exp.end_column < abs_.column < abs_.end_column
    source = linecache.getline(HERE, exp.line)
    assert source[exp.column : exp.end_column] == "tl.exp(h)"
    assert source[abs_.column : abs_.end_column] == "tl.abs(h)"
    assert maximum.end_line == maximum.line + 3
    assert callers(graph[0]) == []


def test_through_helpers_the_line_is_the_helpers_and_the_stack_leads_to_the_kernel() -> None:
    """Case 18: the innermost frame that is not kernscope's own, and every caller up to the kernel."""

    def kernel(x: Any) -> None:
        h = tl.load(x)
        outer_helper(h)  # 2
        outer_helper(h)  # 3

    graph = trace(kernel)
    assert [place(node) for node in graph][1:] == [(at(helper, 1), "helper")] * 2
    assert [callers(node) for node in graph][1:] == [
        [(at(outer_helper, 1), "outer_helper"), (at(kernel, n), "kernel")] for n in (2, 3)
    ]


def test_through_decorators() -> None:
    """Case 18: the decorated function's own line; the wrapper is one of the callers."""

    def kernel(x: Any) -> None:
        decorated(tl.load(x))

    node = trace(kernel)[1]
    wrapped = decorated.__wrapped__  # type: ignore[attr-defined]  # set by functools.wraps
    assert place(node) == (at(wrapped, 2), "decorated")
    assert [name for _, name in callers(node)] == ["wrapper", "kernel"]


def test_a_decorated_kernel() -> None:
    """Case 18: the wrapper calls the kernel; the kernel's line is the kernel's."""

    @logged
    def kernel(x: Any) -> None:
        tl.load(x)

    node = trace(kernel)[0]
    assert place(node)[1] == "kernel"
    assert [name for _, name in callers(node)] == ["wrapper"]


def test_a_kernel_that_is_a_lambda_or_a_partial() -> None:
    """Case 18: both have a line."""
    line = test_a_kernel_that_is_a_lambda_or_a_partial.__code__.co_firstlineno
    graph = trace(lambda x: tl.exp(tl.load(x)))
    assert [place(node) for node in graph] == [(line + 3, "<lambda>")] * 2

    def kernel(x: Any, scale: float) -> None:
        _ = tl.load(x) * scale

    graph = trace(functools.partial(kernel, scale=2.0))
    assert [place(node) for node in graph] == [(at(kernel, 1), "kernel")] * 2
    graph = trace(ks.kernel(functools.partial(kernel, scale=2.0)))
    assert [place(node) for node in graph] == [(at(kernel, 1), "kernel")] * 2


def test_lambdas_and_partials_within_a_kernel() -> None:
    """A partial has no frame of its own; a lambda has."""

    def kernel(x: Any) -> None:
        double = functools.partial(tl.maximum, 2.0)
        half = lambda h: h * 0.5  # noqa: E731  (a lambda is what is tried here)
        h = tl.load(x)
        double(h)  # 4
        half(h)  # 5

    graph = trace(kernel)
    assert place(graph[1]) == (at(kernel, 4), "kernel")
    assert place(graph[2]) == (at(kernel, 2), "<lambda>")
    assert callers(graph[2]) == [(at(kernel, 5), "kernel")]


def test_methods_comprehensions_generators_and_nested_functions() -> None:
    """Whatever calls: the line is where the operation is written."""

    class Layer:
        def forward(self, h: Any) -> Any:
            return tl.sqrt(h)

    def kernel(x: Any) -> None:
        h = tl.load(x)
        Layer().forward(h)

        def inner() -> None:
            tl.exp(h)  # 5

        inner()
        _ = [tl.abs(h) for _ in range(2)]  # 8
        _ = list(map(tl.cos, [h]))  # 9
        for part in (tl.sin(h) for _ in range(1)):  # 10
            del part

    graph = trace(kernel)
    assert place(graph[1]) == (at(Layer.forward, 1), "forward")
    assert place(graph[2]) == (at(kernel, 5), "inner")
    assert place(graph[3])[0] == place(graph[4])[0] == at(kernel, 8)
    assert place(graph[5]) == (at(kernel, 9), "kernel")
    assert place(graph[6])[0] == at(kernel, 10)
    assert callers(graph[6])[-1] == (at(kernel, 10), "kernel")


def test_scopes_have_the_line_of_their_with() -> None:
    """Both markers; also through a context manager of the author's."""

    @contextmanager
    def tile_scope() -> Any:
        with tl.scratch_scope("tile"):
            yield

    def kernel(x: Any) -> None:
        with tl.scratch_scope():  # 1
            tl.load(x)
        with tile_scope():  # 3
            tl.load(x)

    graph = trace(kernel)
    assert (place(graph[0])[0], place(graph[2])[0]) == (at(kernel, 1), at(kernel, 1))
    assert (graph[3].op, graph[5].op) == ("scope_enter", "scope_exit")
    assert place(graph[3])[1] == "tile_scope"
    assert callers(graph[3])[-1] == (at(kernel, 3), "kernel")


def test_every_rank_has_the_same_places() -> None:
    """One row per place, whoever comes by: a load, an exp, and a `with`, whose two ends have one place."""

    def kernel(x: Any) -> None:
        for _ in range(10):
            with tl.scratch_scope():
                tl.exp(tl.load(x))

    graph = trace(kernel, ranks=4)
    assert len(graph.frames) == 3
    assert {place(node) for node in graph} == {(at(kernel, 2), "kernel"), (at(kernel, 3), "kernel")}


def test_a_kernel_called_by_a_kernel_stands_in_the_stack() -> None:
    """Its caller's line is there, kernscope's own frames are not."""

    @ks.kernel
    def part(x: Any) -> None:
        tl.load(x)

    def kernel(x: Any) -> None:
        part(x)

    node = trace(kernel)[0]
    assert place(node)[1] == "part"
    assert callers(node) == [(at(kernel, 1), "kernel")]


def names(graph: ks.Graph) -> list[str]:
    """The names of all allocations."""
    return [graph.storage(row).name for row in range(1, len(graph.storages))]


def make(x: Any) -> Any:
    return tl.load(x)


def make_named(x: Any) -> Any:
    tile = tl.load(x)
    return tile


class Holder:
    value: Any


def test_a_result_is_called_what_it_is_assigned_to() -> None:
    """Plain, annotated, chained, augmented, walrus, attribute and subscript targets; operators too."""

    def kernel(x: Any) -> None:
        plain = tl.load(x)
        annotated: Any = tl.exp(plain)
        first = second = plain + annotated
        first += second
        if (walrus := tl.abs(plain)) is not None:
            holder = Holder()
            holder.value = walrus * 2.0
        table = {}
        table["k"] = tl.zeros((4,), "f32")
        buffer = tl.empty((4,), "f32")
        del buffer

    assert names(trace(kernel)) == [
        "plain",
        "annotated",
        "first",
        "first",
        "walrus",
        "holder.value",
        "table['k']",
        "buffer",
    ]


def test_tuples_name_element_by_element() -> None:
    """Also nested ones, and lists."""

    def kernel(x: Any) -> None:
        m, (l, acc) = tl.load(x), (tl.zeros((4,), "f32"), tl.zeros((8,), "f32"))
        [a, b] = [tl.exp(m), tl.abs(m)]
        _ = l, acc, a, b

    assert names(trace(kernel)) == ["m", "l", "acc", "a", "b"]


def test_the_innermost_call_of_an_expression_has_no_name_the_outermost_has_it() -> None:
    """`p = exp(s - m)`: p is the exponential; the difference has none."""

    def kernel(x: Any) -> None:
        s = tl.load(x)
        p = tl.exp(s - 1.0).to("f16")
        tl.store(x, p.to("f32"))

    assert names(trace(kernel)) == ["s", "", "", "p", ""]


def test_what_a_helper_returns_is_called_what_its_caller_assigns() -> None:
    """Through returns, lambdas and decorators; a name within the helper comes first."""

    def kernel(x: Any) -> None:
        returned = make(x)
        inner = make_named(x)
        scale = lambda h: h * 2.0  # noqa: E731  (a lambda is what is tried here)
        scaled = scale(returned)
        wrapped = decorated(inner)
        _ = scaled, wrapped

    assert names(trace(kernel)) == ["returned", "tile", "scaled", "wrapped"]


def test_handles_know_their_names_while_tracing() -> None:
    """In messages, and as an attribute; a view has its base's."""

    def kernel(x: Any) -> None:
        query = tl.load(x)
        assert (query.name, query[0:4].name, tl.exp(query).name) == ("query", "query", "")
        assert repr(query) == "<handle query f32[8,8] at 0x0>"

    trace(kernel)


def test_source_that_cannot_be_read_has_lines_but_no_names() -> None:
    """Code made by `exec`: the line counts, nothing fails."""
    scope: dict[str, Any] = {"tl": tl}
    exec(compile("def kernel(x):\n    tile = tl.load(x)\n    tl.exp(tile)\n", "<made>", "exec"), scope)
    graph = ks.trace(scope["kernel"], X)
    assert [(node.location.file, node.location.line) for node in graph if node.location] == [
        ("<made>", 2),
        ("<made>", 3),
    ]
    assert names(graph) == ["", ""]


def test_a_place_is_one_however_often_it_runs() -> None:
    """CPython specialises an instruction after some runs, and tells another offset of it from then on."""

    class Tiles:
        def __init__(self, x: Any) -> None:
            self.x = x

        def __getitem__(self, row: int) -> Any:
            return tl.load(self.x)

        @property
        def first(self) -> Any:
            return tl.load(self.x)

        def __iter__(self) -> Any:
            while True:
                yield tl.load(self.x)

    def kernel(x: Any) -> None:
        tiles = Tiles(x)
        for row in range(40):
            tiles[row]
            _ = tiles.first
        for _row, _tile in zip(range(40), tiles, strict=False):
            pass

    assert len(set(ks.trace(kernel, X).nodes.stack.tolist())) == 3


def test_names_are_those_of_the_source_as_it_is_now(tmp_path: Path) -> None:
    """A module is changed and loaded again in one process, as a notebook or an editor does."""
    path, found = tmp_path / "kernel.py", []
    for name in ("first", "second_one"):
        path.write_text(f"from kernscope import tl\ndef kernel(x):\n    {name} = tl.load(x)\n")
        scope: dict[str, Any] = {}
        exec(compile(path.read_text(), str(path), "exec"), scope)
        found += names(ks.trace(scope["kernel"], X))
    assert found == ["first", "second_one"]


@pytest.mark.parametrize("name", ["größe", "타일"])
def test_names_and_columns_beside_letters_of_several_bytes(name: str) -> None:
    """Columns count UTF-8 bytes, and still find the assignment."""
    text = f"def kernel(x):\n    {name} = tl.load(x); {name}2 = tl.exp({name})\n"
    file = f"<{name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope: dict[str, Any] = {"tl": tl}
    exec(compile(text, file, "exec"), scope)
    assert names(ks.trace(scope["kernel"], X)) == [name, f"{name}2"]


def test_errors_blame_the_authors_line_never_kernscopes() -> None:
    """Through a helper: the helper's line, where the mistake is."""

    def kernel(x: Any) -> None:
        helper(x)

    with pytest.raises(ks.ArgumentError) as caught:
        trace(kernel)
    (role, where), *more = caught.value.places
    assert (role, where.file, where.line, more) == ("here", HERE, at(helper, 1), [])
    assert f"{os.path.relpath(HERE)}:{where.line} in helper" in str(caught.value)
    assert [at_call.function for at_call in where.stack] == ["kernel"]


def nested(depth: int, h: Any) -> Any:
    return nested(depth - 1, h) if depth else tl.exp(h)


def test_of_many_callers_the_nearest_are_told_and_the_others_counted() -> None:
    """A kernel may recurse deeply: a location holds so many callers and no more, and says how many it leaves out."""

    def kernel(x: Any) -> None:
        nested(40, tl.load(x))

    exp = trace(kernel)[1]
    assert exp.location is not None
    assert callers(exp) == [(at(nested, 1), "nested")] * CALLERS_KEPT
    assert exp.location.callers_left_out == 41 - CALLERS_KEPT
    shallow = trace(lambda x: nested(1, tl.load(x)))[1]
    assert shallow.location is not None
    assert (len(shallow.location.stack), shallow.location.callers_left_out) == (2, 0)


def test_the_positions_in_a_code_object_are_decoded_once() -> None:
    """However many of its lines the kernel comes by: decoding them takes time in proportion to all of the code."""
    lines = [f"    tl.store(x, t + {i}.0)" for i in range(30)]
    names: dict[str, Any] = {"tl": tl}
    exec("\n".join(["def kernel(x):", "    t = tl.load(x)", *lines]), names)
    decoded = 0

    def tell(frame: Any, event: str, argument: Any) -> None:
        nonlocal decoded
        decoded += event == "c_call" and argument.__name__ == "co_positions"

    before = sys.getprofile()
    sys.setprofile(tell)
    try:
        graph = trace(names["kernel"])
    finally:
        sys.setprofile(before)
    assert {node.location.line for node in graph if node.location} == set(range(2, 33))
    assert decoded == 1
