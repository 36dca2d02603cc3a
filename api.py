"""The public functions: each composes the stages, kernel -> tracer -> ir -> scheduler -> backends, and holds no logic of
its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .ir.graph import Graph
from .scheduler.machine import DEFAULT_MACHINE, load_machine
from .tracer.kernel import Kernel, Launch
from .tracer.recorder import DEFAULT_MAX_NODES
from .tracer.trace import record_kernel

__all__ = ["trace"]


def trace(
    kernel: Kernel | Launch | Callable[..., Any],
    *args: Any,
    ranks: int | None = None,
    machine: Any = None,
    strict: bool = False,
    on_overflow: str = "raise",
    max_nodes: int = DEFAULT_MAX_NODES,
    **kwargs: Any,
) -> Graph:
    """Run a kernel once per rank in trace mode and return its graph.

    ``kernel`` is a function, a ``@ks.kernel`` with its arguments, or a launch (whose arguments can be overridden by
    keyword). ``ranks`` and ``machine`` (a preset's name, a TOML file's path or a ``Machine``): None means the launch's,
    else 1 and the default machine. ``strict`` raises ``UseAfterScopeError`` at the first use of a handle after its
    scope. ``on_overflow="record"`` goes on past the scratch budget. Raises what ``tl`` raises at the kernel's lines,
    ``ArgumentError`` for arguments that do not fit, ``NodeLimitError`` past ``max_nodes`` nodes.
    """
    return _trace(kernel, args, kwargs, ranks, machine, strict, on_overflow, "raise", max_nodes)


def _trace(
    kernel: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    ranks: int | None,
    machine: Any,
    strict: bool,
    on_overflow: str,
    on_bounds: str,
    max_nodes: int,
) -> Graph:
    if isinstance(kernel, Launch):
        launch = kernel
        kwargs = {**launch.arguments, **kwargs} if not args else kwargs
        kernel = launch.kernel
        ranks = launch.ranks if ranks is None else ranks
        machine = launch.machine if machine is None else machine
    described = load_machine(DEFAULT_MACHINE if machine is None else machine)
    return record_kernel(
        kernel,
        args,
        kwargs,
        target=described.target,
        machine=described.name,
        ranks=1 if ranks is None else ranks,
        strict=strict,
        on_overflow=on_overflow,
        on_bounds=on_bounds,
        max_nodes=max_nodes,
    )
