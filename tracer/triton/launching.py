"""Launches: a kernel's source is run once for all programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from ...ir.target import Target

__all__ = ["Launch", "LaunchOptions", "launch"]


@attrs.frozen
class LaunchOptions:
    """``machine``: its name, for the graphs; ``machine_toml``: what describes it; ``kernel``: the kernel's name;
    ``own``: folders whose frames are not the author's; ``budget``: the bytes that lanes and their undo log may take;
    ``num_stages``: the copies of what loops load, where the kernel does not say."""

    machine: str = ""
    machine_toml: str = ""
    kernel: str = "kernel"
    own: tuple[str, ...] = ()
    budget: int = 1 << 30
    num_stages: int = 1


@attrs.frozen(eq=False)
class Launch:
    """What came of a launch."""

    kernel: str
    grid: tuple[int, int, int]
    traces: tuple[Any, ...] = ()


def launch(
    function: Callable[..., Any],
    arguments: Mapping[str, Any],
    grid: tuple[int, int, int],
    *,
    target: Target,
    options: LaunchOptions = LaunchOptions(),  # noqa: B008  # frozen
) -> Launch:
    """Execute all programs of a launch on the arrays among its arguments, which it writes in place."""
    raise NotImplementedError
