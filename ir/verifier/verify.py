"""The verifier: every invariant of a graph as a rule, all violations reported.

Rules run in waves: first the lengths, then what makes the columns safe to follow (indices, order), then, if these hold,
what the columns mean. A rule is a function declared with :func:`_rule`; its docstring is the invariant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from weakref import WeakValueDictionary

import attrs
import numpy as np

from ..arrays.distinct import distinct_rows
from ..arrays.permutations import group_starts
from ..columns import expect_graph
from ..dependence.regions import boxes
from ..dtypes import ALL as DTYPES
from ..errors import InvalidGraphError, KernscopeError
from ..graph import Graph, Node
from ..grid import dealt
from ..indices import Index
from ..layout import Layout
from ..ops import OPERATIONS, Kind, Operand, Space
from ..tables import UNPLACED, AccessKind, IntArray, Mode, Reason, Table
from ..target import OPPOSITE
from .automatic import badly_placed
from .buffers import misplaced

__all__ = ["Violation", "require_valid", "rules", "verify"]

#: How many violations of one rule are listed; the last line counts the rest.
_SHOWN = 20


@attrs.frozen
class Violation:
    """A rule that a graph breaks, and where."""

    rule: str
    message: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.message}"


_Check = Callable[[Graph], Iterable[str]]
_SHAPES: dict[str, _Check] = {}
_STRUCTURE: dict[str, _Check] = {}
_MEANING: dict[str, _Check] = {}
#: The edges are found from the columns, which takes longer than all else here.
_EDGES: dict[str, _Check] = {}

#: Graphs that hold together, by their ids; those in the second with their edges. A graph does not change.
_SOUND: WeakValueDictionary[int, Graph] = WeakValueDictionary()
_SOUND_WITH_EDGES: WeakValueDictionary[int, Graph] = WeakValueDictionary()


def _rule(wave: dict[str, _Check]) -> Callable[[_Check], _Check]:
    def declare(check: _Check) -> _Check:
        wave[check.__name__.strip("_").replace("_", "-")] = check
        return check

    return declare


def rules() -> dict[str, str]:
    """The invariants by rule name."""
    return {name: (check.__doc__ or "").strip() for name, check in (_SHAPES | _STRUCTURE | _MEANING | _EDGES).items()}


def verify(graph: Graph) -> list[Violation]:
    """All violations of a graph, in the rules' order; empty for a graph that holds together.

    Raises ``ArgumentError`` for what is no graph.
    """
    expect_graph(graph, "verify", placed=False)
    return _verify(graph, edges=True)


def _verify(graph: Graph, *, edges: bool) -> list[Violation]:
    for wave in (_SHAPES, _STRUCTURE):
        if found := _run(wave, graph):
            return found
    return _run(_MEANING | (_EDGES if edges else {}), graph)


def require_valid(graph: Graph, *, edges: bool = True) -> None:
    """Raise ``InvalidGraphError`` with all violations, if there are any; a graph is verified once. What has no use for
    the ``edges`` need not find them for this."""
    sound = _SOUND_WITH_EDGES if edges else _SOUND
    if sound.get(id(graph)) is graph:
        return
    found = _verify(graph, edges=edges)
    if found:
        lines = [str(violation) for violation in found]
        raise InvalidGraphError(
            "the graph breaks its invariants:\n  " + "\n  ".join(lines),
            help="if ks.trace returned it as it is, this is a bug of kernscope: please report it; one made or "
            "changed by other means has to be traced anew",
            violations=lines,
        )
    _SOUND[id(graph)] = graph
    if edges:
        _SOUND_WITH_EDGES[id(graph)] = graph


def _run(wave: dict[str, _Check], graph: Graph) -> list[Violation]:
    found: list[Violation] = []
    for name, check in wave.items():
        messages = list(check(graph))
        found += [Violation(name, message) for message in messages[:_SHOWN]]
        if len(messages) > _SHOWN:
            found.append(Violation(name, f"and {len(messages) - _SHOWN} more"))
    return found


def _nodes(wrong: IntArray, what: str) -> Iterator[str]:
    """A message for each node of a boolean column that is set."""
    return (f"node %{index} {what}" for index in np.flatnonzero(wrong).tolist())


# --- structure ------------------------------------------------------------------------------------------------------


def _tables(graph: Graph) -> dict[str, Table]:
    return {
        name: getattr(graph, name)
        for name in ("nodes", "accesses", "storages", "scopes", "channels", "frames", "stacks")
    }


@_rule(_SHAPES)
def _equal_lengths(graph: Graph) -> Iterator[str]:
    """The columns of a table are of one length and one-dimensional."""
    for name, table in _tables(graph).items():
        shapes = {column: array.shape for column, array in table.columns().items()}
        if len(set(shapes.values())) > 1 or any(len(shape) != 1 for shape in shapes.values()):
            yield f"table {name} has columns of shapes {shapes}"


@_rule(_STRUCTURE)
def _indices(graph: Graph) -> Iterator[str]:
    """Every index points into what it indexes; -1 stands for none where that is allowed."""
    g = graph
    sizes = {
        "operation": len(OPERATIONS),
        "rank": g.ranks,
        "scope": len(g.scopes),
        "stack": len(g.stacks),
        "attributes": len(g.attributes),
        "dtype": len(DTYPES),
        "channel": len(g.channels),
        "node": len(g.nodes),
        "storage": len(g.storages),
        "layout": len(g.layouts),
        "name": len(g.names),
        "frame": len(g.frames),
        "direction": len(g.target.directions),
        "mode": len(Mode),
        "kind": len(AccessKind),
        "memory": len(g.target.memories),
        "position": len(g.nodes) + 1,
    }
    required = [
        ("nodes.op", g.nodes.op, "operation"),
        ("nodes.rank", g.nodes.rank, "rank"),
        ("nodes.attributes", g.nodes.attributes, "attributes"),
        ("nodes.dtype", g.nodes.dtype, "dtype"),
        ("nodes.command", g.nodes.command, "node"),
        ("accesses.node", g.accesses.node, "node"),
        ("accesses.storage", g.accesses.storage, "storage"),
        ("accesses.layout", g.accesses.layout, "layout"),
        ("accesses.mode", g.accesses.mode, "mode"),
        ("accesses.kind", g.accesses.kind, "kind"),
        ("storages.memory", g.storages.memory, "memory"),
        ("storages.layout", g.storages.layout, "layout"),
        ("storages.name", g.storages.name, "name"),
        ("storages.born", g.storages.born, "position"),
        ("scopes.rank", g.scopes.rank, "rank"),
        ("scopes.name", g.scopes.name, "name"),
        ("channels.sender", g.channels.sender, "rank"),
        ("channels.receiver", g.channels.receiver, "rank"),
        ("channels.direction", g.channels.direction, "direction"),
        ("channels.arrival", g.channels.arrival, "direction"),
        ("frames.file", g.frames.file, "name"),
        ("frames.function", g.frames.function, "name"),
        ("stacks.frame", g.stacks.frame, "frame"),
    ]
    optional = [
        ("nodes.scope", g.nodes.scope, "scope"),
        ("nodes.stack", g.nodes.stack, "stack"),
        ("nodes.channel", g.nodes.channel, "channel"),
        ("storages.rank", g.storages.rank, "rank"),
        ("storages.scope", g.storages.scope, "scope"),
        ("storages.stack", g.storages.stack, "stack"),
        ("storages.freed", g.storages.freed, "node"),
        ("scopes.parent", g.scopes.parent, "scope"),
        ("scopes.enter", g.scopes.enter, "node"),
        ("scopes.exit", g.scopes.exit, "node"),
        ("scopes.stack", g.scopes.stack, "stack"),
        ("stacks.caller", g.stacks.caller, "stack"),
    ]
    for lowest, columns in ((0, required), (-1, optional)):
        for name, column, what in columns:
            wrong = np.flatnonzero((column < lowest) | (column >= sizes[what]))
            if len(wrong):
                row = int(wrong[0])
                value = int(column[row])
                yield f"{name}[{row}] = {value} is no {what}: {sizes[what]} there are ({len(wrong)} such rows)"
    for fault in g.bounds_faults:
        if not 0 <= fault.node <= len(g.nodes) or not 0 <= fault.storage < len(g.storages):
            yield f"bounds fault {fault} points outside the graph"
    for stack in g.unentered_scopes:
        if not -1 <= stack < len(g.stacks):
            yield f"a scope that was never entered was made at stack {stack}, of {len(g.stacks)}"


@_rule(_STRUCTURE)
def _scalars(graph: Graph) -> Iterator[str]:
    """The scalar operands of an attribute set are pairs: a position among the operands, and a Python number."""
    for number, attributes in enumerate(graph.attributes):
        pairs = attributes.get("scalars", ())
        if not isinstance(pairs, tuple) or not all(map(_is_scalar, pairs)):
            yield f"attributes {number}: scalars {pairs!r}"


def _is_scalar(pair: object) -> bool:
    """A position is that of one of a few operands: no operation has more."""
    if not isinstance(pair, tuple) or len(pair) != 2:
        return False
    position, value = pair
    return type(position) is int and 0 <= position < 64 and isinstance(value, bool | int | float)


@_rule(_STRUCTURE)
def _places(graph: Graph) -> Iterator[str]:
    """Lines of source count from 1 (0: of no line), columns from 0; -1 stands for what is not known."""
    frames = graph.frames
    wrong = (frames.line < 0) | (frames.end_line < -1) | (frames.column < -1) | (frames.end_column < -1)
    for row in np.flatnonzero(wrong).tolist():
        yield f"frame {row} is at line {int(frames.line[row])}, column {int(frames.column[row])}"


@_rule(_STRUCTURE)
def _forest(graph: Graph) -> Iterator[str]:
    """A scope's parent and a stack's caller lie before it: following them ends."""
    for name, parent in (("scope", graph.scopes.parent), ("stack", graph.stacks.caller)):
        for row in np.flatnonzero(parent >= np.arange(len(parent))).tolist():
            yield f"{name} {row} follows its own {int(parent[row])}"


@_rule(_STRUCTURE)
def _program_order(graph: Graph) -> Iterator[str]:
    """Nodes are rank-major; accesses are in node order, within a node reads before writes."""
    if np.any(np.diff(graph.nodes.rank) < 0):
        yield "nodes are not in the order of ranks"
    key = graph.accesses.node.astype(np.int64) * 2 + graph.accesses.mode
    if np.any(np.diff(key) < 0):
        yield "accesses are not in the order of nodes, reads before writes"


@_rule(_STRUCTURE)
def _allocations(graph: Graph) -> Iterator[str]:
    """An allocation belongs to a rank and has an address, from 0 on; in a graph without scopes, from a pass after the
    trace."""
    for row in np.flatnonzero(graph.in_scratch & (graph.storages.rank < 0)).tolist():
        yield f"storage {row} is an allocation of no rank"
    for row in np.flatnonzero(graph.storages.address < 0).tolist():
        address = int(graph.storages.address[row])
        if address == UNPLACED and not graph.is_scoped:
            yield f"storage {row} has no address yet: a pass after the trace gives it one"
        else:
            yield f"storage {row} is at {address:#x}"


# --- meaning: commands, scopes, scratch
# --------------------------------------------------------------------------------


@_rule(_MEANING)
def _initial_values(graph: Graph) -> Iterator[str]:
    """Initial values are those of tensors in global memory, each of which is named once."""
    for name, count in Counter(graph.initial).items():
        if name not in graph.tensors:
            yield f"{name!r} has initial values, and is no tensor"
        elif count > 1:
            yield f"{name!r} has initial values {count} times"


@_rule(_MEANING)
def _commands(graph: Graph) -> Iterator[str]:
    """A command's nodes follow each other in one rank, and it is named by its first."""
    command, own = graph.nodes.command, np.arange(len(graph.nodes))
    previous = np.concatenate([[-1], command[:-1]])
    yield from _nodes((command != own) & (command != previous), "belongs to a command that does not reach it")
    yield from _nodes(graph.nodes.rank[command] != graph.nodes.rank, "belongs to a command of another rank")


@_rule(_MEANING)
def _scopes_nest(graph: Graph) -> Iterator[str]:
    """Scopes open and close in nested order, at their own markers; every node stands in the innermost open one; the
    cursor on entry is that of the bytes allocated before. A graph without scopes has no markers, and nothing in it is
    freed."""
    nodes, scopes, storages = graph.nodes, graph.scopes, graph.storages
    enter, leave = OPERATIONS.code("scope_enter"), OPERATIONS.code("scope_exit")
    if not graph.is_scoped:
        yield from _nodes((nodes.op == enter) | (nodes.op == leave), "is a scope's, in a graph without scopes")
        for row in np.flatnonzero(storages.freed >= 0).tolist():
            yield f"storage {row} is freed by %{int(storages.freed[row])} in a graph without scopes"
        return
    roots = np.flatnonzero(scopes.parent < 0)
    if len(roots) != graph.ranks or not np.array_equal(scopes.rank[roots], np.arange(graph.ranks)):
        yield f"there are {len(roots)} kernel scopes for {graph.ranks} ranks"
        return
    marks = np.flatnonzero((nodes.op == enter) | (nodes.op == leave))
    open_at = np.full(len(nodes), -2, dtype=np.int64)
    for rank in range(graph.ranks):
        first, last = np.searchsorted(nodes.rank, [rank, rank + 1])
        stack = [int(roots[rank])]
        position = int(first)
        for mark in marks[(marks >= first) & (marks < last)].tolist():
            open_at[position:mark] = stack[-1]
            scope = int(nodes.scope[mark])
            open_at[mark] = scope
            if nodes.op[mark] == enter:
                if scopes.parent[scope] != stack[-1] or scopes.enter[scope] != mark:
                    yield f"node %{mark} opens scope {scope}, which is not its own within {stack[-1]}"
                stack.append(scope)
            else:
                if stack[-1] != scope or len(stack) == 1 or scopes.exit[scope] != mark:
                    yield f"node %{mark} closes scope {scope}, but {stack[-1]} is innermost"
                if len(stack) > 1:
                    stack.pop()
            position = mark + 1
        open_at[position:last] = stack[-1]
        if len(stack) > 1:
            yield f"rank {rank} leaves scope {stack[-1]} open"
    yield from _nodes((nodes.scope >= 0) & (nodes.scope != open_at), "does not stand in the innermost open scope")
    expected = np.append(scopes.exit, -1)[storages.scope]
    for row in np.flatnonzero(storages.freed != expected).tolist():
        yield f"storage {row} is freed by %{int(storages.freed[row])}, but its scope closes at %{int(expected[row])}"


@_rule(_MEANING)
def _programs(graph: Graph) -> Iterator[str]:
    """A grid has one to three sizes; each rank's own scope holds the scopes of the programs that are dealt to it, in
    order, and nothing else."""
    if not graph.grid:
        return
    if len(graph.grid) > 3 or min(graph.grid) < 1 or not graph.is_scoped:
        yield f"a grid of {graph.grid}" + ("" if graph.is_scoped else " in a graph without scopes")
        return
    scopes = graph.scopes
    own = np.append(scopes.parent, 0) < 0  # the last one is what -1 finds
    outermost = np.flatnonzero(~own[:-1] & own[scopes.parent])
    counts = np.bincount(scopes.rank[outermost], minlength=graph.ranks)
    for rank, count in enumerate(counts.tolist()):
        expected = len(dealt(graph.grid, rank, graph.ranks))
        if count != expected:
            yield f"rank {rank} has {count} programs, of the grid {graph.grid} it runs {expected}"
    yield from _nodes(own[graph.nodes.scope], "belongs to no program of the grid")
    for row in np.flatnonzero(graph.in_scratch & own[graph.storages.scope]).tolist():
        yield f"storage {row} belongs to no program of the grid"


@_rule(_MEANING)
def _bump_allocation(graph: Graph) -> Iterator[str]:
    """An allocation stands where its memory's cursor was, rounded sizes follow each other, and exits rewind. In a graph
    of K buffers: scopes and allocations stand where K rotating copies put them (:mod:`kernscope.ir.rebuffer`), and
    nothing is accessed after its scope. In a graph without scopes: each has an address of its memory, and those that
    live at the same time share no byte."""
    storages, scopes = graph.storages, graph.scopes
    rows = np.flatnonzero(graph.in_scratch)
    if np.any(np.diff(rows) != 1) or (len(rows) and rows[-1] != len(storages) - 1):
        yield "HBM tensors do not all come before the allocations"
        return
    if not graph.is_scoped:
        yield from badly_placed(graph, rows)
        return
    if graph.buffers:
        yield from misplaced(graph, rows)
        return
    ends = storages.address[rows] + graph.held_bytes[rows]
    events = [(int(storages.born[r]), 1, int(r)) for r in rows]
    # What is born with a scope's opening marker still lies before it: its own allocations come after the marker.
    events += [(int(node), 2, scope) for scope, node in enumerate(scopes.enter.tolist()) if node >= 0]
    events += [(int(node) + 1, -1, scope) for scope, node in enumerate(scopes.exit.tolist()) if node >= 0]
    first = group_starts(graph.nodes.rank, graph.ranks)
    by_rank: list[list[tuple[int, int, int]]] = [[] for _ in range(graph.ranks)]
    for event in events:
        owner = storages.rank[event[2]] if event[1] == 1 else scopes.rank[event[2]]
        by_rank[int(owner)].append(event)
    memory, results = storages.memory.tolist(), graph.target.results_memory
    for rank in range(graph.ranks):
        cursors = dict.fromkeys(graph.target.scratch_memories, 0)
        saved: dict[int, dict[int, int]] = {}
        for position, what, row in sorted(by_rank[rank]):
            if not first[rank] <= position <= first[rank + 1]:
                yield f"rank {rank}: {'storage' if what == 1 else 'scope'} {row} lies outside the rank's nodes"
            if what == 1:
                cursor = cursors[memory[row]]
                if storages.address[row] != cursor:
                    yield f"storage {row} is at {int(storages.address[row]):#x}, the cursor was {cursor:#x}"
                cursors[memory[row]] = int(ends[row - rows[0]])
            elif what == 2:
                saved[row] = dict(cursors)
                if scopes.base[row] != cursors[results]:
                    yield f"scope {row} saves cursor {int(scopes.base[row])}, which was {cursors[results]}"
            else:
                cursors = saved.pop(row, cursors)


@_rule(_MEANING)
def _tensors(graph: Graph) -> Iterator[str]:
    """A tensor in global memory has a name of its own, and begins at address 0; it is there before all nodes, for
    good."""
    storages = graph.storages
    rows = np.flatnonzero(~graph.in_scratch)
    for row in rows[(storages.address[rows] != 0) | (storages.born[rows] != 0) | (storages.freed[rows] != -1)].tolist():
        yield f"tensor {row} is at {int(storages.address[row]):#x}, made at node {int(storages.born[row])}"
    names = Counter(graph.names[name] for name in storages.name[rows].tolist())
    yield from (f"{count} tensors are called {name!r}" for name, count in names.items() if count > 1)


@_rule(_MEANING)
def _storage_layouts(graph: Graph) -> Iterator[str]:
    """A storage's layout is dense and of its size; HBM belongs to no rank and no scope, an allocation to one of
    each (to no scope where there is none)."""
    storages = graph.storages
    dense = np.array([layout.is_dense for layout in graph.layouts], dtype=np.bool_)
    nbytes = np.array([layout.nbytes for layout in graph.layouts], dtype=np.int64)
    wrong = ~dense[storages.layout] | (nbytes[storages.layout] != storages.nbytes)
    hbm = ~graph.in_scratch
    wrong |= hbm & ((storages.rank != -1) | (storages.scope != -1))
    if graph.is_scoped:
        scope_rank = np.append(graph.scopes.rank, -1)[storages.scope]
        wrong |= ~hbm & ((storages.scope < 0) | (scope_rank != storages.rank))
    for row in np.flatnonzero(wrong).tolist():
        yield f"storage {row} does not fit its layout, rank or scope"


# --- meaning: accesses and operations -------------------------------------------------------------------------------


@_rule(_MEANING)
def _accesses_inside(graph: Graph) -> Iterator[str]:
    """An access lies inside its storage, shows its dtype, in its own rank's scratch, and its kind says if it is a
    box."""
    accesses, storages, layouts = graph.accesses, graph.storages, graph.layouts
    span = np.array([layout.span for layout in layouts], dtype=np.int64)
    size = np.array([layout.size for layout in layouts], dtype=np.int64)
    dtype = np.array([layout.dtype.index for layout in layouts], dtype=np.int64)
    whole = storages.layout[accesses.storage]
    outside = (accesses.offset < 0) | (accesses.offset + span[accesses.layout] > size[whole])
    foreign = graph.in_scratch[accesses.storage] & (storages.rank[accesses.storage] != graph.nodes.rank[accesses.node])
    for what, wrong in (
        ("leaves its storage", outside),
        ("shows another dtype than its storage", dtype[accesses.layout] != dtype[whole]),
        ("reaches into another rank's scratch", foreign),
        ("comes before its allocation", accesses.node < storages.born[accesses.storage]),
    ):
        for row in np.flatnonzero(wrong).tolist():
            yield f"access {row} of node %{int(accesses.node[row])} {what}"
    if not np.any(outside) and all(layouts[number].is_dense for number in np.unique(whole).tolist()):
        _, _, exact = boxes(accesses, storages, layouts)
        flat = accesses.kind <= AccessKind.RANGE
        for row in np.flatnonzero(flat & (exact == (accesses.kind == AccessKind.RANGE))).tolist():
            yield f"access {row} of node %{int(accesses.node[row])} says {AccessKind(accesses.kind[row]).name}"


@_rule(_MEANING)
def _operations(graph: Graph) -> Iterator[str]:
    """A node's operation accepts its operands (by the rule that the recorder used), gives the result it writes, counts
    the work it states, and touches the memories that it can reach."""
    nodes, accesses = graph.nodes, graph.accesses
    start = graph.access_start
    memory = graph.storages.memory[accesses.storage].astype(np.int64)
    used = (accesses.layout.astype(np.int64) * len(graph.target.memories) + memory) * 2 + accesses.mode
    place = np.arange(len(accesses)) - start[accesses.node]
    columns = [nodes.op, nodes.attributes, nodes.work0, nodes.work1, nodes.work2, nodes.dtype, nodes.channel >= 0]
    for position in range(int(np.max(np.diff(start), initial=0))):
        column = np.full(len(nodes), -1, dtype=np.int64)
        there = place == position
        column[accesses.node[there]] = used[there]
        columns.append(column)
    kinds = distinct_rows(*columns)
    for row, index in enumerate(kinds.first.tolist()):
        mistake = _judge(graph, int(index))
        if mistake:
            where = np.flatnonzero(kinds.which == row)
            more = f" ({len(where)} such nodes)" if len(where) > 1 else ""
            yield f"node %{int(where[0])}: {mistake}{more}"


def _judge(graph: Graph, index: int) -> str:
    node = graph[index]
    operation = node.operation
    reads, writes = node.reads, node.writes
    if (node.channel >= 0) != (operation.end is not None):
        return f"{operation.name} and channel {node.channel}"
    for place, access in enumerate((*reads, *writes)):
        space = operation.writes_to if access.mode is Mode.WRITE else operation.space_of(place)
        if access.storage.is_hbm != (space is Space.GLOBAL):
            return f"{operation.name} touches {access}"
    if operation.kind is not Kind.NONE:
        written = {access.storage.row for access in writes}
        # What is written in place is reached by writing it.
        # So are addresses of what comes out of the global memory: by whoever issues it.
        moved = [a for a in reads if a.storage.is_hbm or operation.reads_from is not Space.GLOBAL]
        read = sorted({a.storage.memory.name for a in moved if a.storage.row not in written})
        into = next((access.storage.memory.name for access in writes), None)
        each = ["" if a.storage.row in written or a not in moved else a.storage.memory.name for a in reads]
        if graph.target.engine_for(operation, read, into, each) < 0:
            where = f"{' and '.join(read) or 'nothing'} into {into or 'nothing'}"
            return f"{operation.name} takes {where}, which no engine of kind {operation.kind} does"
    writes_something = operation.writes_to is not Space.NOWHERE
    # A store that lies wholly outside its tensor is a recorded fault, and writes nothing.
    lost = operation.writes_to is Space.GLOBAL and not writes and any(f.node == index for f in graph.bounds_faults)
    if len(writes) != int(writes_something) and not lost:
        return f"{operation.name} writes {len(writes)} views"
    operands: tuple[Operand, ...] = node.operands
    try:
        shape, dtype = operation.rule(operands, **node.static)
        result = Layout.dense(shape, dtype)
        work = operation.work_of(operands, result, node.static)
    except KernscopeError as error:
        return f"{operation.name}: {error.message}"
    except (TypeError, ValueError, AssertionError, AttributeError, IndexError):
        return f"{operation.name} cannot have the operands {operands} with {node.static}"
    if fault := _judge_index(node):
        return fault
    plain = [access.layout for access in writes if not access.kind.is_indexed]
    if plain and (plain[0].shape != shape or plain[0].dtype is not dtype):
        return f"{operation.name} writes {writes[0].layout!r}, its rule gives {result!r}"
    if writes and writes[0].layout.is_broadcast:
        return f"{operation.name} writes a broadcast view"
    if work != node.work:
        return f"{operation.name} states work {node.work}, its operands give {work}"
    tensors = [operand.dtype for operand in operands if isinstance(operand, Layout)]
    if operation.kind is not Kind.NONE and node.dtype is not (tensors[0] if tensors else dtype):
        return f"{operation.name} states its work in {node.dtype}"
    return ""


def _judge_index(node: Node) -> str:
    """An index stands among the attributes of exactly the nodes that access global memory by one, and covers the range
    that they state."""
    index = node.attributes.get("index")
    for access in node.accesses:
        if access.kind.is_indexed != (access.storage.is_hbm and index is not None):
            return f"{access} is of kind {access.kind.name}, and the index is {index!r}"
        if not access.kind.is_indexed:
            continue
        if not isinstance(index, Index) or not index.is_sound:
            return f"{index!r} is no index"
        if (access.kind is AccessKind.ROWS) != index.is_rows:
            return f"{access} says {access.kind.name}, by {index!r}"
        if access.layout != Layout.dense((index.span,), access.storage.layout.dtype):
            return f"{access} shows {access.layout!r}, {index!r} spans {index.span} elements"
    return ""


# --- meaning: channels and edges ------------------------------------------------------------------------------------


@_rule(_MEANING)
def _channels(graph: Graph) -> Iterator[str]:
    """A channel joins neighbours of the topology; its sends are its sender's nodes, its receives its receiver's."""
    channels, nodes, target = graph.channels, graph.nodes, graph.target
    for row in range(len(channels)):
        direction = target.directions[channels.direction[row]]
        arrival = target.directions[channels.arrival[row]]
        try:
            peer = target.neighbour(int(channels.sender[row]), direction, graph.ranks)
        except KernscopeError as error:
            yield f"channel {row}: {error.message}"
            continue
        if peer != channels.receiver[row]:
            receiver = int(channels.receiver[row])
            yield f"channel {row} leads {direction} to rank {receiver}; that way lies rank {peer}"
        if OPPOSITE[direction] != arrival:
            yield f"channel {row} leads {direction} and arrives at {arrival}, not at {OPPOSITE[direction]}"
    used = np.flatnonzero(nodes.channel >= 0)
    sends = OPERATIONS.sends[nodes.op[used]]
    owner = np.where(sends, channels.sender[nodes.channel[used]], channels.receiver[nodes.channel[used]])
    for index in used[owner != nodes.rank[used]].tolist():
        yield f"node %{index} uses a channel of other ranks"


@_rule(_EDGES)
def _edges_point_forward(graph: Graph) -> Iterator[str]:
    """Within a rank an edge goes forward in program order; between ranks only messages and credits do."""
    if not all(graph.layouts[number].is_dense for number in np.unique(graph.storages.layout).tolist()):
        return  # a storage with gaps is a fault of its own, and where its elements lie is not defined
    edges, rank = graph.edges, graph.nodes.rank
    inside = rank[edges.source] == rank[edges.target]
    across = (edges.reason == Reason.MESSAGE) | (edges.reason == Reason.CREDIT)
    for row in np.flatnonzero(np.where(inside, edges.source >= edges.target, ~across)).tolist():
        yield f"edge %{int(edges.source[row])} -> %{int(edges.target[row])} ({Reason(edges.reason[row]).label})"
