"""Which way a kernel's branches went, on a report page: a mark at the line, and a table of all."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from ...ir.branches import Branch, Branches
from ...ir.forms.counts import plural
from .data import ReportData
from .markup import shown, table
from .paths import PagePaths

__all__ = ["branches_section", "branches_table", "marks"]

#: What says nothing at its line: what only guards, and loops that ran as often as they always do.
_UNMARKED = ("check",)


@attrs.frozen
class _Elsewhere:
    """What other launches of the kernel did at its branches, by launch."""

    by_launch: Mapping[str, Branches]

    def of(self, branch: Branch) -> list[tuple[str, Branch | None]]:
        """The launches that went other ways at a branch, and what they did there; None: they did not come by."""
        found: list[tuple[str, Branch | None]] = []
        for launch, its in self.by_launch.items():
            there = next((row for row in its.at(branch.place.file, branch.place.line) if row.is_at(branch)), None)
            if there is None or there.labels != branch.labels:
                found.append((launch, there))
        return found


def marks(data: ReportData) -> dict[tuple[str, int], str]:
    """By file and line the marks of the branches there, as HTML: which way each went, more strongly where another
    launch went another way."""
    if data.branches is None:
        return {}
    elsewhere = _Elsewhere(data.other_launches)
    found: dict[tuple[str, int], str] = {}
    for branch in data.branches:
        if branch.kind in _UNMARKED:
            continue
        others = elsewhere.of(branch)
        said = [f"{branch.kind} {branch.text}: {branch.took}", "what this trace did: its graph has no other way"]
        said += [f"launch {launch}: {'does not come here' if row is None else row.took}" for launch, row in others]
        title = "&#10;".join(map(shown, said))
        place = (branch.place.file, branch.place.line)
        text = f'<span class="way{" other" if others else ""}" title="{title}">{shown(branch.mark)}</span>'
        found[place] = found.get(place, "") + text
    return {place: f'<span class="ways">{text}</span>' for place, text in found.items()}


def branches_section(data: ReportData, paths: PagePaths) -> str:
    """All branches: where, what was asked, which way, what decides it, and what other launches did."""
    taken = data.branches
    if taken is None:
        return (
            '<p class="mute">Not known: this graph came without them. A report of the kernel itself '
            "(<code>kernscope report FILE.py</code>) has them.</p>"
        )
    said = (
        "Python took these branches while the kernel was traced. The graph, its times and its findings are those of "
        "the ways taken; what another launch, or another rank, does instead is in none of them."
    )
    notes = [f"Not seen, as the source could not be read: {', '.join(taken.unseen)}."] if taken.unseen else []
    looked = list(data.other_launches)
    if looked or data.not_looked_at:
        notes.append(f"Compared with {plural(len(looked), 'other launch', 'other launches')}.")
    if data.not_looked_at:
        notes.append(f"Too large, or refused, to be compared: {', '.join(data.not_looked_at)}.")
    text = f'<p class="mute">{said}{"".join(f" {shown(note)}" for note in notes)}</p>'
    if not len(taken):
        return text + '<p class="good">No branches.</p>'
    asked = [row for row in taken if row.kind != "check"]
    checks = [row for row in taken if row.kind == "check"]
    text += branches_table(asked, data, paths) if asked else ""
    if checks:
        summary = f"{plural(len(checks), 'check')} that only raise"
        text += f"<details><summary>{summary}</summary>{branches_table(checks, data, paths)}</details>"
    return text


def branches_table(rows: list[Branch], data: ReportData, paths: PagePaths) -> str:
    """Branches as a table."""
    elsewhere = _Elsewhere(data.other_launches)
    several = len({row.place.file for row in rows}) > 1
    apart = {row: elsewhere.of(row) for row in rows}
    any_differs = any(apart.values())
    cells = []
    for row in rows:
        others = [
            f"<b>{shown(launch)}</b>: {'not reached' if its is None else shown(its.took)}" for launch, its in apart[row]
        ]
        cells.append(
            [
                shown(paths.in_text(row.place.short) if several else str(row.place.line)),
                f"{shown(row.kind)} <code>{shown(row.text)}</code>",
                shown(row.took),
                shown(", ".join(row.depends)) or "nothing that a launch sets",
                *(["<br>".join(others)] if any_differs else []),
            ]
        )
    head = ["line", "branch", "went", "decided by", *(["another launch"] if any_differs else [])]
    return f'<div class="taken">{table(head, cells, numbers=0)}</div>'
