"""``kernscope schedule``: the ladder of policies against the bounds, and where the time of one of them goes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click

from ..analysis.analysis import Analysis
from ..face import api
from ..ir.errors import OptionError
from ..ir.forms.ranks import fold_ranks
from ..ir.forms.text import quote
from ..machine.units import format_ps
from ..scheduler.policy.optimal import DEFAULT_TIME_LIMIT_S, SolverLimit
from ..scheduler.policy.registry import LADDER, POLICIES
from ..scheduler.result.ladder import Ladder
from ..scheduler.result.schedule import Schedule
from ..scheduler.search.efforts import EFFORTS
from .buffering import buffered, parse_buffers, trade_lines
from .choices import Choice
from .command import Command
from .options import make_job, target_options
from .stages import stages
from .tables import percent, say, table

__all__ = ["chain_lines", "gain_lines", "ladder_lines", "proof_lines", "schedule"]

#: How many lines that overtake others are shown.
_MOVED_SHOWN = 5


@click.command(cls=Command, short_help="Makespans, bounds, and where the time goes.")
@target_options
@click.option(
    "--policy",
    type=Choice(tuple(POLICIES)),
    help="Only this policy. Default: all but optimal, and the details of the shortest.",
)
@click.option("--effort", type=Choice(sorted(EFFORTS)), default="normal", show_default=True)
@click.option(
    "--time-limit",
    type=float,
    metavar="SECONDS",
    help=f"How long --policy optimal may search. Default: {DEFAULT_TIME_LIMIT_S:g}.",
)
@click.option("--seed", type=int, metavar="N", help="The seed of the choices of --policy optimal. Default: 0.")
@click.option(
    "--buffers",
    metavar="K|A-B",
    help="Give scopes K rotating copies of their bytes, so that iterations overlap. A-B: makespan and scratch of each.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the schedule (of --policy, default list) as JSON.")
def schedule(
    policy: str | None,
    effort: str,
    time_limit: float | None,
    seed: int | None,
    buffers: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Schedule TARGET: makespans beside the lower bounds, what queueing and reordering gain, the critical chain
    by cause, utilisation.

    Exit status 1: a deadlock under the policy asked for.
    """
    limit = _limit(policy, time_limit, seed)
    copies = parse_buffers(buffers) if buffers is not None else None
    if as_json and copies and len(copies) > 1:
        raise OptionError(
            f"--json with --buffers {buffers}", help="JSON holds one schedule: give one number of buffers"
        )
    with stages() as tell:
        tell("tracing")
        job = make_job(**options)
        graph = job.graph()
    wanted = [policy] if policy else LADDER
    if copies and len(copies) > 1:
        say(f"{graph.kernel}: makespan against scratch, {job.machine.name}")
        variants = (Analysis(api.rebuffer(graph, number), job.machine) for number in copies)
        with stages() as tell:
            tell("scheduling")
            lines = list(trade_lines(graph, variants, wanted, job.machine, effort, limit))
        say("\n".join(lines))
        return
    known = buffered(graph, job.machine, copies[0]) if copies else Analysis(graph, job.machine)
    if as_json:
        with stages() as tell:
            tell("scheduling")
            text = known.schedule(policy or "list", effort, limit).to_json()
        click.echo(text)
        return
    if copies:
        say("\n".join([*trade_lines(graph, [known], wanted, job.machine, effort, limit), ""]))
    with stages() as tell:
        tell("scheduling")
        graph, ladder = known.graph, known.ladder(wanted, effort, limit)
    say(
        f"{graph.kernel}: {len(graph):,} nodes, {len(graph.edges):,} edges, ranks={graph.ranks}, {job.machine.name}"
        + (f", buffers={graph.buffers}" if graph.buffers else "")
    )
    say("\n".join([*ladder_lines(ladder), *proof_lines(ladder, limit)]))
    deadlocks = [row.deadlock for row in ladder if row.deadlock is not None]
    if deadlocks and policy:
        raise deadlocks[-1]
    if deadlocks:
        say(f"\n{deadlocks[-1]}")
    if ladder.best is not None:
        say("\n".join([*gain_lines(ladder), "", *chain_lines(ladder.best)]))


def _limit(policy: str | None, time_limit: float | None, seed: int | None) -> SolverLimit:
    for option, value in (("--time-limit", time_limit), ("--seed", seed)):
        if value is not None and not (policy and POLICIES[policy].exact):
            raise OptionError(f"{option} without --policy optimal", help="no other policy has one: see --effort")
    return SolverLimit(DEFAULT_TIME_LIMIT_S if time_limit is None else time_limit, seed or 0)


def proof_lines(ladder: Ladder, limit: SolverLimit) -> Iterator[str]:
    """Of the exact policy: whether it proved what it found, and if not how far off that can be."""
    for row in ladder:
        if POLICIES[row.policy].exact and row.schedule is not None:
            if row.schedule.proved_optimal:
                yield f"  {row.policy}: proved, no schedule is shorter"
            else:
                above = percent(row.schedule.makespan_ps - row.schedule.bound_ps, row.schedule.bound_ps)
                yield f"  {row.policy}: not proved within {limit.seconds:g} s, at most {above} above the optimum"


def gain_lines(ladder: Ladder) -> Iterator[str]:
    """What ``queued`` gains over ``lazy``, by not waiting, and what ``list`` gains over ``queued``, by another order,
    with the lines that overtake most for it."""
    schedules = {row.policy: row.schedule for row in ladder}
    steps = (("queueing", "lazy", "queued"), ("reordering", "queued", "list"))
    for what, before, after in steps:
        one, other = schedules.get(before), schedules.get(after)
        if one is None or other is None or other.makespan_ps >= one.makespan_ps:
            continue
        gained = one.makespan_ps - other.makespan_ps
        yield ""
        yield f"what {what} gains: {format_ps(gained)} ({percent(gained, one.makespan_ps)} of {before})"
        if what == "reordering":
            yield from _overtaking_lines(other, one)


def _overtaking_lines(best: Schedule, other: Schedule) -> Iterator[str]:
    rows: list[Sequence[str]] = [("line", "what", "nodes", "places sooner", "earlier (mean)", "(most)")]
    for moved in best.moved_against(other)[:_MOVED_SHOWN]:
        if moved.mean_places > 0:
            place = moved.location.short if moved.location else "?"
            what = f"{moved.op} {quote(moved.name)}".strip()
            times = (format_ps(moved.mean_ps), format_ps(moved.most_ps))
            rows.append((place, what, f"{moved.count:,}", f"{moved.mean_places:.1f}", *times))
    if len(rows) > 1:
        yield table(rows, right=(2, 3, 4, 5))


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
    busy = {name: f"{100 * share:.1f} % busy" for name, share in schedule.utilisation().items()}
    yield table([tuple(filter(None, row)) for row in fold_ranks(busy)], right=(1 if schedule.graph.ranks == 1 else 2,))
