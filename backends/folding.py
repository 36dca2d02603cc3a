"""Folding a graph into few boxes, so that a picture of it can be laid out and read.

Five grades, each coarser than the one before; the first that has few enough boxes is taken:

- ``nodes``: a box for each node;
- ``iterations``: consecutive sibling scopes of one source stack and one content are drawn once, with their number;
- ``scopes``: in addition every scope is one box (what lies in scopes inside it has boxes of its own);
- ``places``: all sibling scopes of one source stack are one box, whatever their content;
- ``ranks``: the same, over all ranks together.

Scope markers have no box: what they mark is drawn as a frame. All counts are of the graph's nodes, and exact.
"""

from __future__ import annotations

import enum

import attrs
import numpy as np

from ..ir.graph import Graph
from ..ir.ops import OPERATIONS, Family
from ..ir.tables import IntArray, Reason

__all__ = ["Box", "Folded", "FoldedEdges", "Frame", "Grade", "fold", "fold_to_fit"]


class Grade(enum.StrEnum):
    """How far a graph is folded."""

    NODES = "nodes"
    ITERATIONS = "iterations"
    SCOPES = "scopes"
    PLACES = "places"
    RANKS = "ranks"


@attrs.frozen
class Frame:
    """A scope, or several drawn as one. ``scope`` is the row of the first of them, ``parent`` the index of the frame
    around it (-1: a kernel's own scope), ``scopes`` how many there are in the whole graph, ``ranks`` on how many ranks.
    """

    scope: int
    parent: int
    scopes: int
    ranks: int


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


@attrs.frozen(eq=False)
class Folded:
    """A graph folded to a grade. ``box_of`` is the index of each node's box, shape ``(n,)``, -1 for scope markers;
    ``frames`` stand in order, a parent before its children."""

    graph: Graph
    grade: Grade
    frames: tuple[Frame, ...]
    boxes: tuple[Box, ...]
    edges: FoldedEdges
    box_of: IntArray

    @property
    def markers(self) -> int:
        """How many scope markers the graph has: the nodes without a box."""
        return int(np.count_nonzero(self.box_of < 0))


def fold_to_fit(graph: Graph, limit: int, unfolded_limit: int | None = None) -> Folded:
    """The graph at the finest grade of at most ``limit`` boxes; at the coarsest grade where none has so few. With an
    ``unfolded_limit`` a box for each node is for graphs of at most so many."""
    grades = list(Grade)
    most = limit if unfolded_limit is None else min(limit, unfolded_limit)
    for grade in grades[:-1]:
        if grade is Grade.NODES and np.count_nonzero(~_markers(graph)) > most:
            continue
        folded = fold(graph, grade)
        if len(folded.boxes) <= limit:
            return folded
    return fold(graph, grades[-1])


def fold(graph: Graph, grade: Grade) -> Folded:
    """The graph at one grade. Time and memory are near-linear in nodes, accesses and edges."""
    first = _first_of_equal_runs(graph) if grade in (Grade.ITERATIONS, Grade.SCOPES) else np.arange(len(graph.scopes))
    if grade in (Grade.PLACES, Grade.RANKS):
        first = _first_of_place(graph, by_rank=grade is Grade.PLACES)
    shown, frame_of_scope = np.unique(first, return_inverse=True)
    frame_of = np.where(graph.nodes.scope >= 0, frame_of_scope[graph.nodes.scope] if len(shown) else -1, -1)
    if grade is Grade.NODES:
        key = np.arange(len(graph))
    elif grade is Grade.ITERATIONS:
        key = _first_of_node(graph, first)
    else:
        key = frame_of.astype(np.int64)
    boxes, box_of = _boxes(graph, key, frame_of)
    return Folded(
        graph=graph,
        grade=grade,
        frames=_frames(graph, first, shown, frame_of_scope),
        boxes=boxes,
        edges=_edges(graph, box_of, len(boxes), loops=grade is Grade.ITERATIONS),
        box_of=box_of,
    )


# --- which scopes are drawn as one ------------------------------------------------------------------------------------


def _first_of_equal_runs(graph: Graph) -> IntArray:
    """For each scope the scope that is drawn for it: of a run of consecutive siblings with one stack and one content
    the first, inside the scope that is drawn for its parent."""
    scopes = graph.scopes
    content = _contents(graph)
    parents = scopes.parent.tolist()
    children: list[list[int]] = [[] for _ in parents]
    place = [0] * len(parents)
    run_first = list(range(len(parents)))
    for scope, parent in enumerate(parents):
        if parent < 0:
            continue
        siblings = children[parent]
        place[scope] = len(siblings)
        if siblings and content[siblings[-1]] == content[scope]:
            run_first[scope] = run_first[siblings[-1]]
        siblings.append(scope)
    first = list(range(len(parents)))
    for scope, parent in enumerate(parents):  # a parent's row lies before its children's
        if parent >= 0:
            first[scope] = run_first[children[first[parent]][place[scope]]]
    return np.array(first, dtype=np.int64)


def _contents(graph: Graph) -> list[int]:
    """For each scope a number that two scopes share when and only when they have the same source stack, name and
    sequence of contents: nodes by operation, stack, channel and the layouts they read and write; scopes by this number.
    """
    scopes = graph.scopes
    token = _node_tokens(graph)
    enter = OPERATIONS.code("scope_enter")
    opening = np.flatnonzero(graph.nodes.op == enter)
    # A scope stands in its parent's sequence where it is opened; its own sequence begins after its marker.
    owner = graph.nodes.scope.astype(np.int64)
    owner[opening] = scopes.parent[graph.nodes.scope[opening]]
    order = np.argsort(owner, kind="stable")
    bounds = np.searchsorted(owner[order], np.arange(len(scopes) + 1))
    tokens = token[order]
    position = np.empty(len(order), dtype=np.int64)
    position[order] = np.arange(len(order))
    known: dict[tuple[int, int, bytes], int] = {}
    content = [0] * len(scopes)
    enters, parents = scopes.enter.tolist(), scopes.parent.tolist()
    heads = list(zip(scopes.stack.tolist(), scopes.name.tolist(), strict=True))
    for scope in range(len(scopes) - 1, -1, -1):  # children before their parents
        inside = tokens[bounds[scope] : bounds[scope + 1]].tobytes()
        content[scope] = known.setdefault((*heads[scope], inside), len(known))
        if parents[scope] >= 0:
            tokens[position[enters[scope]]] = -1 - content[scope]
    return content


def _node_tokens(graph: Graph) -> IntArray:
    """For each node a number, from 0, that two nodes share when and only when operation, stack, channel and the
    sequence of layouts and modes of their accesses are equal. Interned exactly, without hashing."""
    nodes, accesses, start = graph.nodes, graph.accesses, graph.access_start
    token = _intern(nodes.op.astype(np.int64), nodes.stack + 1)
    token = _intern(token, nodes.channel + 1)
    counts = np.diff(start)
    for place in range(int(counts.max(initial=0))):
        has = np.flatnonzero(counts > place)
        rows = start[has] + place
        part = np.zeros(len(nodes), dtype=np.int64)
        part[has] = 1 + accesses.layout[rows].astype(np.int64) * 2 + accesses.mode[rows]
        token = _intern(token, part)
    return token


def _intern(left: IntArray, right: IntArray) -> IntArray:
    """Small numbers for pairs of non-negative numbers, equal for equal pairs."""
    width = int(right.max(initial=0)) + 1
    pairs = left.astype(np.int64) * width + right
    inverse: IntArray = np.unique(pairs, return_inverse=True)[1].astype(np.int64)
    return inverse


def _first_of_place(graph: Graph, *, by_rank: bool) -> IntArray:
    """For each scope the first one opened at the same place of the source: the same stack and name, inside scopes of
    the same places; on the same rank, or on any."""
    scopes = graph.scopes
    known: dict[tuple[int, ...], int] = {}
    first: list[int] = []
    rows = zip(
        scopes.parent.tolist(), scopes.rank.tolist(), scopes.stack.tolist(), scopes.name.tolist(), strict=True
    )
    for scope, (parent, rank, stack, name) in enumerate(rows):
        around = first[parent] if parent >= 0 else -1
        first.append(known.setdefault((around, rank if by_rank else 0, stack, name), scope))
    return np.array(first, dtype=np.int64)


def _first_of_node(graph: Graph, first: IntArray) -> IntArray:
    """For each node the node that is drawn for it. A scope's nodes have consecutive ids, and equal scopes equal
    distances from their markers."""
    scopes = graph.scopes
    start = np.where(scopes.enter >= 0, scopes.enter, 0).astype(np.int64)
    shift = start[first] - start
    inside = graph.nodes.scope >= 0
    moved: IntArray = np.arange(len(graph), dtype=np.int64)
    moved[inside] += shift[graph.nodes.scope[inside]]
    return moved


# --- boxes, frames, edges ---------------------------------------------------------------------------------------------


def _markers(graph: Graph) -> IntArray:
    return OPERATIONS.mask(lambda op: op.family is Family.MARKER)[graph.nodes.op]


def _boxes(graph: Graph, key: IntArray, frame_of: IntArray) -> tuple[tuple[Box, ...], IntArray]:
    """The boxes, in order of the first node of each, and the box of each node."""
    drawn = np.flatnonzero(~_markers(graph))
    box_of: IntArray = np.full(len(graph), -1, dtype=np.int64)
    if not len(drawn):
        return (), box_of
    _, at, inverse, counts = np.unique(key[drawn], return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(at, kind="stable")
    rank_of = np.empty(len(order), dtype=np.int64)
    rank_of[order] = np.arange(len(order))
    box_of[drawn] = rank_of[inverse]
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


def _frames(graph: Graph, first: IntArray, shown: IntArray, frame_of_scope: IntArray) -> tuple[Frame, ...]:
    scopes = graph.scopes
    numbers = np.bincount(frame_of_scope, minlength=len(shown))
    spread = np.unique(frame_of_scope * graph.ranks + scopes.rank) // max(graph.ranks, 1)
    ranks = np.bincount(spread, minlength=len(shown))
    frames = []
    for index, scope in enumerate(shown.tolist()):
        parent = int(scopes.parent[scope])
        around = int(frame_of_scope[parent]) if parent >= 0 else -1
        frames.append(Frame(scope=scope, parent=around, scopes=int(numbers[index]), ranks=int(ranks[index])))
    return tuple(frames)


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
