"""The scheduler's speed beside a process-based simulation, and its parts beside each other."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from measure import Row, installed, interleaved, seconds

import kernscope as ks
from kernscope.kernels.gqa_attention_prefill_long import gqa_attention_prefill_long_kernel
from kernscope.machine.description import load_machine
from kernscope.scheduler.policy.constraints import make_constraints
from kernscope.scheduler.policy.in_order import run_in_order
from kernscope.scheduler.policy.lower_bounds import lower_bounds
from kernscope.scheduler.policy.problem import make_problem
from kernscope.scheduler.policy.registry import policy_of
from kernscope.scheduler.search.dag import Dag, longest_to_end
from kernscope.scheduler.search.list_scheduling import list_schedule
from kernscope.scheduler.search.priorities import by_largest

__all__ = ["rows"]


def simulate(dag: Dag) -> int:
    """The same greedy list schedule as a SimPy model: a process per engine that takes the ready node of the highest
    priority. The makespan."""
    simpy: Any = importlib.import_module("simpy")
    env = simpy.Environment()
    place = by_largest(longest_to_end(dag)).tolist()
    duration, engine = dag.duration_ps.tolist(), dag.engine.tolist()
    starts, targets = (column.tolist() for column in dag.successors)
    missing = np.bincount(dag.target, minlength=len(dag)).tolist()
    queues = [simpy.PriorityStore(env) for _ in dag.channels]

    def ready(node: int) -> None:
        if engine[node] < 0:
            done(node)
        else:
            queues[engine[node]].put((place[node], node))

    def done(node: int) -> None:
        for after in targets[starts[node] : starts[node + 1]]:
            missing[after] -= 1
            if not missing[after]:
                ready(after)

    def work(queue: Any) -> Iterator[Any]:
        while True:
            _, node = yield queue.get()
            yield env.timeout(duration[node])
            done(node)

    for queue, lanes in zip(queues, dag.channels.tolist(), strict=True):
        for _ in range(lanes):
            env.process(work(queue))
    for node in np.flatnonzero(np.bincount(dag.target, minlength=len(dag)) == 0).tolist():
        ready(node)
    env.run()
    return int(env.now)


def rows(quick: bool) -> list[Row]:
    """A ring's prefill: list scheduling beside SimPy; policies, bounds, checker and lint beside list and tracing."""
    launch = gqa_attention_prefill_long_kernel.launch("8k" if quick else "32k")
    times = 1 if quick else 3
    graph = ks.trace(launch)
    len(graph.edges)
    problem = make_problem(graph, load_machine(graph.machine))
    dag, n = problem.dag, len(graph)

    def listed() -> None:
        list_schedule(dag, by_largest(longest_to_end(dag)))

    listed()  # compiled now, where it will be
    peers = [listed, lambda: lower_bounds(problem)]
    peers += [
        lambda rules=rules: run_in_order(problem, make_constraints(problem, rules))
        for rules in map(policy_of, POLICIES)
    ]
    for peer in peers:
        peer()
    schedule = ks.schedule(graph, effort="fast")
    peers.append(lambda: ks.check(schedule))
    one, *others = interleaved(peers, times)
    found = [Row(f"list schedule, one rule, {n:,} nodes", f"{n / one:,.0f} nodes/s", "")]
    if installed("simpy"):
        beside = seconds(lambda: simulate(dag))
        found.append(Row("  beside a process per engine", f"{beside / one:.0f} x", "SimPy, the same graph"))
    else:
        found.append(Row("  beside a process per engine", "-", "SimPy is not installed"))
    names = ["all bounds", *(f"{policy}, arcs included" for policy in POLICIES), "the independent checker"]
    found += [
        Row(f"  {name}", f"{other / one:.1f} x its time", "list, one rule")
        for name, other in zip(names, others, strict=True)
    ]
    trace, lint, live, text = interleaved(
        [lambda: ks.trace(launch), lambda: ks.lint(graph), lambda: ks.liveness(graph), schedule.to_json], times
    )
    found += [
        Row("lint, all rules", f"{lint / trace:.1f} x its time", "tracing"),
        Row("liveness", f"{live / trace:.1f} x its time", "tracing"),
        Row("schedule as JSON", f"{n / text:,.0f} nodes/s", ""),
    ]
    return found


POLICIES = ("blocking", "lazy", "queued")
