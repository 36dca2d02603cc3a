"""One variant of a kernel: does the kernel take it, does it fit, has it faults, how long does it take? Searches for a
fit and sweeps ask the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import attrs

from ..analysis.analysis import Analysis
from ..ir.errors import DeadlockError, KernscopeError
from ..ir.forms.text import quote
from ..ir.graph import Graph
from ..ir.ops import OPERATIONS, Kind
from ..ir.source.frames import author_place, is_own_fault
from ..ir.source.location import Location
from ..linter import RULES, lint_graph
from ..machine.description import Machine
from ..memory.buffering import rebuffer
from ..memory.liveness import Liveness, ViolationKind
from ..tracer.kernel import Launch

__all__ = ["Examined", "Tracer", "Verdict", "examine"]

Verdict = Literal["fits", "overflow", "refused", "finding", "deadlock"]
Tracer = Callable[[Launch, Machine], Graph]

#: What stops a variant, besides overflow: a kernel with such a finding is none to ship, however small its scratch.
_ERROR_RULES = tuple(code for code, rule in RULES.items() if rule.severity == "error" and code != "KS101")
#: By operation, whether it keeps an engine busy.
_WORKS = OPERATIONS.mask(lambda operation: operation.kind is not Kind.NONE)


@attrs.frozen
class Examined:
    """What became of a variant, as in :class:`kernscope.FitRow`."""

    verdict: Verdict
    reason: str = ""
    location: Location | None = None
    peak_bytes: int | None = None
    makespan_ps: int | None = None
    bound_ps: int | None = None


def examine(
    launch: Launch,
    machine: Machine,
    trace: Tracer,
    *,
    policy: str | None = None,
    effort: str = "fast",
    buffers: int | None = None,
) -> Examined:
    """Trace a launch for a machine, give its scopes so many ``buffers`` (None: as traced), and schedule it where it
    fits (``policy`` None: not at all)."""
    try:
        graph = trace(launch, machine)
        if buffers is not None:
            graph = rebuffer(graph, buffers)
    except (Exception, SystemExit) as error:  # whatever a kernel may raise is its reason to refuse the variant
        if is_own_fault(error):
            raise
        return _refused(error)
    known = Analysis(graph, machine)
    live = known.liveness()
    peak = live.peak_bytes
    if not live.fits:
        return _overflow(live)
    errors = lint_graph(known, select=_ERROR_RULES, title=launch.kernel.name).at_least("error")
    if errors:
        first = errors[0]
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        return Examined("finding", f"{first.code} {first.name}: {first.message}{more}", first.location, peak)
    if not _WORKS[graph.nodes.op].any():  # no loop runs: it would be the smallest and the fastest
        return Examined("refused", "the kernel does nothing with this value", None, peak)
    if policy is None:
        return Examined("fits", peak_bytes=peak)
    try:
        made = known.schedule(policy, effort=effort)
    except DeadlockError as deadlock:
        return Examined("deadlock", deadlock.message, deadlock.cycle[0] if deadlock.cycle else None, peak)
    return Examined("fits", "", None, peak, made.makespan_ps, made.bound_ps)


def _refused(error: BaseException) -> Examined:
    text = error.message if isinstance(error, KernscopeError) else str(error)
    first_line = text.strip().splitlines()[0] if text.strip() else ""
    reason = f"{type(error).__name__}: {first_line}" if first_line else type(error).__name__
    places = error.places if isinstance(error, KernscopeError) else []
    return Examined("refused", reason, places[0][1] if places else author_place(error.__traceback__))


def _overflow(live: Liveness) -> Examined:
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
    return Examined("overflow", reason, graph.location(int(storages.stack[first])), live.peak_bytes)
