"""Every kernel at every launch: right numbers, in every order; no findings; scratch as its docstring states it."""

import re
from typing import Any

import kernelcases
import numpy as np
import pytest

import kernscope as ks
from kernscope import tl
from kernscope.face.api import compare_with_launch

ALL = kernelcases.launches(kernelcases.KERNELS)
#: Running 128K keys in each order takes minutes; test_gqa_attention.py does it once.
IN_ANY_ORDER = kernelcases.launches(
    kernelcases.KERNELS,
    without=(
        "matmul:2k",
        "gqa_attention_prefill_long:8k",
        "gqa_attention_prefill_long:32k",
        "gqa_attention_prefill_long:128k",
    ),
)
ONE_OF_EACH = [pytest.param(kernelcases.kernel_of(module).launch(), id=module) for module in kernelcases.KERNELS]


def bits(outputs: dict[str, Any]) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in outputs.items()}


@pytest.mark.parametrize("launch", IN_ANY_ORDER)
def test_the_numbers_are_the_references_in_every_order(launch: ks.Launch) -> None:
    """In program order, and poisoned in the order of every policy's schedule, the outputs agree with numpy within the
    launch's tolerance, and are the same to the last bit."""
    graph = ks.trace(launch)
    given = kernelcases.numbers(launch)
    expected = ks.run(graph, given)
    comparisons = compare_with_launch(launch, given, expected)
    assert comparisons
    assert all(comparison.ok for comparison in comparisons), comparisons
    for row in ks.compare(graph, effort="fast"):
        assert row.schedule is not None
        assert bits(ks.run(graph, given, order=row.schedule, poison=True)) == bits(expected), row.policy


@pytest.mark.parametrize("launch", ONE_OF_EACH)
def test_a_wrong_output_is_not_taken_for_right(launch: ks.Launch) -> None:
    """The tolerance is tight enough to fail: outputs that are 5 % too large, or zero, do not pass."""
    given = kernelcases.numbers(launch)
    outputs = ks.run(ks.trace(launch), given)
    for wrong in (1.05, 0.0):
        scaled = {name: (array * np.float32(wrong)).astype(array.dtype) for name, array in outputs.items()}
        assert not any(comparison.ok for comparison in compare_with_launch(launch, given, scaled))


@pytest.mark.parametrize("launch", ALL)
def test_kernels_lint_without_errors_and_warnings(launch: ks.Launch) -> None:
    """What comes with the tool is what the tool recommends."""
    assert [str(d) for d in ks.lint(launch) if d.severity != "info"] == []


def scratch_at_peak(launch: ks.Launch) -> list[int]:
    """The bytes held at the peak of the fullest rank, by scope, from the outermost on."""
    graph = ks.trace(launch)
    live = ks.liveness(graph)
    by_scope: dict[int, int] = {}
    for row in live.held_at_peak().tolist():
        assert graph.in_scratch[row]
        scope = int(graph.storages.scope[row])
        by_scope[scope] = by_scope.get(scope, 0) + int(live.held_bytes[row])
    assert sum(by_scope.values()) == live.peak_bytes
    return [by_scope[scope] for scope in sorted(by_scope)]


@pytest.mark.parametrize(
    ("module", "launch", "stated"),
    [
        ("vector_add", "1m", [196_608]),
        ("matmul", "512", [65_536, 65_536]),
        ("softmax", "1k", [655_616]),
        ("layer_norm", "1k", [12_288, 360_832]),
        ("rms_norm", "1k", [6_144, 295_168]),
        ("all_gather", "8-ranks", [131_072]),
        ("reduce_scatter", "8-ranks", [131_072, 16_384]),
        ("all_reduce", "8-ranks", [245_760]),
        ("flash_attention", "2k", [99_328, 560_640]),
        ("flash_attention", "2k-causal", [99_328, 643_584]),
        ("flash_attention_prefetch", "2k", [230_400, 495_104]),
        ("gqa_attention_prefill_short", "1k", [100_864, 675_840]),
        ("gqa_attention_prefill_short", "8k", [100_864, 675_840]),
        ("gqa_attention_prefill_long", "8k", [313_856, 388_864]),
        pytest.param("gqa_attention_prefill_long", "32k", [313_856, 388_864], marks=pytest.mark.slow),
        pytest.param("gqa_attention_prefill_long", "128k", [313_856, 388_864], marks=pytest.mark.slow),
        ("gqa_attention_decode_short", "8k", [6_208, 266_464]),
        ("gqa_attention_decode_long", "8k", [6_208, 266_464]),
        ("gqa_attention_decode_long", "32k", [6_208, 266_464]),
        ("gqa_attention_decode_long", "128k", [6_208, 266_464]),
    ],
)
def test_scratch_is_what_the_docstring_states(module: str, launch: str, stated: list[int]) -> None:
    """Persistent and scoped bytes at the peak are these, and the kernel's docstring says so; they do not grow with the
    context."""
    kernel = kernelcases.kernel_of(module)
    assert scratch_at_peak(kernel.launch(launch)) == stated
    numbers = [int(number.replace(",", "")) for number in re.findall(r"([\d,]+)\s+B\b", kernel.__doc__ or "")]
    assert set(stated) <= set(numbers)


def test_loading_one_tile_ahead_gains_under_lazy() -> None:
    """S2's point: with buffers of their own the next tile's loads overlap the computing of this one. The prefetching
    kernel beats the plain one under lazy by the time of the loads it hides; under blocking both take the same."""
    plain = ks.trace(kernelcases.kernel_of("flash_attention").launch("2k"))
    ahead = ks.trace(kernelcases.kernel_of("flash_attention_prefetch").launch("2k"))
    assert plain.count("memory/dma_read") == ahead.count("memory/dma_read") == 33
    spans = {policy: [ks.schedule(g, policy).makespan_ps for g in (plain, ahead)] for policy in ("blocking", "lazy")}
    assert spans["blocking"][0] == spans["blocking"][1]
    # A load of (128, 128) f16 takes 100 + 256 ns; 15 times one of two loads is hidden that the plain kernel waits for.
    assert spans["lazy"][0] - spans["lazy"][1] == 15 * 356_000


REFUSED = [
    ("vector_add", {"y": ks.hbm((5,), "f32")}, "vector_add of shapes"),
    ("matmul", {"b": ks.hbm((64, 512), "f16")}, "matmul of"),
    ("softmax", {"o": ks.hbm((256, 512), "f32")}, "softmax of"),
    ("layer_norm", {"bias": ks.hbm((8,), "f16")}, "layer_norm of"),
    ("rms_norm", {"weight": ks.hbm((8,), "f16")}, "rms_norm of"),
    ("all_gather", {"tile": 100}, "all_gather of x"),
    ("reduce_scatter", {"o": ks.hbm((8,), "f32")}, "reduce_scatter of x"),
    ("all_reduce", {"o": ks.hbm((8,), "f32")}, "all_reduce of x"),
    ("flash_attention", {"tile": 100}, "2048 keys in tiles of 100"),
    ("flash_attention", {"rows": 100}, "128 queries in blocks of 100"),
    ("flash_attention", {"v": ks.hbm((1024, 128), "f16")}, "flash_attention of q"),
    ("flash_attention_prefetch", {"tile": 100}, "2048 keys in tiles of 100"),
]


@pytest.mark.parametrize(("module", "changed", "message"), REFUSED)
def test_shapes_that_do_not_fit_are_refused(module: str, changed: dict[str, Any], message: str) -> None:
    """A kernel says what it was given and what it takes."""
    with pytest.raises(ks.ShapeError, match=message) as caught:
        ks.trace(kernelcases.kernel_of(module).launch(), **changed)
    assert caught.value.help


def test_a_kernel_can_call_another() -> None:
    """A kernel is a function: inside a trace it can be called by another one."""
    vector_add = kernelcases.kernel_of("vector_add")

    @ks.kernel
    def twice(x: ks.HbmTensor, o: ks.HbmTensor) -> None:
        with tl.scratch_scope("outer"):
            vector_add(x, x, o, tile=8)

    graph = ks.trace(twice, np.arange(16, dtype=np.float32), ks.hbm((16,), "f32"))
    assert ks.run(graph)["o"].tolist() == [2.0 * n for n in range(16)]
