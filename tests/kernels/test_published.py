"""The kernels of published times and what is said of them: they compute what they should on the machines that they were
written for, and every row has its kernel, its source and, where it is stored, its predictions."""

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import kernscope as ks
from kernscope.face.api import compare_with_launch

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
FILES = sorted(path.name for path in (BENCHMARKS / "kernels").glob("*.py"))


def module(path: Path) -> ModuleType:
    """A file as a module of its own name."""
    specification = importlib.util.spec_from_file_location(path.stem, path)
    assert specification is not None and specification.loader is not None
    made = importlib.util.module_from_spec(specification)
    sys.modules[path.stem] = made
    specification.loader.exec_module(made)
    return made


@pytest.fixture(scope="module")
def timings() -> Iterator[ModuleType]:
    """The module that reads the rows."""
    yield module(BENCHMARKS / "published_timings.py")
    for name in ("published_timings", "published_goals"):
        sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def goals(timings: ModuleType) -> ModuleType:
    """The module that says which goals are met."""
    return module(BENCHMARKS / "published_goals.py")


def small_launches() -> list[ks.Launch]:
    """The launches of each kernel at a size that numpy runs quickly."""
    found = []
    for name in FILES:
        made = module(BENCHMARKS / "kernels" / name)
        kernels = [value for value in vars(made).values() if isinstance(value, ks.Kernel)]
        for kernel in kernels:
            small = [launch for launch in kernel.launches if launch.startswith("small")]
            assert small, kernel
            found += [kernel.launch(launch) for launch in small]
    return found


SMALL = small_launches()


def mamba(delta: Any, u: Any, a: Any, b: Any, c: Any, **others: Any) -> dict[str, Any]:
    """State by state and step by step, in f64."""
    delta, u, a, b, c = (x.astype(np.float64) for x in (delta, u, a, b, c))
    made = np.zeros_like(delta)
    for state in range(a.shape[1]):
        h = np.zeros(len(delta))
        for t in range(delta.shape[1]):
            h = np.exp(delta[:, t] * a[:, state]) * h + delta[:, t] * u[:, t] * b[state, t]
            made[:, t] += h * c[state, t]
    return {"out": made}


@pytest.mark.parametrize("launch", SMALL, ids=lambda launch: f"{launch.kernel.name}:{launch.name}")
def test_a_kernel_computes_what_it_should(launch: ks.Launch) -> None:
    """On its machine, poisoned, in program order and in the order of the freest schedule; no errors, and no
    violations."""
    graph = ks.trace(launch)
    assert ks.verify(graph) == [] and ks.lint(graph).ok
    schedule = ks.schedule(graph, "list", effort="fast")
    assert ks.check(schedule) == []
    inputs = values(graph, decays=launch.kernel.name.startswith("nki_mamba"))
    for order in ({}, {"order": schedule}):
        outputs = ks.run(graph, inputs, poison=True, **order)
        if launch.reference is not None:
            compared = compare_with_launch(launch, inputs, outputs)
            assert compared and all(one.ok for one in compared)
        else:
            np.testing.assert_allclose(outputs["out"], mamba(**inputs)["out"], rtol=1e-3, atol=1e-3)


def values(graph: ks.Graph, *, decays: bool) -> dict[str, Any]:
    """Random values for every tensor; of a model with decays, times and factors that make some."""
    rng = np.random.default_rng(0)
    layouts = {name: graph.storage(row).layout for name, row in graph.tensors.items()}
    found = {
        name: (rng.uniform(-1, 1, layout.shape) * (1 if layout.dtype.is_float else 99)).astype(layout.dtype.numpy)
        for name, layout in layouts.items()
    }
    if decays:
        found["delta"], found["a"] = abs(found["delta"]), -abs(found["a"])
    return found


def test_every_row_has_its_kernel_and_its_source(timings: ModuleType) -> None:
    """A launch of the row's name for the row's machine; a source on the web; a known policy; times as published."""
    rows = timings.published()
    assert len(rows) >= 35 and len({row.id for row in rows}) == len(rows)
    for row in rows:
        file, _, name = row.kernel.partition("::")
        launch = getattr(module(BENCHMARKS / "kernels" / file), name).launch(row.id)
        assert Path(str(launch.machine)).stem == row.machine
        assert row.url.startswith("https://") and row.ns > 0 and row.rounds >= 1
        assert bool(row.part) == (row.rounds > 1 or bool(row.chip)), row.id
    by_id = {row.id: row for row in rows}
    assert by_id["tpu-mm-128-4096"].ns == 11_771_500
    assert by_id["b200-tk-06"].ns == pytest.approx(2 * 4096**3 / 293e3)
    assert by_id["b200-pallas-0"].ns == pytest.approx(2 * 4096**2 * 8192 / (0.3762 * 2250e3))


def test_what_is_stored_is_complete_and_of_these_rows(timings: ModuleType, goals: ModuleType) -> None:
    """Every row has its predictions, a machine has two fitted numbers at most, and each fit leaves out what it says."""
    rows = timings.published()
    assert [one.row.id for one in goals.stored()] == [row.id for row in rows]
    families = {(row.machine, row.family) for row in rows} | {(row.machine, "") for row in rows}
    for key, fitted in timings.stored_fits().items():
        assert key in families
        assert 1 <= len(fitted) <= 2 and list(fitted) == [p.path for p in timings.parameters(key[0])]
    for row in rows:
        assert len(timings.parameters(row.machine)) <= 2


@pytest.mark.parametrize("name", ["tpu-mm-512-4096", "wh-oob-512", "asc-fa-128-1024", "h100-fa3-512"])
def test_stored_predictions_are_those_of_today(timings: ModuleType, goals: ModuleType, name: str) -> None:
    """The documentation shows what the benchmark would print, to a nanosecond."""
    one = next(one for one in goals.stored() if one.row.id == name)
    machine = timings.known_machine(one.row.machine)
    assert round(one.row.predicted_ns(machine)) == one.documented_ns
    fits = timings.stored_fits()
    if (one.row.machine, "") in fits:
        assert round(timings.fitted_ns(one.row, fits[one.row.machine, ""])) == one.fitted_ns


def test_the_goals_are_judged_by_what_they_say(timings: ModuleType, goals: ModuleType) -> None:
    """Rows that are met and missed on purpose: too slow with documented numbers, beyond 25 %, the wrong order."""
    first, second = (row for row in timings.published() if row.id in ("b200-tk-06", "b200-tk-07"))
    good = [goals.Compared(row, row.ns * 0.9, row.ns, row.ns * 1.2) for row in (first, second)]
    assert all(goal.met and not goal.missed for goal in goals.goals(good))
    bad = [
        goals.Compared(first, first.ns * 1.2, first.ns * 0.3, first.ns * 2),
        goals.Compared(second, second.ns, second.ns, None),
    ]
    missed = {goal.what: goal.missed for goal in goals.goals(bad) if not goal.met}
    assert missed == {
        "documented numbers only: at most 10 % slower than measured": (first.id,),
        "fitted: median error": (),
        "fitted: within 25 %": (first.id,),
        "family left out of the fit: within 25 %": (first.id,),
        "ratios of versions: within 25 %": (f"{first.id} / {second.id}",),
        "ratios of versions: the faster is": (f"{first.id} / {second.id}",),
    }


def test_a_part_of_a_chip_has_its_part_of_what_all_share(timings: ModuleType) -> None:
    """Four of 132 multiprocessors have 4/132 of the memory's rate; a launch of all of them has it whole."""
    row = next(row for row in timings.published() if row.id == "h100-sum")
    machine = timings.known_machine(row.machine)
    part = timings.part_of(machine, 4, 132)
    assert float(part.memory["hbm"].bytes_per_ns) == pytest.approx(3350 * 4 / 132)
    assert timings.part_of(machine, 132, 132) is machine and timings.part_of(machine, 4, 0) is machine
