"""KS304: a load that is written over before anything reads it, and what was read in its place."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

import kernscope as ks
from kernscope.linter import LintReport
from kernscope.linter.analyses.overwritten import find_overwritten_loads

from .rulecases import body

Lint = Callable[..., LintReport]
X: Any = ks.hbm((16, 8), "f32")


@pytest.fixture
def lint(lint: Lint) -> Lint:
    """This rule, and those that it stands in for."""
    return functools.partial(lint, select=["KS304", "KS301", "KS302"])


def ring(load: str, read: str, *, first: str = "0", order: tuple[str, str] = ("load", "read")) -> str:
    """Tiles of four rows through two slots; the loop begins at line 9."""
    lines = {
        "load": f"        if i < 3:\n            tl.load(x[4 * i + 4 : 4 * i + 8, :], out=slots[{load}])\n",
        "read": f"        tl.store(o[4 * i : 4 * i + 4, :], slots[{read}])\n",
    }
    return (
        "@ks.kernel\ndef kernel(x, o):\n"
        "    slots = [tl.empty((4, 8), tl.float32), tl.empty((4, 8), tl.float32)]\n"
        f"    tl.load(x[0:4, :], out=slots[{first}])\n"
        "    for i in range(4):\n" + lines[order[0]] + lines[order[1]]
    )


def test_the_read_that_met_another_tile_is_named_with_both_loads(lint: Lint) -> None:
    """Slot 0 in every iteration: the second one stores the third tile in the place of the second."""
    (found,) = lint(ring("(i + 1) % 2", "0"), X, X)
    assert found.message == (
        "an unnamed f32[4,8] is loaded from `x[4:8, 0:8]` and written over before anything reads it"
    )
    assert [(place.role, place.location.line) for place in found.locations] == [
        ("loads `x[4:8, 0:8]` here", 10),
        ("store reads `x[8:12, 0:8]` here, the load of line 10, in the place of `x[4:8, 0:8]`", 11),
    ]
    assert found.help.startswith("of several buffers that are filled in turn, read at line 11 the one that was filled")


#: Each wrong ring, and by lost load (its region's first row) the row of the tile that was read in its place.
WRONG = {
    "the other slot is read": (ring("(i + 1) % 2", "(i + 1) % 2"), {0: 4}),
    "one slot is read": (ring("(i + 1) % 2", "0"), {4: 8}),
    "the load goes to the slot that is about to be read": (ring("i % 2", "i % 2"), {0: 4}),
    "one slot is loaded": (ring("0", "i % 2", first="1"), {8: 12}),
}


@pytest.mark.parametrize("name", list(WRONG))
def test_wrong_slots_are_proved_by_what_is_lost(load_kernel: Any, name: str) -> None:
    """For every way to be off by a slot the lost tile, and the tile that the reader met."""
    text, expected = WRONG[name]
    header = "import kernscope as ks\nfrom kernscope import tl\n\n"
    graph = ks.trace(load_kernel(header + text), X, X)
    found = {
        graph[lost.node].reads[0].offset // 8: graph[lost.read_load].reads[0].offset // 8
        for lost in find_overwritten_loads(graph)
        if lost.read_load is not None
    }
    assert found == expected


ONE_BUFFER = """
a = tl.empty((4, 8), tl.float32)
for i in range(4):
    tl.load(x[4 * i : 4 * i + 4, :], out=a)
    tl.store(o[4 * i : 4 * i + 4, :], a)
"""
READ_IN_PART = """
a = tl.load(x[:, :])
tl.store(o[0:1, :], a[0:1, :])
tl.load(x[:, :], out=a)
tl.store(o[:, :], a)
"""
WRITTEN_OVER_IN_PART = """
a = tl.load(x[:, :])
tl.load(x[0:8, :], out=a[0:8, :])
tl.store(o[:, :], a)
"""
COMPOSITE = """
a = tl.load(x[:, :])
tl.store(o[:, :], tl.composite("gemm", a, tl.ref(x[0:8, :]), tile=(4, 4, 4)))
"""


@pytest.mark.parametrize(
    "text",
    [
        ring("(i + 1) % 2", "i % 2"),
        ring("(i + 1) % 2", "i % 2", order=("read", "load")),
        *map(body, (ONE_BUFFER, READ_IN_PART, WRITTEN_OVER_IN_PART, COMPOSITE)),
    ],
)
def test_it_is_silent_where_every_load_is_read_or_keeps_a_part(lint: Lint, text: str) -> None:
    """Right rings, in either order; a single buffer; partial reads and writes; composites."""
    assert [d.code for d in lint(text, X, X)] == []


def test_the_load_that_was_read_is_named_where_it_is_the_kernels_first_line(lint: Lint) -> None:
    """And the line that writes over the lost one, where that is another."""
    text = """
a, b = tl.load(x[0:4, :]), tl.load(x[4:8, :])
tl.load(x[8:12, :], out=b)
tl.store(o[0:4, :], b)
"""
    (found,) = lint(body(text), X, X, select=["KS304"])
    assert [(place.role, place.location.line) for place in found.locations] == [
        ("loads `x[4:8, 0:8]` here", 6),
        ("written over here", 7),
        ("store reads `x[8:12, 0:8]` here, the load of line 7, in the place of `x[4:8, 0:8]`", 8),
    ]
    one = "slots = []\nfor i in range(2):\n    slots.append(tl.load(x[0:4, :]))\n"
    text = f"{one}tl.store(o[0:4, :], slots[0])\ntl.copy_to(slots[1], slots[0])\ntl.store(o[4:8, :], slots[1])"
    (found,) = lint(body(text), X, X, select=["KS304"])
    assert [place.role for place in found.locations] == [
        "loads `x[0:4, 0:8]` here",
        "written over here",
        "store reads `x[0:4, 0:8]` here, the load of line 8, in the place of `x[0:4, 0:8]`",
    ]


@pytest.mark.parametrize(
    "writes",
    [
        "tl.load(x[4:8, :], out=a)",
        "tl.copy_to(a, tl.zeros((4, 8), tl.float32))",
        "tl.load(x[4:6, :], out=a[0:2, :])\n    tl.load(x[6:8, :], out=a[2:4, :])",
        "tl.copy_to(tl.trans(a), tl.zeros((8, 4), tl.float32))",
    ],
)
def test_whatever_writes_over_all_of_it_counts(lint: Lint, writes: str) -> None:
    """One write or several, a load or a computation; and one rule speaks, inside a scope, too."""
    plain = f"@ks.kernel\ndef kernel(x, o):\n    a = tl.load(x[0:4, :])\n    {writes}\n    tl.store(o[0:4, :], a)\n"
    assert [d.code for d in lint(plain, X, X)] == ["KS304"]
    scoped = plain.replace("    a = tl", "    with tl.scratch_scope():\n     a = tl").replace("\n    tl.", "\n     tl.")
    assert [d.code for d in lint(scoped, X, X)] == ["KS304"]
