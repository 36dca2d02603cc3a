"""KS101: does scratch suffice."""

# ruff: noqa: E501  (goldens show lines as they are printed)

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

import kernscope as ks
from kernscope.linter import LintReport

from .rulecases import body

Lint = Callable[..., LintReport]


@pytest.fixture
def lint(lint: Lint) -> Lint:
    """Only the rules of this family, where a test does not say otherwise: the kernels compute nothing useful."""
    return functools.partial(lint, select=["KS1"])


SWEEP = """
    @ks.kernel
    def sweep(x, o, tiles):
        m = tl.full((128, 1), float("-inf"), tl.float32)
        for j in range(tiles):
            tile = tl.load(x[:, j * 128 : (j + 1) * 128])
            best = tl.max(tile, axis=1, keep_dims=True)
            tl.copy_to(m, tl.maximum(m, best))
        tl.store(o[:, :], m)
"""


def sweep_arguments(tiles: int) -> tuple[Any, ...]:
    """Tensors for so many tiles."""
    return ks.hbm((128, 128 * tiles), "f32"), ks.hbm((128, 1), "f32"), tiles


def test_an_overflow_in_a_loop_names_the_loop_the_bytes_and_the_remedy(lint: Lint) -> None:
    """Needed, budget, growth per iteration, the lines that hold the most, where a scope goes."""
    assert (
        str(lint(SWEEP, *sweep_arguments(20)))
        == """\
error[KS101]: scratch overflow: 1,331,712 B needed, the budget is 1,048,576 B; peak grows by 66,560 B per iteration of line 7; overflows at iteration 16
  --> kernel.py:8:16
   |
 6 |     m = tl.full((128, 1), float("-inf"), tl.float32)
   |         -------------------------------------------- holds 512 B: `m`
...
 8 |         tile = tl.load(x[:, j * 128 : (j + 1) * 128])
   |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ passes the budget here: `tile` takes 65,536 B with 998,912 B in use
   |                -------------------------------------- holds 1,310,720 B: 20 x `tile`
 9 |         best = tl.max(tile, axis=1, keep_dims=True)
   |                ------------------------------------ holds 10,240 B: 20 x `best`
10 |         tl.copy_to(m, tl.maximum(m, best))
   |                       ------------------- holds 10,240 B: 20 x an unnamed f32[128,1]
   |
  = help: wrap lines 8-10, the body of the loop at line 7, in `with tl.scratch_scope():`

sweep: 1 error"""
    )


def test_every_buffer_is_named_with_line_and_bytes(lint: Lint) -> None:
    """Eight buffers, 1.1 MiB together, none of them too large by itself, and no loop."""
    kernel = "@ks.kernel\ndef buffers(x):\n" + "".join(f"    b{i} = tl.load(x[:])\n" for i in range(8))
    (finding,) = lint(kernel, ks.hbm((36_045,), "f32"))
    assert finding.code == "KS101"
    assert finding.message == "scratch overflow: 1,153,536 B needed, the budget is 1,048,576 B"
    roles = [(place.location.line, place.role) for place in finding.locations]
    assert roles[0] == (13, "passes the budget here: `b7` takes 144,192 B with 1,009,344 B in use")
    assert roles[1:] == [(6 + i, f"holds 144,192 B: `b{i}`") for i in range(8)]
    assert "scratch_scope" in finding.help
    assert finding.nodes == (7,)


def test_more_lines_than_can_be_shown_are_summed_up(lint: Lint) -> None:
    """Nothing is left out of the count."""
    kernel = "@ks.kernel\ndef buffers(x):\n" + "".join(f"    b{i} = tl.load(x[:])\n" for i in range(14))
    (finding,) = lint(kernel, ks.hbm((25_600,), "f32"))
    assert len(finding.locations) == 1 + 10
    assert finding.message.endswith("; 4 lines not shown hold 409,600 B")


def test_one_allocation_larger_than_the_budget_cannot_be_helped_by_a_scope(lint: Lint) -> None:
    """The help says so, and which one it is, also when a loop holds more in all."""
    kernel = """
        @ks.kernel
        def giant(x):
            big = tl.load(x[:, :])
            for _ in range(9):
                tl.exp(big[0:128, :])
    """
    (finding,) = lint(kernel, ks.hbm((1024, 257), "f32"))
    assert finding.help == (
        "`big` (line 6) alone takes 1,052,672 B, which no scope can help: load and compute in smaller tiles: `kernscope fit` finds the largest that fits, where it is a parameter"
    )


@pytest.mark.parametrize(
    ("signature", "said"),
    [
        (
            "x, *, tile=1024",
            "`kernscope fit kernel.py::giant --arg 'x=f32[1024,257]'{given} --param tile --range 128:1024:x2`",
        ),
        (
            "x, tile=1020",
            "`kernscope fit kernel.py::giant --arg 'x=f32[1024,257]'{given} --param tile --range 255:1020:x2`",
        ),
        (
            "x, first=9, *, tile=2",
            "`kernscope fit kernel.py::giant --arg 'x=f32[1024,257]'{given} --param tile --range 1:2:x2`",
        ),
        (
            "x, scale=1, tile=16",
            "`kernscope fit kernel.py::giant --arg 'x=f32[1024,257]'{given} --param tile --range 2:16:x2`",
        ),
        ("x, tile=97", "`kernscope fit kernel.py::giant --arg 'x=f32[1024,257]' --param tile --range 12:97:12`"),
        ("x, *, deep=True, wide=2.0, one=1, nothing=None", "`kernscope fit`"),
        (
            "x, *, one, size",
            "`kernscope fit kernel.py::giant --arg 'x=f32[1024,257]' --arg one=1 --param size --range 1:4:x2`",
        ),
        ("x, *, many, size", "`kernscope fit`"),
        (
            "x, *, tile=WIDE",
            "`kernscope fit kernel.py::giant --arg 'x=f32[1024,257]' --param tile --range 128:1024:x2`",
        ),
        (
            "x, *, size, tile=64",
            "`kernscope fit kernel.py::giant --arg 'x=f32[1024,257]'{given} --param tile --range 8:64:x2`",
        ),
    ],
)
def test_the_command_that_finds_a_tile_names_the_parameter(lint: Lint, signature: str, said: str) -> None:
    """The first parameter, keyword-only ones before others, whose default is a whole number of 2 or more, else the only
    one given such a number: from an eighth of it on, by halves where it has any, so that what divides the problem goes
    on doing so. None like it: no command is put in the reader's mouth."""
    kernel = f"""
        WIDE = 1024

        @ks.kernel
        def giant({signature}):
            tl.load(x[:, :])
    """
    sizes = {name: size for name, size in (("size", 4), ("one", 1), ("many", 8)) if f"{name}," in f"{signature},"}
    sizes.pop("one" if "one=" in signature else "", None)
    said = said.format(given="".join(f" --arg {name}={size}" for name, size in sizes.items()))
    (finding,) = lint(kernel, ks.hbm((1024, 257), "f32"), **sizes)
    assert f"load and compute in smaller tiles: {said} finds the largest that fits" in finding.help


@pytest.mark.parametrize(("extra", "fires"), [(0, False), (1, True)])
def test_a_budget_filled_to_the_last_byte_is_fine_and_one_more_is_not(lint: Lint, extra: int, fires: bool) -> None:
    """Sizes are rounded up before they are checked."""
    kernel = """
        @ks.kernel
        def exact(x, extra):
            tl.load(x[:, :])
            if extra:
                tl.load(x[0:1, 0:1])
    """
    report = lint(kernel, ks.hbm((1024, 1024), "u8"), extra, ignore=["KS102"])
    assert [d.code for d in report] == ["KS101"] * fires


def test_sequential_scopes_do_not_sum_up(lint: Lint) -> None:
    """Eight scopes of 0.3 MiB peak at 0.3 MiB."""
    kernel = """
        @ks.kernel
        def scopes(x):
            for _ in range(8):
                with tl.scratch_scope():
                    tl.load(x[:])
    """
    assert len(lint(kernel, ks.hbm((78_643,), "f32"))) == 0


def test_ranks_that_overflow_at_one_line_are_one_finding(lint: Lint) -> None:
    """The fullest one is described; others fit."""
    kernel = """
        @ks.kernel
        def uneven(x):
            for _ in range(tl.program_id(0) * 3):
                tl.load(x[:])
    """
    (finding,) = lint(kernel, ks.hbm((65_536,), "f32"), ranks=4)
    assert finding.message.startswith(
        "scratch overflow on 2 of 4 ranks, the first is 2: 2,359,296 B needed, the budget is 1,048,576 B"
    )
    assert finding.nodes == (3 + 4, 3 + 5, 9 + 4, 9 + 5, 9 + 6, 9 + 7, 9 + 8)


TWO_LOOPS = """
for i in range({few}):
    tl.store(o[0, 0:1], tl.load(x[i, 0:{wide}])[0:1])
for j in range({many}):
    tl.store(o[0, 0:1], tl.load(x[j, 0:{narrow}])[0:1])
last = tl.load(x[0, 0:{rest}])
tl.store(o[0, 0:1], last[0:1])
"""


@pytest.mark.parametrize(
    ("numbers", "line"),
    [
        # The overflow happens behind both: the loop that takes the most, whichever has more or larger iterations.
        ({"few": 3, "wide": 32768, "many": 32, "narrow": 4096, "rest": 65536}, 8),
        ({"few": 3, "wide": 49152, "many": 24, "narrow": 4096, "rest": 65536}, 6),
        # It happens within one of them.
        ({"few": 4, "wide": 49152, "many": 32, "narrow": 16384, "rest": 4096}, 8),
        ({"few": 9, "wide": 49152, "many": 4, "narrow": 4096, "rest": 4096}, 6),
    ],
)
def test_of_two_loops_the_one_to_blame_is_named(lint: Lint, numbers: dict[str, int], line: int) -> None:
    """The loop in which it overflows, else the one that takes the most; the scope is proposed there."""
    wide: Any = ks.hbm((32, 65536), "f32")
    (finding,) = lint(body(TWO_LOOPS.format(**numbers)), wide, wide, select=["KS101"])
    assert f" of line {line}" in finding.message
    assert f"wrap line {line + 1}, the body of the loop at line {line}, in `with tl.scratch_scope():`" in finding.help


@pytest.mark.parametrize(("columns", "alone"), [(255, False), (256, False), (257, True)])
def test_only_what_is_larger_than_the_budget_is_said_to_be_alone(lint: Lint, columns: int, alone: bool) -> None:
    """What takes all of it fits, if nothing else is there."""
    text = "small = tl.load(x[0, :])\nbig = tl.load(x[:, :])\ntl.store(o[:, :], big)\ntl.store(o[0, :], small)"
    tensor: Any = ks.hbm((1024, columns), "f32")
    report = lint(body(text), tensor, tensor, select=["KS101"])
    assert [" alone takes " in finding.help for finding in report] == ([] if columns == 255 else [alone])
