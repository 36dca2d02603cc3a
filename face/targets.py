"""Targets: from ``file.py::kernel`` or ``package.module:kernel`` to a launch, with the options that override it."""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Any

import attrs

from ..ir.arrays.frozen_map import FrozenMap
from ..ir.errors import (
    KernelFileError,
    KernelNotFoundError,
    OptionError,
    did_you_mean,
)
from ..ir.grid import Grid
from ..ir.source.location import shown_path
from ..tracer.kernel import Kernel, Launch, hbm
from .guard.guard import Guard
from .guard.importing import import_file, import_module

__all__ = [
    "Target",
    "find_kernels",
    "parse_arguments",
    "resolve_launch",
    "split_target",
]

_TENSOR = re.compile(r"(?P<dtype>[a-z]+[0-9a-z]*)\[(?P<shape>\s*\d+\s*(,\s*\d+\s*)*)\]")


@attrs.frozen
class Target:
    """A file or module, and the kernel's name in it (None: the only one)."""

    source: str
    kernel: str | None
    is_file: bool

    def __str__(self) -> str:
        joint = "::" if self.is_file else ":"
        source = shown_path(self.source) if self.is_file else self.source
        return source if self.kernel is None else f"{source}{joint}{self.kernel}"


def split_target(text: str) -> Target:
    """Split a target's text. A path wins where it exists; ``module:kernel`` is anything else without a path in it."""
    source, joint, kernel = text.partition("::")
    if joint or source.endswith(".py") or os.path.exists(source):
        return Target(source, kernel or None, True)
    module, _, kernel = text.partition(":")
    if not all(part.isidentifier() for part in module.split(".")):
        raise KernelFileError(
            f"no file {text!r}", help="give path/file.py, path/file.py::kernel, or package.module:kernel"
        )
    return Target(module, kernel or None, False)


def find_kernels(target: Target, guard: Guard) -> dict[str, Kernel]:
    """Import the target's file or module; its kernels by name, each once, in the order they are written. Imported
    kernels do not count. With a kernel named, that one alone (a plain function will do)."""
    module = (import_file if target.is_file else import_module)(target.source, guard)
    own: dict[str, Kernel] = {}
    for name, value in vars(module).items():
        if isinstance(value, Kernel) and value not in own.values() and not _is_imported(value, module):
            own[name] = value
    if target.kernel is None:
        return own
    found = own.get(target.kernel) or vars(module).get(target.kernel)
    if isinstance(found, Kernel):
        return {target.kernel: found}
    if callable(found) and not isinstance(found, type):
        return {target.kernel: Kernel(found)}
    raise KernelNotFoundError(
        f"{target.source} has no kernel {target.kernel!r}", help=did_you_mean(target.kernel, own, what="its kernels")
    )


def _is_imported(kernel: Kernel, module: ModuleType) -> bool:
    """Whether a module has a kernel from another one, which has it, too. Where its function was written does not tell:
    a decorator's wrapper, a ``partial`` and code that was executed come from elsewhere, or nowhere."""
    if getattr(kernel.function, "__module__", None) == module.__name__:
        return False
    others = [other for other in list(sys.modules.values()) if isinstance(other, ModuleType) and other is not module]
    return any(value is kernel for other in others for value in list(vars(other).values()))


def resolve_launch(
    target: Target,
    guard: Guard,
    *,
    launch: str | None = None,
    arguments: Sequence[str] = (),
    ranks: int | None = None,
    grid: Grid = (),
    machine: Any = None,
) -> Launch:
    """The launch that a command works on: the target's one kernel, its default launch or the one named, with arguments,
    ranks and machine overridden."""
    kernels = find_kernels(target, guard)
    if not kernels:
        raise KernelNotFoundError(
            f"{target.source} has no kernel", help="decorate one with @ks.kernel, or name a function: file.py::function"
        )
    if len(kernels) > 1:
        joint = "::" if target.is_file else ":"
        raise KernelNotFoundError(
            f"{target.source} has {len(kernels)} kernels: {', '.join(kernels)}",
            help=f"name one: {target.source}{joint}{next(iter(kernels))}",
        )
    (kernel,) = kernels.values()
    given = parse_arguments(arguments)
    unknown = [name for name in given if name not in kernel.signature.parameters]
    if unknown and not any(p.kind is p.VAR_KEYWORD for p in kernel.signature.parameters.values()):
        raise OptionError(
            f"--arg {unknown[0]}: kernel {kernel.name} has no such parameter",
            help=did_you_mean(unknown[0], kernel.signature.parameters, what="parameters"),
        )
    if launch is None and not kernel.launches:
        base = Launch(kernel, "", FrozenMap({}))
        if not given:
            kernel.launch()  # raises, and says what to do
    else:
        base = kernel.launch(launch)
    made = attrs.evolve(base, arguments=FrozenMap({**base.arguments, **given}))
    return attrs.evolve(
        made,
        ranks=made.ranks if ranks is None else ranks,
        grid=grid or made.grid,
        machine=made.machine if machine is None else machine,
    )


def parse_arguments(texts: Iterable[str]) -> dict[str, Any]:
    """``name=value`` options: a tensor (``q=f16[128,128]``) or a Python literal; a bare word is a string."""
    parsed: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise OptionError(f"--arg {text!r}", help="write name=value, such as tile=64 or q=f16[128,128]")
        if name in parsed:
            raise OptionError(f"--arg {name} is given twice", help="give each argument once")
        parsed[name] = _value(name, value.strip())
    return parsed


def _value(name: str, text: str) -> Any:
    tensor = _TENSOR.fullmatch(text)
    if tensor:
        return hbm(tuple(int(n) for n in tensor["shape"].split(",")), tensor["dtype"])
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        if text.isidentifier():
            return text
        raise OptionError(
            f"--arg {name}={text!r} is no Python literal and no tensor",
            help="write 64, 0.5, True, (1, 2) or f16[128,64]",
        ) from None
