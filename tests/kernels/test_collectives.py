"""The collectives on every topology: what each rank ends with, no finding in them, and how near the bound they come."""

import kernelcases
import numpy as np
import pytest

import kernscope as ks
from kernscope.kernels.collectives import MESH

#: Machine, shape of the mesh, whether its ends are joined, ranks.
TOPOLOGIES = [
    ("ahbm-pe", None, True, 1),
    ("ahbm-pe", None, True, 2),
    ("ahbm-pe", None, True, 5),
    ("ahbm-mesh", [2, 3], False, 6),
    ("ahbm-mesh", [3, 2], True, 6),
    ("ahbm-mesh", [4, 1], False, 4),
]


@pytest.mark.parametrize(("machine", "shape", "joined", "ranks"), TOPOLOGIES)
@pytest.mark.parametrize("name", ["all_gather", "reduce_scatter", "all_reduce"])
def test_every_rank_ends_with_its_part(
    name: str, machine: str, shape: list[int] | None, joined: bool, ranks: int
) -> None:
    """On rings and meshes, of any size, joined or not: numpy's numbers in program order and in the order of each
    policy's schedule, no finding but infos, every schedule legal, and the list schedule within a tenth of the bound."""
    described = ks.load_machine(machine)
    if shape is not None:
        described = described.override({"topology.shape": shape, "topology.wraps": joined})
    rng = np.random.default_rng(0)
    each = rng.standard_normal((ranks, ranks * 64, 128)).astype(np.float32)
    total = each.sum(axis=0, dtype=np.float64).astype(np.float32)
    x, expected = {
        "all_gather": (each[0], np.broadcast_to(each[0], each.shape)),
        "reduce_scatter": (each, total),
        "all_reduce": (each, np.broadcast_to(total, each.shape)),
    }[name]
    ways = MESH if shape == [4, 1] else None  # one column looks like a ring
    graph = ks.trace(
        kernelcases.kernel_of(name),
        x,
        ks.hbm(expected.shape, "f32"),
        ranks=ranks,
        machine=described,
        ways=ways,
        tile=16,
    )
    assert [str(found) for found in ks.lint(graph) if found.severity != "info"] == []
    first = ks.run(graph, poison=True)["o"]
    np.testing.assert_allclose(first, expected, rtol=1e-5, atol=1e-5)
    for policy in ("blocking", "lazy", "queued", "list"):
        schedule = ks.schedule(graph, policy=policy, machine=described)
        assert ks.check(schedule) == []
        np.testing.assert_array_equal(ks.run(graph, order=schedule)["o"], first)
    assert schedule.makespan_ps <= 1.1 * schedule.bound_ps
