"""``kernscope lint --fix``: what findings propose, shown as a difference, written, and judged by linting again."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from ..ir.forms.counts import plural
from ..ir.forms.printable import printable
from ..ir.output import check_output, write_output
from ..ir.source.location import shown_path
from ..linter.fixes.applying import Change, Plan, plan_fixes
from .linting import LastWords, Linting, Outcome
from .tables import note, say

__all__ = ["fix_findings"]

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def fix_findings(linting: Linting, found: Outcome, last_words: LastWords, *, yes: bool) -> Outcome:
    """Apply the fixes of what was found; what is found then (the same, where nothing was written).

    Fixes are each sure to help alone. Whether they do together is seen by linting again: where a launch cannot be
    linted any more, there are more errors than before, or no finding is gone, the files are put back.
    """
    plan = plan_fixes(found.reports, _Editable(linting.paths))
    if not plan.changes:
        note(_nothing(plan), err=True)
        return found
    for line in _difference(plan.changes):
        click.echo(line)
    click.echo()
    what = f"{plural(len(plan.fixes), 'fix', 'fixes')} in {plural(len(plan.changes), 'file')}"
    if not yes and not _agreed(what):
        return found
    _write(plan.changes)
    after = linting.run(last_words)
    if len(after.failures) > len(found.failures) or after.errors > found.errors:
        return _taken_back(plan, found, "the kernels are worse for it")
    if after.count(plan.codes) >= found.count(plan.codes):
        return _taken_back(plan, found, "no finding is gone")
    more = f"; {plan.waiting} more wait for these: fix again" if plan.waiting else ""
    note(f"applied {what}{more}", err=True)
    return after


class _Editable:
    """Whether a file may be edited: it lies below the current folder or that of a path given, and nobody installed
    it."""

    def __init__(self, paths: Sequence[str]) -> None:
        given = [Path(path.partition("::")[0]).resolve() for path in paths]
        self._folders = [Path.cwd().resolve(), *(path if path.is_dir() else path.parent for path in given)]

    def __call__(self, file: str) -> bool:
        path = Path(file).resolve()
        below = any(path.is_relative_to(folder) for folder in self._folders)
        return below and "site-packages" not in path.parts and os.access(path, os.W_OK)


def _nothing(plan: Plan) -> str:
    elsewhere = f" here, and {plural(plan.elsewhere, 'fix', 'fixes')} for files elsewhere" if plan.elsewhere else ""
    return f"nothing to fix{elsewhere}"


def _agreed(what: str) -> bool:
    if sys.stdin.isatty() and sys.stderr.isatty():
        return click.confirm(f"apply {what}?", err=True)
    note(f"{what} not applied: say --yes", err=True)
    return False


def _difference(changes: Sequence[Change]) -> Iterator[str]:
    """A unified difference in colours, of printable characters."""
    for change in changes:
        before, after = (text.splitlines() for text in change.texts)
        name = shown_path(change.file)
        for number, line in enumerate(difflib.unified_diff(before, after, name, name, lineterm="")):
            text = printable(line.expandtabs())
            yield click.style(text, bold=True) if number < 2 else click.style(text, fg=_COLOURS.get(line[:1]))


def _write(changes: Sequence[Change], *, back: bool = False) -> None:
    """All of the files, or where one cannot be written none."""
    for change in changes:
        check_output(change.file)
    done: list[Change] = []
    try:
        for change in changes:
            write_output(change.file, change.before if back else change.after)
            done.append(change)
    except BaseException:
        for change in done:
            write_output(change.file, change.after if back else change.before)
        raise


def _taken_back(plan: Plan, found: Outcome, why: str) -> Outcome:
    _write(plan.changes, back=True)
    say(f"nothing was changed: {why}, so it was put back", err=True)
    return found
