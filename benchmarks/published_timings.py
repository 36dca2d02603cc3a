"""Published times of kernels, each with what is predicted for it: the kernel in this language, traced, scheduled."""

from __future__ import annotations

import csv
import importlib.util
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import attrs

import kernscope as ks
from kernscope.face.machine_fitting import MachineFit, Measured, Parameter, fit_machine, with_values
from kernscope.machine.description import Machine, load_machine
from kernscope.machine.latency import shared_time_ps
from kernscope.scheduler.result.schedule import makespan_ps

__all__ = [
    "FOLDER",
    "Published",
    "fit_all",
    "fitted_ns",
    "known_machine",
    "parameters",
    "part_of",
    "published",
    "stored_fits",
    "write_fits",
]

FOLDER = Path(__file__).with_name("published")
_KERNELS = Path(__file__).with_name("kernels")


@attrs.frozen(slots=False, eq=False)
class Published:
    """A published time. ``host_us``: what of it the host takes. ``family``: left out of a fit together. ``versions``:
    rows of one name are versions of one kernel for one problem, compared with each other.

    ``kernel`` (file and name) is traced for the launch that is called as the row, and scheduled under ``policy``. The
    whole runs that ``rounds`` times, one after the other; with ``chip`` the machine has so many ranks, and those that
    are traced have their part of what all share. ``set`` are fields of the machine that the source sets otherwise (how
    exact its products are). ``part`` says in words what of the whole is traced."""

    id: str
    machine: str
    what: str
    shape: str
    dtype: str
    tiling: str
    value: float
    unit: str
    tflop: float
    host_us: float
    family: str
    versions: str
    kernel: str
    policy: str
    set: str
    rounds: int
    chip: int
    part: str
    url: str
    note: str

    @property
    def ns(self) -> float:
        """The published time in nanoseconds."""
        if self.unit in _NS:
            return self.value * _NS[self.unit]
        if self.unit == "TFLOP/s":
            return self.tflop / self.value * 1e9
        share, _, peak = self.unit.removesuffix(" TFLOP/s").partition(" of ")
        assert share == "%", self.unit
        return self.tflop / (self.value / 100 * float(peak)) * 1e9

    @cached_property
    def graph(self) -> ks.Graph:
        """What is traced of it."""
        file, _, name = self.kernel.partition("::")
        return ks.trace(getattr(_module(file), name).launch(self.id))

    def predicted_ns(self, machine: Machine) -> float:
        """The time on a machine: its schedule, or what all that is moved takes through what ranks share, if that is
        longer; as many rounds as there are; and the host's part."""
        fields = dict(field.split("=", 1) for field in self.set.split())
        told = machine.override({**fields, "name": machine.name}) if fields else machine
        own = part_of(told, self.graph.ranks, self.chip)
        shared = max(shared_time_ps(self.graph, own).values(), default=0)
        return max(makespan_ps(self.graph, own, self.policy), shared) / 1000 * self.rounds + self.host_us * 1000

    def measured(self) -> Measured:
        """As a fit takes it."""
        return Measured(self.id, self.family, self.ns, self.predicted_ns)


_NS = {"ms": 1e6, "us": 1e3}


@cache
def _module(file: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"published_{file.removesuffix('.py')}", _KERNELS / file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def part_of(machine: Machine, ranks: int, chip: int) -> Machine:
    """The machine as so many of a chip's ranks see it."""
    if not chip or ranks == chip:
        return machine
    shared = {
        f"memory.{name}.bytes_per_ns": str(float(part.bytes_per_ns * ranks / chip))
        for name, part in machine.memory.items()
        if part.bytes_per_ns is not None
    }
    return machine.override({**shared, "name": machine.name})


def published(chosen: Iterable[str] = ()) -> list[Published]:
    """The rows of the file, or those of some machines."""
    with (FOLDER / "timings.csv").open(encoding="utf-8", newline="") as file:
        rows = [_row(row) for row in csv.DictReader(file)]
    wanted = set(chosen)
    return [row for row in rows if not wanted or row.machine in wanted]


def _row(row: Mapping[str, str]) -> Published:
    numbers = {name: float(row[name] or 0) for name in ("value", "tflop", "host_us")}
    counts = {name: int(row[name] or 0) for name in ("rounds", "chip")}
    return Published(**{**row, **numbers, **counts})  # type: ignore[arg-type]  # the names are those of the columns


def parameters(machine: str) -> list[Parameter]:
    """What is fitted of a machine: two numbers at the most."""
    with (FOLDER / "parameters.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["machine"] == machine]
    return [Parameter(row["parameter"], Fraction(row["low"]), Fraction(row["high"])) for row in rows]


#: By machine and family that was left out (empty: none): the values by parameter.
Fits = dict[tuple[str, str], dict[str, str]]


def stored_fits() -> Fits:
    """The fitted values as they were stored last."""
    found: Fits = {}
    path = FOLDER / "fitted.csv"
    if path.exists():
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                found.setdefault((row["machine"], row["left_out"]), {})[row["parameter"]] = row["value"]
    return found


def write_fits(fits: Fits) -> None:
    """Store fitted values."""
    with (FOLDER / "fitted.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("machine", "left_out", "parameter", "value"))
        for (machine, left_out), values in sorted(fits.items()):
            writer.writerows((machine, left_out, parameter, value) for parameter, value in values.items())


def known_machine(name: str) -> Machine:
    """A machine file beside the rows, or a preset."""
    own = FOLDER / f"{name}.toml"
    return load_machine(own if own.exists() else name)


def fitted_ns(row: Published, values: Mapping[str, str]) -> float:
    """The prediction for a row with fitted values in place."""
    machine, host_us = with_values(known_machine(row.machine), values)
    return row.predicted_ns(machine) + host_us * 1000


def fit_all(rows: Sequence[Published]) -> Fits:
    """Fit every machine of the rows anew, with all rows and without each family."""
    found: Fits = {}
    for name in dict.fromkeys(row.machine for row in rows):
        wanted, mine = parameters(name), [row for row in rows if row.machine == name]
        if not wanted:
            continue
        made: MachineFit = fit_machine(known_machine(name), wanted, [row.measured() for row in mine])
        found[name, ""] = dict(made.values)
        found |= {(name, family): dict(values) for family, values in made.without.items()}
    return found
