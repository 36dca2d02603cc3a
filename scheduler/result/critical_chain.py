"""The critical chain: from the end of a schedule back through what each node waited for, part by part to time 0."""

from __future__ import annotations

from collections import Counter

import attrs

from ...ir.tables import IntArray, Reason
from ...machine.units import format_ps
from ..policy.constraints import ArcKind
from ..policy.problem import Problem
from .causes import CauseColumns

__all__ = ["ChainPart", "CriticalChain", "walk_chain"]


@attrs.frozen
class ChainPart:
    """One part of the chain: ``node`` (None: nothing in particular) kept what follows waiting from ``start_ps`` to
    ``end_ps``. ``engine``: who was at work, ``"cpu"`` for issues, ``"idle"`` where a schedule is not left-shifted.
    ``reason``: why the next part waited for this one, ``"end"`` for the last. ``latency_ps`` of it is a transfer's
    latency; ``recycled``: the next part waited only because bytes of scratch are used again."""

    node: int | None
    engine: str
    reason: str
    start_ps: int
    end_ps: int
    latency_ps: int = 0
    recycled: bool = False

    @property
    def duration_ps(self) -> int:
        return self.end_ps - self.start_ps


@attrs.frozen
class CriticalChain:
    """The parts in order of time: each begins where the one before ends, the first at 0, the last ends at the
    makespan."""

    parts: tuple[ChainPart, ...]

    @property
    def total_ps(self) -> int:
        """The sum of the parts: the makespan, exactly."""
        return sum(part.duration_ps for part in self.parts)

    @property
    def nodes(self) -> tuple[int, ...]:
        """The nodes at work along the chain, in order of time."""
        return tuple(part.node for part in self.parts if part.node is not None)

    def by_engine(self) -> dict[str, int]:
        """Picoseconds by who was at work, the most first. They sum to the makespan."""
        return self._summed([part.engine for part in self.parts])

    def by_reason(self) -> dict[str, int]:
        """Picoseconds by why the next part waited, the most first. They sum to the makespan."""
        return self._summed([part.reason for part in self.parts])

    def by_cause(self) -> dict[str, int]:
        """Picoseconds by what a reader would change, the most first: ``"gemm busy"``, ``"dma_read latency"``,
        ``"waiting for reused scratch"``, ``"issue"``. They sum to the makespan."""
        total: Counter[str] = Counter()
        for part in self.parts:
            if part.recycled:
                total["waiting for reused scratch"] += part.duration_ps
            elif part.engine in ("cpu", "idle"):
                total["issue" if part.engine == "cpu" else "idle"] += part.duration_ps
            else:
                total[f"{part.engine} latency"] += part.latency_ps
                total[f"{part.engine} busy"] += part.duration_ps - part.latency_ps
        return _most_first(total)

    def _summed(self, keys: list[str]) -> dict[str, int]:
        total: Counter[str] = Counter()
        for key, part in zip(keys, self.parts, strict=True):
            total[key] += part.duration_ps
        return _most_first(total)

    def __str__(self) -> str:
        total = max(self.total_ps, 1)
        rows = [f"{cause}: {format_ps(ps)} ({100 * ps / total:.0f} %)" for cause, ps in self.by_cause().items()]
        return "\n".join(rows)


def _most_first(total: Counter[str]) -> dict[str, int]:
    return {key: ps for key, ps in sorted(total.items(), key=lambda item: (-item[1], item[0])) if ps}


def walk_chain(
    problem: Problem, start: IntArray, causes: CauseColumns, latency: IntArray, recycled_into: IntArray
) -> CriticalChain:
    """The chain behind the last end (of several, the smallest id). ``latency`` by node; ``recycled_into`` by node:
    whether the edge that it waited for last goes between two allocations that share bytes."""
    if not len(problem):
        return CriticalChain(())
    dag = problem.dag
    end = start + dag.duration_ps
    parts: list[ChainPart] = []
    node, until, reason, recycled = int(end.argmax()), int(end.max()), "end", False
    while True:
        at = int(start[node])
        # A node that was overtaken (its start, not its end, was waited for) kept nobody waiting for its own time.
        parts.append(
            ChainPart(
                node,
                _engine(problem, node),
                reason,
                at,
                until,
                latency_ps=_latency(problem, node, int(latency[node]), until - at),
                recycled=recycled,
            )
        )
        if at == 0:
            break
        cause, behind = int(causes.cause[node]), int(causes.node[node])
        reason, recycled = _label(cause), bool(recycled_into[node])
        until = at
        if cause in (ArcKind.ISSUE, CauseColumns.NOTHING):
            since = int(end[behind]) if behind >= 0 else 0
            parts.append(ChainPart(None, "cpu" if cause == ArcKind.ISSUE else "idle", reason, since, at))
            until = since
        if behind < 0:
            break
        node = behind
    return CriticalChain(tuple(reversed(parts)))


def _latency(problem: Problem, node: int, latency: int, waited: int) -> int:
    """How much of the time that a node was waited for was its latency: where it does not hold the engine, what was
    waited for behind that."""
    held = int(problem.occupancy_ps[node])
    split = held < int(problem.dag.duration_ps[node])
    return max(waited - held, 0) if split else min(latency, waited)


def _engine(problem: Problem, node: int) -> str:
    engine = int(problem.dag.engine[node])
    return problem.engines[engine].name if engine >= 0 else "none"


_LABELS = {int(ArcKind.ENGINE): "engine", int(ArcKind.ISSUE): "issue", int(ArcKind.PROGRAM): "program order"}


def _label(cause: int) -> str:
    return Reason(cause).label if cause < ArcKind.ENGINE else _LABELS.get(cause, "idle")
