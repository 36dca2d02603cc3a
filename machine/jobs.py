"""What the time of a node depends on besides its work: where its operands lie, how they lie in global memory, who else
reads the same, how many share the bandwidth. Columns by node, each made only where the machine has a number for it.
"""

from __future__ import annotations

import attrs
import numpy as np

from ..ir.arrays.distinct import distinct_rows
from ..ir.columns import GraphColumns
from ..ir.dtypes import DType
from ..ir.layout import Layout
from ..ir.ops import OPERATIONS, Family, Operation, Work
from ..ir.tables import IntArray, Mode
from .description import Machine
from .parts import Elementwise, EnginePart, Transfer

__all__ = ["Job", "JobColumns", "contiguous_bytes", "job_columns"]

_BY_INDEX = OPERATIONS.mask(lambda op: op.by_index)
#: Reductions, softmax and sorting touch each element of what they read, everything else each of its result.
_COUNTS_INPUT = (Family.REDUCTION, Family.SOFTMAX, Family.ORDER)


@attrs.frozen
class Job:
    """What one node has to do. ``work`` in ``dtype``, as ``Operation.work_kind`` says. ``rows``: the size of axis 0 of
    the tile whose elements are counted (0: it has no axes). ``partitions`` of the memory that tile lies in (0: none).
    ``both_in``: the memory in which two operands of the result's size lie (empty: there are no two in one). ``run``:
    the bytes of a contiguous run in global memory (0: none is touched). ``readers``: how many transfers move the same
    bytes while a shared level holds them. ``ranks`` share what is shared. ``direction`` of a message."""

    operation: Operation
    work: Work
    dtype: DType
    rows: int = 0
    partitions: int = 0
    both_in: str = ""
    run: int = 0
    readers: int = 1
    ranks: int = 1
    direction: str = ""


@attrs.frozen(eq=False)
class JobColumns:
    """By node, int64 ``(n,)``: ``rows``; ``memory``, the place of the memory that the counted tile lies in (-1);
    ``both_in``, that of two operands (-1); ``run`` in bytes; ``readers``."""

    rows: IntArray
    memory: IntArray
    both_in: IntArray
    run: IntArray
    readers: IntArray


def job_columns(graph: GraphColumns, machine: Machine) -> JobColumns:
    """The columns of a graph, as far as the machine's numbers depend on them; the rest as if there were nothing."""
    count = len(graph.nodes)
    zeros, none = np.zeros(count, dtype=np.int64), np.full(count, -1, dtype=np.int64)
    parts: list[EnginePart] = [engine.cost for engine in machine.engines]
    rows, memory, both_in, run, readers = zeros, none, none, zeros, zeros + 1
    if any(part.partitions for part in machine.memory.values()):
        rows, memory = _counted(graph)
    if any(isinstance(part, Elementwise) and part.both_in for part in parts):
        both_in = _both_in(graph)
    if any(isinstance(part, Transfer) and part.efficiency for part in parts):
        run = _runs(graph)
    if machine.level is not None:
        readers = _readers(graph, machine)
    return JobColumns(rows, memory, both_in, run, readers)


def _counted(graph: GraphColumns) -> tuple[IntArray, IntArray]:
    """By node the size of axis 0 of the tile whose elements are its work, and the place of that tile's memory."""
    accesses, count = graph.accesses, len(graph.nodes)
    leading = np.array([layout.shape[0] if layout.shape else 0 for layout in graph.layouts], dtype=np.int64)
    takes_input = OPERATIONS.mask(lambda op: op.family in _COUNTS_INPUT)[graph.nodes.op]
    is_write = accesses.mode == Mode.WRITE
    chosen = np.flatnonzero(is_write != takes_input[accesses.node])[::-1]  # of several operands the first
    rows, memory = np.zeros(count, dtype=np.int64), np.full(count, -1, dtype=np.int64)
    rows[accesses.node[chosen]] = leading[accesses.layout[chosen]]
    memory[accesses.node[chosen]] = graph.storages.memory[accesses.storage[chosen]]
    return rows, memory


def _both_in(graph: GraphColumns) -> IntArray:
    """By node the place of the memory in which two or more operands of its result's size lie; -1: none."""
    accesses, count = graph.accesses, len(graph.nodes)
    size = np.array([layout.size for layout in graph.layouts], dtype=np.int64)[accesses.layout]
    is_write = accesses.mode == Mode.WRITE
    result = np.zeros(count, dtype=np.int64)
    result[accesses.node[is_write]] = size[is_write]
    full = np.flatnonzero(~is_write & (size == result[accesses.node]))
    memory = graph.storages.memory[accesses.storage].astype(np.int64)
    found = np.full(count, -1, dtype=np.int64)
    for place in graph.target.scratch_memories:
        there = np.bincount(accesses.node[full[memory[full] == place]], minlength=count)
        found[there >= 2] = place
    return found


def contiguous_bytes(layout: Layout) -> int:
    """How many bytes lie side by side at the end of a view: a run that one burst moves."""
    elements = 1
    for size, stride in zip(reversed(layout.shape), reversed(layout.strides), strict=True):
        if size == 1:
            continue
        if stride != elements:
            break
        elements *= size
    return elements * layout.dtype.itemsize


def _runs(graph: GraphColumns) -> IntArray:
    """By node the bytes of a contiguous run of the view of global memory that it moves, of rows by an index tile those
    of one row; 0: it moves none."""
    accesses, nodes = graph.accesses, graph.nodes
    run = np.array([contiguous_bytes(layout) for layout in graph.layouts], dtype=np.int64)
    found = np.zeros(len(nodes), dtype=np.int64)
    outside = np.flatnonzero(~graph.in_scratch[accesses.storage])
    found[accesses.node[outside]] = run[accesses.layout[outside]]
    by_row = outside[_BY_INDEX[nodes.op[accesses.node[outside]]]]
    kinds = distinct_rows(accesses.layout[by_row], nodes.attributes[accesses.node[by_row]])
    rows = [
        contiguous_bytes(_row_of(graph.layouts[accesses.layout[row]], graph.attributes[nodes.attributes[node]]["axis"]))
        for row, node in zip(by_row[kinds.first].tolist(), accesses.node[by_row[kinds.first]].tolist(), strict=True)
    ]
    found[accesses.node[by_row]] = np.array(rows, dtype=np.int64)[kinds.which]
    return found


def _row_of(layout: Layout, axis: int) -> Layout:
    """What is left of a view where one place of an axis is taken."""
    shape, strides = layout.shape, layout.strides
    return Layout.of((*shape[:axis], 1, *shape[axis + 1 :]), strides, layout.dtype)


def _readers(graph: GraphColumns, machine: Machine) -> IntArray:
    """By node how many loads and stores move the same view of a tensor while the shared level holds it: it goes between
    the level and global memory once.

    No cache is simulated. The program is cut into stretches in which all ranks together move no more than the level
    holds, each rank by its own progress; within a stretch whatever is moved again is there. Where all that is ever
    moved fits, there is one stretch.
    """
    level = machine.level
    assert level is not None and level.bytes is not None
    accesses, nodes = graph.accesses, graph.nodes
    found = np.ones(len(nodes), dtype=np.int64)
    # What an index picks out of a tensor is another thing each time.
    indexed = np.array(["index" in attributes for attributes in graph.attributes] or [False], dtype=np.bool_)
    wanted = (accesses.mode == Mode.READ) & OPERATIONS.loads[nodes.op[accesses.node]]
    wanted |= (accesses.mode == Mode.WRITE) & OPERATIONS.stores[nodes.op[accesses.node]]
    wanted &= ~_BY_INDEX[nodes.op[accesses.node]]
    rows = np.flatnonzero(wanted & ~graph.in_scratch[accesses.storage] & ~indexed[nodes.attributes[accesses.node]])
    if not len(rows):
        return found
    node = accesses.node[rows]
    view = _numbered(accesses.storage[rows], accesses.offset[rows], accesses.layout[rows])
    nbytes = nodes.work0[node]
    _, first = np.unique(view, return_index=True)
    if int(nbytes[first].sum()) <= level.bytes:
        key = view
    else:
        rank = nodes.rank[node].astype(np.int64)
        total = np.cumsum(nbytes)  # rows are in program order, rank by rank
        before = np.zeros(graph.ranks, dtype=np.int64)
        begins = np.flatnonzero(np.diff(rank, prepend=-1))
        before[rank[begins]] = total[begins] - nbytes[begins]
        stretch = (total - before[rank]) * graph.ranks // level.bytes
        key = _numbered(view, stretch)
    _, which, times = np.unique(key, return_inverse=True, return_counts=True)
    found[node] = np.where(nbytes <= level.bytes, times[which], 1)  # what does not even fit alone is never there
    return found


def _numbered(*columns: IntArray) -> IntArray:
    """Rows of columns as numbers, equal where the rows are."""
    key = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        _, value = np.unique(column, return_inverse=True)
        # Renumbered at each step, so that the product always fits.
        _, key = np.unique(key * np.int64(len(column) + 1) + value, return_inverse=True)
    return key
