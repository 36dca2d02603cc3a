"""kernscope: see what a tile kernel will do on an accelerator, before any device exists.

Trace a kernel once, then schedule, lint, execute and draw its graph::

    import kernscope as ks

    graph = ks.trace(kernel.launch("2k"))
    print(ks.lint(graph))
    print(ks.schedule(graph, policy="list").makespan_ps)
"""

from __future__ import annotations

import importlib
from importlib import metadata
from typing import TYPE_CHECKING, Any

from . import blas_threads as _blas_threads  # noqa: F401  (first: it is too late once numpy is loaded)
from .face.api import branches, check, compare, lint, liveness, rebuffer, run, schedule, trace
from .face.fitting import Fit, FitRow, fit
from .face.sweeping.result import Sweep, SweepRow
from .face.sweeping.sweep import sweep
from .ir import errors
from .ir.branches import Branch, Branches
from .ir.errors import *  # noqa: F403  (every error class is public)
from .ir.graph import Edge, Graph, Node
from .ir.target import Target
from .ir.verifier.verify import verify
from .linter import Diagnostic, Edit, Fix, LintReport, explain
from .machine.description import Machine, load_machine, machine_names
from .memory.liveness import Liveness
from .scheduler.policy.solve_dag import Progress, SolvedDag, solve_dag
from .scheduler.result.ladder import Ladder
from .scheduler.result.loading import load
from .scheduler.result.schedule import Schedule
from .scheduler.search.list_search import schedule_dag
from .tracer import tl
from .tracer.kernel import Kernel, Launch, hbm, kernel, launch
from .tracer.values.handles import RecvFuture, TensorHandle
from .tracer.values.hbm import HbmRegion, HbmTensor, Pointer, Ref

if TYPE_CHECKING:  # loaded on first use, see __getattr__
    from .backends.networkx_view import to_networkx
    from .face import triton
    from .face.presentation import Drawing, Timeline, draw, report, timeline

__version__ = metadata.version("kernscope")

#: What needs a drawing library or networkx is loaded on first use (PEP 562), so that `import kernscope` stays quick.
_LAZY = {
    "Drawing": ".face.presentation",
    "Timeline": ".face.presentation",
    "draw": ".face.presentation",
    "report": ".face.presentation",
    "timeline": ".face.presentation",
    "to_networkx": ".backends.networkx_view",
}
#: A part of kernscope with names of its own, loaded on first use, too.
_LAZY_MODULES = {"triton": ".face.triton"}

__all__ = [
    *errors.__all__,
    "Branch",
    "Branches",
    "Diagnostic",
    "Drawing",
    "Edge",
    "Edit",
    "Fit",
    "FitRow",
    "Fix",
    "Graph",
    "HbmRegion",
    "HbmTensor",
    "Kernel",
    "Ladder",
    "Launch",
    "LintReport",
    "Liveness",
    "Machine",
    "Node",
    "Pointer",
    "Progress",
    "RecvFuture",
    "Ref",
    "Schedule",
    "Sweep",
    "SweepRow",
    "SolvedDag",
    "Target",
    "TensorHandle",
    "Timeline",
    "branches",
    "check",
    "compare",
    "draw",
    "explain",
    "fit",
    "hbm",
    "kernel",
    "launch",
    "lint",
    "liveness",
    "load",
    "load_machine",
    "machine_names",
    "rebuffer",
    "report",
    "run",
    "schedule",
    "schedule_dag",
    "sweep",
    "solve_dag",
    "timeline",
    "tl",
    "to_networkx",
    "trace",
    "triton",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY_MODULES:
        return importlib.import_module(_LAZY_MODULES[name], __name__)
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name], __name__), name)
    if name.startswith("_"):  # what Python's own protocols ask for
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    public = [known for known in __all__ if known not in errors.__all__ or name.endswith("Error")]
    raise errors.UnknownNameError(
        f"module {__name__!r} has no attribute {name!r}",
        help=errors.did_you_mean(name, public, listed="`dir(kernscope)` lists what there is"),
    )


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_LAZY, *_LAZY_MODULES})
