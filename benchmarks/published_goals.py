"""What published times and predictions say together: errors, ratios between versions of a kernel, and which goals are
met."""

from __future__ import annotations

import csv
import itertools
import statistics
from collections.abc import Callable, Sequence

import attrs
from published_timings import FOLDER, Published, published

__all__ = ["Compared", "Goal", "Ratio", "goals", "ratios", "store", "stored"]

#: What counts as near, and from which difference on the faster has to be the faster.
NEAR, FAR = 0.25, 0.1


@attrs.frozen
class Compared:
    """A row and what is predicted for it, in nanoseconds; ``left_out_ns``: None where a machine has no other family, or
    nothing was fitted."""

    row: Published
    documented_ns: float
    fitted_ns: float
    left_out_ns: float | None

    def error(self, predicted: float) -> float:
        """0.1: ten percent too slow."""
        return predicted / self.row.ns - 1


@attrs.frozen
class Ratio:
    """Two versions of a kernel: how many times the first takes the second, published and predicted."""

    first: str
    second: str
    published: float
    predicted: float

    @property
    def near(self) -> bool:
        """Whether the prediction is within 25 %."""
        return abs(self.predicted / self.published - 1) <= NEAR

    @property
    def ordered(self) -> bool:
        """Whether the faster is the faster, where they differ by more than 10 %."""
        far = max(self.published, 1 / self.published) > 1 + FAR
        return not far or (self.predicted > 1) == (self.published > 1)


@attrs.frozen
class Goal:
    """A goal, what was reached, and what does not meet it, by name."""

    what: str
    wanted: str
    reached: str
    met: bool
    missed: tuple[str, ...] = ()


def ratios(found: Sequence[Compared], predicted: Callable[[Compared], float]) -> list[Ratio]:
    """All pairs of versions."""
    return [
        Ratio(a.row.id, b.row.id, a.row.ns / b.row.ns, predicted(a) / predicted(b))
        for a, b in itertools.combinations(found, 2)
        if a.row.versions and (a.row.machine, a.row.versions) == (b.row.machine, b.row.versions)
    ]


def _share(what: str, hits: Sequence[tuple[str, bool]], least: float) -> Goal:
    missed = tuple(name for name, hit in hits if not hit)
    reached = len(hits) - len(missed)
    return Goal(what, f"{100 * least:.0f} %", f"{reached} of {len(hits)}", reached >= least * len(hits), missed)


def goals(found: Sequence[Compared]) -> list[Goal]:
    """The four goals, two of them in two parts."""
    fitted = [(one.row.id, abs(one.error(one.fitted_ns))) for one in found]
    left = [(one.row.id, abs(one.error(one.left_out_ns))) for one in found if one.left_out_ns is not None]
    pairs = [(f"{p.first} / {p.second}", p) for p in ratios(found, lambda one: one.fitted_ns)]
    median = statistics.median(error for _, error in fitted)
    slow = [(one.row.id, one.error(one.documented_ns) <= FAR) for one in found]
    made = [
        _share("documented numbers only: at most 10 % slower than measured", slow, 1),
        Goal("fitted: median error", "10 %", f"{100 * median:.1f} %", median <= 0.1),
        _share("fitted: within 25 %", [(name, error <= NEAR) for name, error in fitted], 0.9),
    ]
    if left:
        made.append(_share("family left out of the fit: within 25 %", [(name, e <= NEAR) for name, e in left], 0.8))
    if pairs:
        made.append(_share("ratios of versions: within 25 %", [(name, pair.near) for name, pair in pairs], 0.9))
        made.append(_share("ratios of versions: the faster is", [(name, pair.ordered) for name, pair in pairs], 1))
    return made


def store(found: Sequence[Compared]) -> None:
    """Keep the predictions, for the documentation."""
    with (FOLDER / "predicted.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("id", "documented_ns", "fitted_ns", "left_out_ns"))
        for one in found:
            left = "" if one.left_out_ns is None else f"{one.left_out_ns:.0f}"
            writer.writerow((one.row.id, f"{one.documented_ns:.0f}", f"{one.fitted_ns:.0f}", left))


def stored() -> list[Compared]:
    """What was kept."""
    rows = {row.id: row for row in published()}
    with (FOLDER / "predicted.csv").open(encoding="utf-8", newline="") as file:
        return [
            Compared(
                rows[line["id"]],
                float(line["documented_ns"]),
                float(line["fitted_ns"]),
                float(line["left_out_ns"]) if line["left_out_ns"] else None,
            )
            for line in csv.DictReader(file)
        ]
