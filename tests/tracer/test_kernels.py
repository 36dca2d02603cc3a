"""Kernels, launches, and the arguments that become HBM tensors."""

import functools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import kernscope as ks
from kernscope import tl
from kernscope.ir.target import Target
from kernscope.tracer.trace import record_kernel


@ks.launch("small", x=ks.hbm((8, 8), "f32"), tile=4)
@ks.launch("large", x=ks.hbm((64, 8), "f32"), ranks=2)
@ks.kernel
def rows(x: Any, *, tile: int = 8) -> None:
    """Load row blocks."""
    for i in range(x.shape[0] // tile):
        tl.load(x[i * tile : (i + 1) * tile])


def test_a_kernel_keeps_what_its_function_says_of_itself() -> None:
    """Name, docstring and signature."""
    assert (rows.name, rows.__name__, rows.__doc__) == ("rows", "rows", "Load row blocks.")
    assert list(rows.signature.parameters) == ["x", "tile"]


def test_the_launch_written_first_is_the_default() -> None:
    """Launches are listed as they are written."""
    assert list(rows.launches) == ["small", "large"]
    assert rows.launch() is rows.launch(None) is rows.launch("small")
    assert rows.launch("large").ranks == 2


def test_a_launch_traces_with_its_arguments() -> None:
    """Keywords override single ones, and `ranks=` the number of ranks."""
    assert ks.trace(rows.launch("small")).count("memory/dma_read") == 2
    assert ks.trace(rows.launch("small"), tile=2).count("memory/dma_read") == 4
    assert ks.trace(rows.launch("large")).count("memory/dma_read") == 16
    assert ks.trace(rows.launch("large"), ranks=1).count("memory/dma_read") == 8


def test_decorators_go_in_either_order_and_the_inner_one_can_be_left_out() -> None:
    """`@launch` makes a kernel of a plain function; `@kernel` leaves a kernel as it is."""

    @ks.kernel
    @ks.launch("one", x=ks.hbm((4,), "f32"))
    def above(x: Any) -> None:
        tl.load(x)

    @ks.launch("one", x=ks.hbm((4,), "f32"))
    def without(x: Any) -> None:
        tl.load(x)

    for made in (above, without):
        assert isinstance(made, ks.Kernel)
        assert len(ks.trace(made.launch())) == 1


def test_a_launch_may_set_a_parameter_called_name() -> None:
    """The launch's own name is positional only."""

    @ks.launch("one", x=ks.hbm((4,), "f32"), name="left")
    @ks.kernel
    def named(x: Any, name: str) -> None:
        with tl.scratch_scope(name):
            tl.load(x)

    assert named.launch().arguments["name"] == "left"
    assert "left" in str(ks.trace(named.launch()))


@pytest.mark.parametrize("name", ["ranks", "grid", "machine", "reference", "tolerance"])
def test_reserved_names_are_refused_as_parameters(name: str) -> None:
    """They belong to tracing and launching."""
    scope: dict[str, Any] = {}
    exec(f"def reserved(x, {name}=1): pass", scope)
    with pytest.raises(ks.ArgumentError, match=f"parameter '{name}'") as caught:
        ks.kernel(scope["reserved"])
    assert "ranks, grid, machine" in caught.value.help


def test_an_unknown_launch_names_the_nearest() -> None:
    """Case 20: misspelt names are refused, with what was meant."""
    with pytest.raises(ks.LaunchError, match="no launch 'smal'") as caught:
        rows.launch("smal")
    assert "'small'" in caught.value.help
    assert isinstance(caught.value, LookupError)
    with pytest.raises(ks.LaunchError, match="has no launch") as caught:
        ks.kernel(lambda x: None).launch()
    assert "@ks.launch" in caught.value.help


def test_launches_are_checked_where_they_are_written() -> None:
    """Two of one name, arguments that the kernel does not take, missing ones, ranks that are none, no name."""
    with pytest.raises(ks.LaunchError, match="two launches named 'small'"):
        ks.launch("small", x=ks.hbm((8, 8), "f32"))(rows)
    with pytest.raises(ks.ArgumentError, match="no parameter 'tiel'") as caught:
        ks.launch("other", x=ks.hbm((8, 8), "f32"), tiel=4)(rows)
    assert "'tile'" in caught.value.help
    with pytest.raises(ks.ArgumentError, match="'x'"):
        ks.launch("other", tile=4)(rows)
    for ranks in (0, -1, 1.5, True, "2"):
        with pytest.raises(ks.LaunchError, match="ranks="):
            ks.launch("other", ranks=ranks, x=ks.hbm((8, 8), "f32"))
    for name in ("", 3):
        with pytest.raises(ks.LaunchError, match="launch name"):
            ks.launch(name, x=ks.hbm((8, 8), "f32"))  # type: ignore[arg-type]  # the mistake tried here
    assert list(rows.launches) == ["small", "large"]


def test_arguments_that_do_not_fit_are_refused() -> None:
    """Case 20: unknown keywords with the nearest name, missing and superfluous ones with the signature."""
    x = ks.hbm((8, 8), "f32")
    with pytest.raises(ks.ArgumentError, match="no parameter 'tiles'") as caught:
        ks.trace(rows, x, tiles=4)
    assert "'tile'" in caught.value.help
    with pytest.raises(ks.ArgumentError, match="missing a required argument: 'x'") as caught:
        ks.trace(rows, tile=4)
    assert "rows(x" in caught.value.help and "rows.launch('small')" in caught.value.help
    with pytest.raises(ks.ArgumentError, match="too many positional"):
        ks.trace(rows, x, x)


def test_a_kernel_without_arguments_is_its_default_launch() -> None:
    """In trace and lint; with any argument it is the bare function."""
    default = ks.trace(rows.launch())
    assert ks.trace(rows) == default
    assert ks.lint(rows).title == ks.lint(rows.launch()).title == "rows:small"
    assert ks.trace(rows, ks.hbm((16, 8), "f32")) != default


def test_what_the_host_knows_passes_through_keyword_only_parameters() -> None:
    """Arrays of any dtype and lists are the very objects; an `hbm` is a tensor there, too, and so is a positional
    array."""
    table, scale = np.array([2, 0], np.int32), np.array([0.5, 2.0])
    mask = np.array([True, False])
    seen: list[Any] = []

    def kernel(x: Any, o: Any, *, table: Any, scale: Any, mask: Any, sizes: Any, extra: Any) -> None:
        seen.extend([table, scale, mask, sizes])
        for i in range(2):
            if mask[i]:
                tl.store(o[i : i + 1, :], tl.load(x[int(table[i]) : int(table[i]) + 1, :]) * float(scale[i]))
        tl.load(extra)

    x = np.ones((4, 8), np.float32)
    sizes = [1, 2]
    host: dict[str, Any] = {"table": table, "scale": scale, "mask": mask, "sizes": sizes}
    graph = ks.trace(kernel, x, ks.hbm((2, 8), "f32"), **host, extra=ks.hbm((4,), "f32"))
    assert [a is b for a, b in zip(seen, host.values(), strict=True)] == [True] * 4
    assert list(graph.tensors) == ["x", "o", "extra"]


@pytest.mark.parametrize(
    ("use", "error"),
    [
        (lambda x, table: x[table[0]], ks.IndexingError),
        (lambda x, table: x[table[0] : 4], ks.IndexingError),
        (lambda x, table: 1 if table[0] else 2, ks.TracedValueError),
        (lambda x, table: range(table[0]), ks.TracedValueError),
        (lambda x, table: int(table[0]), ks.TracedValueError),
        (lambda x, table: float(table[0]), ks.TracedValueError),
        (lambda x, table: [1, 2, 3][table[0]], ks.TracedValueError),
    ],
)
def test_a_table_in_hbm_that_is_asked_for_its_values_says_where_it_belongs(
    use: Any, error: type[ks.KernscopeError]
) -> None:
    """The help is true when followed: as a keyword-only parameter the same line works."""
    table = np.array([2, 0], np.int32)
    with pytest.raises((error, ks.TracedValueError)) as caught:
        ks.trace(lambda x, table: use(x, table), ks.hbm((4, 8), "f32"), table)
    assert "keyword-only" in caught.value.help and caught.value.places[0][1].file == __file__
    ks.trace(lambda x, *, table: use(x, table), ks.hbm((4, 8), "f32"), table=table)


def test_arrays_in_lists_say_how_they_get_into_hbm() -> None:
    """A list is the kernel's own; each array of a starred parameter is a tensor."""
    x = np.ones((4,), np.float32)
    with pytest.raises(ks.ArgumentError) as caught:
        ks.trace(lambda xs: tl.load(xs[0]), [x, x])
    assert "not in a list" in caught.value.help
    assert list(ks.trace(lambda *xs: tl.load(xs[0]), x, x.copy()).tensors) == ["xs[0]", "xs[1]"]


@pytest.mark.parametrize("options", [{"ranks": 0}, {"ranks": -2}, {"ranks": 1.0}, {"ranks": True}])
def test_ranks_are_a_positive_integer(options: dict[str, Any]) -> None:
    """Case 20: a negative option is not ignored; numpy's integers are integers."""
    with pytest.raises(ks.ArgumentError, match="ranks="):
        ks.trace(rows, ks.hbm((8, 8), "f32"), **options)
    assert ks.trace(rows, ks.hbm((8, 8), "f32"), ranks=np.int64(2)).ranks == 2


@pytest.mark.parametrize(("ranks", "max_nodes"), [(10**20, 3_000_000), (3_000_001, 3_000_000), (2**31, 2**31 - 1)])
def test_more_ranks_than_nodes_are_refused_before_the_first(ranks: int, max_nodes: int) -> None:
    """A kernel that records nothing would be called for each, and meet no limit; nothing is numbered past int32."""

    def called() -> None:
        raise AssertionError

    with pytest.raises(ks.ArgumentError, match=f"ranks={ranks}: more than the {max_nodes:,} nodes") as caught:
        ks.trace(called, ranks=ranks, max_nodes=max_nodes)
    assert f"at most {max_nodes:,} ranks" in caught.value.help
    with pytest.raises(ks.OptionError, match="max_nodes=2147483648"):
        ks.trace(called, max_nodes=2**31)
    assert ks.trace(lambda: None, ranks=4, max_nodes=4).ranks == 4


@pytest.mark.parametrize(
    "options",
    [{"on_overflow": "recrod"}, {"on_overflow": None}, {"max_nodes": 0}, {"max_nodes": -1}, {"max_nodes": 1.5}],
)
def test_unknown_options_are_refused(options: dict[str, Any]) -> None:
    """Case 20: each with what it can be."""
    with pytest.raises(ks.OptionError) as caught:
        ks.trace(rows, ks.hbm((8, 8), "f32"), **options)
    assert caught.value.help


@pytest.mark.parametrize("thing", [3, "rows", None, ks.hbm((4,), "f32")])
def test_what_is_no_kernel_is_refused(thing: Any) -> None:
    """Only what can be called can be traced."""
    with pytest.raises(ks.ArgumentError, match="cannot trace"):
        ks.trace(thing)


def test_functions_that_run_nothing_when_called_are_refused() -> None:
    """A generator or coroutine would give an empty graph in silence."""

    def yielding(x: Any) -> Any:
        yield tl.load(x)

    async def waiting(x: Any) -> None:
        tl.load(x)

    for function, word in ((yielding, "yield"), (waiting, "async def")):
        with pytest.raises(ks.ArgumentError, match=word):
            ks.trace(function, ks.hbm((4,), "f32"))


def test_a_kernel_outside_a_trace_says_so_and_inside_one_is_a_function() -> None:
    """A kernel calls another one directly: its nodes are part of the same trace."""
    with pytest.raises(ks.NotTracingError):
        rows(ks.hbm((8, 8), "f32"))

    def outer(x: Any) -> None:
        rows(x, tile=4)

    assert ks.trace(outer, ks.hbm((8, 8), "f32")).count("memory/dma_read") == 2


def test_arrays_and_descriptions_become_hbm_tensors() -> None:
    """Named by their parameters, in argument order; everything else passes through unchanged."""
    marker = object()
    seen: dict[str, Any] = {}

    def kernel(a: Any, b: Any, *more: Any, n: int, mask: Any = None, **rest: Any) -> None:
        seen.update(a=a, b=b, more=more, n=n, mask=mask, rest=rest)
        tl.load(a)

    graph = ks.trace(
        kernel,
        np.zeros((4, 8), np.float16),
        ks.hbm((2,), "bf16"),
        np.zeros(3, np.int32),
        marker,
        n=np.int64(5),
        w=ks.hbm(7, "u8"),
        label="x",
    )
    assert list(graph.tensors) == ["a", "b", "more[0]", "w"]
    assert [graph.storage(row).layout.shape for row in range(4)] == [(4, 8), (2,), (3,), (7,)]
    assert isinstance(seen["a"], ks.HbmTensor)
    assert (seen["a"].shape, seen["a"].ndim, seen["a"].dtype, len(seen["a"])) == ((4, 8), 2, tl.float16, 4)
    assert seen["more"][1] is marker
    assert type(seen["n"]) is np.int64
    assert (seen["mask"], seen["rest"]["label"]) == (None, "x")


@pytest.mark.parametrize(
    "dtype",
    ["float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int32", "int16", "int8", "uint8", "bool"],
)
def test_arrays_of_every_dtype_of_the_device(dtype: str) -> None:
    """Also those of `ml_dtypes`, in any memory order."""
    twin = np.dtype(getattr(ml_dtypes, dtype, dtype))
    graph = ks.trace(lambda x: tl.load(x), np.zeros((4, 8), twin).T)
    assert graph[0].writes[0].layout.shape == (8, 4)
    assert graph[0].dtype.numpy == twin


@pytest.mark.parametrize(
    ("array", "error", "words"),
    [
        (np.zeros((4, 8), ">f8"), ks.DTypeError, "argument x: numpy dtype >f8"),
        (np.zeros(4, ">i8"), ks.DTypeError, ">i8"),
        (np.zeros(4, np.complex64), ks.DTypeError, "complex64"),
        (np.zeros(4, ">f4"), ks.DTypeError, ">f4"),
        (np.zeros(4, object), ks.DTypeError, "object"),
        (np.zeros((0, 4), np.float32), ks.ShapeError, "argument x: shape (0, 4)"),
    ],
)
def test_arrays_that_the_device_cannot_hold_are_refused(array: Any, error: type[ks.KernscopeError], words: str) -> None:
    """The argument is named; for numbers in another byte order the help is the conversion to write."""
    with pytest.raises(error) as caught:
        ks.trace(lambda x: None, array)
    assert words in str(caught.value)
    if error is ks.DTypeError and array.dtype.kind in "fi":
        assert "astype" in caught.value.help


def test_arrays_may_share_memory_while_they_are_only_read() -> None:
    """One array for two parameters; a store to either is refused, since each is a tensor of its own."""
    array = np.zeros((8, 8), np.float32)

    def reads(x: Any, y: Any) -> None:
        tl.load(x)
        tl.load(y)

    def stores(x: Any, y: Any) -> None:
        tl.store(y, tl.load(x))

    assert len(ks.trace(reads, array, array)) == 2
    assert len(ks.trace(stores, array, array.copy())) == 2
    for other in (array, array[:], array.reshape(64).reshape(8, 8), array.T):
        with pytest.raises(ks.ArgumentError, match="x and y share memory") as caught:
            ks.trace(stores, array, other)
        assert "copy()" in caught.value.help


def test_columns_of_one_array_share_nothing() -> None:
    """Two halves whose extents overlap in memory, but not their elements."""
    packed = np.zeros((8, 16), np.float32)
    graph = ks.trace(lambda x, y: tl.store(y, tl.load(x)), packed[:, :8], packed[:, 8:])
    assert len(graph) == 2


def test_partials_are_kernels_too() -> None:
    """What they hold are arguments like all others: an array among them becomes a tensor, a keyword can be overridden,
    and the name is the function's."""
    array = np.zeros((8, 8), np.float32)
    for kernel, args in (
        (functools.partial(rows, array, tile=4), ()),
        (functools.partial(rows.function, tile=4), (array,)),
        (functools.partial(functools.partial(rows, tile=2), x=array, tile=4), ()),
    ):
        graph = ks.trace(kernel, *args)
        assert (graph.kernel, graph.count("memory/dma_read"), list(graph.tensors)) == ("rows", 2, ["x"])
        assert ks.trace(kernel, *args, tile=8).count("memory/dma_read") == 1
    assert ks.kernel(functools.partial(rows.function, tile=4)).name == "rows"


def test_methods_lambdas_and_callable_objects_are_kernels() -> None:
    """Anything that can be called."""

    class Model:
        scale = 2.0

        def method(self, x: Any) -> None:
            _ = tl.load(x) * self.scale

        def __call__(self, x: Any) -> None:
            self.method(x)

    x = ks.hbm((4,), "f32")
    assert ks.trace(Model().method, x).kernel == "method"
    assert ks.trace(Model(), x).kernel == "Model"
    assert ks.trace(lambda x: tl.load(x), x).kernel == "<lambda>"
    assert ks.trace(Model().method, x).op_log() == ["memory/dma_read", "math/mul"]


def test_python_control_flow_on_python_values_just_works() -> None:
    """Case 16: branches on arguments, shapes and ranks, in nested scopes, are taken as Python takes them."""

    def kernel(x: Any, *, mode: int) -> None:
        with tl.scratch_scope(), tl.scratch_scope():
            h = tl.load(x)
            if mode == 3:
                tl.exp(h)
            elif mode == 4 and x.shape[0] > 4:
                tl.abs(h)
            if tl.program_id(0) == 1:
                tl.sqrt(h)

    def math(**options: Any) -> list[str]:
        return [e for e in ks.trace(kernel, ks.hbm((8,), "f32"), **options).op_log() if e.startswith("math")]

    assert math(mode=3) == ["math/exp"]
    assert math(mode=4) == ["math/abs"]
    assert math(mode=5) == []
    assert math(mode=3, ranks=2) == ["math/exp", "math/exp", "math/sqrt"]


def test_node_counts_are_exact() -> None:
    """Case 17: a load is recorded once, and what the kernel makes is in the graph: nothing twice, nothing left out."""

    def kernel(x: Any, o: Any) -> None:
        a = tl.load(x)
        b = tl.zeros((8,), "f32")
        for i in range(3):
            with tl.scratch_scope():
                tl.copy_to(b, b + a * float(i))
        tl.store(o, b)

    graph = ks.trace(kernel, ks.hbm((8,), "f32"), ks.hbm((8,), "f32"))
    assert len(graph) == 2 + 3 * (2 + 3) + 1
    assert graph.summary() == {
        "add": 3,
        "copy_to": 3,
        "mul": 3,
        "scope_enter": 3,
        "scope_exit": 3,
        "fill": 1,
        "load": 1,
        "store": 1,
    }
    assert len(graph.storages) == 2 + 2 + 3 * 2
    assert graph.op_log()[0] == "memory/dma_read"
    assert graph.count("math/copy") == graph.count("scope_exit") == 3
    assert graph.count("math/nothing") == 0


class Scaled:
    """Kernels as methods."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    @ks.kernel
    def scale(self, x: Any, o: Any, *, shift: float = 0.0) -> None:
        """o = factor x + shift."""
        tl.store(o, tl.load(x) * self.factor + shift)

    @ks.kernel
    def twice(self, x: Any, o: Any) -> None:
        """Calls another one."""
        self.scale(x, o)
        self.scale(x, o, shift=1.0)

    @staticmethod
    @ks.kernel
    def plain(x: Any, o: Any) -> None:
        """No instance."""
        tl.store(o, tl.load(x))

    @ks.kernel
    @staticmethod
    def turned(x: Any, o: Any) -> None:
        """No instance, decorated the other way round."""
        tl.store(o, tl.load(x))

    @classmethod
    @ks.kernel
    def of_class(cls, x: Any, o: Any) -> None:
        """The class is the first argument."""
        assert cls is Scaled
        tl.store(o, tl.load(x))


def test_a_kernel_that_is_a_method_gets_its_instance() -> None:
    """As Python binds functions: through an instance `self` is given, through the class it is an argument."""
    data = {"x": np.arange(4, dtype=np.float32), "o": np.zeros(4, np.float32)}
    scaled = Scaled(3.0)
    for kernel, first in ((scaled.scale, ()), (Scaled.scale, (scaled,))):
        graph = ks.trace(kernel, *first, *data.values(), shift=1.0)
        assert graph.kernel == "scale"
        np.testing.assert_array_equal(ks.run(graph)["o"], data["x"] * 3 + 1)
    assert ks.trace(scaled.twice, *data.values()).count("memory/dma_write") == 2
    assert list(scaled.scale.signature.parameters) == ["x", "o", "shift"]
    with pytest.raises(ks.ArgumentError, match="missing a required argument: 'o'"):
        ks.trace(scaled.scale, data["x"])


@pytest.mark.parametrize(
    "kernel", [Scaled(1.0).plain, Scaled.plain, Scaled(1.0).turned, Scaled.turned, Scaled.of_class]
)
def test_kernels_that_are_static_or_class_methods(kernel: Any) -> None:
    """No instance is given to them."""
    assert len(ks.trace(kernel, ks.hbm((4,), "f32"), ks.hbm((4,), "f32"))) == 2


def test_a_kernel_of_a_classmethod_says_how_to_write_it() -> None:
    """A classmethod cannot be called before it is bound."""
    with pytest.raises(ks.ArgumentError, match="classmethod") as caught:
        ks.kernel(classmethod(lambda cls, x: None))  # type: ignore[arg-type]
    assert "@classmethod above" in caught.value.help


def test_launches_of_a_method_hold_through_its_instance() -> None:
    """A launch that gives `self` its value is one of the class's kernel; through an instance it takes that one."""

    class Held:
        factor = 2.0

        @ks.launch("small", self=None, x=ks.hbm((4,), "f32"))
        @ks.kernel
        def double(self, x: Any) -> None:
            tl.load(x) * self.factor

    assert len(ks.trace(Held().double.launch("small"))) == 2
    assert Held().double.launch().arguments.keys() == {"x"}
    assert Held.double.launch().arguments.keys() == {"self", "x"}


def test_a_recording_is_of_one_rank_unless_told() -> None:
    """And of as many as it is told, each a whole program."""

    def kernel(x: Any) -> None:
        tl.load(x[:, :])

    x = ks.hbm((4, 4), "f32")
    for told, ranks in (({}, 1), ({"ranks": 1}, 1), ({"ranks": 3}, 3)):
        graph = record_kernel(kernel, (x,), {}, target=Target(), machine="", **told)
        assert (graph.ranks, len(graph)) == (ranks, ranks)
