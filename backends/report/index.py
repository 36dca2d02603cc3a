"""The index of the pages of many launches: one table, what matters first. As a page it has no script at all."""

from __future__ import annotations

import os
import string
from collections.abc import Iterator, Sequence
from importlib import resources
from urllib.parse import quote as url_quote

import attrs

from ...ir.forms.counts import plural
from ...ir.output import write_output
from ...linter.findings import Failure
from ...machine.units import format_ps
from .data import ReportData
from .markup import share, shown
from .paths import PagePaths

__all__ = ["IndexRow", "by_urgency", "summary", "write_index"]


@attrs.frozen(kw_only=True)
class IndexRow:
    """What the index says of one launch, in numbers that can be sent between processes.

    ``title`` names its kernel and itself, ``source`` the file they are in. ``page`` is where its page lies, from the
    index on, with ``/``. ``makespan_ps`` is None where there is no schedule, ``verdict`` says why. ``numbers`` is
    ``"agree"``, ``"differ"``, ``"failed"`` (the reference is at fault) or empty (not compared). ``said`` is the first
    line of the gravest finding.
    """

    title: str
    source: str
    page: str
    machine: str
    nodes: int
    ranks: int
    makespan_ps: int | None
    bound_ps: int
    policy: str
    verdict: str
    peak_bytes: int
    budget_bytes: int
    numbers: str
    errors: int
    warnings: int
    infos: int
    said: str

    @classmethod
    def of(cls, data: ReportData, *, source: str, page: str) -> IndexRow:
        """The row of a report's data."""
        best, counts = data.best, data.lint.counts
        compared = "agree" if all(row.ok for row in data.numbers) else "differ"
        gravest = next(iter(data.lint), None)
        return cls(
            title=data.title,
            source=source,
            page=page,
            machine=data.machine,
            nodes=len(data.graph),
            ranks=data.graph.ranks,
            makespan_ps=None if best is None else best.makespan_ps,
            bound_ps=data.bound_ps,
            policy="" if best is None else best.policy,
            verdict=data.verdict,
            peak_bytes=data.liveness.peak_bytes,
            budget_bytes=data.liveness.budget_bytes,
            numbers="failed" if data.numbers_failed else compared if data.numbers else "",
            errors=counts["error"],
            warnings=counts["warning"],
            infos=counts["info"],
            said="" if gravest is None else f"{gravest.code} {gravest.message.splitlines()[0]}",
        )

    @property
    def above_ps(self) -> int:
        """How far the makespan is above the bound, in picoseconds."""
        return 0 if self.makespan_ps is None else self.makespan_ps - self.bound_ps

    @property
    def is_wrong(self) -> bool:
        """Whether it has an error, numbers that differ or cannot be had, or no schedule."""
        return bool(self.errors) or self.numbers in ("differ", "failed") or self.makespan_ps is None

    @property
    def findings(self) -> str:
        """How many findings there are, in words."""
        counted = {"error": self.errors, "warning": self.warnings, "info": self.infos}
        return ", ".join(plural(n, severity) for severity, n in counted.items() if n) or "no findings"


def by_urgency(rows: Sequence[IndexRow]) -> list[IndexRow]:
    """What is wrong first, then what is furthest above its bound in time, then the longest."""
    return sorted(
        rows, key=lambda row: (not row.is_wrong, -row.above_ps, -(row.makespan_ps or 0), row.title, row.source)
    )


def summary(rows: Sequence[IndexRow], failures: Sequence[Failure]) -> str:
    """Both counted, in words."""
    wrong = sum(row.is_wrong for row in rows)
    parts = [plural(len(rows), "launch", "launches")]
    parts += [f"{plural(len(failures), 'failure')} to report"] if failures else []
    parts += [f"{wrong} with something wrong"] if wrong else ["nothing wrong"] if rows and not failures else []
    warned = sum(row.warnings for row in rows)
    return ", ".join([*parts, *([plural(warned, "warning")] if warned else [])])


def write_index(
    path: str | os.PathLike[str], title: str, rows: Sequence[IndexRow], failures: Sequence[Failure], version: str = ""
) -> None:
    """Write the index; what could not be reported stands at its top. Raises ``OutputError``."""
    files = resources.files(__package__)
    style = [files.joinpath(name).read_text(encoding="utf-8") for name in ("tokens.css", "index.css")]
    body = [_failed(failure) for failure in failures] + [_row(row) for row in by_urgency(rows)]
    text = string.Template(files.joinpath("index.html").read_text(encoding="utf-8")).substitute(
        title=shown(title),
        summary=shown(summary(rows, failures)),
        generator=shown(f"kernscope {version}".strip()),
        style="\n".join(style),
        rows="\n".join(body),
    )
    write_output(path, text.encode("utf-8", errors="replace"))


def _failed(failure: Failure) -> str:
    places = [place for place in [failure.diagnostic.location] if place is not None]
    said = PagePaths.of(place.file for place in places).in_note(failure.diagnostic.message.splitlines()[0])
    return (
        f'<tr class="trouble"><th scope="row">{shown(failure.title)}</th>{"<td class=none></td>" * 4}'
        f'<td class="said"><span class="bad">no report</span><small>{shown(said)}</small></td></tr>'
    )


def _row(row: IndexRow) -> str:
    kind = "trouble" if row.is_wrong else "warned" if row.warnings else ""
    ranks = f", {plural(row.ranks, 'rank')}" if row.ranks > 1 else ""
    page = url_quote(row.page)
    head = (
        f'<th scope="row"><a href="{page}">{shown(row.title)}</a>'
        f"<small>{shown(row.source)}</small>"
        f"<small>{shown(row.machine)}{ranks}, {plural(row.nodes, 'node')}</small></th>"
    )
    return f'<tr class="{kind}">{head}{"".join(_cells(row, page))}</tr>'


def _cells(row: IndexRow, page: str) -> Iterator[str]:
    if row.makespan_ps is None:
        yield f'<td data-head="Makespan" class="bad">{shown(row.verdict)}</td><td class="none"></td>'
    else:
        policy = f"<small>{shown(row.policy)}</small>"
        yield f'<td data-head="Makespan" class="num">{format_ps(row.makespan_ps)}{policy}</td>'
        ratio = f"{row.makespan_ps / row.bound_ps:.3f} x" if row.bound_ps else "no bound"
        note = f"<small>{ratio}</small>" if row.above_ps else '<small class="good">optimal</small>'
        yield f'<td data-head="Above the bound" class="num">{format_ps(row.above_ps)}{note}</td>'
    over = row.peak_bytes > row.budget_bytes
    width = min(100 * row.peak_bytes / max(row.budget_bytes, 1), 100)
    meter = f'<span class="meter{" over" if over else ""}"><i style="width:{width:.2f}%"></i></span>'
    yield (
        f'<td data-head="Scratch peak"><span{" class=bad" if over else ""}>{share(row.peak_bytes, row.budget_bytes)}'
        f"</span>{meter}</td>"
    )
    mood = {"agree": "good", "differ": "bad", "failed": "bad", "": "mute"}[row.numbers]
    words = {"agree": "agree", "differ": "DIFFER", "failed": "reference failed", "": "not compared"}[row.numbers]
    yield f'<td data-head="Numbers"><span class="{mood}">{words}</span></td>'
    mood = "bad" if row.errors else "warn" if row.warnings else "mute"
    counted = f'<a class="{mood}" href="{page}#findings">{row.findings}</a>' if row.said else row.findings
    said = f"<small>{shown(row.said)}</small>" if row.said else ""
    yield f'<td class="said"><span class="{mood}">{counted}</span>{said}</td>'
