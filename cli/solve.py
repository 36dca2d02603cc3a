"""``kernscope solve``: schedules a task graph that comes as a file in a standard format."""

from __future__ import annotations

import json
from pathlib import Path

import click

from ..ir.errors import OptionError
from ..scheduler.policy.solve_dag import SolvedDag, solve_dag
from ..scheduler.policy.solve_project import solve_project
from ..scheduler.search.efforts import EFFORTS
from ..scheduler.task_files.reading import FORMATS, read_task_graph
from ..scheduler.task_files.task_graph import TaskGraph
from .choices import Choice
from .command import Command
from .tables import percent, say

__all__ = ["solve"]

_EPILOG = """\b
Examples:
  kernscope solve ft06.txt
  kernscope solve ta01.txt --effort high --time-limit 10 --json
  kernscope solve rand0000.stg --processors 4 --policy optimal
  kernscope solve j301_1.sm --effort high
"""


@click.command(cls=Command, epilog=_EPILOG, short_help="Schedule a task graph in a standard format.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "format_",
    type=Choice(tuple(FORMATS)),
    help="jsp: a job shop, standard form or Taillard's; stg: a standard task graph; sm: a project of PSPLIB. Default: "
    "by the file's ending.",
)
@click.option("--processors", type=click.IntRange(1, 1_000_000), metavar="N", help="Of a standard task graph.")
@click.option("--effort", type=Choice(tuple(EFFORTS)), default="normal", show_default=True)
@click.option(
    "--policy",
    type=Choice(("list", "optimal")),
    default="list",
    show_default=True,
    help="optimal: a constraint solver goes on from what is found.",
)
@click.option("--time-limit", type=float, metavar="SECONDS", help="Search on until then. Default: the effort's end.")
@click.option("--seed", type=int, metavar="N", default=0, show_default=True, help="Of what is tried at random.")
@click.option("--json", "as_json", is_flag=True, help="Print times, engines, lanes and bounds as JSON.")
def solve(
    file: Path,
    format_: str | None,
    processors: int | None,
    effort: str,
    policy: str,
    time_limit: float | None,
    seed: int,
    as_json: bool,
) -> None:
    """Schedule the task graph in FILE: the makespan, the best lower bound, and whether that proves it optimal.

    Times are in the file's unit.
    """
    graph = read_task_graph(file, format_, processors)
    found = _solved(graph, effort, policy, time_limit, seed)
    if as_json:
        click.echo(json.dumps(_document(graph, found)))
        return
    verdict = "proved optimal"
    if not found.proved_optimal:
        verdict = f"at most {percent(found.makespan_ps - found.bound_ps, found.bound_ps)} above the optimum"
    say(f"{file.name}: {graph.what}, {len(graph):,} tasks, {len(graph.edges):,} edges")
    say(f"  makespan  {found.makespan_ps:,}, {verdict}")
    say(f"  bound     {found.bound_ps:,}  {found.bound}")


def _solved(graph: TaskGraph, effort: str, policy: str, time_limit: float | None, seed: int) -> SolvedDag:
    if graph.demand is None or graph.capacity is None:
        return solve_dag(
            graph.durations,
            graph.engine,
            graph.channels,
            graph.edges,
            effort=effort,
            policy=policy,
            time_limit_s=time_limit,
            seed=seed,
        )
    if policy == "optimal":
        raise OptionError("--policy optimal of a project", help="leave it out: --effort high searches longer")
    return solve_project(
        graph.durations,
        graph.edges,
        graph.demand,
        graph.capacity,
        effort=effort,
        time_limit_s=time_limit,
        seed=seed,
    )


def _document(graph: TaskGraph, found: SolvedDag) -> dict[str, object]:
    return {
        "version": 1,
        "makespan": found.makespan_ps,
        "bound": found.bound_ps,
        "bounds": dict(found.bounds),
        "proved_optimal": found.proved_optimal,
        "tasks": [
            {"id": task, "start": start, "end": start + takes, "engine": engine, "lane": lane}
            for task, (start, takes, engine, lane) in enumerate(
                zip(
                    found.start_ps.tolist(),
                    graph.durations.tolist(),
                    graph.engine.tolist(),
                    found.lane.tolist(),
                    strict=True,
                )
            )
        ],
    }
