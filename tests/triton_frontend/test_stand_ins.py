"""What ``import triton`` finds in a session, and nowhere else."""

from __future__ import annotations

import importlib
import importlib.util
import math
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from tritonlaunches import DEVICE, noted

from kernscope.ir.errors import TritonNameError, TritonSessionError
from kernscope.tracer.triton.host.jit import JITFunction
from kernscope.tracer.triton.host.modules import standing_in


@contextmanager
def real_triton() -> Iterator[types.ModuleType]:
    """As if Triton were installed and imported."""
    real = types.ModuleType("triton")
    before = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "triton"}
    sys.modules["triton"] = sys.modules["triton.language"] = real
    try:
        yield real
    finally:
        del sys.modules["triton"], sys.modules["triton.language"]
        sys.modules.update(before)


def test_modules_are_there_inside_only() -> None:
    """Whatever was there before is back afterwards, also when the script fails."""
    with real_triton() as real:
        with pytest.raises(ZeroDivisionError), standing_in() as triton:
            assert importlib.import_module("triton") is triton is not real
            assert importlib.import_module("triton.language").constexpr is triton.language.constexpr
            raise ZeroDivisionError
        assert sys.modules["triton"] is sys.modules["triton.language"] is real
        assert [name for name in sys.modules if name.startswith("triton.")] == ["triton.language"]


def test_sessions_do_not_nest() -> None:
    """The modules of a process are there once."""
    with noted(), pytest.raises(TritonSessionError, match="running already"), noted():
        pass


@pytest.mark.parametrize(
    "line",
    [
        "from triton import Config, JITFunction, KernelInterface, autotune, cdiv, heuristics, jit, next_power_of_2",
        "from triton.backends.compiler import GPUTarget",
        "from triton.compiler import CompiledKernel",
        "from triton.compiler.errors import CompilationError, CompileTimeAssertionFailure",
        "from triton.language import constexpr",
        "from triton.language.extra import libdevice",
        "from triton.language.extra.cuda import libdevice",
        "from triton.runtime import driver, Autotuner, JITFunction",
        "from triton.runtime.autotuner import Autotuner, Heuristics, OutOfResources",
        "from triton.runtime.jit import JITFunction, KernelInterface",
        "from triton.testing import Benchmark, do_bench, perf_report, assert_close",
        "from triton.tools.tensor_descriptor import TensorDescriptor",
        "import triton, triton.language as tl, triton.language.core, triton.profiler as proton",
        "import triton.runtime.driver as driver; driver.active",
        "from triton import knobs; from triton.knobs import compilation",
        "from triton._internal_testing import is_cuda, numpy_random, requires_tma, to_numpy, to_triton",
        "from triton._utils import type_canonicalisation_dict",
        "from triton.runtime._allocation import NullAllocator, set_allocator",
        "from triton.language.standard import _log2, zeros_like; assert [_log2(1), _log2(8)] == [0, 3]",
        "from triton.language.standard import _is_power_of_two as p; assert p(8) and not p(6) and not p(0)",
        "from triton.tools.mxfp import MXFP4Tensor, MXScaleTensor",
        "from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait",
    ],
)
def test_what_scripts_import_is_there(line: str) -> None:
    """In the ways in which public sources import it."""
    with standing_in():
        exec(line, {})


def test_a_missing_name_names_itself_and_kernscope() -> None:
    """As an attribute; ``hasattr`` and ``from ... import`` find it missing, as they should."""
    with standing_in() as triton:
        with pytest.raises(TritonNameError, match=r"triton\.language\.no_such is not known to kernscope"):
            triton.language.no_such  # noqa: B018
        with pytest.raises(TritonNameError) as caught:
            triton.next_power_of2  # noqa: B018
        assert caught.value.help == "did you mean 'next_power_of_2'?"
        assert not hasattr(triton.language, "no_such")
        with pytest.raises(ImportError, match="no_such"):
            exec("from triton.language import no_such", {})
        with pytest.raises(ModuleNotFoundError, match=r"triton\.no_such"):
            exec("import triton.no_such", {})
        assert importlib.util.find_spec("triton") is not None


def test_the_driver_answers_with_the_machine() -> None:
    """Its processing elements and scratch; another question is refused by name."""
    with noted() as state:
        driver = importlib.import_module("triton").runtime.driver
        properties = driver.active.utils.get_device_properties(0)
        assert properties["multiprocessor_count"] == DEVICE.processing_elements
        assert properties["max_shared_mem"] == DEVICE.scratch_bytes
        assert driver.active.get_current_target().backend == "cuda"
        driver.set_active_to_cpu()
        assert driver.active.get_current_target().backend == "cpu"
        assert not state.is_gpu_active
        with pytest.raises(TritonNameError, match=r"driver\.active\.launch_kernel_on_device"):
            driver.active.launch_kernel_on_device  # noqa: B018


def launching(times: int) -> Any:
    """A function that launches a kernel so many times."""
    with standing_in():
        jit = importlib.import_module("triton").jit

    @jit
    def kernel(n):  # type: ignore[no-untyped-def]
        pass

    assert isinstance(kernel, JITFunction)
    return lambda: [kernel[(1,)](n) for n in range(times)]


def test_a_benchmark_answers_with_the_time_on_the_machine() -> None:
    """That of all launches of one call; NaN for what launches nothing, and a note says so."""
    with noted() as state:
        testing = importlib.import_module("triton").testing
        assert testing.do_bench(launching(3)) == 6.0
        assert testing.do_bench(launching(1), quantiles=[0.5, 0.2, 0.8]) == [2.0, 2.0, 2.0]
        assert len(state.launches) == 4
        assert state.notes == []
        assert math.isnan(testing.do_bench(lambda: None))
        assert any("NaN" in note for note in state.notes)


@pytest.mark.parametrize(("sweep", "sizes"), [("first", [16]), ("all", [16, 32, 64]), ("none", [])])
def test_a_report_runs_the_sizes_asked_for(sweep: Any, sizes: list[int], capsys: pytest.CaptureFixture[str]) -> None:
    """For each of its lines; what is left out is noted."""
    seen = []
    with noted(sweep=sweep) as state:
        testing = importlib.import_module("triton").testing

        @testing.perf_report(
            testing.Benchmark(["n"], [16, 32, 64], "provider", ["a", "b"], ["A", "B"], plot_name="plot", args={"k": 3})
        )
        def benchmark(n: int, provider: str, k: int) -> float:
            seen.append((n, provider, k))
            return n / 2

        benchmark.run(print_data=True, show_plots=True)
        notes = list(state.notes)
    assert seen == [(n, provider, 3) for n in sizes for provider in "ab"]
    assert bool(notes) == (sweep != "all")
    shown = capsys.readouterr().out
    assert all(f"{n / 2:g}" in shown for n in sizes)


def test_assert_close_has_tritons_tolerances() -> None:
    """An absolute 1e-2, unless told otherwise."""
    with standing_in() as triton:
        triton.testing.assert_close([1.0, 2.0], [1.005, 2.0])
        with pytest.raises(AssertionError):
            triton.testing.assert_close([1.0, 2.0], [1.02, 2.0])
        triton.testing.assert_close([1.0, 2.0], [1.02, 2.0], rtol=0.1)


def test_settings_are_read_set_scoped_and_reset(monkeypatch: pytest.MonkeyPatch) -> None:
    """As scripts and test suites do with `triton.knobs`: the environment counts where nothing is set."""
    monkeypatch.setenv("TRITON_PRINT_AUTOTUNING", "1")
    monkeypatch.delenv("TRITON_ALWAYS_COMPILE", raising=False)
    with standing_in() as triton:
        knobs = triton.knobs
        assert knobs.autotuning.print is True
        assert knobs.compilation.always_compile is False
        with knobs.compilation.scope():
            knobs.compilation.always_compile = True
            monkeypatch.setenv("TRITON_KERNEL_DUMP", "1")
            assert knobs.compilation.always_compile is knobs.compilation.dump_ir is True
        assert knobs.compilation.always_compile is knobs.compilation.dump_ir is False
        knobs.cache.dir = "somewhere"
        fresh = knobs.cache.copy().reset()
        assert (knobs.cache.dir, fresh.dir) == ("somewhere", None)
    with standing_in() as triton:
        assert triton.knobs.cache.dir is None


def test_a_setting_that_there_is_none_of_and_a_hook_are_refused_by_name() -> None:
    """Nothing that is written is lost in silence."""
    with standing_in() as triton:
        with pytest.raises(TritonNameError, match=r"triton\.knobs\.compilation\.always_compil is not known"):
            triton.knobs.compilation.always_compil = True
        with pytest.raises(TritonNameError, match=r"knobs\.runtime\.launch_enter_hook\.add is refused"):
            triton.knobs.runtime.launch_enter_hook.add(print)


@pytest.mark.parametrize(
    ("name", "said"), [("smid", "after the launch"), ("globaltimer", "no clock"), ("num_warps", "GPU's threads")]
)
def test_what_only_a_gpu_has_is_refused_with_its_reason(name: str, said: str) -> None:
    """Names of `tl.extra.cuda`."""
    with standing_in() as triton, pytest.raises(TritonNameError, match=rf"{name} is refused by kernscope: .*{said}"):
        getattr(triton.language.extra.cuda, name)


def test_types_have_the_names_of_signatures() -> None:
    """`tl.str_to_ty` knows numbers, pointers, and types that are refused when they are used."""
    with standing_in() as triton:
        tl = triton.language
        assert tl.str_to_ty("fp32", None) == tl.float32
        assert tl.str_to_ty("*ki64", None).element_ty == tl.int64
        assert tl.str_to_ty("i1", None) == tl.int1
        missing = tl.str_to_ty("fp8e4b15", None)
        with pytest.raises(TritonNameError, match=r"tl\.float8e4b15 is refused by kernscope"):
            _ = missing.fp_mantissa_width


def test_random_arrays_of_triton_s_tests_are_those_of_triton() -> None:
    """The same seeds, so that a test meets the numbers that it was written for; integers are never 0."""
    with noted():
        testing = importlib.import_module("triton._internal_testing")
        found = testing.numpy_random((64,), "int8")
        assert found.dtype == np.int8
        assert found.all()
        wanted = np.random.RandomState(17).normal(0, 1, (8,)).astype(np.float32)
        assert np.array_equal(testing.numpy_random(8, "float32"), wanted)
        assert testing.is_cuda()
        assert not testing.is_interpreter()
