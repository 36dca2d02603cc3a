"""Folding a graph into few boxes, so that a picture of it can be laid out and read.

Seven grades, each coarser than the one before:

- ``nodes``: a box for each node;
- ``iterations``: what repeats at once, be it scopes of one content or a stretch without a scope, is drawn once, with
  the number of repetitions (:mod:`kernscope.backends.graph_picture.repeats`);
- ``alike``: in addition ranks that do the same are drawn once;
- ``lines``: all nodes of one operation and one call stack are one box, over all scopes and ranks;
- ``scopes``: every scope is one box (what lies in scopes inside it has boxes of its own), what repeats and ranks that
  do the same are drawn once;
- ``places``: all sibling scopes of one source stack are one box, whatever their content;
- ``ranks``: the same, over all ranks together.

Scope markers have no box: what they mark is drawn as a frame. All counts are of the graph's nodes, and exact; where
only some nodes are kept (:mod:`kernscope.backends.graph_picture.drawn_part`), of those.
"""

from __future__ import annotations

import enum
from functools import cached_property

import attrs
import numpy as np

from ...ir.arrays.permutations import inverse_permutation
from ...ir.graph import Graph
from ...ir.ops import OPERATIONS
from ...ir.tables import IntArray, Mode, Reason
from .repeats import Alike, find_alike

__all__ = [
    "FOLDED_LIMIT",
    "READABLE_LIMIT",
    "Box",
    "Folded",
    "FoldedEdges",
    "Frame",
    "Grade",
    "fold",
    "fold_to_fit",
]

#: By eye: more boxes than this are folded as soon as that leaves fewer of them, ...
READABLE_LIMIT = 60
#: ... and folded boxes are folded further from this many on.
FOLDED_LIMIT = 110
#: A picture of fewer scopes says nothing: the next finer grade is taken, if it can be laid out.
_FEWEST = 5


class Grade(enum.StrEnum):
    """How far a graph is folded."""

    NODES = "nodes"
    ITERATIONS = "iterations"
    ALIKE = "alike"
    LINES = "lines"
    SCOPES = "scopes"
    PLACES = "places"
    RANKS = "ranks"

    @property
    def single(self) -> bool:
        """Whether a box stands for nodes of one operation at one line of the source."""
        return self in (Grade.NODES, Grade.ITERATIONS, Grade.ALIKE, Grade.LINES)


@attrs.frozen
class Frame:
    """A scope, or several drawn as one. ``scope`` is the row of the first of them, ``parent`` the index of the frame
    around it (-1: a kernel's own scope), ``scopes`` how many it stands for, ``ranks`` the ranks they are on, in
    ascending order; where only some nodes are kept, of the scopes around those."""

    scope: int
    parent: int
    scopes: int
    ranks: tuple[int, ...]


@attrs.frozen
class Box:
    """A node, or several drawn as one. ``node`` is the id of the first of them, ``frame`` the index of the frame it
    lies in (-1: none), ``count`` how many nodes it stands for, ``operations`` how many by operation's name (the most
    frequent first)."""

    node: int
    frame: int
    count: int
    operations: tuple[tuple[str, int], ...]


@attrs.frozen(eq=False)
class FoldedEdges:
    """Edges between boxes, as columns sorted by source, target, reason and ``recycled``. ``source`` and ``target`` are
    indices into ``Folded.boxes``, ``count`` how many edges of the graph each stands for."""

    source: IntArray
    target: IntArray
    reason: IntArray
    recycled: IntArray
    count: IntArray

    def __len__(self) -> int:
        return len(self.source)


@attrs.frozen(eq=False, slots=False)
class Folded:
    """A graph folded to a grade. ``box_of`` is the index of each node's box, shape ``(n,)``, -1 for scope markers and
    for nodes that are not kept; ``frames`` stand in order, a parent before its children; ``kept`` is how many nodes
    are drawn, ``markers`` how many scope markers the graph has."""

    graph: Graph
    grade: Grade
    frames: tuple[Frame, ...]
    boxes: tuple[Box, ...]
    edges: FoldedEdges
    box_of: IntArray
    kept: int
    markers: int

    @cached_property
    def loads(self) -> tuple[str, ...]:
        """By box the tensor in memory that its nodes read; empty where they read none, or several."""
        graph, accesses = self.graph, self.graph.accesses
        read = ~graph.in_scratch[accesses.storage] & (accesses.mode == Mode.READ)
        box = self.box_of[np.repeat(np.arange(len(graph)), np.diff(graph.access_start))[read]]
        name = graph.storages.name[accesses.storage[read]][box >= 0]
        box = box[box >= 0]
        lowest = np.full(len(self.boxes), len(graph.names), dtype=np.int64)
        highest = np.full(len(self.boxes), -1, dtype=np.int64)
        np.minimum.at(lowest, box, name)
        np.maximum.at(highest, box, name)
        return tuple(
            graph.names[low] if low == high else "" for low, high in zip(lowest.tolist(), highest.tolist(), strict=True)
        )


def fold_to_fit(
    graph: Graph, limit: int, *, readable: int | None = None, finest: Grade = Grade.NODES, keep: IntArray | None = None
) -> Folded:
    """The graph at the finest grade, from ``finest`` on, of at most ``limit`` boxes; at the coarsest where none has so
    few. ``keep`` is a mask of the nodes to draw.

    With a ``readable`` number of boxes the aim is a picture to read: a box for each node up to so many, the finest
    grade of at most ``FOLDED_LIMIT`` boxes beyond; except that where only next to no scopes are left the grade before,
    within ``limit``, says more.
    """
    grades = list(Grade)[list(Grade).index(finest) :]
    before: Folded | None = None
    for grade in grades:
        most = limit if readable is None else min(limit, readable if grade is Grade.NODES else FOLDED_LIMIT)
        if grade is Grade.NODES and _count(graph, keep) > (limit if readable is not None else most):
            continue
        folded = fold(graph, grade, keep)
        if len(folded.boxes) <= most or grade is grades[-1]:
            break
        if len(folded.boxes) <= limit and (before is None or len(folded.boxes) < len(before.boxes)):
            before = folded
    if readable is None or before is None:
        return folded
    says_less = not folded.grade.single and len(folded.boxes) < _FEWEST
    says_more = says_less or len(folded.boxes) >= len(before.boxes)
    return before if says_more else folded


def _count(graph: Graph, keep: IntArray | None) -> int:
    drawn = ~_markers(graph) if keep is None else ~_markers(graph) & keep
    return int(np.count_nonzero(drawn))


def fold(graph: Graph, grade: Grade, keep: IntArray | None = None) -> Folded:
    """The graph, or those of its nodes that the mask ``keep`` holds, at one grade. Time and memory are near-linear in
    nodes, accesses and edges."""
    alike = _alike(graph, grade)
    shown, frame_of_scope = np.unique(alike.scope, return_inverse=True)
    frame_of = np.where(graph.nodes.scope >= 0, frame_of_scope[graph.nodes.scope] if len(shown) else -1, -1)
    key = alike.node if grade.single else frame_of.astype(np.int64)
    markers = _markers(graph)
    drawn = np.flatnonzero(~markers if keep is None else ~markers & keep)
    boxes, box_of = _boxes(graph, drawn, key, frame_of)
    return Folded(
        graph=graph,
        grade=grade,
        frames=_frames(graph, shown, frame_of_scope, _scopes_around(graph, drawn, keep)),
        boxes=boxes,
        edges=_edges(graph, box_of, len(boxes), loops=grade.single and grade is not Grade.NODES),
        box_of=box_of,
        kept=len(drawn),
        markers=int(np.count_nonzero(markers)),
    )


def _alike(graph: Graph, grade: Grade) -> Alike:
    """Which scopes and nodes are drawn as one at a grade."""
    nodes = np.arange(len(graph), dtype=np.int64)
    if grade is Grade.NODES:
        return Alike(np.arange(len(graph.scopes), dtype=np.int64), nodes)
    if grade is Grade.LINES:
        first = _first_of_place(graph, by_rank=False)
        return Alike(first, _first_of_line(graph, first))
    if grade in (Grade.PLACES, Grade.RANKS):
        return Alike(_first_of_place(graph, by_rank=grade is Grade.PLACES), nodes)
    return find_alike(graph, across_ranks=grade is not Grade.ITERATIONS)


def _first_of_place(graph: Graph, *, by_rank: bool) -> IntArray:
    """For each scope the first one opened at the same place of the source: the same stack and name, inside scopes of
    the same places; on the same rank, or on any."""
    scopes = graph.scopes
    known: dict[tuple[int, ...], int] = {}
    first: list[int] = []
    rows = zip(scopes.parent.tolist(), scopes.rank.tolist(), scopes.stack.tolist(), scopes.name.tolist(), strict=True)
    for scope, (parent, rank, stack, name) in enumerate(rows):
        around = first[parent] if parent >= 0 else -1
        first.append(known.setdefault((around, rank if by_rank else 0, stack, name), scope))
    return np.array(first, dtype=np.int64)


def _first_of_line(graph: Graph, first: IntArray) -> IntArray:
    """For each node the first one of the same operation and call stack, in a scope drawn as the same one."""
    nodes = graph.nodes
    scope = np.where(nodes.scope >= 0, first[nodes.scope] if len(first) else -1, -1)
    keys = np.stack([scope, nodes.stack, nodes.op], axis=1).astype(np.int64)
    _, at, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    line: IntArray = at[inverse.reshape(-1)]
    return line


# --- boxes, frames, edges ---------------------------------------------------------------------------------------------


def _markers(graph: Graph) -> IntArray:
    return OPERATIONS.markers[graph.nodes.op]


def _boxes(graph: Graph, drawn: IntArray, key: IntArray, frame_of: IntArray) -> tuple[tuple[Box, ...], IntArray]:
    """The boxes of the drawn nodes, in order of the first node of each, and the box of each node."""
    box_of: IntArray = np.full(len(graph), -1, dtype=np.int64)
    if not len(drawn):
        return (), box_of
    _, at, inverse, counts = np.unique(key[drawn], return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(at, kind="stable")
    box_of[drawn] = inverse_permutation(order)[inverse]
    names = OPERATIONS.names
    width = len(names)
    pairs, numbers = np.unique(box_of[drawn] * width + graph.nodes.op[drawn], return_counts=True)
    operations: list[list[tuple[str, int]]] = [[] for _ in order]
    for pair, number in zip(pairs.tolist(), numbers.tolist(), strict=True):
        operations[pair // width].append((names[pair % width], number))
    firsts = drawn[at[order]].tolist()
    boxes = tuple(
        Box(
            node=node,
            frame=int(frame_of[node]),
            count=int(counts[order[index]]),
            operations=tuple(sorted(operations[index], key=lambda item: (-item[1], item[0]))),
        )
        for index, node in enumerate(firsts)
    )
    return boxes, box_of


def _scopes_around(graph: Graph, drawn: IntArray, keep: IntArray | None) -> IntArray:
    """The scopes to count: all of them, or, where only some nodes are kept, those around a drawn node."""
    if keep is None:
        return np.arange(len(graph.scopes))
    around: IntArray = np.zeros(len(graph.scopes) + 1, dtype=np.bool_)
    level = np.unique(graph.nodes.scope[drawn])
    while len(level := level[(level >= 0) & ~around[level]]):
        around[level] = True
        level = np.unique(graph.scopes.parent[level])
    return np.flatnonzero(around)


def _frames(graph: Graph, shown: IntArray, frame_of_scope: IntArray, counted: IntArray) -> tuple[Frame, ...]:
    scopes = graph.scopes
    numbers = np.bincount(frame_of_scope[counted], minlength=len(shown)).tolist()
    pairs = np.unique(frame_of_scope[counted] * graph.ranks + scopes.rank[counted])
    frame_of, rank_of = np.divmod(pairs, max(graph.ranks, 1))
    ranks: list[list[int]] = [[] for _ in shown]
    for index, rank in zip(frame_of.tolist(), rank_of.tolist(), strict=True):
        ranks[index].append(rank)
    parents = np.where(scopes.parent[shown] >= 0, frame_of_scope[scopes.parent[shown]], -1).tolist()
    return tuple(
        Frame(scope=scope, parent=parent, scopes=number, ranks=tuple(on))
        for scope, parent, number, on in zip(shown.tolist(), parents, numbers, ranks, strict=True)
    )


def _edges(graph: Graph, box_of: IntArray, boxes: int, *, loops: bool) -> FoldedEdges:
    """The edges between boxes. An edge within one box is left out, except, where ``loops`` are wanted, that a node
    needs what its like of an earlier iteration made (that it takes over its bytes goes without saying)."""
    edges = graph.edges
    source, target = box_of[edges.source], box_of[edges.target]
    kept = (source >= 0) & (target >= 0) & ((source != target) | (loops & (edges.reason < Reason.WAR)))
    source, target = source[kept], target[kept]
    kind = edges.reason[kept].astype(np.int64) * 2 + edges.recycled[kept]
    keys = (source * max(boxes, 1) + target) * 512 + kind
    found, counts = np.unique(keys, return_counts=True)
    pair, kind = found // 512, found % 512
    source, target = np.divmod(pair, max(boxes, 1))
    return FoldedEdges(source=source, target=target, reason=kind // 2, recycled=kind % 2 == 1, count=counts)
