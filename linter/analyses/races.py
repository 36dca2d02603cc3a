"""Races in HBM: accesses of two ranks to the same bytes, one of them a write, that nothing puts in an order."""

from __future__ import annotations

import math

import attrs
import numpy as np

from ...ir.arrays.distinct import distinct, distinct_rows
from ...ir.dependence.regions import boxes, flat_range_boxes
from ...ir.graph import Graph
from ...ir.ops import OPERATIONS
from ...ir.tables import AccessKind, IntArray, Mode
from ...scheduler.search.dag import topological_order

__all__ = ["Race", "find_races"]

_PAIRS_AT_ONCE = 1 << 16


@attrs.frozen
class Race:
    """Two places that race on a tensor (``storage``): ``first`` and ``second`` are the earliest nodes that do, of
    different ranks, ``first`` having the smaller id; ``nodes`` are all nodes at these two places that race there."""

    storage: int
    first: int
    second: int
    nodes: tuple[int, ...]


@attrs.frozen(eq=False)
class _Views:
    """The different views through which ranks (with a grid: programs) access shared tensors: those of one rank, mode,
    place in the source and box are one row. ``row`` is one of its accesses;
    ``nodes[start[i]:start[i + 1]]`` are all nodes of view i."""

    row: IntArray
    storage: IntArray
    rank: IntArray
    write: IntArray
    stack: IntArray
    nodes: IntArray
    start: IntArray


def find_races(graph: Graph) -> list[Race]:
    """All races, those of the same two source lines on one tensor together, in order of their first nodes.

    Two accesses are in order when a path of edges leads from one to the other; program order alone is none, and no edge
    joins ranks through HBM. Exact: boxes are compared element by element.
    """
    views = _shared_views(graph)
    if views is None:
        return []
    a, b = _overlapping(graph, views)
    # Two atomics of a kind take turns at one element: whichever comes first, the outcome is the same.
    node = graph.accesses.node[views.row]
    atomic, how = OPERATIONS.mask(lambda op: op.atomic)[graph.nodes.op[node]], _changes(graph)[node]
    clash = ~(atomic[a] & atomic[b]) | ((how[a] != how[b]) & (how[a] >= 0) & (how[b] >= 0))
    a, b = a[clash], b[clash]
    if not len(a):
        return []
    reach = _Reach(graph) if len(graph.channels) else None
    units = _units_of(views, distinct(np.concatenate((a, b))), reach)
    a, b = units.pairs(a, b)
    if reach is not None:
        loose = reach.unordered(units.first_node[a], units.first_node[b])
        a, b = a[loose], b[loose]
    stack_a, stack_b = views.stack[units.view[a]], views.stack[units.view[b]]
    storages = views.storage[units.view[a]]
    places = distinct_rows(storages, np.minimum(stack_a, stack_b), np.maximum(stack_a, stack_b))
    found = []
    for storage, group in zip(storages[places.first].tolist(), places.members(), strict=True):
        ones, twos = units.first_node[a[group]], units.first_node[b[group]]
        first, second = min(zip(np.minimum(ones, twos).tolist(), np.maximum(ones, twos).tolist(), strict=True))
        racing = distinct(np.concatenate((a[group], b[group])))
        found.append(Race(storage, first, second, nodes=tuple(np.sort(units.nodes_of(racing)).tolist())))
    return sorted(found, key=lambda race: (race.first, race.second, race.storage))


@attrs.frozen(eq=False)
class _Units:
    """The nodes of views in parts that no path tells apart: the nodes of a unit reach, and are reached by, the same.
    ``view`` and ``first_node`` are by unit; units of a view lie side by side; unit i has the nodes
    ``nodes[start[i]:start[i + 1]]``."""

    view: IntArray
    first_node: IntArray
    nodes: IntArray
    start: IntArray

    def nodes_of(self, units: IntArray) -> IntArray:
        """All nodes of some units."""
        return np.concatenate([self.nodes[self.start[unit] : self.start[unit + 1]] for unit in units.tolist()])

    def pairs(self, a: IntArray, b: IntArray) -> tuple[IntArray, IntArray]:
        """For pairs of views all pairs of their units."""
        first_a, first_b = np.searchsorted(self.view, a), np.searchsorted(self.view, b)
        count_b = np.searchsorted(self.view, b, side="right") - first_b
        counts = (np.searchsorted(self.view, a, side="right") - first_a) * count_b
        pair = np.repeat(np.arange(len(a)), counts)
        within = np.arange(len(pair)) - np.repeat(np.cumsum(counts) - counts, counts)
        return first_a[pair] + within // count_b[pair], first_b[pair] + within % count_b[pair]


def _units_of(views: _Views, involved: IntArray, reach: _Reach | None) -> _Units:
    view = np.repeat(np.arange(len(views.row)), np.diff(views.start))
    chosen = np.isin(view, involved)
    view, nodes = view[chosen], views.nodes[chosen]
    kind = np.zeros(len(nodes), dtype=np.int64) if reach is None else reach.kind_of(nodes)
    parts = distinct_rows(view, kind)
    nodes = nodes[np.argsort(parts.which, kind="stable")]
    start = np.append(0, np.cumsum(np.bincount(parts.which)))
    return _Units(view=view[parts.first], first_node=nodes[start[:-1]], nodes=nodes, start=start)


def _changes(graph: Graph) -> IntArray:
    """By node a number for how it changes elements as one step; -1 where it changes none so."""
    hows = [entry.get("how", "") for entry in graph.attributes]
    numbers = {how: number for number, how in enumerate(sorted({*hows} - {""}))}
    by_entry = np.array([*(numbers.get(how, -1) for how in hows), -1], dtype=np.int64)  # the last of no attributes
    found: IntArray = by_entry[graph.nodes.attributes]
    return found


# --- which accesses meet ----------------------------------------------------------------------------------------------


def _shared_views(graph: Graph) -> _Views | None:
    """The views of tensors that several ranks access and at least one writes; None where there are none."""
    accesses, storages, nodes = graph.accesses, graph.storages, graph.nodes
    hbm = np.flatnonzero(~graph.in_scratch[accesses.storage])
    # The programs of a grid are compared as ranks are: which of them share a rank is the deal's doing.
    units, of_node = (math.prod(graph.grid), graph.program) if graph.grid else (graph.ranks, nodes.rank)
    if units < 2 or not len(hbm):
        return None
    storage = accesses.storage[hbm].astype(np.int64)
    rank = of_node[accesses.node[hbm]].astype(np.int64)
    write = accesses.mode[hbm] == Mode.WRITE
    low = np.full(len(storages), units, dtype=np.int64)
    high = np.full(len(storages), -1, dtype=np.int64)
    written = np.zeros(len(storages), dtype=np.bool_)
    np.minimum.at(low, storage, rank)
    np.maximum.at(high, storage, rank)
    written[storage[write]] = True
    shared = ((low < high) & written)[storage]
    if not shared.any():
        return None
    hbm, storage, rank, write = hbm[shared], storage[shared], rank[shared], write[shared]
    node = accesses.node[hbm]
    stack = nodes.stack[node]
    # Of what an index names, the offset and the layout are but the range.
    by_index = np.where(accesses.kind[hbm] >= AccessKind.ROWS, nodes.attributes[node], -1)
    op = nodes.op[node]
    views = distinct_rows(storage, rank, write, stack, op, accesses.offset[hbm], accesses.layout[hbm], by_index)
    first = views.first
    grouped = np.argsort(views.which, kind="stable")
    return _Views(
        row=hbm[first],
        storage=storage[first],
        rank=rank[first],
        write=write[first],
        stack=stack[first],
        nodes=node[grouped].astype(np.int64),
        start=np.append(0, np.cumsum(np.bincount(views.which))),
    )


def _overlapping(graph: Graph, views: _Views) -> tuple[IntArray, IntArray]:
    """Pairs of views of different ranks that share an element, one of them writing; each pair once."""
    lower, extents, _ = boxes(graph.accesses, graph.storages, graph.layouts)
    lower, upper = lower[views.row], lower[views.row] + extents[views.row]
    ranges = graph.accesses.kind[views.row] != AccessKind.BOX
    found = [np.zeros((0, 2), dtype=np.int64)]
    for storage in distinct(views.storage).tolist():
        chosen = np.flatnonzero(views.storage == storage)
        if not ranges[chosen].any():
            if not _apart(views, chosen, lower, upper):
                found.append(_sweep(views, chosen, lower[chosen], upper[chosen]))
            continue
        pairs = np.sort(_sweep(views, *_covering(graph, views, chosen, lower, upper, ranges)), axis=1)
        pairs = pairs[distinct_rows(*pairs.T).first]
        certain = ~ranges[pairs].any(axis=1)
        shared = [c or _share_elements(graph, views, *p) for c, p in zip(certain.tolist(), pairs.tolist(), strict=True)]
        found.append(pairs[np.array(shared, dtype=np.bool_)])
    a, b = np.concatenate(found).T
    return a, b


def _apart(views: _Views, chosen: IntArray, lower: IntArray, upper: IntArray) -> bool:
    """Whether each rank keeps to a part of the tensor of its own: then there is nothing to look for."""
    ranks = distinct(views.rank[chosen])
    low = np.array([lower[chosen[views.rank[chosen] == rank]].min(axis=0) for rank in ranks])
    high = np.array([upper[chosen[views.rank[chosen] == rank]].max(axis=0) for rank in ranks])
    meets = np.all((low[:, None, :] < high[None, :, :]) & (low[None, :, :] < high[:, None, :]), axis=2)
    return int(meets.sum()) == len(ranks)


def _sweep(views: _Views, owner: IntArray, lower: IntArray, upper: IntArray) -> IntArray:
    """``(pairs, 2)``: owners whose boxes meet. Boxes are sorted along the dimension in which they differ most; each is
    compared with those that begin before it ends."""
    spread = [len(distinct(lower[:, axis])) for axis in range(lower.shape[1])]
    axis = int(np.argmax(spread))
    order = np.argsort(lower[:, axis], kind="stable")
    owner, lower, upper = owner[order], lower[order], upper[order]
    rank, write = views.rank[owner], views.write[owner]
    writes_before = np.append(0, np.cumsum(write))
    stops = np.searchsorted(lower[:, axis], upper[:, axis])
    found = [np.zeros((0, 2), dtype=np.int64)]
    for i, stop in enumerate(stops.tolist()):
        if stop <= i + 1 or (not write[i] and writes_before[stop] == writes_before[i + 1]):
            continue
        others = slice(i + 1, stop)
        meets = np.all((lower[others] < upper[i]) & (upper[others] > lower[i]), axis=1)
        meets &= (rank[others] != rank[i]) & (write[others] | write[i])
        partners = owner[others][meets]
        if len(partners):
            found.append(np.column_stack((np.full(len(partners), owner[i]), partners)))
    return np.concatenate(found)


def _covering(
    graph: Graph, views: _Views, chosen: IntArray, lower: IntArray, upper: IntArray, ranges: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """The boxes of the views, those that are no box by the boxes of their covering range: ``(owner, lower, upper)``."""
    accesses, width = graph.accesses, lower.shape[1]
    plain = chosen[~ranges[chosen]]
    owners, lows, highs = [plain], [lower[plain]], [upper[plain]]
    for view in chosen[ranges[chosen]].tolist():
        row = int(views.row[view])
        shape = graph.layouts[graph.storages.layout[accesses.storage[row]]].shape
        start = int(accesses.offset[row])
        for corner, extent in flat_range_boxes(shape, start, start + graph.layouts[accesses.layout[row]].span):
            pad = width - len(shape)
            low = np.array((0,) * pad + corner, dtype=np.int64)
            owners.append(np.array([view]))
            lows.append(low[None, :])
            highs.append((low + np.array((1,) * pad + extent))[None, :])
    return np.concatenate(owners), np.concatenate(lows), np.concatenate(highs)


def _share_elements(graph: Graph, views: _Views, a: int, b: int) -> bool:
    return bool(np.intersect1d(_elements(graph, int(views.row[a])), _elements(graph, int(views.row[b]))).size)


def _elements(graph: Graph, row: int) -> IntArray:
    """The elements that an access shows, as numbers within its storage."""
    if AccessKind(graph.accesses.kind[row]).is_indexed:
        index = graph.attributes[graph.nodes.attributes[graph.accesses.node[row]]]["index"]
        return np.asarray(index.accessed() + graph.accesses.offset[row])
    layout = graph.layouts[graph.accesses.layout[row]]
    elements = np.array([int(graph.accesses.offset[row])], dtype=np.int64)
    for n, stride in zip(layout.shape, layout.strides, strict=True):
        if stride:
            elements = (elements[:, None] + np.arange(n) * stride).reshape(-1)
    return elements


# --- which nodes are in order -----------------------------------------------------------------------------------------


class _Reach:
    """Paths of edges between nodes of different ranks.

    A path enters a rank through a receive (a message) or a send (a credit), and the sends and the receives of a channel
    are each a chain of ``fifo`` edges. So by node and chain two numbers say all: the first place of the chain that the
    node reaches, and the last place that reaches the node. u reaches v exactly where, for some chain, the first place
    that u reaches is not behind the last that reaches v. (Chain decomposition of reachability: Jagadish,
    "A compression technique to materialize transitive closure", 1990.)
    """

    def __init__(self, graph: Graph) -> None:
        nodes, edges = graph.nodes, graph.edges
        sends = OPERATIONS.sends[nodes.op]
        # Chain 2c are the sends of channel c, chain 2c + 1 its receives.
        on_chain = np.flatnonzero(nodes.channel >= 0)
        chain = nodes.channel[on_chain].astype(np.int64) * 2 + ~sends[on_chain]
        count = 2 * len(graph.channels)
        by_chain = np.argsort(chain, kind="stable")
        place = np.empty(len(on_chain), dtype=np.int64)
        starts = np.searchsorted(chain[by_chain], np.arange(count))
        place[by_chain] = np.arange(len(on_chain)) - starts[chain[by_chain]]
        n = len(nodes)
        never = np.iinfo(np.int32).max
        self._first = np.full((n, count), never, dtype=np.int32)
        self._last = np.full((n, count), -1, dtype=np.int32)
        self._first[on_chain, chain] = place
        self._last[on_chain, chain] = place
        order = topological_order(np.arange(n), edges.source, edges.target)
        left = np.setdiff1d(np.arange(n), order)  # on a cycle of edges, or behind one
        sweep = np.concatenate((order, left))
        _spread(self._first, sweep[::-1], edges.target, edges.source, np.minimum, repeat=len(left) > 0)
        _spread(self._last, sweep, edges.source, edges.target, np.maximum, repeat=len(left) > 0)

    def kind_of(self, nodes: IntArray) -> IntArray:
        """A number for each node, the same for nodes that reach and are reached by the same."""
        columns = np.concatenate((self._first[nodes], self._last[nodes]), axis=1)
        # A row is as wide as there are channels: sorting by one column after the other would take longer.
        _, kind = np.unique(columns, axis=0, return_inverse=True)
        return kind.reshape(-1)

    def unordered(self, a: IntArray, b: IntArray) -> IntArray:
        """For pairs of nodes of different ranks: whether no path leads either way. ``(len(a),)`` bool."""
        loose = np.empty(len(a), dtype=np.bool_)
        for begin in range(0, len(a), _PAIRS_AT_ONCE):
            part = slice(begin, begin + _PAIRS_AT_ONCE)
            loose[part] = ~(self._reaches(a[part], b[part]) | self._reaches(b[part], a[part]))
        return loose

    def _reaches(self, sources: IntArray, targets: IntArray) -> IntArray:
        reaches: IntArray = np.any(self._first[sources] <= self._last[targets], axis=1)
        return reaches


def _spread(
    values: IntArray, sweep: IntArray, source: IntArray, target: IntArray, combine: np.ufunc, *, repeat: bool
) -> None:
    """Give every node the combined values of those that ``source`` holds where ``target`` is the node, in this order;
    again until nothing changes where the order does not suffice."""
    order = np.argsort(target, kind="stable")
    sources = source[order]
    starts = np.searchsorted(target[order], np.arange(len(values) + 1)).tolist()
    while True:
        before = values.copy() if repeat else None
        for node in sweep.tolist():
            first, stop = starts[node], starts[node + 1]
            if first < stop:
                combine(values[node], combine.reduce(values[sources[first:stop]], axis=0), out=values[node])
        if before is None or np.array_equal(before, values):
            return
