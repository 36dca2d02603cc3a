"""``kernscope fit``: the largest value of a parameter that fits in scratch, or the fastest."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Any

import click

from ..face import api
from ..face.fitting import GOALS, MAX_VALUES, search_fit
from ..face.guard.guard import Guard
from ..ir.errors import OptionError
from ..ir.graph import Graph
from ..machine.description import Machine
from ..tracer.kernel import Launch
from .choices import Choice
from .command import Command
from .options import make_job, target_options
from .stages import bar
from .tables import say

__all__ = ["fit", "parse_range"]

_RANGE = re.compile(r"(?P<low>-?\d{1,18}):(?P<high>-?\d{1,18})(:(?P<step>x?\d{1,18}))?")

_EPILOG = """\b
Examples:
  kernscope fit kernels/flash_attention.py --param tile --range 32:1024:32
  kernscope fit kernels/matmul.py --launch 2k --param tile_k --range 64:1024:64 --goal time
"""


@click.command(cls=Command, epilog=_EPILOG, short_help="Find the largest tile that fits, or the fastest.")
@target_options
@click.option("--param", "parameter", metavar="NAME", required=True, help="The kernel's parameter to vary.")
@click.option(
    "--range",
    "span",
    metavar="LOW:HIGH[:STEP|:xN]",
    required=True,
    help="The values to try: from LOW up to and including HIGH, in steps of STEP (default 1), or N times as large "
    "each (32:1024:x2).",
)
@click.option(
    "--goal",
    type=Choice(GOALS),
    default="memory",
    show_default=True,
    help="The largest value that fits, or the fastest that does (policy list, effort fast).",
)
@click.pass_context
def fit(context: click.Context, /, parameter: str, span: str, goal: str, **options: Any) -> None:
    """Try values of a parameter of TARGET: which is the largest that fits in scratch, and what stops the next one?

    A value fits if the kernel takes it, no rank passes the scratch budget, and the linter has no finding at error
    level. Every value is tried, since what fits need not be a range; a value at which the kernel raises is a row that
    says so.

    Exit status 1: no value fits; 2: the kernel takes none of them.
    """
    values = parse_range(span)
    given = [text.partition("=")[0].strip() for text in options["arguments"]]
    if parameter in given:
        raise OptionError(f"--arg {parameter} with --param {parameter}", help="leave out the --arg: --range varies it")
    job = make_job(**options)
    if job.launch is None or job.guard is None:
        raise OptionError("fit of a saved graph", help="it was traced already: give the kernel's file")
    with bar(len(values), "trying values") as tell:
        found = search_fit(
            job.launch, job.machine, parameter, values, goal, tell, functools.partial(_traced, job.guard)
        )
    say(str(found))
    if found.best is None:
        # Nothing was found out where the kernel raises at every value.
        context.exit(2 if all(row.verdict == "refused" for row in found.rows) else 1)


def _traced(guard: Guard, launch: Launch, machine: Machine) -> Graph:
    """A launch traced by the guarded way; what the kernel raises is raised, and is a row of the table."""
    with guard.running(f"tracing {launch.kernel.name}"):
        return api.trace_for(launch, machine, record=True)


def parse_range(text: str) -> Sequence[int]:
    """``LOW:HIGH[:STEP]``, with both ends, or ``LOW:HIGH:xN``, each N times the one before. Raises ``OptionError``."""
    match = _RANGE.fullmatch(text.strip())
    if match is None:
        raise OptionError(
            f"--range {text!r}", help="write LOW:HIGH, LOW:HIGH:STEP or LOW:HIGH:xN, such as 32:1024:32 or 32:1024:x2"
        )
    low, high, step = int(match["low"]), int(match["high"]), match["step"] or "1"
    if step.startswith("x"):
        return _multiples(text, low, high, int(step[1:]))
    if high < low or int(step) == 0:
        raise OptionError(f"--range {text!r} holds no value", help="LOW is at most HIGH, and STEP is at least 1")
    values = range(low, high + 1, int(step))
    if len(values) > MAX_VALUES:
        raise OptionError(
            f"--range {text!r} holds {len(values):,} values, more than {MAX_VALUES:,}", help="give a larger STEP"
        )
    return values


def _multiples(text: str, low: int, high: int, factor: int) -> list[int]:
    if not 1 <= low <= high or factor < 2:
        raise OptionError(f"--range {text!r}", help="LOW is from 1 to HIGH, and the N of xN at least 2")
    values = [low]
    while values[-1] * factor <= high:
        values.append(values[-1] * factor)
    return values
