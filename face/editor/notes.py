"""What an editor says of the lines of a kernel: the tiles that a line makes, and the time that it takes."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from ...analysis.analysis import Analysis
from ...ir.forms.counts import plural
from ...ir.forms.text import quote
from ...ir.graph import Node
from ...ir.tables import Mode
from ...machine.units import format_ps
from ...memory.liveness import Liveness
from ...scheduler.result.schedule import Schedule

__all__ = ["Note", "line_notes"]

#: Of one rank; a line is told by its first node and by sums, so that more would say little more.
_MOST_NODES = 50_000


@attrs.frozen
class Note:
    """What is to be said of columns ``first`` to ``last`` of a line (bytes, 0 and on) of a file, in Markdown."""

    file: str
    line: int
    first: int
    last: int
    text: str


def line_notes(known: Analysis, schedule: Schedule) -> Iterator[Note]:
    """A note for each place of the source that makes nodes of rank 0, in order of place."""
    places: dict[tuple[str, int, int, int], list[Node]] = {}
    for node, _ in zip(known.graph, range(_MOST_NODES), strict=False):
        where = node.location
        if where is not None and node.rank == 0 and not node.operation.is_marker:
            places.setdefault((where.file, where.line, where.column, where.end_column), []).append(node)
    live = known.liveness()
    for (file, line, first, last), nodes in sorted(places.items()):
        yield Note(file, line, first, last, "\n\n".join(_told(nodes, live, schedule)))


def _told(nodes: list[Node], live: Liveness, schedule: Schedule) -> Iterator[str]:
    first = nodes[0]
    often = f", {plural(len(nodes), 'time')}" if len(nodes) > 1 else ""
    yield f"**{first.op}**{often}"
    ids = [node.id for node in nodes]
    busy = sum(int(schedule.end_ps[i] - schedule.start_ps[i]) for i in ids)
    label = schedule.engine_label(int(schedule.engine[first.id]))
    yield f"{format_ps(busy)} on {label} in all; the first from {format_ps(int(schedule.start_ps[first.id]))} on"
    for access in first.accesses:
        if access.mode is Mode.WRITE and not access.storage.is_hbm:
            storage = access.storage
            index = int(access.graph.accesses.storage[access.row])
            ends = int(live.last_access[index])
            dead = "never used" if ends < 0 else f"live from %{int(live.first_write[index])} to %{ends}"
            named = f"`{quote(storage.name)}` " if storage.name else ""
            yield f"{named}{storage.layout!r}: {storage.nbytes:,} B at {storage.address:#x}, {dead}"
