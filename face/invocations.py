"""How a kernel was asked for, as words of the command line: for helps that name a command."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..ir import dtypes
from ..ir.arrays.frozen_map import FrozenMap
from ..ir.errors import KernscopeError
from ..ir.grid import check_grid
from ..linter.invocation import Invocation
from ..tracer.kernel import HbmSpec, Kernel, Launch

__all__ = ["invocation_of", "launch_invocation", "machine_words"]

_UNKNOWN = Invocation(is_known=False)


def machine_words(machine: str | None, overrides: Sequence[str]) -> list[str]:
    """``--machine`` and ``--set`` as they were given."""
    words = [] if machine is None else ["--machine", machine]
    for text in overrides:
        words += ["--set", text]
    return words


def launch_invocation(launch: Launch, given: Sequence[str] = (), options: Sequence[str] = ()) -> Invocation:
    """Of a launch (its arguments as overridden) that the command line named, with its other options."""
    return Invocation(launch.name, launch.arguments, tuple(given), tuple(options))


def invocation_of(
    subject: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], *, ranks: int | None, grid: Any, machine: Any
) -> Invocation:
    """Of a kernel or a launch with what ``ks.lint`` was given. Only what words can say is known."""
    kernel = subject.kernel if isinstance(subject, Launch) else subject if isinstance(subject, Kernel) else None
    named = subject.name if isinstance(subject, Launch) else ""
    if kernel is None or (machine is not None and not isinstance(machine, str | os.PathLike)):
        return _UNKNOWN
    options = [] if machine is None else ["--machine", os.fspath(machine)]
    options += [] if ranks is None else ["--ranks", str(ranks)]
    options += [] if grid is None else ["--grid", ",".join(map(str, check_grid(grid)))]
    try:
        held = {**subject.arguments, **kwargs} if isinstance(subject, Launch) and not args else dict(kwargs)
        bound = kernel.bind(args, held).arguments
    except KernscopeError:
        return _UNKNOWN
    own = subject.arguments if isinstance(subject, Launch) else {}
    # Defaults, and what the launch has by itself, need no words.
    new = {
        name: value
        for name, value in bound.items()
        if not (name in own and value is own[name]) and value is not kernel.signature.parameters[name].default
    }
    told = {name: _text(kernel, name, value) for name, value in new.items()}
    if any(text is None for text in told.values()):
        return _UNKNOWN
    given = [f"{name}={text}" for name, text in told.items()]
    return Invocation(named, FrozenMap(dict(bound)), tuple(given), tuple(options))


def _text(kernel: Kernel, name: str, value: Any) -> str | None:
    """A value as ``--arg`` takes it; None where it takes none like it."""
    by_keyword = kernel.signature.parameters[name].kind is inspect.Parameter.KEYWORD_ONLY
    if isinstance(value, np.ndarray) and not by_keyword:
        value = HbmSpec(value.shape, dtypes.of_numpy(value.dtype))
    if isinstance(value, HbmSpec):
        return f"{value.dtype.short}[{','.join(map(str, value.shape))}]"
    return repr(value) if isinstance(value, bool | int | float | str | None) else None
