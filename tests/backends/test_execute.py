"""Executing a graph on numbers: memory, inputs, outputs, and what cannot be executed."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import kernscope as ks
from kernscope import tl
from kernscope.backends.execution.execute import execute
from kernscope.backends.execution.inputs import first_unstored_loads, random_inputs
from kernscope.ir.target import Target
from kernscope.tracer.trace import record_kernel

Array = np.ndarray[Any, np.dtype[Any]]


def recorded(kernel: Any, *args: Any, **kwargs: Any) -> ks.Graph:
    """A graph traced with overflow and bounds recorded."""
    target = Target()
    return record_kernel(kernel, args, kwargs, target=target, machine="", on_overflow="record", on_bounds="record")


def numbers(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Array:
    made: Array = np.random.default_rng(seed).standard_normal(shape).astype(dtype)
    return made


# --- numbers --------------------------------------------------------------------------------------------------------


def test_outputs_are_what_numpy_computes() -> None:
    """A kernel of loads, math, a transposed view, dot with an accumulator and stores gives numpy's numbers."""

    @ks.kernel
    def kernel(x: Any, y: Any, o: Any) -> None:
        a, b = tl.load(x[:, :]), tl.load(y[:, :])
        acc = tl.zeros((8, 8), tl.float32)
        for k in range(0, 16, 4):
            tl.dot(a[:, k : k + 4], tl.trans(b[:, k : k + 4]), acc=acc)
        tl.store(o[:, :], tl.exp(acc * 0.125))

    x, y = numbers(8, 16), numbers(8, 16, seed=1)
    run = execute(ks.trace(kernel, x, y, ks.hbm((8, 8), "f32")))
    np.testing.assert_allclose(run.outputs["o"], np.exp(x @ y.T / 8), rtol=1e-5)


@pytest.mark.parametrize(
    "dtype", [np.float32, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, np.int8, np.bool_]
)
def test_an_output_has_its_tensors_shape_and_dtype(dtype: Any) -> None:
    """A copy through scratch gives the same bits in every dtype, odd sizes included."""

    @ks.kernel
    def kernel(x: Any, o: Any) -> None:
        tl.store(o[:, :], tl.load(x[:, :]))

    x = (numbers(3, 5) > 0).astype(dtype) if dtype is np.bool_ else numbers(3, 5).astype(dtype)
    out = execute(ks.trace(kernel, x, np.zeros((3, 5), dtype))).outputs["o"]
    assert out.dtype == x.dtype and out.shape == (3, 5)
    assert out.tobytes() == x.tobytes()


def test_a_ragged_load_pads_and_a_clipped_store_leaves_the_rest() -> None:
    """What lies outside is the pad; what a store clips away stays as it was."""

    @ks.kernel
    def kernel(x: Any, o: Any) -> None:
        tile = tl.load(x[2:6, 2:6], pad=7.0)
        tl.store(o[0:4, 0:4], tile)
        tl.store(o[3:7, 3:7], tile, clip=True)

    x, o = numbers(4, 4), numbers(5, 5, seed=1)
    tile = np.full((4, 4), 7, np.float32)
    tile[:2, :2] = x[2:, 2:]
    expected = o.copy()
    expected[:4, :4] = tile
    expected[3:, 3:] = tile[:2, :2]
    np.testing.assert_array_equal(execute(ks.trace(kernel, x, o)).outputs["o"], expected)


def test_an_overlapping_copy_reads_before_it_writes() -> None:
    """``copy_to`` between overlapping views copies the old values."""

    @ks.kernel
    def kernel(x: Any, o: Any) -> None:
        h = tl.load(x[:])
        tl.copy_to(h[1:8], h[0:7])
        tl.store(o[:], h)

    x = numbers(8)
    run = execute(ks.trace(kernel, x, ks.hbm((8,), "f32")))
    np.testing.assert_array_equal(run.outputs["o"], np.concatenate([x[:1], x[:7]]))


def test_scalars_keep_their_place_among_the_operands() -> None:
    """``1 - x`` is not ``x - 1``."""

    @ks.kernel
    def kernel(x: Any, o: Any) -> None:
        tl.store(o[:], 1.0 - tl.load(x[:]))

    x = numbers(8)
    np.testing.assert_array_equal(execute(ks.trace(kernel, x, ks.hbm((8,), "f32"))).outputs["o"], 1 - x)


def test_numbers_that_overflow_or_are_not_numbers_warn_of_nothing() -> None:
    """Infinities and NaN go through without a warning (the tests turn warnings into errors)."""

    @ks.kernel
    def kernel(x: Any, o: Any) -> None:
        h = tl.load(x[:])
        tl.store(o[:], (tl.log(h) * 1e30 * 1e30).to(tl.int32))

    execute(ks.trace(kernel, np.array([-1, 0, 1, np.inf], np.float32), ks.hbm((4,), "i32")))


def test_messages_carry_the_bytes_of_the_moment_they_are_sent() -> None:
    """Each rank receives its neighbour's values in order, although the sender writes over its buffer in between."""

    @ks.kernel
    def kernel(x: Any, o: Any) -> None:
        rank = tl.program_id(0)
        h = tl.load(x[rank, :])
        tl.send("next", h)
        tl.copy_to(h, h + 100.0)
        tl.send("next", h)
        for i in range(2):
            tl.store(o[rank, i, :], tl.recv("prev", (4,), tl.float32))

    x = numbers(3, 4)
    out = execute(ks.trace(kernel, x, ks.hbm((3, 2, 4), "f32"), ranks=3), poison=True).outputs["o"]
    np.testing.assert_array_equal(out[:, 0], np.roll(x, 1, axis=0))
    np.testing.assert_array_equal(out[:, 1], np.roll(x, 1, axis=0) + np.float32(100))


# --- memory ---------------------------------------------------------------------------------------------------------


def test_the_high_water_mark_is_the_highest_rounded_end_of_each_rank() -> None:
    """Rounded to 16 bytes; scopes give bytes back; a rank that allocates nothing has none."""

    @ks.kernel
    def kernel(o: Any) -> None:
        if tl.program_id(0) == 0:
            tl.store(o[0:3], tl.zeros((3,), tl.float32))
            for _ in range(3):
                with tl.scratch_scope():
                    tl.zeros((5,), tl.float32)

    assert execute(ks.trace(kernel, ks.hbm((3,), "f32"), ranks=2)).high_water_bytes == (48, 0)


def test_the_users_arrays_are_never_changed() -> None:
    """A tensor that is loaded, changed and stored starts from its input, which stays."""

    @ks.kernel
    def kernel(x: Any) -> None:
        tl.store(x[:], tl.load(x[:]) + 1.0)

    x = numbers(8)
    kept = x.copy()
    out = execute(ks.trace(kernel, x)).outputs["x"]
    np.testing.assert_array_equal(out, kept + 1)
    np.testing.assert_array_equal(x, kept)


def test_outputs_are_the_tensors_stored_to_in_argument_order() -> None:
    """What is only loaded is no output; a part never stored to is poison, and named."""

    @ks.kernel
    def kernel(b: Any, x: Any, a: Any) -> None:
        h = tl.load(x[:])
        tl.store(a[0:4], h)
        tl.store(b[:], h)

    x = numbers(4)
    done = execute(ks.trace(kernel, ks.hbm((4,), "f32"), x, ks.hbm((6,), "f32")))
    assert list(done.outputs) == ["b", "a"]
    np.testing.assert_array_equal(done.outputs["a"], np.concatenate([x, [np.nan, np.nan]]))
    assert list(done.unstored) == ["a"] and list(done.unstored["a"].boxes()) == [((4,), (6,))]


# --- inputs ---------------------------------------------------------------------------------------------------------


@ks.kernel
def add(x: Any, y: Any, o: Any) -> None:
    tl.store(o[:], tl.load(x[:]) + tl.load(y[:]))


def test_inputs_given_win_over_the_arrays_traced_with() -> None:
    """By tensor: the others keep theirs."""
    graph = ks.trace(add, np.ones(4, np.float32), np.ones(4, np.float32), ks.hbm((4,), "f32"))
    out = execute(graph, {"y": np.full(4, 5, np.float32)}).outputs["o"]
    np.testing.assert_array_equal(out, np.full(4, 6, np.float32))


def test_a_missing_input_names_its_tensor_and_the_load() -> None:
    """Inputs that no load waits for are not asked for."""
    graph = ks.trace(add, ks.hbm((4,), "f32"), ks.hbm((4,), "f32"), ks.hbm((4,), "f32"))
    with pytest.raises(ks.InputError, match="'y' is loaded before it is stored") as caught:
        execute(graph, {"x": np.ones(4, np.float32)})
    assert "(4,)" in caught.value.help and caught.value.places[0][1].function == "add"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("z", np.ones(4, np.float32), "no tensor 'z'"),
        ("x", np.ones(5, np.float32), r"shape \(5,\), the kernel was traced with \(4,\)"),
        ("x", np.ones(4), r"(?s)dtype float64.*float32.*x\.astype\(np\.float32\)"),
        ("x", np.ones(4, np.dtype(">f4")), "dtype >f4"),
    ],
)
def test_unfit_inputs_are_refused(name: str, value: Array, message: str) -> None:
    """An unknown name, another shape, another dtype or byte order: never converted in silence."""
    graph = ks.trace(add, np.ones(4, np.float32), np.ones(4, np.float32), ks.hbm((4,), "f32"))
    with pytest.raises(ks.InputError, match=message):
        execute(graph, {name: value})


def test_a_tensor_that_is_stored_first_needs_no_input() -> None:
    """Element by element: half of it stored is not enough for a load of the whole."""

    @ks.kernel
    def kernel(work: Any, o: Any, *, stored: int) -> None:
        for i in range(stored):
            tl.store(work[4 * i : 4 * i + 4], tl.full((4,), 1.0 + i, tl.float32))
        tl.store(o[:], tl.load(work[:]))

    def run(stored: int) -> Array:
        return execute(ks.trace(kernel, ks.hbm((8,), "f32"), ks.hbm((8,), "f32"), stored=stored)).outputs["o"]

    np.testing.assert_array_equal(run(2), np.repeat(np.float32([1, 2]), 4))
    with pytest.raises(ks.InputError, match="'work'"):
        run(1)


def test_what_another_rank_stored_first_needs_no_input() -> None:
    """Program order follows the messages, not the ids."""

    @ks.kernel
    def kernel(work: Any, o: Any) -> None:
        if tl.program_id(0) == 1:
            tl.store(work[:], tl.full((4,), 3.0, tl.float32))
            tl.send("prev", tl.load(work[:]))
        else:
            tl.recv("next", (4,), tl.float32)
            tl.store(o[:], tl.load(work[:]))

    graph = ks.trace(kernel, ks.hbm((4,), "f32"), ks.hbm((4,), "f32"), ranks=2)
    np.testing.assert_array_equal(execute(graph).outputs["o"], np.full(4, 3, np.float32))
    assert random_inputs(graph) == {}


def test_random_inputs_are_those_needed_and_depend_on_the_seed_only() -> None:
    """Floats are normal, integers small; the same seed gives the same numbers; traced arrays are kept."""

    @ks.kernel
    def kernel(x: Any, i: Any, u: Any, b: Any, y: Any, o: Any) -> None:
        for tensor in (x, i, u, b, y):
            tl.store(o[:], tl.load(tensor[:]).to(tl.float32))

    y = numbers(1000)
    kinds = [ks.hbm((1000,), kind) for kind in ("bf16", "i8", "u8", "bool")]
    graph = ks.trace(kernel, *kinds, y, ks.hbm((1000,), "f32"))
    one, again, other = random_inputs(graph), random_inputs(graph), random_inputs(graph, seed=1)
    assert list(one) == ["x", "i", "u", "b", "y"] and one["y"] is y
    assert all(one[name].tobytes() == again[name].tobytes() for name in one)
    assert all(one[name].tobytes() != other[name].tobytes() for name in ("x", "i", "u", "b"))
    assert abs(float(one["x"].astype(np.float32).std()) - 1) < 0.1
    assert one["i"].min() == -8 and one["i"].max() == 7 and one["u"].max() == 7
    execute(graph, one)


# --- what cannot be executed ----------------------------------------------------------------------------------------


def test_a_graph_that_overflows_is_refused_at_the_allocation() -> None:
    """The first allocation past the budget is named, with its line."""

    @ks.kernel
    def kernel(o: Any) -> None:
        tl.zeros((512, 512), tl.float32)
        tl.store(o[:], tl.zeros((4,), tl.float32))

    with pytest.raises(ks.ExecutionError, match=r"overflows: .* takes 16 bytes at 1,048,576") as caught:
        execute(recorded(kernel, ks.hbm((4,), "f32")))
    assert caught.value.places[0][1].function == "kernel"


def test_a_graph_that_leaves_a_tensor_is_refused_at_the_access() -> None:
    """The node, the tensor and the box asked for."""

    @ks.kernel
    def kernel(x: Any) -> None:
        tl.store(x[2:6], tl.zeros((4,), tl.float32))

    with pytest.raises(ks.ExecutionError, match=r"store leaves tensor 'x' of shape \(4,\): it asks for \[2\] to \[6\]"):
        execute(recorded(kernel, ks.hbm((4,), "f32")))


def test_messages_without_partner_are_refused() -> None:
    """A send without receive, a receive without send, and a pair that differs."""

    @ks.kernel
    def kernel(*, case: str) -> None:
        if tl.program_id(0) == 0 and case != "recv":
            tl.send("next", tl.zeros((4,), tl.float32))
        if tl.program_id(0) == 1 and case != "send":
            tl.recv("prev", (2,) if case == "differ" else (4,), tl.float32)

    execute(ks.trace(kernel, case="fine", ranks=2))
    for case, message in (
        ("send", 'send to "next" of rank 0: rank 1 never receives it'),
        ("recv", 'recv from "prev" of rank 1: rank 0 never sends it'),
        ("differ", r"rank 0 sends f32\[4\], rank 1 receives f32\[2\]"),
    ):
        with pytest.raises(ks.UnmatchedMessageError, match=message):
            execute(ks.trace(kernel, case=case, ranks=2))


def test_memory_that_ends_in_the_middle_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system says how much memory there is only by refusing it, that is the same error."""

    def refuse(*_: Any, **__: Any) -> None:
        raise MemoryError("Unable to allocate 16.0 TiB")

    graph = ks.trace(lambda o: tl.store(o[:], tl.zeros((4,), tl.float32)), o=ks.hbm((4,), "f32"))
    monkeypatch.setattr("kernscope.backends.execution.execute.Memory", refuse)
    with pytest.raises(ks.MemoryLimitError, match=r"take 16 B \(the largest, 'o', 16 B\), and memory ended") as caught:
        execute(graph)
    assert isinstance(caught.value, MemoryError) and caught.value.help


@pytest.mark.parametrize("seed", [-1, 1.5, True, "0", None])
def test_a_seed_is_a_natural_number(seed: Any) -> None:
    """Anything else is refused by name."""
    graph = ks.trace(lambda x: tl.load(x), x=ks.hbm((4,), "f32"))
    with pytest.raises(ks.InputError, match="the seed is"):
        random_inputs(graph, seed)


def test_integers_divide_as_in_python() -> None:
    """``//`` rounds down, ``%`` has the divisor's sign, and zero divides to 0: as the language's page says."""
    a, b = np.array([-7, 7, -7, 7, 5], np.int32), np.array([2, 2, -2, -2, 0], np.int32)

    def kernel(a: Any, b: Any, o: Any, p: Any) -> None:
        x, y = tl.load(a), tl.load(b)
        tl.store(o[:], x // y)
        tl.store(p[:], x % y)

    done = ks.run(ks.trace(kernel, a=a, b=b, o=ks.hbm((5,), "i32"), p=ks.hbm((5,), "i32")))
    pairs = list(zip(a.tolist(), b.tolist(), strict=True))
    assert done["o"].tolist() == [x // y if y else 0 for x, y in pairs] == [-4, 3, 3, -4, 0]
    assert done["p"].tolist() == [x % y if y else 0 for x, y in pairs] == [1, 1, -1, -1, 0]


def test_the_first_load_of_what_was_not_stored_is_named_tensor_by_tensor() -> None:
    """Of a tensor that is only read its first load in this order; of one that is stored, too, the first load of what
    was not; none where all was stored before."""

    def kernel(y: Any, x: Any, kept: Any, half: Any) -> None:
        a = tl.load(y[0:2, :])
        b = tl.load(x[0:2, :])
        tl.store(kept[0:2, :], a)
        tl.store(half[0:2, :], b)
        tl.load(kept[0:2, :])
        tl.load(half[0:2, :])
        tl.load(half[1:3, :])
        tl.load(y[0:1, :])

    graph = recorded(kernel, *[ks.hbm((4, 4), "f32")] * 4)
    rows = graph.tensors
    program = np.arange(len(graph))
    assert first_unstored_loads(graph, program) == {rows["y"]: 0, rows["x"]: 1, rows["half"]: 6}
    swapped = program.copy()
    swapped[[0, 1]] = [1, 0]
    swapped[[5, 6]] = [6, 5]
    assert first_unstored_loads(graph, swapped) == {rows["y"]: 0, rows["x"]: 1, rows["half"]: 6}
    late = [1, 7, 0, 2, 3, 4, 5, 6]
    assert first_unstored_loads(graph, np.array(late))[rows["y"]] == 7
