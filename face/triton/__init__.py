"""Triton kernels as they stand: ``ks.triton``.

Inside a session ``import triton`` finds stand-ins, and every launch is run, on the CPU, for all of its programs at
once, and kept::

    with ks.triton.session() as session:
        run_something_that_launches_kernels()
    print(session)
    ks.report(session.launches[0].graphs[0], "kernel.html")
"""

from __future__ import annotations

from ...tracer.triton.host.jit import JITFunction, jit
from ...tracer.triton.host.tuning import Config, autotune, heuristics
from ...tracer.triton.untouched import empty
from .launches import LaunchResult
from .session import Session, session

__all__ = ["Config", "JITFunction", "LaunchResult", "Session", "autotune", "empty", "heuristics", "jit", "session"]
