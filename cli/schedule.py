"""``kernscope schedule``: the ladder of policies against the bounds, and where the time of one of them goes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click

from .. import api
from ..scheduler.ladder import Ladder
from ..scheduler.list_search import EFFORTS
from ..scheduler.policies import POLICIES
from ..scheduler.schedule import Schedule
from ..scheduler.units import format_ps
from .options import make_job, target_options
from .words import percent, table

__all__ = ["chain_lines", "ladder_lines", "schedule"]


@click.command()
@target_options
@click.option("--policy", type=click.Choice(POLICIES), help="Only this policy. Default: all, and the details of list.")
@click.option("--effort", type=click.Choice(sorted(EFFORTS)), default="normal", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print the schedule (of --policy, default list) as JSON.")
def schedule(policy: str | None, effort: str, as_json: bool, **options: Any) -> None:
    """Schedule TARGET: makespans beside the lower bounds, the critical chain by cause, utilisation.

    Exit status 1: a deadlock under the policy asked for.
    """
    job = make_job(**options)
    graph = job.graph()
    if as_json:
        made = api.schedule(graph, policy or "list", job.machine, effort)
        click.echo(made.to_json())
        return
    ladder = api.compare(graph, [policy] if policy else POLICIES, job.machine, effort)
    click.echo(
        f"{graph.kernel}: {len(graph):,} nodes, {len(graph.edges):,} edges, ranks={graph.ranks}, {job.machine.name}"
    )
    click.echo("\n".join(ladder_lines(ladder)))
    last = ladder.rows[-1]
    if last.schedule is None:
        assert last.deadlock is not None, "a row has a schedule or a deadlock"
        if policy:
            raise last.deadlock
        click.echo(f"\n{last.deadlock}")
        return
    click.echo("\n".join(["", *chain_lines(last.schedule)]))


def ladder_lines(ladder: Ladder) -> list[str]:
    """The policies, a line each."""
    rows: list[Sequence[str]] = [("policy", "makespan", "of the bound")]
    for row in ladder.rows:
        if row.schedule is None:
            rows.append((row.policy, "deadlock", "-"))
        else:
            rows.append((row.policy, format_ps(row.schedule.makespan_ps), f"x {row.schedule.ratio:.3f}"))
    if ladder.bounds is not None:
        rows.append(("bound", format_ps(ladder.bounds.best_ps), ladder.bounds.best))
    return [table(rows, right=(1,))]


def chain_lines(schedule: Schedule) -> Iterator[str]:
    """The critical chain by cause, and how busy the engines are."""
    yield f"{schedule.policy}: where the {format_ps(schedule.makespan_ps)} of the critical chain go"
    shares = schedule.critical_chain().by_cause()
    yield table(
        [(str(cause), format_ps(ps), percent(ps, schedule.makespan_ps)) for cause, ps in shares.items() if ps],
        right=(1, 2),
    )
    yield "engines"
    yield table([(str(name), f"{100 * busy:.1f} % busy") for name, busy in schedule.utilisation().items()], right=(1,))
