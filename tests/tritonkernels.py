"""Kernels in Triton's language, launched from tests on numpy arrays."""

from __future__ import annotations

from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np

import kernscope as ks
from kernscope.checker.check import check
from kernscope.ir.verifier.verify import verify
from kernscope.tracer.triton.constexpr import Constexpr, constexpr
from kernscope.tracer.triton.language import MATH, NAMES
from kernscope.tracer.triton.launching import Launch, LaunchOptions, launch
from kernscope.tracer.triton.rewriting import rewritten

__all__ = ["MACHINE", "holds", "launched", "same_in_turn", "tl"]

MACHINE = ks.load_machine("ahbm-pe")
tl = SimpleNamespace(**{**NAMES, "constexpr": constexpr, "math": SimpleNamespace(**MATH)})


def launched(kernel: FunctionType, grid: Any, *args: Any, options: dict[str, Any] | None = None, **meta: Any) -> Launch:
    """Launch a kernel: positional arguments are those of its run time, `meta` those of its compile time."""
    names = kernel.__code__.co_varnames[: kernel.__code__.co_argcount]
    arguments = dict(zip(names, args, strict=False)) | {name: Constexpr(value) for name, value in meta.items()}
    sizes = (*(grid if isinstance(grid, tuple) else (grid,)), 1, 1)[:3]
    made = LaunchOptions(machine=MACHINE.name, kernel=kernel.__name__, **(options or {}))
    return launch(rewritten(kernel), arguments, sizes, target=MACHINE.target, options=made)


def same_in_turn(made: Launch, outputs: dict[str, np.ndarray[Any, Any]]) -> None:
    """Property: the graphs of all programs, run one after the other on the memory from before, leave what tracing left,
    bit for bit; each holds together, and the independent checker finds its schedules legal."""
    state = {storage.name: storage.before.copy() for storage in made.storages if storage.before is not None}
    programs = int(np.prod(made.grid))
    for program in range(programs):
        graph = made.graph(program)
        assert verify(graph) == []
        state.update(ks.run(graph, {name: state[name] for name in graph.tensors}))
    for name, array in outputs.items():
        assert state[name].reshape(-1).tobytes() == np.ascontiguousarray(array).reshape(-1).tobytes(), name
    for trace in made.traces:
        for policy in ("blocking", "lazy", "queued", "list"):
            assert check(ks.schedule(trace.graph(), policy, MACHINE, effort="fast")) == []


def holds(made: Launch) -> None:
    """No fact was found that a rule would speak of."""
    assert [(fact.kind, fact.what) for fact in made.facts] == []
