"""What a timeline says of each node: source line, scope, work, accesses, what it waited for; each text made once."""

from __future__ import annotations

import attrs
import numpy as np

from ...ir import dtypes
from ...ir.forms.text import describe_access, described_by, quote
from ...ir.graph import Graph
from ...ir.ops import WorkKind
from ...ir.tables import IntArray, Reason
from ...scheduler.result.schedule import Schedule

__all__ = ["Facts", "Work", "edge_label", "edge_labels", "facts_of"]

Work = tuple[tuple[str, int | str], ...]


@attrs.frozen(eq=False)
class Facts:
    """Texts, and columns that index into them.

    By node: ``source`` (``flash.py:14 in body``), ``scope`` (its path from the kernel down), ``work`` (names and
    numbers: bytes; m, n, k; elements), ``cause`` (what it waited for last) and ``cause_node`` (-1: none), ``critical``
    (whether it is on the critical chain). By access: ``access``. ``place`` by node is how another node names it, such
    as ``load at flash.py:14``.
    """

    sources: tuple[str, ...]
    source: IntArray
    scopes: tuple[str, ...]
    scope: IntArray
    works: tuple[Work, ...]
    work: IntArray
    causes: tuple[str, ...]
    cause: IntArray
    cause_node: IntArray
    places: tuple[str, ...]
    place: IntArray
    accesses: tuple[str, ...]
    access: IntArray
    critical: IntArray
    slack_ps: IntArray


def facts_of(schedule: Schedule) -> Facts:
    """The facts of all nodes of a schedule."""
    graph = schedule.graph
    nodes = graph.nodes
    stacks, stack = np.unique(nodes.stack, return_inverse=True)
    sources, briefly = zip(*(_source(graph, row) for row in stacks.tolist()), strict=True) if len(stacks) else ((), ())
    paths = _scope_paths(graph)
    scopes, scope = np.unique(nodes.scope, return_inverse=True)
    first, work = _distinct(nodes.op, nodes.work0, nodes.work1, nodes.work2, nodes.dtype)
    first_place, place = _distinct(nodes.op, stack)
    first_access, access = _distinct(*described_by(graph))
    causes, cause = np.unique(schedule.cause, return_inverse=True)
    examples = [int(np.argmax(cause == number)) for number in range(len(causes))]
    critical = np.zeros(len(graph), dtype=np.bool_)
    critical[list(schedule.critical_chain().nodes)] = True
    return Facts(
        sources=tuple(sources),
        source=stack,
        scopes=tuple(paths[row] if row >= 0 else "" for row in scopes.tolist()),
        scope=scope,
        works=tuple(_work(graph, node) for node in first.tolist()),
        work=work,
        causes=tuple(_cause(schedule, node) for node in examples),
        cause=cause,
        cause_node=schedule.cause_node,
        places=tuple(
            graph[node].op + (f" at {briefly[stack[node]]}" if briefly[stack[node]] else "")
            for node in first_place.tolist()
        ),
        place=place,
        accesses=tuple(describe_access(graph, row) for row in first_access.tolist()),
        access=access,
        critical=critical,
        slack_ps=schedule.slack_ps,
    )


def edge_label(reason: int, recycled: bool) -> str:
    """What an edge is called on a timeline."""
    return f"{Reason(reason).label} edge" + (", reused scratch" if recycled else "")


def edge_labels() -> tuple[str, ...]:
    """All labels, by ``2 * reason + recycled``."""
    return tuple(edge_label(reason, bool(recycled)) for reason in Reason for recycled in (0, 1))


def _source(graph: Graph, stack: int) -> tuple[str, str]:
    """A stack from the innermost frame outwards, and its innermost frame's place alone."""
    place = graph.location(stack)
    if place is None:
        return "", ""
    frames = [quote(f"{frame.short} in {frame.function}") for frame in (place, *place.stack)]
    return ", called at ".join(frames), quote(place.short)


def _scope_paths(graph: Graph) -> list[str]:
    """By scope its path from the kernel down. Scopes of one loop share their text."""
    known: dict[tuple[int, int, int], str] = {}
    paths: list[str] = []
    rows = zip(
        *(column.tolist() for column in (graph.scopes.parent, graph.scopes.name, graph.scopes.stack)),
        graph.program_of_scope.tolist(),
        strict=True,
    )
    for scope, (parent, name, stack, program) in enumerate(rows):
        if parent < 0:
            paths.append("kernel")
            continue
        alike = (name, stack, -1 if stack >= 0 else program)  # a program has no place of its own in the source
        if alike not in known or not (graph.names[name] or stack >= 0):
            known[alike] = quote(graph.describe_scope(scope))
        above = paths[parent]
        paths.append(known[alike] if above == "kernel" else f"{above} / {known[alike]}")
    return paths


def _work(graph: Graph, node: int) -> Work:
    kind = graph[node].operation.work_kind
    nodes = graph.nodes
    numbers = [int(column[node]) for column in (nodes.work0, nodes.work1, nodes.work2)]
    dtype = ("dtype", dtypes.ALL[nodes.dtype[node]].short)
    if kind is WorkKind.BYTES:
        return ("bytes", numbers[0]), dtype
    if kind is WorkKind.ELEMENTS:
        return ("elements", numbers[0]), dtype
    if kind is WorkKind.MNK:
        return ("m", numbers[0]), ("n", numbers[1]), ("k", numbers[2]), dtype
    return ()


def _cause(schedule: Schedule, node: int) -> str:
    found = schedule.waited_for[node]
    if found is None:
        return "nothing"
    return found.cause.value if found.reason is None else f"{found.reason} {found.cause.value}"


def _distinct(*columns: IntArray) -> tuple[IntArray, IntArray]:
    """For each distinct row of the columns the first place that has it; and for each place which one it has."""
    key = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        # Renumbered at each step: below (number of rows) ** 2, which fits.
        values, number = np.unique(column, return_inverse=True)
        _, key = np.unique(key * max(len(values), 1) + number, return_inverse=True)
    _, first, place = np.unique(key, return_index=True, return_inverse=True)
    return first, place
