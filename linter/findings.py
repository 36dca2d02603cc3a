"""What the linter reports: findings with their places, and the report that holds them."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Iterator
from typing import Literal

import attrs

from ..ir.branches import Branches
from ..ir.errors import KernscopeError
from ..ir.forms.counts import plural
from ..ir.forms.html_table import html_table
from ..ir.forms.printable import printable
from ..ir.source.location import Location
from .edits import Fix
from .excerpt import excerpts, pointer

__all__ = ["SEVERITIES", "Diagnostic", "Failure", "LintReport", "Place", "Severity"]

Severity = Literal["error", "warning", "info"]
#: From the most to the least severe.
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")

#: How many of the calls that led to a line are shown.
_CALLS_SHOWN = 4


@attrs.frozen
class Place:
    """A source line of a finding, and the part it plays: ``made here``, ``read here``, ..."""

    role: str
    location: Location


@attrs.frozen
class Diagnostic:
    """One finding of one rule.

    ``message`` is one line with the values; ``locations`` begins with the place at fault; ``nodes`` are the ids of all
    nodes that do it, in ascending order (a fault in a loop is one finding with many nodes); ``help`` says what to do;
    ``notes`` are more lines that an error says. ``fixes`` are the changes of the source that the help names, where they
    are concrete: each alone answers the finding. ``str()`` is the full text form with source excerpts.
    """

    code: str
    name: str
    severity: Severity
    message: str
    locations: tuple[Place, ...] = ()
    nodes: tuple[int, ...] = ()
    help: str = ""
    fixes: tuple[Fix, ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def of_error(cls, error: KernscopeError) -> Diagnostic:
        """An error as a finding: its code, places and help."""
        places = tuple(Place(role, location) for role, location in error.places)
        message, *notes = error.message.split("\n")
        return cls(error.code, error.title(), "error", message, places, help=error.help, notes=tuple(notes))

    @property
    def location(self) -> Location | None:
        """The place at fault; None where no source line is known."""
        return self.locations[0].location if self.locations else None

    def __str__(self) -> str:
        lines = [f"{self.severity}[{self.code}]: {printable(self.message)}"]
        lines += excerpts([(place.role, place.location) for place in self.locations])
        callers = self.location.stack if self.location else ()
        lines += [f"  = called from {pointer(c)} in {printable(c.function)}" for c in callers[:_CALLS_SHOWN]]
        more = len(callers) - _CALLS_SHOWN + (self.location.callers_left_out if self.location else 0)
        if more > 0:
            lines.append(f"  = ... and {plural(more, 'more call')}")
        lines += [f"  = {printable(note)}" for note in self.notes]
        if self.help:
            lines.append(f"  = help: {printable(self.help)}")
        return "\n".join(lines)

    @property
    def text(self) -> str:
        """The message with all that is said beside it, in printable lines, for formats that have one text a finding."""
        said = [self.message, *self.notes, *([f"help: {self.help}"] if self.help else [])]
        return "\n".join(map(printable, said))


@attrs.frozen
class Failure:
    """A file, kernel or launch (``title``) that could not be linted, and the error that says why; ``debug`` is the
    error's traceback, where there is one."""

    title: str
    diagnostic: Diagnostic
    debug: str = ""

    @classmethod
    def of(cls, title: str, error: KernscopeError) -> Failure:
        """What an error says of a title."""
        debug = "".join(traceback.format_exception(error)) if error.__traceback__ is not None else ""
        return cls(title, Diagnostic.of_error(error), debug)

    @property
    def report(self) -> LintReport:
        """The error as the one finding of a report, for what takes findings."""
        return LintReport(self.title, (self.diagnostic,))

    def __str__(self) -> str:
        return f"{self.diagnostic}\n\n{printable(self.title)}: not linted"


def in_order(found: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Findings in the order of a report."""
    return tuple(sorted(found, key=_order))


def _order(diagnostic: Diagnostic) -> tuple[int, str, int, int, str, tuple[int, ...], str]:
    place = diagnostic.location
    where = ("", 0, 0) if place is None else (place.file, place.line, place.column)
    return (SEVERITIES.index(diagnostic.severity), *where, diagnostic.code, diagnostic.nodes[:1], diagnostic.message)


@attrs.frozen(repr=False)
class LintReport:
    """The findings of one graph, in one fixed order: by severity, file, line, column, code, then first node.

    ``title`` says what was linted: the kernel's name, unless another was given. ``suppressed`` are the findings that
    comments in the source silence; they count for nothing. ``notes`` say what was left open. ``branches`` are those
    that the kernel took (None: not watched).
    """

    title: str
    diagnostics: tuple[Diagnostic, ...]
    suppressed: tuple[Diagnostic, ...] = ()
    notes: tuple[str, ...] = ()
    branches: Branches | None = attrs.field(default=None, eq=False)

    def __repr__(self) -> str:
        return f"<LintReport {self.summary}>"

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(self.diagnostics)

    def __len__(self) -> int:
        return len(self.diagnostics)

    def __bool__(self) -> bool:
        return True

    @property
    def ok(self) -> bool:
        """Whether there is no finding at error level."""
        return not self.at_least("error")

    @property
    def counts(self) -> dict[Severity, int]:
        """How many findings there are of each severity."""
        return {severity: sum(d.severity == severity for d in self.diagnostics) for severity in SEVERITIES}

    def at_least(self, severity: Severity) -> tuple[Diagnostic, ...]:
        """The findings of this severity or a graver one."""
        grave = SEVERITIES[: SEVERITIES.index(severity) + 1]
        return tuple(d for d in self.diagnostics if d.severity in grave)

    def of(self, code: str) -> tuple[Diagnostic, ...]:
        """The findings of one rule."""
        return tuple(d for d in self.diagnostics if d.code == code)

    @property
    def summary(self) -> str:
        """One line: ``flash: 1 error, 2 infos``, or ``flash: no findings``."""
        parts = [plural(n, severity) for severity, n in self.counts.items() if n]
        return f"{printable(self.title)}: {', '.join(parts) or 'no findings'}"

    def __str__(self) -> str:
        return "\n\n".join([*map(str, self.diagnostics), self.summary])

    def _repr_html_(self) -> str:
        rows = [
            (d.code, d.severity, pointer(d.location) if d.location else "", d.message, d.help) for d in self.diagnostics
        ]
        head = ("code", "severity", "where", "message", "help")
        return html_table(self.summary, (tuple(map(printable, row)) for row in rows), head=head)
