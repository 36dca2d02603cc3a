"""What ``kernscope lint`` is asked to do, and what comes of it: once, again after a fix, or whenever a file changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs

from ..face.launch_job import Found, Share, perform
from ..face.lint_files import Configurations, lint_targets
from ..face.lint_job import Answer, LintJob
from ..linter import RULES, LintReport
from ..linter.config import LintConfig
from ..linter.findings import Failure, Severity
from ..linter.launch_ways import with_other_ways
from ..linter.rule_selection import option_values, select_rules
from ..linter.suppressions import settle_unused
from .job_pool import Key, available_cores, run_jobs
from .stages import bar, stages

__all__ = ["LastWords", "Linting", "Outcome"]

#: What is to be said of the launch that pays no heed to its limit, as the process ends; and the notes so far.
LastWords = Callable[[Failure, Sequence[str]], None]


@attrs.frozen
class Outcome:
    """What was found. ``failed``: there are findings at the level that the configuration names, or a graver one."""

    reports: tuple[LintReport, ...]
    failures: tuple[Failure, ...]
    notes: tuple[str, ...]
    failed: bool

    @property
    def errors(self) -> int:
        """How many findings at error level there are."""
        return sum(len(report.at_least("error")) for report in self.reports)

    def count(self, codes: frozenset[str]) -> int:
        """How many findings of these rules there are."""
        return sum(diagnostic.code in codes for report in self.reports for diagnostic in report)


@attrs.frozen
class Linting:
    """Paths to lint, and how: the options of ``kernscope lint``. ``processes`` as ``--jobs``."""

    paths: tuple[str, ...]
    launch: str | None
    select: tuple[str, ...]
    ignore: tuple[str, ...]
    fail_on: Severity | None
    processes: int | None
    timeout_s: float
    trace_twice: bool
    machine: str | None
    overrides: tuple[str, ...]

    def apart(self) -> Linting:
        """The same in processes of their own: sources that changed are imported anew there."""
        return attrs.evolve(self, processes=self.processes or 1)

    def run(self, last_words: LastWords) -> Outcome:
        """Lint all launches. Raises ``RuleError`` or ``OptionError`` once for what would be wrong with every launch."""
        notes: list[str] = []
        configs: list[LintConfig] = []
        asked: list[LintJob] = []
        found = Configurations()
        failures: list[Failure] = []
        for target, is_named in lint_targets(self.paths, found, notes, failures):
            config = found.of(target.source).overridden(_codes(self.select), _codes(self.ignore), self.fail_on)
            _check_selection(config)
            job = LintJob(
                target=target,
                only=self.launch,
                is_named=is_named,
                machine=self.machine,
                overrides=self.overrides,
                trace_twice=self.trace_twice or None,
            )
            configs.append(config)
            asked.append(job.configured(config))
        answers = _answers(asked, self.processes, self.timeout_s, lambda failure: last_words(failure, notes))
        reports: list[LintReport] = []
        of_report: list[int] = []
        for (number, _), answer in sorted(answers.items(), key=lambda item: item[0]):
            if isinstance(answer, Found):
                notes += answer.notes
            elif isinstance(answer, Failure):
                failures.append(answer)
            else:
                reports.append(answer)
                notes += answer.notes
                of_report.append(number)
        kernels = [
            (asked[number].target.source, report.title.partition(":")[0])
            for number, report in zip(of_report, reports, strict=True)
        ]
        told = tuple(
            configs[number].apply(report, asked[number].target.source)
            for number, report in zip(of_report, with_other_ways(settle_unused(reports), kernels), strict=True)
        )
        failed = any(report.at_least(configs[n].fail_on) for n, report in zip(of_report, told, strict=True))
        return Outcome(told, tuple(failures), tuple(notes), failed)


def _check_selection(config: LintConfig) -> None:
    """Raise ``RuleError`` or ``OptionError`` once for what would be wrong with every launch."""
    select_rules(config.select, config.ignore, RULES)
    option_values(config.options, RULES)


def _codes(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(code.strip() for text in texts for code in text.split(",") if code.strip())


def _answers(
    asked: Sequence[LintJob], processes: int | None, timeout_s: float, last_words: Callable[[Failure], None]
) -> Mapping[Key, Answer]:
    """The answers to all jobs: in this process if that was asked for, or if there is one launch only."""
    if processes == 0:
        done = [_here(job, None, "all", last_words) for job in asked]
        return {(number, n): answer for number, answers in enumerate(done) for (_, n), answer in answers.items()}
    if processes is not None or len(asked) != 1:
        with bar(len(asked), "linting") as progress:
            return run_jobs(asked, processes=processes or available_cores(), timeout_s=timeout_s, progress=progress)
    (job,) = asked
    with stages() as tell:
        tell("linting")
        answers = _here(job, timeout_s, "only", last_words)
    found = answers.get((0, -1))
    if not isinstance(found, Found) or len(answers) == 2 or not found.launches:
        return answers
    several = [attrs.evolve(job, launch=launch) for launch in found.launches]
    with bar(len(several), "linting") as progress:
        done_apart = run_jobs(several, processes=available_cores(), timeout_s=timeout_s, progress=progress)
    return {(0, -1): found, **{(0, launch): answer for (launch, _), answer in done_apart.items()}}


def _here(
    job: LintJob, timeout_s: float | None, share: Share, last_words: Callable[[Failure], None]
) -> dict[Key, Answer]:
    """A job done in this process."""
    answers: list[Answer] = []
    perform(job, answers.append, timeout_s=timeout_s, share=share, last_words=last_words)
    first = -1 if isinstance(answers[0], Found) else 0
    return {(0, first + n): answer for n, answer in enumerate(answers)}
