"""Times on the shipped machines do not drift: every kernel, policy and preset against what is stored beside this file.

Whoever changes a time on purpose writes the set anew and looks at the difference::

    python tests/kernels/test_stored_times.py
"""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kernelcases
import pytest

import kernscope as ks
from kernscope.ir.errors import ChannelError

STORED = Path(__file__).with_name("stored_times.json")
PRESETS = ("ahbm-pe", "ahbm-pe-2dma", "ahbm-mesh")
POLICIES = ("blocking", "lazy", "queued", "list")
EVERY = kernelcases.launches((*kernelcases.KERNELS, *kernelcases.NAIVE))


def measured(launch: ks.Launch, preset: str) -> dict[str, Any]:
    """By policy: the makespan in ps, and a digest of all issue, start and end times; the best bound, and the peak."""
    try:
        graph = ks.trace(launch, machine=preset, on_overflow="record")
    except ChannelError as error:
        return {"refused": str(error).splitlines()[0]}
    found: dict[str, Any] = {"nodes": len(graph), "peak_bytes": ks.liveness(graph).peak_bytes}
    for row in ks.compare(graph, POLICIES, effort="fast"):
        assert row.schedule is not None
        columns = (row.schedule.issue_ps, row.schedule.start_ps, row.schedule.end_ps)
        digest = hashlib.sha256(b"".join(column.astype("<i8").tobytes() for column in columns)).hexdigest()
        found[row.policy] = [row.schedule.makespan_ps, digest[:16]]
        found["bound_ps"] = row.schedule.bound_ps
    return found


@pytest.fixture(scope="module")
def stored() -> dict[str, Any]:
    """The stored set, by ``module:launch`` and preset."""
    known: dict[str, Any] = json.loads(STORED.read_text(encoding="utf-8"))
    return known


@pytest.mark.parametrize("launch", EVERY)
def test_every_time_is_the_stored_one(launch: ks.Launch, stored: dict[str, Any]) -> None:
    """Makespans, all times of all nodes, bounds and peaks are equal to the picosecond and the byte."""
    name = f"{launch.kernel.name}:{launch.name}"
    assert {preset: measured(launch, preset) for preset in PRESETS} == stored[name]


def test_the_stored_set_is_of_these_kernels(stored: dict[str, Any]) -> None:
    """Nothing stored is left over from a kernel that is gone, and none is missing."""
    assert set(stored) == {name for name, _ in _named()}


def _named() -> Iterator[tuple[str, ks.Launch]]:
    for parameter in EVERY:
        launch = parameter.values[0]
        yield f"{launch.kernel.name}:{launch.name}", launch


def _lines(presets: dict[str, Any]) -> Iterator[str]:
    """A line a preset, so that a change is a readable difference."""
    return (f"  {json.dumps(preset)}: {json.dumps(found)}" for preset, found in presets.items())


if __name__ == "__main__":
    written = {name: {preset: measured(launch, preset) for preset in PRESETS} for name, launch in _named()}
    rows = [f" {json.dumps(name)}: " + "{\n" + ",\n".join(_lines(presets)) + "}" for name, presets in written.items()]
    STORED.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")
