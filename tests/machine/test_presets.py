"""The presets of public accelerators: the same kernels run on each, to the bits of one memory; sources are shown."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kernscope as ks
from kernscope.kernels.flash_attention import flash_attention
from kernscope.kernels.layer_norm import layer_norm
from kernscope.kernels.matmul import matmul
from kernscope.machine.description import load_machine, machine_comments, machine_names

CHIPS = ("tpu-v5e", "trn1", "trn2", "wormhole", "ascend-910b2", "b200-sm", "h100-sm")
LAUNCHES = (flash_attention.launch("small"), matmul.launch("ragged"), layer_norm.launch("ragged"))


def test_the_presets_are_these() -> None:
    """And no others."""
    assert set(machine_names()) == {"ahbm-pe", "ahbm-pe-2dma", "ahbm-mesh", *CHIPS}


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("launch", LAUNCHES, ids=lambda launch: launch.kernel.name)
def test_a_kernel_runs_unchanged(launch: ks.Launch, chip: str) -> None:
    """Traced, verified, linted without an error, scheduled under every policy with no violation, and executed in each
    order to the bits of the default machine."""
    inputs = given(launch)
    expected = ks.run(ks.trace(launch, machine="ahbm-pe"), inputs)
    graph = ks.trace(launch, machine=chip)
    assert ks.verify(graph) == [] and ks.lint(graph).ok
    for row in ks.compare(graph, effort="fast"):
        assert row.schedule is not None
        assert ks.check(row.schedule) == []
        assert row.schedule.bound_ps <= row.schedule.makespan_ps
        outputs = ks.run(graph, inputs, order=row.schedule, poison=True)
        assert all(outputs[name].tobytes() == array.tobytes() for name, array in expected.items())


def given(launch: ks.Launch) -> dict[str, Any]:
    """Random values for every tensor."""
    rng = np.random.default_rng(0)
    graph = ks.trace(launch, machine="ahbm-pe")
    layouts = {name: graph.storage(row).layout for name, row in graph.tensors.items()}
    return {name: rng.uniform(-1, 1, layout.shape).astype(layout.dtype.numpy) for name, layout in layouts.items()}


def test_an_overflow_names_the_memory_and_the_lines_that_hold_it() -> None:
    """Flash attention over 2,048 keys is too wide for UB as it is written; a product of many rows for PSUM."""
    graph = ks.trace(flash_attention.launch("2k"), machine="ascend-910b2", on_overflow="record")
    finding = next(finding for finding in ks.lint(graph) if finding.code == "KS101")
    assert finding.message.startswith("ub overflow") or "ub" in finding.message
    assert "flash_attention.py" in str(finding) and "acc" in str(finding)
    with pytest.raises(ks.ScratchOverflowError, match="psum overflow"):
        ks.trace(wide, ks.hbm((128, 128), "bf16"), ks.hbm((128, 65536), "bf16"), machine="trn2")


def wide(x: Any, y: Any) -> None:
    left, right = ks.tl.load(x[:, :]), ks.tl.load(y[:, :])
    ks.tl.dot(left, right)


@pytest.mark.parametrize("chip", CHIPS)
def test_every_number_has_its_source(chip: str) -> None:
    """Each number that a preset's file says has a source that its head explains, or the word "assumed"."""
    text = (Path(ks.__file__).parent / "machine" / "presets" / f"{chip}.toml").read_text(encoding="utf-8")
    head = text[: text.index("\nname = ")]
    known = set(re.findall(r'"(\w+)"', head))
    for line in text.splitlines():
        if re.match(r"\w+ = ([\d.\[{]|true|false)", line) and not re.match(r"(reads|writes|ops) = ", line):
            source = re.search(r"#\s*(\w+):|#.*(assumed|public|not documented)", line)
            assert source is not None, line
            assert source[1] is None or source[1] in known | {"assumed"}, line


def test_comments_are_shown_with_the_numbers() -> None:
    """What ``kernscope machine trn2`` prints is a machine, with the sources of its own numbers and of its base's."""
    told = machine_comments("trn2")
    text = load_machine("trn2").to_toml(told)
    assert "bytes_per_ns = 23               # dma: 23 B/ns an engine" in text
    assert "least_cycles = 64               # arch: as above" in text
