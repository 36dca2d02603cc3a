"""Where a wrong output came from: the store that wrote its first wrong element and, walking back from there, the reads
that met another tile because a load was written over before anything read it."""

from __future__ import annotations

import numpy as np

from ...ir.arrays.permutations import inverse_permutation
from ...ir.graph import Graph, Node
from ...ir.tables import IntArray, Mode, Reason
from ...ir.unstored import access_boxes
from ...linter.analyses.hbm_boxes import region_text
from ...linter.analyses.overwritten import find_overwritten_loads

__all__ = ["blame_lines"]

_READS_SHOWN = 3


def blame_lines(graph: Graph, order: IntArray, tensor: str, index: tuple[int, ...]) -> list[str]:
    """What there is to say of a wrong element of an output, a sentence each: who stored it last in this order of nodes,
    and which reads on its way met the tile of another load. The reads are facts of the graph; that they are the cause
    is not proved where the reference differs for another reason, too."""
    store = _last_store(graph, order, tensor, index)
    element = f"`{tensor}[{', '.join(map(str, index))}]`"
    if store is None:
        return [f"first wrong at {element}"]
    node = Node(graph, store)
    told = [f"first wrong at {element}, stored as {region_text(node.writes[0])}{_at(node)}"]
    upstream = _upstream(graph, store)
    met = [lost for lost in find_overwritten_loads(graph) if lost.reader is not None and upstream[lost.reader]]
    for lost in met[:_READS_SHOWN]:
        assert lost.reader is not None and lost.read_load is not None, "a reader has read some load"
        reader, got, missed = (Node(graph, number) for number in (lost.reader, lost.read_load, lost.node))
        told.append(
            f"{reader.op}{_at(reader)} read {_source(got)}{_loaded(got)}; {_source(missed)}{_loaded(missed)} was "
            "written over before anything read it"
        )
    if len(met) > _READS_SHOWN:
        told.append(f"and {len(met) - _READS_SHOWN:,} more such reads; `kernscope lint` explains them (KS304)")
    return told


def _at(node: Node) -> str:
    return f" at {node.location.short}" if node.location is not None else ""


def _loaded(node: Node) -> str:
    return f" (loaded{_at(node)})" if node.location is not None else ""


def _source(load: Node) -> str:
    return region_text(load.reads[0]) if load.reads else "what lies outside its tensor"


def _last_store(graph: Graph, order: IntArray, tensor: str, index: tuple[int, ...]) -> int | None:
    accesses = graph.accesses
    stores = np.flatnonzero((accesses.storage == graph.tensors[tensor]) & (accesses.mode == Mode.WRITE))
    if not len(stores):
        return None
    rows, lower, upper = access_boxes(graph, stores)
    at = np.array(index or (0,), dtype=np.int64)
    covers = rows[np.all((lower <= at) & (at < upper), axis=1)]
    if not len(covers):
        return None
    nodes = accesses.node[covers]
    return int(nodes[np.argmax(inverse_permutation(order)[nodes])])


def _upstream(graph: Graph, node: int) -> IntArray:
    """By node whether data flows from it to this one: through reads, and messages."""
    edges = graph.edges
    flows = (edges.reason == Reason.DATA) | (edges.reason == Reason.MESSAGE)
    sources, start = edges.source[flows], np.searchsorted(edges.target[flows], np.arange(len(graph) + 1))
    seen = np.zeros(len(graph), dtype=np.bool_)
    seen[node] = True
    pending = [node]
    while pending:
        number = pending.pop()
        for source in np.unique(sources[start[number] : start[number + 1]]).tolist():
            if not seen[source]:
                seen[source] = True
                pending.append(source)
    return seen
