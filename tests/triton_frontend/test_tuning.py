"""``triton.autotune`` and ``triton.heuristics``: which configuration a launch runs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tritonlaunches import noted

from kernscope.ir.errors import ArgumentError, TritonCompileError
from kernscope.tracer.triton.constexpr import bare
from kernscope.tracer.triton.host.jit import jit
from kernscope.tracer.triton.host.tuning import Config, autotune, heuristics


def kernel(x_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr = False):  # type: ignore[no-untyped-def]  # noqa: F821
    """A kernel."""


CONFIGS = [Config({"BLOCK": block}, num_stages=stages) for block, stages in ((16, 2), (32, 3), (64, 4))]
X = np.zeros(8, np.float32)


def blocks(launches: Any) -> list[int]:
    """The block of each."""
    return [bare(launch.arguments["BLOCK"]) for launch in launches]


def refusing(*refused: int) -> Any:
    """A language that refuses some blocks, after it has written."""

    def run(request: Any) -> None:
        request.arguments["x_ptr"].memory[...] += 1
        if bare(request.arguments["BLOCK"]) in refused:
            request.arguments["x_ptr"].memory[...] -= 1  # a launch that raises leaves memory as it was
            raise TritonCompileError("no")

    return run


def test_the_first_configuration_is_run() -> None:
    """Its options go along, a grid sees its values, and it is what the autotuner says is best."""
    tuned = autotune(CONFIGS, key=["n"])(jit(kernel))
    with noted() as state:
        tuned[lambda meta: (meta["BLOCK"],)](X, 8)
        (request,) = state.launches
    assert request.grid == (16, 1, 1)
    assert request.options["num_stages"] == 2
    assert request.config is tuned.best_config is CONFIGS[0]


def test_what_the_language_refuses_is_passed_over() -> None:
    """The next one is run; where all are refused, the first one's reason is raised."""
    X[...] = 0
    tuned = autotune(CONFIGS, key=["n"])(jit(kernel))
    with noted(run=refusing(16, 32)) as state:
        tuned[(1,)](X, 8)
        assert blocks(state.launches) == [64]
    assert (X == 1).all()
    with noted(run=refusing(16, 32, 64)), pytest.raises(TritonCompileError, match="no configuration of kernel"):
        tuned[(1,)](X, 8)


def test_what_does_not_fit_is_undone_and_the_next_one_is_run() -> None:
    """Memory has the effects of one launch; where none fits, the first one is run."""
    tuned = autotune(CONFIGS, key=["n"])(jit(kernel))
    for fitting, expected in ((64, [64]), (32, [32]), (0, [16])):
        X[...] = 0
        fits = lambda launch, fitting=fitting: bare(launch.arguments["BLOCK"]) == fitting  # noqa: E731
        with noted(run=refusing(), fits=fits) as state:
            tuned[(1,)](X, 8)
            assert blocks(state.launches) == expected
        assert (X == 1).all()


def test_all_configurations_are_tried_on_request() -> None:
    """Each on the arguments as they are; the script's own launch is the first legal one, once."""
    X[...] = 0
    tuned = autotune(CONFIGS, key=["n"])(jit(kernel))
    with noted(run=refusing(32), configs="all") as state:
        tuned[(1,)](X, 8)
        assert blocks(state.launches) == [16]
        assert [trial.config for trial in state.trials] == CONFIGS
        assert [trial.refused is None for trial in state.trials] == [True, False, True]
    assert (X == 1).all()


def test_pruning_is_obeyed() -> None:
    """A kernel's own early pruning, and a model of its time with how many it keeps."""
    early = {
        "early_config_prune": lambda configs, named, **kwargs: [c for c in configs if c.kwargs["BLOCK"] > named["n"]]
    }
    model = {"perf_model": lambda **given: -given["BLOCK"], "top_k": 1}
    for pruning, expected in ((early, 32), (model, 64), ({**early, **model}, 64)):
        with noted() as state:
            autotune(CONFIGS, key=["n"], prune_configs_by=pruning)(jit(kernel))[(1,)](X, 20)
            assert blocks(state.launches) == [expected]
    none = {"early_config_prune": lambda configs, named, **kwargs: []}
    with noted(), pytest.raises(ArgumentError, match="leaves none of 3"):
        autotune(CONFIGS, key=["n"], prune_configs_by=none)(jit(kernel))[(1,)](X, 20)


def test_a_hook_of_a_configuration_sees_its_values() -> None:
    """Before the launch, with all arguments by name."""
    seen = []
    config = Config({"BLOCK": 16}, pre_hook=lambda given: seen.append((given["n"], given["BLOCK"])))
    with noted():
        autotune([config], key=[])(jit(kernel))[(1,)](X, 5)
    assert seen == [(5, 16)]


def test_what_is_tuned_is_not_given_as_well() -> None:
    """As in Triton."""
    with noted(), pytest.raises(ArgumentError, match="BLOCK=16, which its configurations"):
        autotune(CONFIGS, key=["n"])(jit(kernel))[(1,)](X, 5, BLOCK=16)


def test_libraries_that_choose_for_themselves_are_told_times() -> None:
    """Those of the machine; memory stays, and the script has launched nothing."""
    X[...] = 0
    tuned = autotune(CONFIGS, key=["n"])(jit(kernel))
    fits = lambda launch: bare(launch.arguments["BLOCK"]) != 64  # noqa: E731
    with noted(run=refusing(32), fits=fits) as state:
        times = [tuned._bench(X, 8, config=config, grid=(1,), warmup=False) for config in CONFIGS]
        assert state.launches == []
    assert times == [[2.0] * 3, [math.inf] * 3, [math.inf] * 3]
    assert (X == 0).all()


def test_heuristics_see_the_arguments_and_the_configuration() -> None:
    """Between the autotuner and the kernel, and without one."""
    even = heuristics({"EVEN": lambda given: given["n"] % given["BLOCK"] == 0})
    with noted() as state:
        tuned = autotune(CONFIGS, key=["n"])(even(jit(kernel)))
        tuned[(1,)](X, 32)
        even(jit(kernel))[(1,)](X, 33, BLOCK=16)
        assert [bare(launch.arguments["EVEN"]) for launch in state.launches] == [True, False]
    assert tuned.jit_function.fn is kernel
