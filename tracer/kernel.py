"""Kernels and launches: a Python function, and named configurations of its arguments."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from types import MethodType
from typing import Any

import attrs
import numpy as np

from ..ir import dtypes
from ..ir.arrays.frozen_map import FrozenMap
from ..ir.dtypes import DType
from ..ir.errors import ArgumentError, LaunchError, NotTracingError, did_you_mean, shown
from ..ir.forms.printable import printable
from ..ir.grid import Grid, check_grid
from ..ir.layout import Layout, Shape, check_shape
from ..ir.source.location import Location
from .recording.current import current

__all__ = ["RESERVED", "HbmSpec", "Kernel", "Launch", "hbm", "kernel", "launch"]

#: Keywords that belong to tracing and launching, so that no kernel can have a parameter of that name.
RESERVED = ("ranks", "grid", "machine", "reference", "tolerance", "strict", "on_overflow", "max_nodes")


@attrs.frozen
class HbmSpec:
    """An HBM tensor without data: shape and dtype."""

    shape: Shape
    dtype: DType

    @property
    def layout(self) -> Layout:
        return Layout.dense(self.shape, self.dtype)

    def __repr__(self) -> str:
        return f"hbm({self.shape}, {self.dtype.short!r})"


def hbm(shape: Any, dtype: DType | str) -> HbmSpec:
    """Describe an HBM tensor argument that has no data yet. Raises ``ShapeError`` or ``DTypeError``."""
    layout = Layout.dense(check_shape(shape), dtypes.of(dtype))
    return HbmSpec(layout.shape, layout.dtype)


@attrs.frozen(eq=False)
class Launch:
    """A kernel with arguments: everything the command line and the linter need.

    ``ranks``, ``grid`` (of programs; empty: each rank is one) and ``machine`` are what it is traced with;
    ``reference`` computes the expected outputs from the arguments
    it names; ``tolerance`` is absolute below magnitude 1 and relative above; None leaves it to each output's dtype.
    """

    kernel: Kernel
    name: str
    arguments: Mapping[str, Any]
    ranks: int = 1
    machine: Any = "ahbm-pe"
    reference: Callable[..., Any] | None = None
    tolerance: float | None = None
    grid: Grid = ()

    def __repr__(self) -> str:
        grid = f" grid={self.grid}" if self.grid else ""
        return f"<launch {printable(f'{self.kernel.name}:{self.name}')} ranks={self.ranks}{grid}>"


def _name(function: Callable[..., Any]) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__name__", type(function).__name__))


class Kernel:
    """A function to trace, with its launches (the first one written is the default)."""

    def __init__(self, function: Callable[..., Any]) -> None:
        if isinstance(function, classmethod):
            raise ArgumentError("@ks.kernel on a classmethod", help="put @classmethod above @ks.kernel")
        functools.update_wrapper(self, function)
        self.function = function
        self.name: str = _name(function)
        self.launches: Mapping[str, Launch] = FrozenMap({})
        try:
            self.signature = inspect.signature(function)
        except (ValueError, TypeError):
            raise ArgumentError(
                f"{shown(function)} is no kernel: its parameters are not known", help="write a function of Python"
            ) from None
        for plain, call in ((inspect.isgeneratorfunction, "yield"), (inspect.iscoroutinefunction, "async def")):
            if plain(function):
                raise ArgumentError(
                    f"kernel {self.name} is written with {call}: calling it runs nothing",
                    help="write an ordinary function",
                )
        taken = [name for name in self.signature.parameters if name in RESERVED]
        if taken:
            raise ArgumentError(
                f"kernel {self.name} has a parameter {taken[0]!r}, which belongs to tracing",
                help=f"rename it; reserved names: {', '.join(RESERVED)}",
            )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the kernel's function as part of the trace that is running. Raises ``NotTracingError`` where none is."""
        try:
            current()
        except NotTracingError as error:
            error.message = f"kernel {self.name} was called outside a trace: it records, and computes nothing by itself"
            error.help = f"trace it: {self._how_to_trace()}, and execute the graph: ks.run(graph, inputs)"
            raise
        return self.function(*args, **kwargs)

    def _how_to_trace(self) -> str:
        if self.launches:
            return f"graph = ks.trace({self.name}.launch({next(iter(self.launches))!r}))"
        given = ", ".join(self.signature.parameters)
        return f"graph = ks.trace({self.name}{', ' if given else ''}{given})"

    def __reduce__(self) -> str | tuple[Any, ...]:
        """As a function is pickled, by its name, where that leads here; else with all it holds. As a function it is its
        own copy."""
        found: Any = sys.modules.get(str(getattr(self, "__module__", "")))
        name = str(getattr(self, "__qualname__", ""))
        for part in name.split("."):
            found = getattr(found, part, None)
        return name if found is self else (Kernel, (self.function,), {"launches": self.launches})

    def __copy__(self) -> Kernel:
        return self

    def __deepcopy__(self, memo: Mapping[int, Any]) -> Kernel:
        return self

    def __get__(self, instance: Any, owner: type | None = None) -> Kernel:
        """As a method: the kernel with the instance as its first argument, as Python binds functions."""
        if instance is None or isinstance(self.function, staticmethod):
            return self
        bound = Kernel(MethodType(self.function, instance))
        for made in reversed(list(self.launches.values())):
            left = {name: value for name, value in made.arguments.items() if name in bound.signature.parameters}
            bound.add_launch(attrs.evolve(made, kernel=bound, arguments=FrozenMap(left)))
        return bound

    @property
    def location(self) -> Location | None:
        """Where its function is written; None where that is not known."""
        code = getattr(inspect.unwrap(self.function), "__code__", None)
        return None if code is None else Location(code.co_filename, code.co_firstlineno, code.co_name)

    def __repr__(self) -> str:
        return f"<kernel {self.name}: launches {printable(', '.join(self.launches)) or 'none'}>"

    def launch(self, name: str | None = None, *more: Any, **arguments: Any) -> Launch:
        """A launch by name; None gives the default one. Raises ``LaunchError``, naming the nearest, and
        ``ArgumentError`` for anything else: a launch has its arguments from where it is declared."""
        if more or arguments:
            given = ", ".join([*map(shown, more), *(f"{key}={shown(value)}" for key, value in arguments.items())])
            raise ArgumentError(
                f"{self.name}.launch({name!r}) with {given}: it finds a launch, which has its arguments",
                help=f"override them where it is used: ks.trace({self.name}.launch({name!r}), ...); or declare a "
                f"launch above the kernel: @ks.launch({name or 'small'!r}, ...)",
            )
        if not self.launches:
            raise LaunchError(
                f"kernel {self.name} has no launch",
                help="give it one: @ks.launch('small', x=ks.hbm((128, 128), 'f16'), ...), or pass the arguments",
            )
        if name is None:
            return next(iter(self.launches.values()))
        found = self.launches.get(name)
        if found is None:
            raise LaunchError(
                f"kernel {self.name} has no launch {name!r}", help=did_you_mean(name, self.launches, what="launches")
            )
        return found

    def add_launch(self, launch: Launch) -> None:
        """Put a launch before those it has. Raises ``LaunchError`` where the name is taken."""
        if launch.name in self.launches:
            raise LaunchError(f"kernel {self.name} has two launches named {launch.name!r}", help="rename one of them")
        self.launches = FrozenMap({launch.name: launch, **self.launches})

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> inspect.BoundArguments:
        """The arguments by parameter, defaults included. Raises ``ArgumentError`` with the signature."""
        unknown = [name for name in kwargs if name not in self.signature.parameters]
        takes_any = any(p.kind is p.VAR_KEYWORD for p in self.signature.parameters.values())
        if unknown and not takes_any:
            raise ArgumentError(
                f"kernel {self.name} has no parameter {unknown[0]!r}",
                help=did_you_mean(unknown[0], self.signature.parameters, what="parameters"),
            )
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            help = f"its signature is {self.name}{self.signature}"
            if self.launches:
                help += f"; {self.name}.launch({next(iter(self.launches))!r}) has arguments, which keywords override"
            raise ArgumentError(f"kernel {self.name}: {error}", help=help) from None
        bound.apply_defaults()
        return bound


def kernel(function: Callable[..., Any]) -> Kernel:
    """Make a kernel of a function (a decorator). Raises ``ArgumentError`` for parameters with reserved names."""
    return function if isinstance(function, Kernel) else Kernel(function)


def launch(
    name: str,
    /,
    *,
    ranks: int = 1,
    grid: int | Sequence[int] | None = None,
    machine: Any = "ahbm-pe",
    reference: Callable[..., Any] | None = None,
    tolerance: float | None = None,
    **arguments: Any,
) -> Callable[[Callable[..., Any]], Kernel]:
    """Name a configuration of a kernel's arguments (a decorator above ``@kernel``). Stackable; the first one written is
    the default.

    The kernel is called once for each of its ``ranks``; with a ``grid`` (up to three sizes), once for each program of
    it, which are dealt to the ranks in order (:mod:`kernscope.ir.grid`).

    ``reference`` is called with the arguments that its own signature names (HBM tensors as numpy arrays) and returns
    the expected outputs by name; of a kernel that stores one tensor, that array alone will do. Raises ``ArgumentError``
    where the arguments do not fit the kernel.
    """
    if not isinstance(name, str) or not name:
        raise LaunchError(f"launch name {name!r}", help='a launch needs a name: @ks.launch("small", ...)')
    if isinstance(ranks, bool) or not isinstance(ranks, int | np.integer) or ranks < 1:
        raise LaunchError(f"launch {name!r}: ranks={ranks!r}", help="ranks is a positive integer")

    programs = check_grid(grid)

    def add(function: Callable[..., Any]) -> Kernel:
        made = kernel(function)
        made.bind((), arguments)
        given = FrozenMap(dict(arguments))
        made.add_launch(Launch(made, name, given, int(ranks), machine, reference, tolerance, programs))
        return made

    return add
