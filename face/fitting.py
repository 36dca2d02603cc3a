"""Fitting: which values of a kernel's parameter its scratch has room for, and which of them is fastest."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs
import numpy as np

from ..ir.arrays.frozen_map import FrozenMap
from ..ir.errors import ArgumentError, OptionError, did_you_mean, shown
from ..machine.description import Machine, load_machine
from ..tracer.kernel import Kernel, Launch
from ..tracer.trace import check_ranks
from . import api
from .examining import Examined, Tracer, Verdict, examine
from .fitting_table import Fit, FitRow

__all__ = ["GOALS", "MAX_VALUES", "Fit", "FitRow", "Verdict", "as_launch", "fit", "search_fit"]

#: What can be looked for: the largest value that fits, or the fastest one that does.
GOALS = ("memory", "time")
#: Each value is traced; more than these are a mistake in the range.
MAX_VALUES = 10_000


def fit(
    kernel: Kernel | Launch | Callable[..., Any],
    parameter: str,
    values: Iterable[int | float],
    /,
    goal: str = "memory",
    *,
    ranks: int | None = None,
    machine: Any = None,
    **arguments: Any,
) -> Fit:
    """Try values of a kernel's parameter: which is the largest that fits in scratch, or the fastest of those that fit?

    ``kernel`` is a launch, whose other arguments hold; a kernel, which stands for its first launch; or a kernel or
    function with all other ``arguments`` given. ``goal`` is ``"memory"`` (nothing is scheduled) or ``"time"`` (the
    policy ``list``, effort ``"fast"``; of equally fast values the smallest). ``ranks`` and ``machine`` as in
    :func:`kernscope.trace`.

    Every value is tried: what fits need not be a range. A value fits if the kernel takes it, no rank passes the scratch
    budget, and the linter has no finding at error level. A value at which the kernel raises is a row that says so.

    Raises ``ArgumentError`` for an unknown parameter, for arguments that do not fit the kernel, and for values that are
    no numbers, none, or more than 10,000; ``OptionError`` for an unknown goal; ``MachineError``.
    """
    launch = as_launch(kernel, arguments)
    launch = attrs.evolve(launch, ranks=launch.ranks if ranks is None else ranks)
    return search_fit(launch, load_machine(launch.machine if machine is None else machine), parameter, values, goal)


def search_fit(
    launch: Launch,
    machine: Machine,
    parameter: str,
    values: Iterable[int | float],
    goal: str,
    progress: Callable[[int, int, str], None] = lambda done, total, last: None,
    trace: Tracer = lambda launch, machine: api.trace_for(launch, machine, record=True),
) -> Fit:
    """As :func:`fit`, for a launch and a machine; ``progress`` is called after each value, ``trace`` with each of its
    launches."""
    if not isinstance(goal, str) or goal not in GOALS:
        raise OptionError(f"goal {shown(goal)}", help=did_you_mean(str(goal), GOALS, what="it can be"))
    known = launch.kernel.signature.parameters
    if not isinstance(parameter, str):
        raise ArgumentError(
            f"parameter {shown(parameter)} is no name", help=f"pass one of {', '.join(map(repr, known))}"
        )
    if parameter not in known and not any(p.kind is p.VAR_KEYWORD for p in known.values()):
        raise ArgumentError(
            f"kernel {launch.kernel.name} has no parameter {parameter!r}",
            help=did_you_mean(parameter, known, what="parameters"),
        )
    tried = _checked(values)
    # What is wrong whatever the value is no row of a table.
    launch.kernel.bind((), {**launch.arguments, parameter: tried[0]})
    check_ranks(launch.ranks)
    machine.target.grid(launch.ranks)
    rows = []
    for number, value in enumerate(tried):
        chosen = attrs.evolve(launch, arguments=FrozenMap({**launch.arguments, parameter: value}))
        found = examine(chosen, machine, trace, policy="list" if goal == "time" else None)
        rows.append(FitRow(value, *(getattr(found, field.name) for field in attrs.fields(Examined))))
        progress(number + 1, len(tried), f"{parameter}={value}")
    return Fit(
        title=f"{launch.kernel.name}:{launch.name}" if launch.name else launch.kernel.name,
        parameter=parameter,
        goal=goal,
        machine=machine.name,
        budget_bytes=int(machine.target.capacities[machine.target.results_memory]),
        rows=tuple(rows),
    )


def as_launch(kernel: Any, arguments: Mapping[str, Any]) -> Launch:
    """The launch that a kernel, a launch or a function stands for, with arguments. Raises ``ArgumentError``."""
    held: dict[str, Any] = {}
    while isinstance(kernel, functools.partial):
        held = {**inspect.signature(kernel.func).bind_partial(*kernel.args, **kernel.keywords).arguments, **held}
        kernel = kernel.func
    if isinstance(kernel, Launch):
        return attrs.evolve(kernel, arguments=FrozenMap({**kernel.arguments, **arguments}))
    if not callable(kernel):
        raise ArgumentError(
            f"cannot fit {shown(kernel)}", help="pass a @ks.kernel, kernel.launch('name') or a function"
        )
    made = kernel if isinstance(kernel, Kernel) else Kernel(kernel)
    base = made.launch() if made.launches else Launch(made, "", FrozenMap({}))
    return attrs.evolve(base, arguments=FrozenMap({**base.arguments, **held, **arguments}))


def _checked(values: Iterable[Any]) -> list[int | float]:
    """The values as Python numbers, ascending, each once."""
    try:
        if isinstance(values, str | bytes):  # whose elements are no numbers, or stand for letters
            raise TypeError
        given = list(itertools.islice(values, MAX_VALUES + 1))
    except TypeError:
        raise ArgumentError(f"values {shown(values)} cannot be iterated", help="pass range(32, 1025, 32)") from None
    plain = [value.item() if isinstance(value, np.generic) else value for value in given]
    wrong = [v for v in plain if isinstance(v, bool) or not isinstance(v, int | float) or v != v]
    if wrong:
        raise ArgumentError(f"value {shown(wrong[0])} is no number", help="pass numbers, such as range(32, 1025, 32)")
    if not plain:
        raise ArgumentError("no values to try", help="pass at least one, such as range(32, 1025, 32)")
    if len(plain) > MAX_VALUES:
        raise ArgumentError(f"more than {MAX_VALUES:,} values to try", help="take larger steps: range(32, 1025, 32)")
    return sorted(set(plain))
