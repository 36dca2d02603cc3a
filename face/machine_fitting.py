"""Fitting a machine's numbers to measured times: a grid, refined around its best; and what the fit is worth, by leaving
each family of kernels out of it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

import attrs

from ..ir.arrays.frozen_map import FrozenMap
from ..ir.errors import OptionError
from ..ir.forms.counts import plural
from ..machine.description import Machine, machine_names

__all__ = [
    "HOST_US",
    "MOST_PARAMETERS",
    "FittedRow",
    "MachineFit",
    "Measured",
    "Parameter",
    "fit_machine",
    "with_values",
]

#: What stands for the time, in microseconds, that every measured time holds besides the machine's: no field of it.
HOST_US = "host_us"

#: More numbers than these fit anything, and say nothing.
MOST_PARAMETERS = 4
#: Rounds of the grid, its points along one parameter, and along two at once.
_ROUNDS, _POINTS, _JOINT = 4, 9, 5
#: A fitted number has so many digits: more are not known.
_DIGITS = 3


@attrs.frozen(eq=False)
class Measured:
    """A measured time: of which kernel or operation, of which family (those that are left out together), in
    nanoseconds, and what a machine predicts for it, in nanoseconds."""

    name: str
    family: str
    ns: float
    predict: Callable[[Machine], float]


@attrs.frozen
class Parameter:
    """A field of the machine, or ``host_us``, and the range that its value may lie in, both ends included."""

    path: str
    low: Fraction
    high: Fraction

    def __attrs_post_init__(self) -> None:
        if not self.low < self.high:
            raise OptionError(
                f"--param {self.path}: from {self.low} to {self.high}",
                help=f"write FIELD=LOW:HIGH with LOW below HIGH, such as {self.path}=0:1000",
            )


@attrs.frozen
class FittedRow:
    """A measured time in nanoseconds, and what is predicted for it: as the machine was, fitted, and fitted without the
    rows of its family (None: there is no other family)."""

    name: str
    family: str
    ns: float
    before_ns: float
    after_ns: float
    left_out_ns: float | None


@attrs.frozen
class MachineFit:
    """``machine`` with the fitted ``values`` (by field, as ``--set`` takes them), every row, and by family the values
    that are fitted ``without`` its rows (empty where there is one family)."""

    machine: Machine
    values: Mapping[str, str]
    rows: tuple[FittedRow, ...]
    without: Mapping[str, Mapping[str, str]] = FrozenMap({})

    def __str__(self) -> str:
        """A table: each row's measured time, and the errors in percent."""
        width = max(len(row.name) for row in self.rows)
        lines = [f"{'':{width}}  {'measured':>14}  {'before':>8}  {'after':>8}  {'left out':>8}"]
        for row in self.rows:
            left = "" if row.left_out_ns is None else _percent(row.left_out_ns, row.ns)
            shown = f"{_percent(row.before_ns, row.ns):>8}  {_percent(row.after_ns, row.ns):>8}  {left:>8}"
            lines.append(f"{row.name:{width}}  {row.ns:>11,.0f} ns  {shown}")
        lines.append("")
        for name, chosen in (("before", "before_ns"), ("after", "after_ns"), ("family left out", "left_out_ns")):
            errors = [
                abs(predicted / row.ns - 1) for row in self.rows if (predicted := getattr(row, chosen)) is not None
            ]
            if errors:
                within = sum(error <= 0.25 for error in errors)
                lines.append(
                    f"{name:16} median error {100 * sorted(errors)[len(errors) // 2]:.0f} %, "
                    f"{within} of {plural(len(errors), 'row')} within 25 %"
                )
        lines += [f"fitted           {path} = {value}" for path, value in self.values.items()]
        return "\n".join(lines)

    def to_toml(self, base: Machine, comments: Mapping[str, str]) -> str:
        """A machine file: on the preset that was fitted, with the fitted fields alone; of another machine all that it
        says, with ``comments`` by path."""
        names = ", ".join(row.name for row in self.rows)
        values = {path: value for path, value in self.values.items() if path != HOST_US}
        fitted = {self.machine.full_path(path): f"fitted to {names}" for path in values}
        name = f"{base.name}-fitted"
        if base.name not in machine_names():
            return attrs.evolve(self.machine, name=name).to_toml({**comments, **fitted})
        lines = [f'name = "{name}"', f'base = "{base.name}"']
        for path, value in values.items():
            section, _, key = self.machine.full_path(path).rpartition(".")
            told = f"{key} = {value}  # {fitted[self.machine.full_path(path)]}"
            if section:
                lines += ["", f"[{section}]", told]
            else:
                lines.insert(2, told)
        return "\n".join(lines) + "\n"


def with_values(machine: Machine, values: Mapping[str, str]) -> tuple[Machine, float]:
    """The machine with fitted values in place, and what they say that a measured time holds besides, in
    microseconds."""
    fields = {path: value for path, value in values.items() if path != HOST_US}
    changed = machine.override({**fields, "name": machine.name}) if fields else machine
    return changed, float(values.get(HOST_US, 0))


def _percent(predicted: float, measured: float) -> str:
    return f"{100 * (predicted / measured - 1):+.0f} %"


def fit_machine(
    machine: Machine, parameters: Sequence[Parameter], rows: Sequence[Measured], *, leave_out: bool = True
) -> MachineFit:
    """The values of the parameters with the least squares of the errors' logarithms: what is twice too slow is as wrong
    as what is twice too fast. Deterministic.

    Raises ``OptionError`` for no rows, no parameters or more than four, and for a field that the machine does not have.
    """
    if not rows or not 1 <= len(parameters) <= MOST_PARAMETERS:
        raise OptionError(
            f"{plural(len(parameters), 'parameter')} and {plural(len(rows), 'measured time')}",
            help=f"give 1 to {MOST_PARAMETERS} parameters, and at least one time",
        )
    known: dict[tuple[int, Machine], float] = {}

    def predicted(number: int, values: tuple[str, ...]) -> float:
        changed, host_us = with_values(machine, dict(zip((p.path for p in parameters), values, strict=True)))
        if (number, changed) not in known:
            known[number, changed] = rows[number].predict(changed)
        return known[number, changed] + host_us * 1000

    def cost(values: tuple[str, ...], chosen: Sequence[int]) -> float:
        return sum(math.log(predicted(number, values) / rows[number].ns) ** 2 for number in chosen)

    everything = range(len(rows))
    best = _search(parameters, lambda values: cost(values, everything))
    families = sorted({row.family for row in rows})
    others: dict[str, tuple[str, ...]] = {}
    for family in families if leave_out and len(families) > 1 else ():
        rest = [number for number in everything if rows[number].family != family]
        others[family] = _search(parameters, lambda values, rest=rest: cost(values, rest))  # type: ignore[misc]
    paths = [p.path for p in parameters]
    found = dict(zip(paths, best, strict=True))
    return MachineFit(
        with_values(machine, found)[0],
        FrozenMap(found),
        tuple(
            FittedRow(
                row.name,
                row.family,
                row.ns,
                row.predict(machine),
                predicted(number, best),
                predicted(number, others[row.family]) if row.family in others else None,
            )
            for number, row in enumerate(rows)
        ),
        FrozenMap({family: FrozenMap(dict(zip(paths, values, strict=True))) for family, values in others.items()}),
    )


def _search(parameters: Sequence[Parameter], cost: Callable[[tuple[str, ...]], float]) -> tuple[str, ...]:
    """Grids, each round a third as wide around the best: along every parameter, then along every two at once, as they
    trade off."""
    spans = [(p.low, p.high) for p in parameters]
    best = tuple(_digits((low + high) / 2) for low, high in spans)
    least = cost(best)
    for _ in range(_ROUNDS):
        for together in (*itertools.combinations(range(len(spans)), 1), *itertools.combinations(range(len(spans)), 2)):
            points = _POINTS if len(together) == 1 else _JOINT
            grids = [[_digits(a + (b - a) * i / (points - 1)) for i in range(points)] for a, b in spans]
            for values in itertools.product(*(grids[number] for number in together)):
                tried = list(best)
                for number, value in zip(together, values, strict=True):
                    tried[number] = value
                reached = cost(tuple(tried))
                if reached < least:
                    best, least = tuple(tried), reached
        spans = [
            (max(p.low, Fraction(at) - (b - a) / 6), min(p.high, Fraction(at) + (b - a) / 6))
            for p, at, (a, b) in zip(parameters, best, spans, strict=True)
        ]
    return best


def _digits(value: Fraction) -> str:
    """A number with a few digits, as TOML has it."""
    if not value:
        return "0"
    places = _DIGITS - 1 - math.floor(math.log10(abs(value)))
    rounded = round(value, places)
    return str(int(rounded)) if rounded.denominator == 1 else f"{float(rounded):.{max(places, 0)}f}".rstrip("0")
