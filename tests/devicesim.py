"""An oracle for machines whose engines are let go of before results are there: ranks, their queues and what they share
as SimPy processes, with times worked out here from the machine's file.

A transfer takes as many queues of its engine as it is spread over, each of which moves its part of the bytes at the
queue's own rate, or at its part of the rank's share of the global memory; a queue is let go of when its part has
passed, unless the latency holds it. It knows no durations, occupancies, arcs or longest paths of the scheduler's.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import simpy

import kernscope as ks
from kernscope.ir.ops import OPERATIONS
from kernscope.ir.tables import Reason
from kernscope.machine.parts import Elementwise, Link, Matmul, Transfer
from kernscope.scheduler.policy.problem import Problem

__all__ = ["simulate_device"]


def simulate_device(
    graph: ks.Graph, machine: ks.Machine, problem: Problem, policy: str
) -> tuple[list[int], list[int], list[int]] | None:
    """Issue ends, starts and ends by node; None when all comes to rest before all nodes have ended."""
    env = simpy.Environment()
    n = len(graph)
    issued, started, ended = ([env.event() for _ in range(n)] for _ in range(3))
    issue, start, end = [-1] * n, [-1] * n, [-1] * n
    into: list[list[tuple[int, int]]] = [[] for _ in range(n)]
    edges = graph.edges
    for source, target, reason in zip(edges.source.tolist(), edges.target.tolist(), edges.reason.tolist(), strict=True):
        into[target].append((source, reason))
    queues: dict[tuple[int, str], simpy.Container] = {}
    before: list[int] = [-1] * n
    last: dict[tuple[int, str], int] = {}
    # Only which engine a node is for is taken from the problem: its name, not its times.
    names = [problem.engines[at].name if at >= 0 else "" for at in problem.dag.engine.tolist()]
    for node in graph:
        if names[node.id]:
            key = (node.rank, names[node.id])
            before[node.id], last[key] = last.get(key, -1), node.id
            part = machine.engine[names[node.id].partition(":")[0]]
            queues.setdefault(key, simpy.Container(env, capacity=part.lanes_of_work, init=part.lanes_of_work))
    commands: list[list[int]] = [[] for _ in problem.first_node]
    for node_id, command in enumerate(problem.command.tolist()):
        commands[command].append(node_id)

    def cpu(mine: list[int]) -> Any:
        for command in mine:
            nodes = commands[command]
            for node_id in nodes if policy != "queued" else ():
                for source, reason in into[node_id]:
                    waits = reason == Reason.CREDIT or (policy == "lazy" and reason == Reason.DATA)
                    if waits and source not in nodes:
                        yield ended[source]
            yield env.timeout(int(problem.cost_ps[command]))
            for node_id in nodes:
                issue[node_id] = int(env.now)
                issued[node_id].succeed()
            if policy == "blocking" or (policy == "lazy" and not problem.asynchronous[command]):
                for node_id in nodes:
                    yield ended[node_id]

    def run(node: ks.Node) -> Any:
        yield issued[node.id]
        for source, _ in into[node.id]:
            yield ended[source]
        if before[node.id] >= 0:
            yield started[before[node.id]]
        if names[node.id]:
            wide, held, later = _took(graph, machine, node, names[node.id])
            key = (node.rank, names[node.id])
            yield queues[key].get(wide)
            start[node.id] = int(env.now)
            started[node.id].succeed()
            yield env.timeout(held)
            yield queues[key].put(wide)
            yield env.timeout(later)
        else:
            start[node.id] = int(env.now)
            started[node.id].succeed()
        end[node.id] = int(env.now)
        ended[node.id].succeed()

    ranks = problem.command_rank.tolist()
    for rank in sorted(set(ranks)):
        env.process(cpu([command for command, r in enumerate(ranks) if r == rank]))
    for node in graph:
        env.process(run(node))
    env.run()
    return (issue, start, end) if all(event.triggered for event in ended) else None


def _took(graph: ks.Graph, machine: ks.Machine, node: ks.Node, name: str) -> tuple[int, int, int]:
    """The queues that a node takes, for how many picoseconds, and how long after that its result is there."""
    part: Any = machine.engine[name.partition(":")[0]]
    operation = OPERATIONS[node.op]
    wide, latency = 1, Fraction(0)
    if isinstance(part, Transfer):
        wide, latency = part.spread, part.latency_ns * 1000
        rate = part.bytes_per_ns
        whole = machine.global_memory.bytes_per_ns
        if whole is not None and "global" in (operation.reads_from, operation.writes_to):
            rate = min(rate, whole / graph.ranks / wide)
        busy = Fraction(node.work[0], wide) / rate * 1000
        if not part.pipelined:
            busy, latency = busy + latency, Fraction(0)
    elif isinstance(part, Link):
        busy = (part.latency_ns + node.work[0] / part.bytes_per_ns) * 1000
    else:
        cycle = 1000 / (part.clock_ghz or machine.clock_ghz)
        latency = part.latency_cycles * cycle
        busy = (part.startup_cycles + _steps(part, node, operation)) * cycle
    held, done = math.ceil(busy), math.ceil(busy + latency)
    return wide, held, done - held


def _steps(part: Matmul | Elementwise, node: ks.Node, operation: Any) -> Fraction:
    """Cycles behind the start."""
    if isinstance(part, Matmul):
        m, n, k = node.work
        rate = part.rate.of(node.dtype.name)
        return Fraction(math.ceil(m / part.rows) * math.ceil(n / part.cols) * math.ceil(k / rate))
    elements = node.work[0]
    if node.op == "move":
        elements = math.ceil(elements / node.dtype.itemsize)
    steps = math.ceil(elements / part.lanes)
    if node.op == "exp_fma" and node.op not in dict(part.cycles.listed):
        return steps * (part.cycles.of("fma", "simple") + part.cycles.of("exp", "transcendental"))
    return steps * part.cycles.of(node.op, str(operation.cost))
