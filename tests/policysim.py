"""An oracle for the in-order policies: every CPU, engine and node is a SimPy process that waits for what the rules
name.

Written from the three-step rule alone, event by event; it knows no arcs, no topological order and no longest path.
"""

from typing import Any

import simpy

from kernscope.ir.tables import Reason
from kernscope.scheduler.policy.problem import Problem


def simulate(problem: Problem, policy: str) -> tuple[list[int], list[int]] | None:
    """Issue ends and starts by node; None when the processes come to rest before all nodes have ended: a deadlock."""
    env = simpy.Environment()
    dag = problem.dag
    n = len(problem)
    issued = [env.event() for _ in range(n)]
    started = [env.event() for _ in range(n)]
    ended = [env.event() for _ in range(n)]
    issue, start = [-1] * n, [-1] * n
    lanes = [simpy.Resource(env, capacity=int(count)) for count in dag.channels]
    into: list[list[tuple[int, int]]] = [[] for _ in range(n)]
    for source, target, reason in zip(dag.source.tolist(), dag.target.tolist(), problem.reason.tolist(), strict=True):
        into[target].append((source, reason))
    members: list[list[int]] = [[] for _ in problem.first_node]
    for node, command in enumerate(problem.command.tolist()):
        members[command].append(node)
    last_on: dict[int, int] = {}
    before: list[int] = [-1] * n
    for node, engine in enumerate(dag.engine.tolist()):
        if engine >= 0:
            before[node] = last_on.get(engine, -1)
            last_on[engine] = node

    def cpu(commands: list[int]) -> Any:
        for command in commands:
            inside = set(members[command])
            if policy != "queued":
                for node in members[command]:
                    for source, reason in into[node]:
                        if source not in inside and (
                            reason == Reason.CREDIT or (reason == Reason.DATA and policy == "lazy")
                        ):
                            yield ended[source]
            yield env.timeout(int(problem.cost_ps[command]))
            for node in members[command]:
                issue[node] = int(env.now)
                issued[node].succeed()
            if policy == "blocking" or (policy == "lazy" and not problem.asynchronous[command]):
                for node in members[command]:
                    yield ended[node]

    def run(node: int) -> Any:
        yield issued[node]
        for source, _ in into[node]:
            yield ended[source]
        if before[node] >= 0:
            yield started[before[node]]
        engine = int(dag.engine[node])
        if engine < 0:
            start[node] = int(env.now)
            started[node].succeed()
            yield env.timeout(int(dag.duration_ps[node]))
        else:
            with lanes[engine].request() as lane:
                yield lane
                start[node] = int(env.now)
                started[node].succeed()
                yield env.timeout(int(problem.occupancy_ps[node]))
            yield env.timeout(int(dag.duration_ps[node] - problem.occupancy_ps[node]))
        ended[node].succeed()

    ranks = problem.command_rank.tolist()
    for rank in sorted(set(ranks)):
        env.process(cpu([c for c, r in enumerate(ranks) if r == rank]))
    for node in range(n):
        env.process(run(node))
    env.run()
    return (issue, start) if all(event.processed or event.triggered for event in ended) else None
