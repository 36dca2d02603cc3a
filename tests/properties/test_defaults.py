"""What an argument stands for that is left out. Each row of the table has a call, an option, its documented value, and
values that give something else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import picturekernels as pk
import pytest

import kernscope as ks
from kernscope.backends.execution.inputs import random_inputs
from kernscope.backends.graph_picture.dot import frame_title
from kernscope.backends.graph_picture.drawn_part import select
from kernscope.backends.graph_picture.folding import Grade, fold
from kernscope.backends.graph_picture.repeats import find_alike
from kernscope.backends.report.columns import pack
from kernscope.backends.timelines.gantt import gantt_svg
from kernscope.ir.columns import expect_graph
from kernscope.ir.errors import did_you_mean
from kernscope.ir.forms.html_table import html_table
from kernscope.ir.memories import Memory
from kernscope.ir.tables import UNPLACED as NOWHERE
from kernscope.ir.target import Target

RING = pk.messages()
UNPLACED = attrs.evolve(
    RING, storages=attrs.evolve(RING.storages, address=np.full_like(RING.storages.address, NOWHERE))
)
NESTED = fold(pk.renamed(pk.nested(2, 3), "a name that is longer than a frame is wide"), Grade.ITERATIONS)
SCHEDULE = ks.schedule(pk.sweep(3), "blocking")
SHOP: dict[str, Any] = {
    "durations_ps": np.random.default_rng(1).integers(1, 30, 40),
    "engine": np.concatenate([np.random.default_rng(n).permutation(5) for n in range(8)]),
    "channels": [1] * 5,
    "edges": [(5 * j + k, 5 * j + k + 1) for j in range(8) for k in range(4)],
}


def _refused(take: Callable[..., Any], **options: Any) -> bool:
    try:
        take(**options)
    except ks.KernscopeError:
        return True
    return False


def _drawn(**options: Any) -> str:
    made = ks.draw(pk.sweep(6), format="dot", fold="none", **options).data
    assert made is not None
    return made.decode()


#: A call, the option, what it stands for when it is left out, and other values.
DEFAULTS: dict[str, tuple[Callable[..., Any], str, Any, tuple[Any, ...]]] = {
    "a memory's bytes": (lambda **o: Memory("m", **o), "bytes", 0, (1,)),
    "a memory's alignment": (lambda **o: Memory("m", **o), "align", 1, (2, 0)),
    "a memory's scope": (lambda **o: Memory("m", **o), "is_global", False, (True,)),
    "a target's spaces": (lambda **o: Target(**o), "strict_spaces", False, (True,)),
    "a target's topology": (lambda **o: Target(**o), "topology", "ring", ("mesh2d",)),
    "a target's borders": (lambda **o: Target(topology="mesh2d", **o), "wraps", False, (True,)),
    "a target's slots": (lambda **o: Target(**o), "slots", 2, (1, 3)),
    "a target's alignment": (lambda **o: Target.of_scratch(1024, **o), "align", 16, (15, 17, 1)),
    "random inputs": (lambda **o: random_inputs(RING, **o)["x"].tobytes(), "seed", 0, (1, 2)),
    "a drawing's hops": (lambda **o: _drawn(around=9, **o), "hops", 2, (1, 3)),
    "a drawing's edges": (_drawn, "reduce", False, (True,)),
    "a selection's hops": (lambda **o: select(RING, around=9, **o).keep.tobytes(), "hops", 2, (1, 3)),  # type: ignore[union-attr]
    "ranks that are alike": (lambda **o: find_alike(RING, **o).node.tobytes(), "across_ranks", False, (True,)),
    "a frame's title": (lambda **o: [frame_title(NESTED, f, **o) for f in NESTED.frames], "short", True, (False,)),
    "a packed column": (lambda **o: pack(np.array([5, 6, 7]), **o), "delta", False, (True,)),
    "a chart's head": (lambda **o: gantt_svg([SCHEDULE], **o), "standalone", True, (False,)),
    "a chart's axis": (lambda **o: gantt_svg([SCHEDULE], **o), "span_ps", 0, (10**9,)),
    "a chart's slices": (lambda **o: gantt_svg([SCHEDULE], merge_above=0, **o), "pixels", 1.0, (200.0,)),
    "a table's rows": (lambda **o: html_table("t", [("a", "b")], **o), "row_heads", False, (True,)),
    "who takes a graph": (lambda **o: _refused(expect_graph, value=UNPLACED, taker="f", **o), "placed", True, (False,)),
    "names alike": (lambda **o: did_you_mean("abcde", ["abcxy", "zzzzz"], **o), "alike", 0.6, (0.7,)),
    "a list's seed": (lambda **o: ks.schedule_dag(**SHOP, **o).tobytes(), "seed", 0, (1, 2, 3)),
    "a list's effort": (lambda **o: ks.schedule_dag(**SHOP, **o).tobytes(), "effort", "normal", ("fast",)),
    "a solver's seed": (lambda **o: ks.solve_dag(**SHOP, **o).start_ps.tobytes(), "seed", 0, (1, 2, 3)),
}


@pytest.mark.parametrize("name", DEFAULTS)
def test_what_is_left_out_stands_for_its_default(name: str) -> None:
    """The same result as with it; another value gives another one."""
    call, option, default, others = DEFAULTS[name]
    left_out = call()
    assert call(**{option: default}) == left_out
    assert all(call(**{option: other}) != left_out for other in others)
