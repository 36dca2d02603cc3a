"""kernscope: see what a tile kernel will do on an accelerator, before any device exists."""

from __future__ import annotations

from .api import trace
from .ir import errors
from .ir.errors import *  # noqa: F403  (every error class is public)
from .ir.graph import Graph
from .tracer import tl
from .tracer.handles import HbmRegion, HbmTensor, Pointer, RecvFuture, Ref, TensorHandle
from .tracer.kernel import Kernel, Launch, hbm, kernel, launch

__all__ = [
    *errors.__all__,
    "Graph",
    "HbmRegion",
    "HbmTensor",
    "Kernel",
    "Launch",
    "Pointer",
    "RecvFuture",
    "Ref",
    "TensorHandle",
    "hbm",
    "kernel",
    "launch",
    "tl",
    "trace",
]
