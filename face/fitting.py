"""Fitting: which values of a kernel's parameter its scratch has room for, and which of them is fastest."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs
import numpy as np

from ..analysis.analysis import Analysis
from ..ir.arrays.frozen_map import FrozenMap
from ..ir.errors import ArgumentError, DeadlockError, KernscopeError, OptionError, did_you_mean, shown
from ..ir.forms.text import quote
from ..ir.graph import Graph
from ..ir.ops import OPERATIONS, Kind
from ..ir.source.frames import author_place, is_own_fault
from ..linter import RULES, lint_graph
from ..machine.description import Machine, load_machine
from ..memory.liveness import Liveness, ViolationKind
from ..tracer.kernel import Kernel, Launch
from ..tracer.trace import check_ranks
from . import api
from .fitting_table import Fit, FitRow, Verdict

__all__ = ["GOALS", "MAX_VALUES", "Fit", "FitRow", "Verdict", "fit", "search_fit"]

#: What can be looked for: the largest value that fits, or the fastest one that does.
GOALS = ("memory", "time")
#: Each value is traced; more than these are a mistake in the range.
MAX_VALUES = 10_000

#: What stops a value, besides overflow: a kernel with such a finding is no kernel to ship, however small its scratch.
_ERROR_RULES = tuple(code for code, rule in RULES.items() if rule.severity == "error" and code != "KS101")

Tracer = Callable[[Launch, Machine], Graph]

#: By operation, whether it keeps an engine busy.
_WORKS = OPERATIONS.mask(lambda operation: operation.kind is not Kind.NONE)


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
    launch = _as_launch(kernel, arguments)
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
        rows.append(_try(chosen, machine, value, goal, trace))
        progress(number + 1, len(tried), f"{parameter}={value}")
    return Fit(
        title=f"{launch.kernel.name}:{launch.name}" if launch.name else launch.kernel.name,
        parameter=parameter,
        goal=goal,
        machine=machine.name,
        budget_bytes=int(machine.target.capacities[machine.target.results_memory]),
        rows=tuple(rows),
    )


def _as_launch(kernel: Any, arguments: Mapping[str, Any]) -> Launch:
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


def _try(launch: Launch, machine: Machine, value: int | float, goal: str, trace: Tracer) -> FitRow:
    try:
        graph = trace(launch, machine)
    except (Exception, SystemExit) as error:  # whatever a kernel may raise is its reason to refuse the value
        if is_own_fault(error):
            raise
        return _refused(value, error)
    known = Analysis(graph, machine)
    live = known.liveness()
    peak = live.peak_bytes
    if not live.fits:
        return _overflow(value, live)
    errors = lint_graph(known, select=_ERROR_RULES, title=launch.kernel.name).at_least("error")
    if errors:
        first = errors[0]
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        return FitRow(value, "finding", f"{first.code} {first.name}: {first.message}{more}", first.location, peak)
    if not _WORKS[graph.nodes.op].any():  # no loop runs: it would be the smallest and the fastest
        return FitRow(value, "refused", "the kernel does nothing with this value", None, peak)
    if goal == "memory":
        return FitRow(value, "fits", peak_bytes=peak)
    return _timed(value, known, peak)


def _timed(value: int | float, known: Analysis, peak: int) -> FitRow:
    try:
        made = known.schedule("list", effort="fast")
    except DeadlockError as deadlock:
        return FitRow(value, "deadlock", deadlock.message, deadlock.cycle[0] if deadlock.cycle else None, peak)
    return FitRow(value, "fits", "", None, peak, made.makespan_ps, made.bound_ps)


def _refused(value: int | float, error: BaseException) -> FitRow:
    text = error.message if isinstance(error, KernscopeError) else str(error)
    first_line = text.strip().splitlines()[0] if text.strip() else ""
    reason = f"{type(error).__name__}: {first_line}" if first_line else type(error).__name__
    places = error.places if isinstance(error, KernscopeError) else []
    return FitRow(value, "refused", reason, places[0][1] if places else author_place(error.__traceback__))


def _overflow(value: int | float, live: Liveness) -> FitRow:
    """The first allocation that passes the budget, on the fullest rank: where a trace that raises would end."""
    over = live.violation_columns.of(ViolationKind.OVERFLOW)
    graph, storages = live.graph, live.graph.storages
    on_fullest = over.allocation[over.rank == live.fullest_rank]
    first = int((on_fullest if len(on_fullest) else over.allocation).min())
    rank, memory = int(storages.rank[first]), graph.target.memories[storages.memory[first]]
    name = quote(graph.names[storages.name[first]])
    what = f"`{name}`" if name else repr(graph.layouts[storages.layout[first]])
    on_rank = f" on rank {rank}" if graph.ranks > 1 else ""
    held, in_use = int(graph.held_bytes[first]), int(storages.address[first])
    reason = f"{what} takes {held:,} B{on_rank} with {in_use:,} B of {memory.bytes:,} B in use"
    return FitRow(value, "overflow", reason, graph.location(int(storages.stack[first])), live.peak_bytes)
