"""What the policies need of a graph and a machine, as plain arrays: durations, engines, edges, commands."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import attrs
import numpy as np

from ...ir.arrays.frozen_map import FrozenMap
from ...ir.errors import MachineError, TargetMismatchError
from ...ir.graph import Graph
from ...ir.ops import OPERATIONS
from ...ir.tables import IntArray
from ...machine.description import Machine
from ...machine.engines import EngineInstance, engine_instances
from ...machine.latency import LONGEST_PS, issue_cost_ps, node_times, shared_bound_ps
from ..search.dag import Dag
from ..search.occupancy import Split, split

__all__ = ["EngineInstance", "Problem", "make_problem"]


@attrs.frozen(eq=False, slots=False)
class Problem:
    """A graph on a machine, as arrays. Commands are numbered in program order, rank by rank; a scope marker counts as a
    command without cost here.

    ``dag`` holds durations, engines and edges; its releases are the sums of the issue costs up to each node's command.
    ``occupancy_ps`` ``(n,)``: how long a node holds its engine, its duration at the most. ``shared_ps``: by memory that
    ranks share, a time below which not all that is moved gets through it.
    ``reason`` and ``recycled`` belong to its edges. ``command`` ``(n,)`` is the number of each node's command; by
    command: ``first_node``, ``command_rank``, ``cost_ps`` of its issue, and ``asynchronous``: whether the CPU goes on
    after the issue under ``lazy``.
    """

    dag: Dag
    engines: tuple[EngineInstance, ...]
    reason: IntArray
    recycled: IntArray
    command: IntArray
    first_node: IntArray
    command_rank: IntArray
    cost_ps: IntArray
    asynchronous: IntArray
    occupancy_ps: IntArray
    shared_ps: Mapping[str, int] = FrozenMap({})

    @cached_property
    def split(self) -> Split:
        """The problem for searches and bounds, which know one time a node."""
        return split(self.dag, self.occupancy_ps)

    @cached_property
    def on_engines(self) -> Dag:
        """The problem as its engines see it: nodes last as long as they hold theirs."""
        return attrs.evolve(self.dag, duration_ps=self.occupancy_ps)

    def __len__(self) -> int:
        return len(self.dag)

    def without(self, edges: IntArray) -> Problem:
        """The same problem without some of its edges (a mask)."""
        kept = ~edges
        dag = attrs.evolve(self.dag, source=self.dag.source[kept], target=self.dag.target[kept])
        return attrs.evolve(self, dag=dag, reason=self.reason[kept], recycled=self.recycled[kept])


def make_problem(graph: Graph, machine: Machine) -> Problem:
    """The arrays of a graph on a machine.

    Raises ``TargetMismatchError`` where the machine's target is not the one the graph was traced for, and
    ``MachineError`` where times would not fit.
    """
    differences = graph.target.differences(machine.target)
    if differences:
        raise TargetMismatchError(
            f"the graph of {graph.kernel} was traced for another target than machine {machine.name!r} has: "
            + "; ".join(differences),
            help=f"trace it again with machine={machine.name!r}: addresses and credits depend on these",
        )
    nodes = graph.nodes
    first_node, command = np.unique(nodes.command, return_inverse=True)
    times = node_times(graph, machine)
    engines, engine = engine_instances(graph, machine, times.engine)
    cost = issue_cost_ps(graph, machine, times.engine)[first_node]
    command_rank = nodes.rank[first_node]
    release = _sum_within(cost, command_rank)
    duration = times.duration_ps
    if int(cost.sum(dtype=object) if len(cost) else 0) + int(duration.sum()) >= LONGEST_PS:
        raise MachineError(
            f"machine {machine.name}: issue costs add up to more than a schedule can hold",
            help="check cpu.issue_cycles",
        )
    codes = nodes.op[first_node]
    composite = np.bincount(command, minlength=len(first_node)) > 1
    edges = graph.edges
    return Problem(
        dag=Dag(
            duration_ps=duration,
            engine=engine,
            channels=np.array([min(instance.channels, max(len(duration), 1)) for instance in engines], dtype=np.int64),
            source=edges.source.astype(np.int64),
            target=edges.target.astype(np.int64),
            release_ps=release[command],
        ),
        engines=engines,
        reason=edges.reason,
        recycled=edges.recycled,
        command=command,
        first_node=first_node.astype(np.int64),
        command_rank=command_rank,
        cost_ps=cost,
        occupancy_ps=times.occupancy_ps,
        shared_ps=FrozenMap(shared_bound_ps(graph, machine)),
        asynchronous=composite | OPERATIONS.mask(lambda op: op.asynchronous or op.is_marker)[codes],
    )


def _sum_within(cost: IntArray, rank: IntArray) -> IntArray:
    """Running sums of ``cost`` that start anew with each rank."""
    total = np.cumsum(cost)
    _, first = np.unique(rank, return_index=True)
    before = np.repeat(total[first] - cost[first], np.diff(np.append(first, len(rank))))
    within: IntArray = total - before
    return within
