"""torch's ``cuda`` in a session: the CPU, which answers as a GPU would. Where torch is installed."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator
from typing import Any

import pytest
from tritonlaunches import DEVICE, noted

from kernscope.ir.errors import ArgumentError
from kernscope.tracer.triton.constexpr import Constexpr
from kernscope.tracer.triton.host.jit import jit
from kernscope.tracer.triton.host.session_state import SessionState
from kernscope.tracer.triton.host.tensors import tensor_argument
from kernscope.tracer.triton.host.torch_device import torch_on_cpu

torch: Any = pytest.importorskip("torch")


@pytest.fixture
def session() -> Iterator[SessionState]:
    """A session with torch in it."""
    with noted() as state, torch_on_cpu(state):
        yield state


def test_what_is_made_on_cuda_says_so(session: SessionState) -> None:
    """And what is computed from it; what is made on the CPU does not, until it is sent there."""
    for x in (
        torch.randn(3, device="cuda"),
        torch.randn(3, device=torch.device("cuda", 0)),
        torch.randn(3).cuda(),
        torch.randn(3).to("cuda"),
        torch.randn(3).to("cuda", torch.float16),
        torch.tensor([1, 2], device=0),
    ):
        for same in (x, x * 2, torch.empty_like(x), x.view(-1), torch.zeros(2, device=x.device)):
            assert same.is_cuda
            assert str(same.device) == "cuda:0"
        assert not x.cpu().is_cuda
    for y in (torch.randn(3), torch.randn(3) + 1, torch.randn(3, device="cpu")):
        assert y.device.type == "cpu"


def test_a_copy_is_made_where_a_gpu_has_a_second_memory(session: SessionState) -> None:
    """And only there."""
    x = torch.zeros(3)
    y = x.cuda()
    y += 1
    assert x.sum() == 0
    assert y.cuda() is y
    assert y.to(y.device) is y
    z = y.cpu()
    y += 1
    assert z.sum() == 3


def test_a_default_device_is_obeyed(session: SessionState) -> None:
    """Set for good, or in a block."""
    torch.set_default_device("cuda")
    assert torch.randn(2).is_cuda
    torch.set_default_device("cpu")
    with torch.device("cuda"):
        assert torch.randn(2).is_cuda
    assert not torch.randn(2).is_cuda


def test_a_backward_pass_of_the_scripts_own_sees_the_gpu(session: SessionState) -> None:
    """torch runs it from within."""
    seen = []

    class Double(torch.autograd.Function):  # type: ignore[misc]  # of a module that is known when it runs
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return 2 * x

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            (x,) = ctx.saved_tensors
            seen.append((x.is_cuda, dy.is_cuda, torch.empty(1, device=dy.device).is_cuda))
            return 2 * dy

    x = torch.ones(3, device="cuda", requires_grad=True)
    Double.apply(x).sum().backward()
    assert seen == [(True, True, True)]
    assert x.grad.tolist() == [2, 2, 2]


def test_a_module_goes_to_the_gpu(session: SessionState) -> None:
    """With its parameters."""
    model = torch.nn.Linear(2, 3).cuda()
    assert model.weight.is_cuda
    assert model(torch.ones(1, 2, device="cuda")).is_cuda


def test_questions_are_answered(session: SessionState) -> None:
    """With the machine's numbers; streams and events cost nothing."""
    assert torch.cuda.is_available()
    assert torch.cuda.device_count() == 1
    assert torch.cuda.get_device_properties(0).multi_processor_count == DEVICE.processing_elements
    torch.cuda.synchronize()
    with torch.cuda.device(0), torch.cuda.stream(torch.cuda.Stream()):
        generator = torch.Generator(device="cuda").manual_seed(1)
        first = torch.rand(2, device="cuda", generator=generator)
    assert first.equal(torch.rand(2, generator=torch.Generator().manual_seed(1)))
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    end.record()
    assert math.isnan(start.elapsed_time(end))
    assert torch.compile(len) is len


def test_everything_is_as_before_afterwards() -> None:
    """Also after an error."""
    before = {name: getattr(torch.cuda, name) for name in ("is_available", "Stream", "device", "synchronize")}
    generator, version = torch.Generator, torch.version.cuda
    with pytest.raises(ZeroDivisionError), noted() as state, torch_on_cpu(state):
        x = torch.ones(2, device="cuda")
        raise ZeroDivisionError
    assert {name: getattr(torch.cuda, name) for name in before} == before
    assert (torch.Generator, torch.version.cuda) == (generator, version)
    assert x.device.type == "cpu"
    with pytest.raises(Exception, match=r"CUDA|cuda"):
        torch.ones(2, device="cuda")


def test_a_tensor_is_a_place_in_its_memory(session: SessionState) -> None:
    """Of every dtype that numpy has no name for, too."""
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float8_e5m2, torch.int64, torch.bool):
        x = torch.zeros(4, 6, device="cuda").to(dtype)
        given = tensor_argument(x[1:, ::2])
        assert (given.offset, given.shape, given.strides) == (6, (3, 3), (6, 2))
        assert given.memory.dtype.itemsize == x.element_size()
        given.memory[given.offset] = 1
        assert x[1, 0].float() == 1
        assert given.address == tensor_argument(x).address


def test_the_address_of_a_tensor_is_known(session: SessionState) -> None:
    """To the launches after the script has asked for it, as long as the tensor lives."""
    triton = importlib.import_module("triton")

    @triton.jit
    def kernel(p):  # type: ignore[no-untyped-def]
        pass

    x = torch.ones(4, device="cuda")
    kernel[(1,)](x.data_ptr())
    known = session.launches[0].addresses
    assert [argument.address for argument in known.values()] == [x.data_ptr()]
    del x
    kernel[(1,)](1)
    assert session.launches[1].addresses == {}
    assert isinstance(session.launches[1].arguments["p"], Constexpr)


def test_what_has_an_address_in_a_tensor_is_one(session: SessionState) -> None:
    """As libraries wrap tensors: an address, a dtype, and strides of their own."""
    x = torch.zeros(4, 6, device="cuda")

    class Buffer:
        dtype, shape = torch.float32, (2, 6)

        def data_ptr(self) -> int:
            return int(x.data_ptr()) + 6 * 4

        def stride(self) -> tuple[int, int]:
            return (12, 1)

    given = tensor_argument(Buffer())
    assert (given.offset, given.shape, given.strides) == (6, (2, 6), (12, 1))
    assert given.address == tensor_argument(x).address
    given.memory[given.offset] = 3
    assert x[1, 0] == 3


def test_an_operator_of_a_library_for_cuda_runs_and_sees_the_gpu(session: SessionState) -> None:
    """torch calls it from within, too."""
    seen = []
    library = torch.library.Library("kernscope_test", "DEF")
    library.define("twice(Tensor x) -> Tensor")

    def twice(x: Any) -> Any:
        seen.append(x.is_cuda)
        return x + x

    library.impl("twice", twice, "CUDA")
    assert torch.ops.kernscope_test.twice(torch.ones(2, device="cuda")).tolist() == [2, 2]
    assert seen == [True]


def test_microscaling_numbers_are_those_of_the_format(session: SessionState) -> None:
    """Every code of e2m1 and e8m0 there and back; numbers between two codes go to the even one, larger ones to 6."""
    mxfp = importlib.import_module("triton.tools.mxfp")
    codes = mxfp.MXFP4Tensor(size=(4,)).random()
    codes.data = torch.arange(16, dtype=torch.uint8)
    numbers = codes.to(torch.float32)
    assert numbers[:8].tolist() == [0, 0.5, 1, 1.5, 2, 3, 4, 6]
    assert numbers[8:].tolist() == [-x for x in numbers[:8].tolist()]
    assert mxfp.MXFP4Tensor(data=numbers).data.tolist() == list(range(16))
    between = mxfp.MXFP4Tensor(data=torch.tensor([0.25, 0.75, 2.5, 5.0, -9.0, math.inf])).to(torch.float32)
    assert between.tolist() == [0, 1, 2, 4, -6, 6]
    scales = mxfp.MXScaleTensor(data=torch.tensor([1.0, 3.0, 0.25, -1.0, math.nan]))
    assert scales.data.tolist() == [127, 128, 125, 255, 255]
    assert scales.to(torch.float32)[:3].tolist() == [1, 2, 0.25]
    drawn = mxfp.MXScaleTensor(size=(1000,)).random(low=0.5, high=4.0).data
    assert sorted(set(drawn.tolist())) == [126, 127, 128, 129]


def test_microscaling_numbers_are_packed_by_two(session: SessionState) -> None:
    """Along a dimension, the first one in the low bits; an odd one comes back alone."""
    mxfp = importlib.import_module("triton.tools.mxfp")
    made = mxfp.MXFP4Tensor(size=(3, 5)).random()
    for dim in (0, 1, -1, -2):
        packed = made.to_packed_tensor(dim)
        assert packed.shape[dim] == (made.data.shape[dim] + 1) // 2
        assert torch.equal(packed.select(dim, 0) & 15, made.data.select(dim, 0))
        assert torch.equal(made.unpack_packed_tensor(packed, dim, made.data.shape), made.data)


def test_libraries_read_and_move_on_the_gpu_s_generator(session: SessionState) -> None:
    """Its state is a seed and an offset; every way to seed begins anew."""
    (generator,) = torch.cuda.default_generators
    for seed in (torch.manual_seed, torch.cuda.manual_seed, torch.cuda.manual_seed_all, generator.manual_seed):
        state = generator.get_state()
        words = state.view(torch.int64)
        words += torch.tensor([3, 8])
        before = generator.get_state().view(torch.int64).tolist()
        generator.set_state(state)
        assert generator.get_state().view(torch.int64).tolist() == [before[0] + 3, before[1] + 8]
        seed(77)
        assert generator.get_state().view(torch.int64).tolist() == [77, 0]
        assert generator.initial_seed() == 77


def takes(x_ptr, n):  # type: ignore[no-untyped-def]
    """A kernel."""


def test_tensors_that_no_kernel_takes_do_not_stand_in_the_way(session: SessionState) -> None:
    """Their address may have been asked for; a launch knows those that can be gone to. Of a view that says that its
    numbers are negated, kernels see the memory."""
    waves, x = torch.zeros(2, dtype=torch.complex64), torch.ones(3)
    for tensor in (waves, x):
        tensor.data_ptr()
    jit(takes)[(1,)](x, 3)
    assert list(session.launches[0].addresses) == [x.data_ptr()]
    with pytest.raises(ArgumentError, match="complex64"):
        jit(takes)[(1,)](waves, 3)
    assert tensor_argument(torch._neg_view(x)).memory.tolist() == [1, 1, 1]
