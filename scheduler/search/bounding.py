"""Lower bounds as far as an effort goes: what is quick first, what takes longer only where a schedule leaves a gap."""

from __future__ import annotations

import attrs
import numpy as np

from ...ir.arrays.compiling import LARGEST_COMPILED
from ...ir.tables import IntArray
from .bounds import engine_bounds, loaded_path_ps
from .dag import Dag
from .destructive import refuted_up_to
from .heads import HeadsAndTails, heads_and_tails
from .window_heads import raised_heads

__all__ = ["QUICK", "BoundEffort", "Bounding", "quick_bounds", "raised_bounds", "refuted_bounds"]


@attrs.frozen
class BoundEffort:
    """``widths``: of the local windows that raise heads and tails, one after another; ``window_steps`` and
    ``steps_a_node``: how many steps each of them takes at most. ``refuting`` and ``probing``: how many steps go into
    refuting makespans on the whole, without and with shaving, for each node and at most. Above ``largest`` nodes it is
    not begun."""

    widths: tuple[int, ...] = ()
    window_steps: int = 0
    steps_a_node: int = 0
    refuting: tuple[int, int] = (0, 0)
    probing: tuple[int, int] = (0, 0)
    largest: int = 0


QUICK = BoundEffort()


@attrs.frozen(eq=False)
class Bounding:
    """``path_ps``: the longest path; ``loaded_ps``: counting what engines have to do before; ``engines``: each busy
    engine and its bound; ``raised_ps`` and ``refuted_ps``: what local windows and refuted makespans give, 0 where they
    were not looked for. ``known``: heads and tails. ``urgency``: by what raised the tails, the least time from each
    node's start to the end of all: priorities for a schedule."""

    known: HeadsAndTails
    path_ps: int
    loaded_ps: int
    engines: tuple[tuple[int, int], ...]
    raised_ps: int = 0
    refuted_ps: int = 0
    urgency: tuple[IntArray, ...] = ()

    @property
    def best_ps(self) -> int:
        """The largest of them."""
        return max(self.loaded_ps, self.raised_ps, self.refuted_ps, *(bound for _, bound in self.engines))


def quick_bounds(dag: Dag) -> Bounding:
    """The bounds that take about as long as a list. The edges must close no cycle."""
    known = heads_and_tails(dag)
    return Bounding(known, known.longest_path_ps, loaded_path_ps(dag, known), tuple(engine_bounds(dag, known)))


def raised_bounds(dag: Dag, effort: BoundEffort, found: Bounding) -> Bounding:
    """Heads and tails raised by local windows of each width, and the bounds that they give."""
    if dag.horizon_ps > LARGEST_COMPILED >> 2:
        return found
    coarse, unit = _in_units(dag)
    head, tail = -(-found.known.head_ps // unit), -(-found.known.tail_ps // unit)
    back = coarse.reversed()
    budget = effort.window_steps + effort.steps_a_node * len(dag)
    urgency = found.urgency
    for width in effort.widths:
        head = raised_heads(coarse, head, width, budget)
        tail = raised_heads(back, tail, width, budget)
        urgency = (*urgency, tail * unit + dag.duration_ps)
    known = attrs.evolve(found.known, head_ps=head * unit, tail_ps=tail * unit)
    best = dict(found.engines)
    engines = tuple((engine, max(bound, best[engine])) for engine, bound in engine_bounds(dag, known))
    return attrs.evolve(found, known=known, raised_ps=loaded_path_ps(dag, known), engines=engines, urgency=urgency)


def refuted_bounds(dag: Dag, effort: BoundEffort, found: Bounding, reached_ps: int) -> Bounding:
    """What refuting makespans below that of a schedule gives, where it leaves a gap."""
    coarse, unit = _in_units(dag)
    begun = len(dag) <= effort.largest and dag.horizon_ps <= LARGEST_COMPILED >> 2
    for (each, most), probing in ((effort.refuting, False), (effort.probing, True)):
        if begun and reached_ps > found.best_ps:
            refuted = refuted_up_to(
                coarse,
                -(-found.known.head_ps // unit),
                -(-found.known.tail_ps // unit),
                -(-found.best_ps // unit),
                reached_ps // unit,
                budget=min(each * len(dag), most),
                probing=probing,
            )
            found = attrs.evolve(found, refuted_ps=max(refuted * unit, found.refuted_ps))
    return found


def _in_units(dag: Dag) -> tuple[Dag, int]:
    """The problem in the largest unit that all durations and releases are multiples of, and the unit. A schedule that
    is moved to the left as far as its orders allow starts everything at such multiples, and is no longer than before:
    what bounds one bounds the other."""
    unit = int(np.gcd.reduce(np.concatenate([dag.duration_ps, dag.release_ps]))) or 1
    return attrs.evolve(dag, duration_ps=dag.duration_ps // unit, release_ps=dag.release_ps // unit), unit
