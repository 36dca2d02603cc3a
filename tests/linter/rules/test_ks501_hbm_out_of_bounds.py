"""KS501: loads and stores that leave their HBM tensor."""

# ruff: noqa: E501  (goldens show lines as they are printed)

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

import kernscope as ks
from kernscope.linter import LintReport

Lint = Callable[..., LintReport]


@pytest.fixture
def lint(lint: Lint) -> Lint:
    """Only this rule: the kernels compute nothing useful."""
    return functools.partial(lint, select=["KS501"])


TILES = """
    @ks.kernel
    def tiles(x, o, count):
        for i in range(count):
            with tl.scratch_scope():
                tile = tl.load(x[i * 4 : (i + 1) * 4, :])
                tl.store(o[i * 4 : (i + 1) * 4, :], tile)
"""


def tensors(*rows: int) -> list[Any]:
    """f32 tensors of so many rows of 8."""
    return [ks.hbm((n, 8), "f32") for n in rows]


def test_a_load_that_leaves_its_tensor_says_where_and_by_how_much(lint: Lint) -> None:
    """One finding for all iterations; it words the first."""
    assert (
        str(lint(TILES, *tensors(10, 20), 5))
        == """\
error[KS501]: load leaves `x` of shape (10, 8): `x[8:12, 0:8]` is read, 3 times
 --> kernel.py:8:20
  |
8 |             tile = tl.load(x[i * 4 : (i + 1) * 4, :])
  |                    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ dimension 0 ends at 10, this at 12
  |
  = help: for a ragged edge write `tl.load(region, pad=...)`, with what changes nothing (0 of a sum); else run the loop one tile less

tiles: 1 error"""
    )


def test_a_store_that_leaves_its_tensor_is_told_to_clip(lint: Lint) -> None:
    """Only the inside of it is recorded."""
    (finding,) = lint(TILES, *tensors(16, 6), 2)
    assert finding.message == "store leaves `o` of shape (6, 8): `o[4:8, 0:8]` is written"
    assert finding.location is not None and finding.location.line == 9
    assert "clip=True" in finding.help


@pytest.mark.parametrize("rest", ["", "tl.exp(h)", "tl.load(x[0:1, :])", "tl.store(o[:, :], h)"])
def test_a_store_that_lies_outside_altogether_blames_no_other_line(lint: Lint, rest: str) -> None:
    """Its node writes nothing and has the line; whatever comes next is not at fault."""
    kernel = f"@ks.kernel\ndef outside(x, o):\n    h = tl.load(x[:, :])\n    tl.store(x[9:10, :], h)\n    {rest}\n"
    report = lint(kernel, *tensors(1, 1))
    assert [d.message for d in report] == ["store leaves `x` of shape (1, 8): `x[9:10, 0:8]` is written"]
    assert [place.location.line for d in report for place in d.locations] == [7]


def test_what_stays_inside_is_silent(lint: Lint) -> None:
    """The last row included."""
    assert len(lint(TILES, *tensors(12, 12), 3)) == 0


@pytest.mark.parametrize("call", ["tl.load(x[2:6, :], pad=0.0)", "x[2:60, :]", "x + 1000"])
def test_ragged_loads_and_places_that_are_only_formed_are_no_fault(lint: Lint, call: str) -> None:
    """Only a load or store touches anything."""
    assert len(lint(f"@ks.kernel\ndef formed(x):\n    {call}\n", *tensors(4))) == 0


def test_a_clipped_store_is_no_fault(lint: Lint) -> None:
    """What lies outside is left out."""
    kernel = "@ks.kernel\ndef clipped(x):\n    tl.store(x[2:6, :], tl.zeros((4, 8), tl.float32), clip=True)\n"
    assert len(lint(kernel, *tensors(4))) == 0


@pytest.mark.parametrize(
    ("place", "asked", "beyond"),
    [
        ("x + 30, (1, 4)", "`x + 30` up to element 34", "the tensor ends at 32, this at 34"),
        ("x + -2, (4,)", "`x + -2` up to element 2", "the tensor begins at 0, this at -2"),
    ],
)
def test_a_pointer_counts_elements(lint: Lint, place: str, asked: str, beyond: str) -> None:
    """Whatever the tensor's dimensions."""
    (finding,) = lint(f"@ks.kernel\ndef pointed(x):\n    tl.load({place})\n", *tensors(4))
    assert asked in finding.message
    assert [p.role for p in finding.locations] == [beyond]


def test_both_ends_of_every_dimension_are_named(lint: Lint) -> None:
    """A region can leave its tensor on several sides."""
    kernel = "@ks.kernel\ndef wide(x):\n    tl.load(x[2:6, 7:9])\n"
    (finding,) = lint(kernel, *tensors(4))
    assert [p.role for p in finding.locations] == ["dimension 0 ends at 4, this at 6; dimension 1 ends at 8, this at 9"]


def test_a_streamed_operand_that_leaves_its_tensor_is_a_finding(lint: Lint) -> None:
    """The trace goes on: the composite and what follows it are linted as well."""
    kernel = (
        "@ks.kernel\ndef streams(a, b):\n"
        "    c = tl.composite('gemm', tl.ref(a[:, :]), tl.ref(b[4:12, :]), trans_b=True, tile=(4, 4, 4))\n"
        "    tl.store(a[8:16, :], c)\n"
    )
    report = lint(kernel, *tensors(8, 8))
    assert [d.location.line for d in report if d.location is not None] == [6, 7]
    assert {d.code for d in report} == {"KS501"}


@pytest.mark.parametrize(
    ("rows", "body", "fixed"),
    [
        ((10, 10), "tl.store(o[R, :], tl.exp(tile) + 1.0)", True),  # both leave their tensors at the same rows
        ((10, 10), "tl.store(o[R, :], tile, clip=True)", True),
        ((12, 10), "tl.store(o[R, :], tile, clip=True)", None),  # nothing is outside
        ((10, 12), "tl.store(o[R, :], tile)", False),  # what is outside x is inside o
        ((10, 11), "tl.store(o[R, :], tile, clip=True)", False),
        ((10, 10), "tl.store(o[R, :], tile + tl.sum(tile, axis=0, keep_dims=True), clip=True)", False),
        ((10, 10), "tl.store(o[R, :], tl.flip(tile, 0), clip=True)", False),
        (
            (10, 10),
            "tl.copy_to(kept, tile); tl.store(o[R, :], kept, clip=True)",
            False,
        ),  # later iterations have it, too
        ((10, 10), "tl.copy_to(kept[0:2, :], tile[0:2, :]); tl.store(o[R, :], tile, clip=True)", True),
    ],
)
def test_a_load_is_padded_where_any_value_will_do(
    lint: Lint, rows: tuple[int, int], body: str, fixed: bool | None
) -> None:
    """Where what lies outside reaches only elements that lie outside of a store; not where one that is stored, or that
    something else looks at, depends on it."""
    text = f"""
    @ks.kernel
    def tiles(x, o):
        kept = tl.zeros((4, 8), tl.float32)
        tl.store(o[0:4, :], kept)
        for i in range(3):
            R = slice(i * 4, (i + 1) * 4)
            tile = tl.load(x[R, :])
            {body}
    """
    found = [d for d in lint(text, *tensors(*rows)) if "load leaves" in d.message]
    assert [bool(d.fixes) for d in found] == ([] if fixed is None else [fixed])
    if fixed:
        assert "add `pad=0.0` to the load at line 10" in found[0].help
