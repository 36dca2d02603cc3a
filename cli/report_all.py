"""``kernscope report`` of a folder: a page for every launch, and their index."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata
from pathlib import Path

import attrs
import click

from ..backends.report.index import IndexRow, by_urgency, summary, write_index
from ..face.launch_job import Found
from ..face.lint_files import Configurations, lint_targets
from ..face.report_job import ReportJob
from ..ir.forms.counts import plural
from ..ir.output import check_output, output_error
from ..linter.findings import Failure
from ..machine.units import format_ps
from .colours import painted
from .job_pool import available_cores, run_jobs
from .settings import settings
from .stages import bar
from .tables import note, percent, say, table

__all__ = ["ReportAll"]


@attrs.frozen(kw_only=True)
class ReportAll:
    """All launches of a target to report, and how: the options of ``kernscope report``."""

    target: str
    folder: str
    launch: str | None
    policies: tuple[str, ...]
    numbers: bool
    processes: int | None
    timeout_s: float
    machine: str | None
    overrides: tuple[str, ...]

    def run(self, show: Callable[[str], None] | None) -> int:
        """Report them and print what the index says; the command's exit status comes back. ``show`` is called with the
        index at last."""
        index = os.path.join(self.folder, "index.html")
        self._make_folder(index)
        notes: list[str] = []
        failures: list[Failure] = []
        root = os.path.abspath(self.target if os.path.isdir(self.target) else os.path.dirname(self.target))
        jobs = [
            ReportJob(
                target=target,
                only=self.launch,
                is_named=is_named,
                machine=self.machine,
                overrides=self.overrides,
                folder=os.path.abspath(self.folder),
                root=root,
                policies=self.policies,
                numbers=self.numbers,
            )
            for target, is_named in lint_targets([self.target], Configurations(), notes, failures)
        ]
        with bar(max(len(jobs), 2), "reporting") as progress:
            answers = run_jobs(
                jobs, processes=self.processes or available_cores(), timeout_s=self.timeout_s, progress=progress
            )
        rows: list[IndexRow] = []
        for _, answer in sorted(answers.items(), key=lambda item: item[0]):
            if isinstance(answer, Found):
                notes += answer.notes
            elif isinstance(answer, Failure):
                failures.append(answer)
            else:
                rows.append(answer)
        write_index(index, _heading(self.target), rows, failures, metadata.version("kernscope"))
        for line in _lines(rows, failures):
            say(line)
        for failure in failures:
            click.echo(painted(f"{failure.diagnostic}\n"), err=True)
            if settings().debug:
                click.echo(failure.debug, err=True, nl=False)
        for text in notes:
            note(text, err=True)
        note(f"wrote {index} and {plural(len(rows), 'page')}")
        if show is not None:
            show(index)
        return 2 if failures or any(row.numbers == "failed" for row in rows) else int(any(row.is_wrong for row in rows))

    def _make_folder(self, index: str) -> None:
        try:
            Path(self.folder).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise output_error(self.folder, error) from None
        check_output(index)


def _heading(target: str) -> str:
    """A target's own name: where it lies is of no interest to who is sent its pages."""
    return os.path.basename(os.path.abspath(target))


def _lines(rows: Sequence[IndexRow], failures: Sequence[Failure]) -> Iterator[str]:
    if rows:
        cells = [("launch", "file", "makespan", "of the bound", "scratch", "numbers", "findings")]
        for row in by_urgency(rows):
            makespan = row.verdict if row.makespan_ps is None else format_ps(row.makespan_ps)
            ratio = f"x {row.makespan_ps / row.bound_ps:.3f}" if row.makespan_ps is not None and row.bound_ps else "-"
            numbers = {"": "-", "differ": "DIFFER"}.get(row.numbers, row.numbers)
            scratch = percent(row.peak_bytes, row.budget_bytes)
            cells.append((row.title, row.source, makespan, ratio, scratch, numbers, row.findings))
        yield table(cells, right=(2, 4))
        yield ""
    yield summary(rows, failures)
