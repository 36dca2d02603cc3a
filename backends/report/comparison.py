"""What changed between two kernels, or two versions of one: makespan and peak, and the lines to blame.

Both sides are sums over source lines: a makespan over the parts of its critical chain, a peak over its holders. So is
their difference, exactly.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import itemgetter

import attrs

from ...ir.forms.text import quote
from ...ir.source.digests import lines_at
from ...ir.source.location import Location
from ...machine.units import format_ps
from ...scheduler.result.schedule import Schedule
from .data import ReportData
from .edits import Edit, find_edits, rewritten
from .markup import shown, table
from .paths import PagePaths

__all__ = ["Blame", "blame_makespan", "blame_peak", "compared_schedules", "comparison", "comparison_lines"]

_LINES_SHOWN = 25
_LINES_TOLD = 3


@attrs.frozen
class Blame:
    """A source line on both sides: what it adds up to ``before`` and ``after`` (picoseconds, or bytes). Lines are the
    same where function and text are, wherever they have moved to, and where one was edited into the other (``was`` is
    its earlier text); ``location`` is the place in the later kernel if it is there, ``text`` what stands there. Without
    a location: what belongs to no line, named by ``text``."""

    location: Location | None
    text: str
    before: int
    after: int
    was: str = ""

    @property
    def change(self) -> int:
        return self.after - self.before


def compared_schedules(data: ReportData, against: ReportData) -> tuple[Schedule, Schedule] | None:
    """The schedules that are compared, (before, after): both of the policy that is best for the later kernel, or of the
    best policy of each where the earlier one has none of that. None where one of them has no schedule."""
    after = data.best
    if after is None or against.best is None:
        return None
    same = [r.schedule for r in against.policies if r.policy == after.policy and r.schedule is not None]
    return (same[0] if same else against.best), after


def blame_makespan(before: Schedule, after: Schedule, edits: Iterable[Edit] = ()) -> list[Blame]:
    """By line its time on the critical chain: edited lines first, then by the size of the change. The changes sum to
    the difference of the makespans."""

    def parts(schedule: Schedule) -> Iterable[tuple[Location | None, str, int]]:
        for part in schedule.critical_chain().parts:
            place = schedule.graph[part.node].location if part.node is not None else None
            yield place, part.engine, part.duration_ps

    return _blame(parts(before), parts(after), rewritten(edits))


def blame_peak(before: ReportData, after: ReportData, edits: Iterable[Edit] = ()) -> list[Blame]:
    """By line the bytes it holds at the peak of the fullest rank, in the same order. The changes sum to the difference
    of the peaks."""

    def parts(data: ReportData) -> Iterable[tuple[Location | None, str, int]]:
        holders = data.liveness.peak_holders()
        for holder in holders:
            yield holder.location, "unknown line", holder.held_bytes
        rest = data.liveness.peak_bytes - sum(holder.held_bytes for holder in holders)
        if rest:
            yield None, "between allocations", rest

    return _blame(parts(before), parts(after), rewritten(edits))


def _blame(
    before: Iterable[tuple[Location | None, str, int]],
    after: Iterable[tuple[Location | None, str, int]],
    later_text: Mapping[str, str],
) -> list[Blame]:
    sums: dict[tuple[str, str], list[int]] = {}
    places: dict[tuple[str, str], tuple[Location | None, str]] = {}
    earlier_text: dict[tuple[str, str], str] = {}
    for side, parts in enumerate((before, after)):
        keys: dict[tuple[Location | None, str], tuple[str, str]] = {}
        for place, words, amount in parts:
            if (place, words) not in keys:
                text = was = _text(place) if place is not None else words
                if side == 0 and place is not None:
                    text = later_text.get(was, was)
                key = ("", words) if place is None else (place.function, text or place.short)
                keys[place, words] = key
                places[key] = (place, text)
                if text != was:
                    earlier_text[key] = was
            sums.setdefault(keys[place, words], [0, 0])[side] += amount
    found = [
        Blame(*places[key], before=old, after=new, was=earlier_text.get(key, "")) for key, (old, new) in sums.items()
    ]
    return sorted(found, key=lambda one: (not one.was, -abs(one.change), -one.after, one.text))


def _text(place: Location) -> str:
    lines = lines_at(place)
    return lines[place.line - 1].strip() if 0 < place.line <= len(lines) else ""


def comparison_lines(data: ReportData, against: ReportData) -> Iterator[str]:
    """The comparison in a few lines of text: the edits, then both totals, each with the lines to blame most and the sum
    of the others, so that they add up."""
    yield f"against   {quote(against.title)} on {quote(against.machine)}"
    edits = find_edits(against.sources, data.sources)
    if edits:
        yield f"          {edits_text(edits)}"
        yield from (f"            {quote(line)}" for line in _edit_lines(edits))
    compared = compared_schedules(data, against)
    if compared is not None:
        before, after = compared
        change = _signed(after.makespan_ps - before.makespan_ps, format_ps)
        sides = f"{format_ps(before.makespan_ps)} -> {format_ps(after.makespan_ps)}"
        yield f"          makespan {sides}, {change} ({after.policy})"
        yield from _blamed(blame_makespan(before, after, edits), format_ps)
    peaks = (against.liveness.peak_bytes, data.liveness.peak_bytes)
    yield f"          peak {_bytes(peaks[0])} -> {_bytes(peaks[1])}, {_signed(peaks[1] - peaks[0], _bytes)}"
    yield from _blamed(blame_peak(against, data, edits), _bytes)


def edits_text(edits: Iterable[Edit]) -> str:
    """``2 lines edited, 1 new, 1 gone``."""
    counts = Counter(edit.kind for edit in edits)
    said = [f"{counts[kind]:,} {kind}" for kind in ("edited", "new", "gone") if counts[kind]]
    return f"lines of the source: {', '.join(said)}"


def _edit_lines(edits: list[Edit]) -> Iterator[str]:
    for edit in edits[:_LINES_TOLD]:
        place = f"{os.path.basename(edit.file)}:{edit.line}"
        if edit.was is not None and edit.now is not None:
            yield f"{place}  {edit.was}  =>  {edit.now}"
        else:
            yield f"{place}  {edit.kind}: {edit.now or edit.was}"
    if len(edits) > _LINES_TOLD:
        yield f"+ {len(edits) - _LINES_TOLD:,} more"


def _blamed(blames: Iterable[Blame], say: Callable[[int], str]) -> Iterator[str]:
    changed = [blame for blame in blames if blame.change]
    rest = changed[_LINES_TOLD:]
    for one in changed[:_LINES_TOLD]:
        place = f"{quote(one.location.short)}  {quote(one.text)}" if one.location else quote(one.text)
        edited = "  (edited)" if one.was else ""
        yield f"            {_signed(one.change, say)}: {place}{edited}"
    if rest:
        yield f"            {_signed(sum(one.change for one in rest), say)}: + {len(rest):,} more"


# --- the section ------------------------------------------------------------------------------------------------------


def comparison(data: ReportData, against: ReportData, paths: PagePaths) -> str:
    """The section as HTML: both sides in numbers, then the lines to blame for the makespan and for the peak."""
    parts = [f"<p>Against <b>{shown(against.title)}</b> on <code>{shown(against.machine)}</code>.</p>"]
    parts.append(table(["", "before", "after", "change"], _sides(data, against), numbers=3))
    edits = find_edits(against.sources, data.sources)
    if edits:
        parts += [f"<h3>{edits_text(edits).capitalize()}</h3>", _edit_table(edits)]
    compared = compared_schedules(data, against)
    if compared is not None:
        before, after = compared
        policies = before.policy if before.policy == after.policy else f"{before.policy}, then {after.policy}"
        parts.append(f"<h3>Makespan by line of the critical chain ({shown(policies)})</h3>")
        parts.append(_blame_table(blame_makespan(before, after, edits), _time))
    parts.append("<h3>Peak by line that holds it</h3>")
    parts.append(_blame_table(blame_peak(against, data, edits), _bytes))
    parts.append(_findings(data, against, paths))
    return "".join(parts)


def _sides(data: ReportData, against: ReportData) -> list[list[str]]:
    rows = []
    old = {row.policy: row.schedule for row in against.policies}
    for row in data.policies:
        before = old.get(row.policy)
        sides = [before.makespan_ps if before else None, row.schedule.makespan_ps if row.schedule else None]
        rows.append([f"makespan, {shown(row.policy)}", *_change(sides[0], sides[1], _time, "no schedule")])
    rows.append(["lower bound", *_change(against.bound_ps, data.bound_ps, _time)])
    rows.append(["scratch peak", *_change(against.liveness.peak_bytes, data.liveness.peak_bytes, _bytes)])
    counts = (against.graph.summary(), data.graph.summary())
    rows.append(["nodes", *_change(len(against.graph), len(data.graph), _count)])
    for name in sorted({*counts[0], *counts[1]}):
        pair = (counts[0].get(name, 0), counts[1].get(name, 0))
        if pair[0] != pair[1]:
            rows.append([f"<code>{shown(name)}</code>", *_change(*pair, _count)])
    return rows


def _change(before: int | None, after: int | None, say: Callable[[int], str], missing: str = "") -> list[str]:
    if before is None or after is None:
        return [missing if one is None else say(one) for one in (before, after)] + [""]
    share = f" ({100 * (after - before) / before:+.1f} %)" if before and after != before else ""
    return [say(before), say(after), f"{_signed(after - before, say)}{share}"]


def _signed(change: int, say: Callable[[int], str]) -> str:
    return f"{'+' if change > 0 else '-'}{say(abs(change))}" if change else "same"


def _edit_table(edits: list[Edit]) -> str:
    rows = [
        [
            f"{shown(os.path.basename(edit.file))}:{edit.line}",
            f"<code>{shown(edit.was)}</code>" if edit.was is not None else "new",
            f"<code>{shown(edit.now)}</code>" if edit.now is not None else "gone",
        ]
        for edit in edits[:_LINES_SHOWN]
    ]
    if len(edits) > _LINES_SHOWN:
        rows.append([f"+ {len(edits) - _LINES_SHOWN:,} more", "", ""])
    return table(["where", "before", "after"], rows, numbers=0)


def _blame_table(blames: list[Blame], say: Callable[[int], str]) -> str:
    total = sum(one.change for one in blames)
    changed = [one for one in blames if one.change]
    if not changed:
        return '<p class="mute">No line changed.</p>'
    rows = [_blame_row(one, say) for one in changed[:_LINES_SHOWN]]
    rest = changed[_LINES_SHOWN:]
    if rest:
        sums = [sum(map(itemgetter(at), ((b.before, b.after) for b in rest))) for at in (0, 1)]
        rows.append([f"+ {len(rest):,} more", "", *_change(sums[0], sums[1], say)])
    rows.append(["<b>in all</b>", "", *_change(sum(b.before for b in blames), sum(b.after for b in blames), say)])
    assert total == sum(b.after for b in blames) - sum(b.before for b in blames)
    return table(["where", "line", "before", "after", "change"], rows, numbers=3)


def _blame_row(blame: Blame, say: Callable[[int], str]) -> list[str]:
    place = shown(blame.location.short) if blame.location else shown(blame.text)
    text = f"<code>{shown(blame.text)}</code>" if blame.location else ""
    if blame.was:
        text += f" <small>was <code>{shown(blame.was)}</code></small>"
    return [place, text, *_change(blame.before, blame.after, say)]


def _findings(data: ReportData, against: ReportData, paths: PagePaths) -> str:
    old = {(d.code, d.message) for d in against.lint}
    new = {(d.code, d.message) for d in data.lint}
    came, went = sorted(new - old), sorted(old - new)
    if not came and not went:
        return ""
    items = [f"<li><b>new:</b> {shown(code)} {shown(paths.in_text(message))}</li>" for code, message in came]
    items += [f"<li><b>gone:</b> {shown(code)} {shown(paths.in_text(message))}</li>" for code, message in went]
    return f"<h3>Findings</h3><ul>{''.join(items)}</ul>"


def _time(ps: int) -> str:
    return format_ps(ps)


def _bytes(nbytes: int) -> str:
    return f"{nbytes:,} B"


def _count(count: int) -> str:
    return f"{count:,}"
