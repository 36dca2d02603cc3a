"""The slices of a schedule: which node is busy where and when, merged where a picture could not tell them apart."""

from __future__ import annotations

import attrs
import numpy as np

from ...ir.forms.text import quote
from ...ir.tables import IntArray
from ...scheduler.result.schedule import Schedule

__all__ = ["Slices", "merge_below", "schedule_name", "slices_of"]

#: Longer names are cut: a title stands on one line.
_LONGEST_NAME = 48


@attrs.frozen(eq=False)
class Slices:
    """Slices as columns, sorted by engine, lane, then start. ``node`` is the id of the (first) node, ``engine`` an
    index into ``Schedule.engines``, ``count`` how many nodes a slice stands for, ``busy_ps`` for how long of
    ``end_ps - start_ps`` the lane works. Slices of one lane never overlap."""

    node: IntArray
    engine: IntArray
    lane: IntArray
    start_ps: IntArray
    end_ps: IntArray
    count: IntArray
    busy_ps: IntArray

    def __len__(self) -> int:
        return len(self.node)


def schedule_name(schedule: Schedule) -> str:
    """Kernel and machine, short enough for the title of a chart."""
    name = f"{quote(schedule.graph.kernel)} on {quote(schedule.machine.name)}"
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 3]}..."


def slices_of(schedule: Schedule) -> Slices:
    """A slice for each node that keeps an engine busy for some time."""
    start, end = np.asarray(schedule.start_ps), np.asarray(schedule.free_ps)
    node = np.flatnonzero((schedule.engine >= 0) & (end > start))
    order = np.lexsort((node, start[node], schedule.lane[node], schedule.engine[node]))
    node = node[order]
    return Slices(
        node=node,
        engine=schedule.engine[node],
        lane=schedule.lane[node],
        start_ps=start[node],
        end_ps=end[node],
        count=np.ones(len(node), dtype=np.int64),
        busy_ps=end[node] - start[node],
    )


def merge_below(slices: Slices, width_ps: float) -> Slices:
    """Slices shorter than ``width_ps`` that begin in one column of that width, on one lane, as one slice each. No
    longer slice can lie between two of them: it would end in a later column."""
    if not len(slices):
        return slices
    column = (slices.start_ps / width_ps).astype(np.int64)
    short = slices.end_ps - slices.start_ps < width_ps
    same = np.zeros(len(slices), dtype=np.bool_)
    same[1:] = (
        short[1:]
        & short[:-1]
        & (column[1:] == column[:-1])
        & (slices.engine[1:] == slices.engine[:-1])
        & (slices.lane[1:] == slices.lane[:-1])
    )
    first = np.flatnonzero(~same)
    last = np.append(first[1:], len(slices)) - 1
    return Slices(
        node=slices.node[first],
        engine=slices.engine[first],
        lane=slices.lane[first],
        start_ps=slices.start_ps[first],
        end_ps=slices.end_ps[last],
        count=np.add.reduceat(slices.count, first),
        busy_ps=np.add.reduceat(slices.busy_ps, first),
    )
