"""What a trace cannot know, and what kernel authors write by habit from elsewhere: one clear error each."""

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import kernscope as ks
from kernscope import tl

X = ks.hbm((8, 8), "f32")


def refused(body: Callable[[Any, Any], Any], error: type[ks.KernscopeError]) -> ks.KernscopeError:
    """The error that a call with a handle and its HBM tensor raises; at this file, exactly of this class, with help."""

    def kernel(x: Any) -> None:
        tile = tl.load(x)
        body(tile, x)

    with pytest.raises(error) as caught:
        ks.trace(kernel, X)
    assert type(caught.value) is error
    assert caught.value.help
    assert caught.value.places[0][1].file == __file__
    return caught.value


@pytest.mark.parametrize(
    ("use", "words", "help"),
    [
        (lambda h, x: bool(h), "truth", "tl.where"),
        (lambda h, x: 1 if h else 2, "truth", "tl.where"),
        (lambda h, x: h > 0 and h < 1, "truth", "tl.where"),
        (lambda h, x: not h, "truth", "tl.where"),
        (lambda h, x: h == h or 1, "truth", "tl.where"),
        (lambda h, x: 0 < h < 1, "truth", "tl.where"),
        (lambda h, x: max(h, h * 2.0), "truth", "tl.maximum"),
        (lambda h, x: int(h), "int()", "h.to(tl.int32)"),
        (lambda h, x: f"{h:.2f}", "format '.2f'", "ks.run"),
        (lambda h, x: "{:>9}".format(h), "format '>9'", "ks.run"),  # noqa: UP032
        (lambda h, x: f"{x:.2f}", "format '.2f'", "tl.load"),
        (lambda h, x: f"{x[0:4]:d}", "format 'd'", "tl.load"),
        (lambda h, x: float(h), "float()", "tensor"),
        (lambda h, x: math.exp(h), "float()", "tl.exp"),
        (lambda h, x: math.floor(h), "float()", "tensor"),
        (lambda h, x: range(h), "index or size", "Python ranges"),
        (lambda h, x: [1, 2, 3][h], "index or size", "Python ranges"),
        (lambda h, x: x[h], "index or size", "Python ranges"),
        (lambda h, x: x[h : h + 1], "index or size", "Python ranges"),
        (lambda h, x: h[h], "index or size", "Python ranges"),
        (lambda h, x: x + h, "index or size", "Python ranges"),
        (lambda h, x: tl.zeros((h, 4), "f32"), "index or size", "Python ranges"),
        (lambda h, x: tl.zeros(h, "f32"), "iteration", "range(h.shape[0])"),
        (lambda h, x: tl.arange(0, h), "index or size", "Python ranges"),
        (lambda h, x: tl.cdiv(h, 2), "index or size", "Python ranges"),
        (lambda h, x: tl.sum(h, axis=h), "index or size", "Python ranges"),
        (lambda h, x: list(h), "iteration", "range(h.shape[0])"),
        (lambda h, x: [row + 1.0 for row in h], "iteration", "range(h.shape[0])"),
        (lambda h, x: sum(h), "iteration", "range(h.shape[0])"),
        (lambda h, x: (lambda a, b: a)(*h), "iteration", "range(h.shape[0])"),
        (lambda h, x: 1.0 in h, "`in`", "tl.max"),
        (lambda h, x: np.asarray(h), "numpy array", "ks.run"),
        (lambda h, x: np.exp(h), "numpy.exp", "tl"),
        (lambda h, x: np.add(h, h), "numpy.add", "tl.add(h, ...)"),
        (lambda h, x: np.zeros((8, 8), np.float32) + h, "numpy.add", "tl.load"),
        (lambda h, x: np.add.reduce(h), "numpy.add", "tl"),
        (lambda h, x: list(x), "iteration", "range(t.shape[0])"),
        (lambda h, x: list(x[0:4]), "iteration", "range(t.shape[0])"),
        (lambda h, x: 1.0 in x[0:4], "iteration", "range(t.shape[0])"),
        (lambda h, x: 1 if x else 2, "truth", "is not None"),
        (lambda h, x: 1 if x[0:4] else 2, "truth", "is not None"),
        (lambda h, x: 1 if x + 4 else 2, "truth", "is not None"),
    ],
)
def test_python_asking_for_a_value_is_refused(use: Callable[[Any, Any], Any], words: str, help: str) -> None:
    """Case 16: data is never known while tracing. Each names the line, what was asked, and what to use instead."""
    error = refused(use, ks.TracedValueError)
    assert words in error.message
    assert help in error.help
    assert isinstance(error, TypeError)


def test_the_refusal_names_the_handle_and_the_line() -> None:
    """The name it was assigned to, its shape, and exactly the line of the `if`."""

    def kernel(x: Any) -> None:
        score = tl.load(x)
        if score:
            tl.exp(score)

    with pytest.raises(ks.TracedValueError, match=r"`score` \(f32\[8,8\]\)") as caught:
        ks.trace(kernel, X)
    assert caught.value.places[0][1].line == kernel.__code__.co_firstlineno + 2


@pytest.mark.parametrize(
    ("use", "error", "help"),
    [
        (lambda h, x: h @ h, ks.ArgumentError, "tl.dot"),
        (lambda h, x: 2 @ h, ks.ArgumentError, "tl.dot"),
        (lambda h, x: divmod(h, 2), ks.ArgumentError, "a // b"),
        (lambda h, x: round(h), ks.ArgumentError, "tl.round"),
        (lambda h, x: h + None, ks.ArgumentError, "tl.load"),
        (lambda h, x: h * 1j, ks.ArgumentError, "tl.load"),
        (lambda h, x: h + "1", ks.ArgumentError, "tl.load"),
        (lambda h, x: h + (1.0, 2.0)[:1], ks.ArgumentError, "tl.load"),
        (lambda h, x: h + np.zeros((8, 8), np.float32), ks.ArgumentError, "arguments"),
        (lambda h, x: h + x, ks.ArgumentError, "tl.load"),
        (lambda h, x: x * h, ks.ArgumentError, "tl.load"),
        (lambda h, x: x * 2.0, ks.ArgumentError, "tl.load"),
        (lambda h, x: -x, ks.ArgumentError, "tl.load"),
        (lambda h, x: x - 1, ks.ArgumentError, "tl.load"),
        (lambda h, x: x[0:4] + 1.0, ks.ArgumentError, "tl.load"),
        (lambda h, x: x[0:4] < 1.0, ks.ArgumentError, "tl.load"),
        (lambda h, x: np.exp(x), ks.ArgumentError, "tl.load"),
        (lambda h, x: np.float32(2) * x, ks.ArgumentError, "tl.load"),
        (lambda h, x: tl.exp(x), ks.ArgumentError, "tl.load"),
        (lambda h, x: tl.sum(x, axis=1), ks.ArgumentError, "tl.load"),
        (lambda h, x: tl.dot(x, h), ks.ArgumentError, "tl.load"),
        (lambda h, x: tl.trans(x), ks.ArgumentError, "tl.load"),
        (lambda h, x: x + 1.5, ks.ArgumentError, "Python integer"),
        (lambda h, x: x + 4 - 1.5, ks.ArgumentError, "Python integer"),
        (lambda h, x: tl.exp(1.0), ks.ArgumentError, "math.exp"),
        (lambda h, x: tl.program_id(3), ks.ArgumentError, "0, 1 or 2"),
        (lambda h, x: tl.program_id("x"), ks.ArgumentError, "integer"),
        (lambda h, x: tl.full((4,), None, "f32"), ks.ArgumentError, "bool, int or float"),
        (lambda h, x: tl.full((4,), h, "f32"), ks.ArgumentError, "bool, int or float"),
        (lambda h, x: tl.reshape(h), ks.ArgumentError, "tl.reshape"),
        (lambda h, x: tl.reshape(h, (8.0, 8)), ks.ArgumentError, "integer"),
        (lambda h, x: tl.reshape(h, (9, 9)), ks.ShapeError, "same number"),
        (lambda h, x: tl.reshape(h, (-1, -1)), ks.ShapeError, "at least 1"),
        (lambda h, x: tl.reshape(h[:, 0:4], (32,)), ks.ShapeError, "copy"),
        (lambda h, x: tl.broadcast_to(h, (8, 9)), ks.ShapeError, "equal or 1"),
        (lambda h, x: tl.broadcast_to(h, (8,)), ks.ShapeError, "widened"),
        (lambda h, x: h + tl.zeros((3, 8), "f32"), ks.ShapeError, "equal or 1"),
        (lambda h, x: tl.sum(h, axis=2), ks.ShapeError, "0 to 1"),
        (lambda h, x: tl.argmax(h, axis=(0, 1)), ks.ShapeError, "one axis"),
        (lambda h, x: tl.sum(h, axis="rows"), ks.ShapeError, "Python integer"),
        (lambda h, x: h & 1, ks.DTypeError, "h.to(tl.int32)"),
        (lambda h, x: (h > 0) + 1.0 - (h > 0) * (h > 0), ks.DTypeError, "h.to(tl.int32)"),
        (lambda h, x: h.to(None), ks.DTypeError, "name"),
        (lambda h, x: h.to(), ks.ArgumentError, "h.to(dtype"),
        (lambda h, x: h.to(tl.float16, copy=True), ks.ArgumentError, "h.to(dtype"),
        (lambda h, x: h.to(tl.float16, True), ks.ArgumentError, "h.to(dtype"),
        (lambda h, x: h.to(np.longdouble), ks.DTypeError, "np.float32"),
        (lambda h, x: tl.zeros((4,), complex), ks.DTypeError, "use f32"),
        (lambda h, x: h[0:9], ks.IndexingError, "not clamped"),
        (lambda h, x: h[::2], ks.IndexingError, "step 1"),
        (lambda h, x: h[np.array([1, 2])], ks.IndexingError, "integers"),
        (lambda h, x: h[0, 0, 0], ks.IndexingError, "at most 2"),
        (lambda h, x: h.__setitem__(0, 1.0), ks.IndexingError, "tl.copy_to"),
        (lambda h, x: x.__setitem__(0, h), ks.IndexingError, "tl.store"),
        (lambda h, x: h.reshape(64), ks.UnknownNameError, "tl.reshape"),
        (lambda h, x: h.sum(axis=1), ks.UnknownNameError, "tl.sum"),
        (lambda h, x: h.astype("f16"), ks.UnknownNameError, "to"),
        (lambda h, x: h.dtpye, ks.UnknownNameError, "'dtype'"),
        (lambda h, x: x.T, ks.UnknownNameError, "tl.load"),
    ],
)
def test_habits_from_elsewhere_are_refused_with_what_to_write(
    use: Callable[[Any, Any], Any], error: type[ks.KernscopeError], help: str
) -> None:
    """numpy's, torch's and Triton's ways, and slips: one class each, at the line, with the next step."""
    assert help in refused(use, error).help


def test_an_assignment_through_an_index_is_refused_as_a_whole() -> None:
    """`h[0:4] += 1` would compute a fresh handle and lose it."""

    def kernel(x: Any) -> None:
        h = tl.load(x)
        h[0:4] += 1.0

    with pytest.raises(ks.IndexingError) as caught:
        ks.trace(kernel, X)
    assert "tl.copy_to" in caught.value.help


def test_messages_do_not_print_arrays() -> None:
    """A thousand numbers say little: type and shape do."""
    error = refused(lambda h, x: h + np.ones((500, 500), np.float32), ks.ArgumentError)
    assert "ndarray of shape (500, 500)" in error.message
    assert len(error.message) < 200


def test_what_can_be_known_is_known() -> None:
    """Shape, dtype, size, length and place are Python values."""

    def kernel(x: Any) -> None:
        h = tl.load(x)
        assert (h.shape, h.ndim, h.dtype, h.nbytes, h.space, h.address, len(h)) == (
            (8, 8),
            2,
            tl.float32,
            256,
            "tcm",
            0,
            8,
        )
        assert (x.space, x[0:4].shape, x[0:4].dtype, (x + 3).dtype) == ("hbm", (4, 8), tl.float32, tl.float32)
        assert h is not None and x is not None
        assert +h is h
        assert {h: 1}[h] == 1
        assert not hasattr(h, "nothing") and not hasattr(x, "nothing")
        assert copy.copy(x[0:4]).shape == copy.deepcopy(x[0:4]).shape == (4, 8)
        assert "f32[8,8]" in f"{h}" and "x" in repr(x[0:4]) and repr(x + 4) == "x+4"

    assert ks.trace(kernel, X).op_log() == ["memory/dma_read"]


def test_a_handle_can_be_printed() -> None:
    """What is known of it, with `print`, `str` and a plain f-string; none of them asks for a value."""

    def kernel(x: Any) -> None:
        tile = tl.load(x)
        assert f"{tile}" == str(tile) == repr(tile) == "<handle tile f32[8,8] at 0x0>"
        assert f"{x}" == str(x) and f"{x[0:4]}" == str(x[0:4])

    ks.trace(kernel, X)


def test_a_tensor_without_dimensions_has_no_length() -> None:
    """A handle and an HBM tensor: as of numpy's arrays, with where the sizes are."""

    def kernel(x: Any, scalar: Any) -> None:
        with pytest.raises(ks.ShapeError, match="without dimensions") as caught:
            len(scalar)
        assert caught.value.help == "use .shape" and caught.value.places[0][1].file == __file__
        assert len(x) == 8 and len(tl.load(x[0:2, :])) == 2
        with pytest.raises(ks.ShapeError, match="without dimensions"):
            len(tl.load(scalar))

    ks.trace(kernel, X, ks.hbm((), "f32"))


@pytest.mark.parametrize(
    ("dtype", "pad", "error"),
    [
        ("i32", 0.0, ks.DTypeError),
        ("i32", 1, None),
        ("f32", 1, None),
        ("f32", 0.5, None),
        ("f32", "0", ks.ArgumentError),
        ("u8", -1, ks.DTypeError),
    ],
)
def test_what_a_load_is_padded_with_is_of_its_dtype(
    dtype: str, pad: Any, error: type[ks.KernscopeError] | None
) -> None:
    """Integers with integers, floats with either."""

    def kernel(x: Any) -> None:
        tl.load(x[4:12, :], pad=pad)

    if error is None:
        ks.trace(kernel, ks.hbm((8, 8), dtype))
        return
    with pytest.raises(ks.KernscopeError, match="pad" if dtype != "u8" else "does not fit") as caught:
        ks.trace(kernel, ks.hbm((8, 8), dtype))
    assert type(caught.value) is error and caught.value.help


def test_a_tensor_of_a_trace_is_no_argument_of_another() -> None:
    """The other kernel is called, not traced."""

    def kernel(x: Any) -> None:
        ks.trace(lambda y: None, x)

    with pytest.raises(ks.ArgumentError, match="argument y is an HBM tensor of a trace") as caught:
        ks.trace(kernel, X)
    assert "call the other kernel directly" in caught.value.help


def test_a_reference_has_shape_and_dtype_and_no_arithmetic() -> None:
    """What `tl.ref` gives tells what it is of, and is no array."""

    def kernel(x: Any) -> None:
        ref = tl.ref(x[2:6, :])
        assert (ref.shape, ref.dtype) == ((4, 8), tl.float32)
        for use in (lambda: ref + 1, lambda: np.asarray(ref), lambda: np.exp(ref), lambda: -ref, lambda: 2 * ref):
            with pytest.raises(ks.ArgumentError, match="cannot compute with"):
                use()

    ks.trace(kernel, X)


def test_a_kernel_knows_where_it_is_written() -> None:
    """The line of its function, through wrappers; a builtin has none."""

    def plain(x: Any) -> None:
        pass

    def wrapped(x: Any) -> None:
        plain(x)

    wrapped.__wrapped__ = plain  # type: ignore[attr-defined]
    for function in (plain, wrapped):
        place = ks.kernel(function).location
        assert place is not None
        code = plain.__code__
        assert (place.file, place.line, place.function) == (__file__, code.co_firstlineno, code.co_name)


def test_a_store_with_its_arguments_swapped_is_told_so() -> None:
    """The place comes first: nothing is said of bringing the output into scratch."""

    def kernel(x: Any, o: Any) -> None:
        tl.store(tl.load(x[:]), o[:])

    with pytest.raises(ks.ArgumentError) as caught:
        ks.trace(kernel, ks.hbm((8,), "f32"), ks.hbm((8,), "f32"))
    assert "is a tile in scratch" in caught.value.message and "tl.store(o[a:b, :], tile)" in str(caught.value.help)


@pytest.mark.parametrize(
    ("use", "help"),
    [
        (lambda x: tl.load(x[:, :], mask=1), "regions take the place of masks"),
        (lambda x: tl.load(x[:, :], pad=0.0, mask=1), "regions take the place of masks"),
        (lambda x: tl.load(x[:, :], pad=0.0, nothing=1), "its signature is load("),
        (lambda x: tl.load(x[:, :], (8, 8), x, x, x, x, pad=0.0), "its signature is load("),
    ],
)
def test_a_keyword_of_another_language_gets_its_answer(use: Callable[[Any], Any], help: str) -> None:
    """Whatever stands beside it; any other unknown keyword, and too many arguments, the signature."""
    assert help in refused(lambda h, x: use(x), ks.ArgumentError).help


@pytest.mark.parametrize(("dtype", "bits"), [("i8", 8), ("u8", 8), ("i16", 16), ("i32", 32), ("u32", 32), ("i64", 64)])
def test_a_shift_by_more_than_there_is_is_refused(dtype: str, bits: int) -> None:
    """Devices do not agree on what is left. Up to the last bit all is well, and how far a tile shifts is not known."""

    def kernel(x: ks.HbmTensor, *, by: int, left: bool) -> None:
        code = tl.load(x[:])
        tl.store(x[:], code << by if left else code >> by)
        tl.store(x[:], code << code)

    for left in (True, False):
        for by in (0, 1, bits - 1):
            ks.trace(kernel, ks.hbm((8,), dtype), by=by, left=left)
        for by in (bits, bits + 8, -1):
            with pytest.raises(ks.DTypeError, match=r"by -?\d+: it has|does not fit") as caught:
                ks.trace(kernel, ks.hbm((8,), dtype), by=by, left=left)
            assert caught.value.help and caught.value.places
