"""``triton.jit``: what a launch is made of, as a script writes it."""

from __future__ import annotations

import inspect
from collections import namedtuple
from typing import Any

import numpy as np
import pytest
from tritonlaunches import noted

from kernscope.ir.errors import ArgumentError, TritonDescriptorError, TritonNameError, TritonSessionError
from kernscope.tracer.triton.arguments import DescriptorArgument, TensorArgument
from kernscope.tracer.triton.constexpr import Constexpr, bare
from kernscope.tracer.triton.host.jit import JITFunction, cdiv, jit, next_power_of_2
from kernscope.tracer.triton.host.tensors import TensorDescriptor, tensor_argument


def kernel(x_ptr, n, BLOCK: tl.constexpr, flag=None):  # type: ignore[no-untyped-def]  # noqa: F821
    """A kernel."""


def launched(*args: Any, of: Any = kernel, grid: Any = (3,), **kwargs: Any) -> Any:
    """The request of one launch."""
    with noted() as state:
        jit(of)[grid](*args, **kwargs)
        (request,) = state.launches
    return request


X = np.zeros((4, 8), np.float32)


@pytest.mark.parametrize(
    ("grid", "expected"),
    [
        ((3,), (3, 1, 1)),
        ([3, 2], (3, 2, 1)),
        ((3, 2, 5), (3, 2, 5)),
        (7, (7, 1, 1)),
        (lambda meta: (cdiv(meta["n"], meta["BLOCK"]), 2), (7, 2, 1)),
        ((np.int64(3),), (3, 1, 1)),
        ((Constexpr(3),), (3, 1, 1)),
    ],
)
def test_a_grid_is_numbers_or_a_function_of_the_arguments(grid: Any, expected: tuple[int, int, int]) -> None:
    """In all the forms that Triton takes; positional arguments and defaults are among those of the function."""
    assert launched(X, 100, 16, grid=grid).grid == expected


@pytest.mark.parametrize("grid", [(), (1, 2, 3, 4), (1.5,), ("a",), (-1,), None])
def test_what_is_no_grid_is_refused(grid: Any) -> None:
    """With the kernel's name."""
    with pytest.raises(ArgumentError, match="kernel kernel with a grid of"):
        launched(X, 100, 16, grid=grid)


def test_an_empty_grid_launches_nothing() -> None:
    """As on a GPU."""
    with noted() as state:
        jit(kernel)[(0,)](X, 100, BLOCK=16)
        assert state.launches == []


def test_what_is_known_when_a_kernel_is_compiled_is_told_from_what_is_not() -> None:
    """Parameters annotated ``constexpr``, None, strings, and an integer 1; other numbers are run-time scalars."""
    given = launched(X, 100, BLOCK=16).arguments
    assert {name: type(value) for name, value in given.items()} == {
        "x_ptr": TensorArgument,
        "n": int,
        "BLOCK": Constexpr,
        "flag": Constexpr,
    }
    assert bare(given["BLOCK"]) == 16
    assert isinstance(launched(X, 1, 16).arguments["n"], Constexpr)
    assert launched(X, True, 16).arguments["n"] is True
    assert launched(X, 1.0, 16).arguments["n"] == 1.0


def test_a_parameter_that_is_not_specialised_stays_a_run_time_one() -> None:
    """Named by its name or its number."""
    for option in (["n"], [1]):
        with noted() as state:
            jit(do_not_specialize=option)(kernel)[(1,)](X, 1, 16)
            assert state.launches[0].arguments["n"] == 1
            assert not isinstance(state.launches[0].arguments["n"], Constexpr)


def test_tuples_are_taken_item_by_item() -> None:
    """Named ones keep their names."""
    Pair = namedtuple("Pair", ["array", "size"])
    given = launched(Pair(X, 5), (2, 1), 16).arguments
    assert isinstance(given["x_ptr"].array, TensorArgument)
    assert given["x_ptr"].size == 5
    assert given["n"][0] == 2
    assert isinstance(given["n"][1], Constexpr)


def test_options_of_the_compiler_are_told_from_parameters() -> None:
    """They go along with the launch; a word that is neither is a mistake with a suggestion."""
    assert launched(X, 100, 16, num_warps=8, num_stages=3).options == {"num_warps": 8, "num_stages": 3}
    with pytest.raises(ArgumentError, match="no parameter 'BLOK'") as caught:
        launched(X, 100, BLOK=16)
    assert "'BLOCK'" in caught.value.help
    with pytest.raises(ArgumentError, match="missing a required argument: 'BLOCK'"):
        launched(X, 100)


def test_a_view_is_a_place_in_the_memory_it_is_of() -> None:
    """Offset, shape and strides in elements; views of one array have one address."""
    view = tensor_argument(X[1:, ::2])
    assert (view.offset, view.shape, view.strides) == (8, (3, 4), (8, 2))
    assert view.memory.size == X.size
    assert view.address == tensor_argument(X).address == tensor_argument(X.T).address
    view.memory[view.offset] = 7
    assert X[1, 0] == 7
    X[...] = 0


def test_a_kernel_is_called_with_a_grid_or_by_a_kernel() -> None:
    """Anything else says how."""
    with pytest.raises(TritonSessionError, match="without a grid"):
        jit(kernel)(X, 1, 2)
    with pytest.raises(TritonSessionError, match="outside a session"):
        jit(kernel)[(1,)](X, 1, 2)


def test_warmup_launches_nothing_and_answers() -> None:
    """What scripts size a grid by: one program at a time on a processing element."""
    with noted() as state:
        compiled = jit(kernel).warmup(X, 100, BLOCK=16, grid=(1,), num_warps=8)
        assert state.launches == []
        compiled._init_handles()
        assert (compiled.n_regs, compiled.metadata.shared, compiled.metadata.num_warps) == (32, 1 << 20, 8)
        compiled[(5, 1, 1)](X, 100, 16, None)
        compiled[(6, 1, 1)](X, 100, None)  # without what is known when it is compiled
        assert [request.grid for request in state.launches] == [(5, 1, 1), (6, 1, 1)]
        with pytest.raises(TritonNameError, match="no 'asm'"):
            compiled.asm  # noqa: B018


def test_hooks_are_called_before_a_launch() -> None:
    """With its arguments."""
    seen = []
    with noted():
        made = jit(kernel)
        made.add_pre_run_hook(lambda *args, **kwargs: seen.append((args[1], kwargs)))
        made[(1,)](X, 3, BLOCK=4)
    assert seen == [(3, {"BLOCK": 4})]


def test_libraries_find_what_they_look_at() -> None:
    """Names, parameters, signature, source."""
    made = jit(noinline=True)(kernel)
    assert isinstance(made, JITFunction)
    assert made.arg_names == ["x_ptr", "n", "BLOCK", "flag"]
    assert [p.num for p in made.params if p.is_constexpr] == made.constexprs == [2]
    assert made.params[3].default is None
    assert made.params[0].default is inspect.Parameter.empty
    assert made.src.startswith("def kernel(x_ptr")
    assert made.cache_key != jit(launched).cache_key
    assert made.__name__ == "kernel"
    assert made.fn is kernel


@pytest.mark.parametrize(("n", "power"), [(0, 0), (1, 1), (2, 2), (3, 4), (1000, 1024), (1024, 1024), (1025, 2048)])
def test_next_power_of_2(n: int, power: int) -> None:
    """As Triton has it."""
    assert next_power_of_2(n) == power == next_power_of_2(Constexpr(n))


def test_arithmetic_of_constexpr_is_that_of_its_value() -> None:
    """And gives another one."""
    two, five = Constexpr(2), Constexpr(5)
    assert [(five + two).value, (7 - two).value, (five // 2).value, (2**five).value] == [7, 5, 2, 32]
    assert (five > two).value is True
    assert bool(five == 5)
    assert [10, 20, 30][two] == 30
    assert f"{five:03}" == "005"
    assert Constexpr(Constexpr(3)).value == 3


def test_a_descriptor_of_the_host() -> None:
    """Is checked as Triton checks it, and names its tensor."""
    block = [2, 8]
    described = TensorDescriptor.from_tensor(X, block)
    described.block_shape = [4, 4]  # what an autotuner's hook does
    given = launched(described, 5, 16).arguments["x_ptr"]
    assert isinstance(given, DescriptorArgument)
    assert (given.shape, given.strides, given.block_shape, given.padding) == ((4, 8), (8, 1), (4, 4), "zero")
    for wrong in (([4, 8], [7, 1]), ([4, 8], [8, 2]), ([4], [8, 1]), ([0, 8], [8, 1])):
        with pytest.raises(TritonDescriptorError):
            TensorDescriptor(X, *wrong, block)
