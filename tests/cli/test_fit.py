"""``ks.fit`` and ``kernscope fit``: the largest value that fits, the fastest, and what stops the next one."""

from __future__ import annotations

import functools
import html
import itertools
import re
import shlex

import numpy as np
import pytest

import kernscope as ks
from kernscope import tl
from kernscope.cli.fit import parse_range
from kernscope.kernels.flash_attention import flash_attention

BUDGET = 1 << 20


def fill(*, rows: int = 1, odd: bool = False) -> None:
    """Takes ``rows`` KiB of scratch, and even numbers only where ``odd`` is false."""
    if rows % 2 and not odd:
        raise ValueError(f"{rows} rows are odd")
    tl.zeros((rows, 256), tl.float32)


def half_filled(*, rows: int = 1) -> None:
    """Fits at 3 and up to 1,024, but overflows in between at 700 to 799: what fits is no range."""
    tl.zeros((rows if not 700 <= rows < 800 else 2000, 256), tl.float32)


def test_the_largest_value_is_the_brute_force_one():
    """The best is the last value whose trace raises nothing; peaks are those of liveness."""
    found = ks.fit(flash_attention, "tile", range(32, 1025, 32), goal="memory")
    expected = {}
    for tile in range(32, 1025, 32):
        try:
            graph = ks.trace(flash_attention.launch("2k"), tile=tile)
        except ks.KernscopeError as error:
            expected[tile] = type(error)
        else:
            expected[tile] = ks.liveness(graph).peak_bytes
    assert [row.value for row in found] == list(expected)
    for row in found:
        outcome = expected[row.value]
        if row.fits:
            assert row.peak_bytes == outcome
        else:
            wanted = {ks.ShapeError: "refused", ks.ScratchOverflowError: "overflow"}[outcome]
            assert row.verdict == wanted
    assert found.best is not None and found.best.value == 256
    assert all(row.makespan_ps is None and row.ratio is None for row in found)


def test_an_overflow_says_asked_in_use_budget_and_line():
    """The row tells what the error of a trace tells, and what the whole kernel would need."""
    row = ks.fit(flash_attention, "tile", [512])[512]
    with pytest.raises(ks.ScratchOverflowError) as caught:
        ks.trace(flash_attention.launch("2k"), tile=512)
    assert row.verdict == "overflow" and row.peak_bytes > BUDGET
    for number in ("262,144 B", "886,784 B of 1,048,576 B"):
        assert number in row.reason and number in str(caught.value)
    assert row.location.line == caught.value.places[0][1].line


def test_what_fits_need_not_be_a_range():
    """All values are tried: the best lies beyond values that do not fit."""
    found = ks.fit(half_filled, "rows", range(100, 1200, 100))
    assert [row.value for row in found if not row.fits] == [700, 1100]
    assert found.best.value == 1000 and found.next.value == 1100
    assert found.next.reason.startswith("f32[1100,256] takes 1,126,400 B with 0 B of 1,048,576 B in use")


def test_refusals_are_rows_with_the_kernels_own_reason():
    """A kernel may raise whatever it likes; the row names it and the kernel's line."""
    found = ks.fit(fill, "rows", range(1, 5))
    assert [row.verdict for row in found] == ["refused", "fits", "refused", "fits"]
    assert found[1].reason == "ValueError: 1 rows are odd"
    assert found[1].location.file == __file__ and found[1].location.function == "fill"
    assert found[1].peak_bytes is None

    def leaves(*, n: int) -> None:
        if n == 2:
            raise SystemExit(3)
        assert n != 3
        tl.zeros((n,), tl.float32)

    left = ks.fit(leaves, "n", [1, 2, 3])
    assert [row.reason for row in left] == ["", "SystemExit: 3", "AssertionError: assert 3 != 3"]


def test_an_interrupt_is_no_refusal():
    """Ctrl-C ends the search."""

    def interrupted(*, n: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ks.fit(interrupted, "n", [1])


def test_a_finding_at_error_level_stops_a_value_and_a_warning_does_not():
    """At 2 the value is read after its scope (an error); at 1 it is never used at all (a warning)."""

    def stale(o, *, n: int) -> None:
        with tl.scratch_scope():
            kept = tl.zeros((16, 16), tl.float32)
        if n == 2:
            tl.store(o[:, :], kept)

    found = ks.fit(stale, "n", [1, 2], o=ks.hbm((16, 16), "f32"))
    assert found[1].fits
    assert found[2].verdict == "finding" and found[2].reason.startswith("KS201 use-after-scope")
    assert found[2].location.file == __file__


def test_time_takes_the_fastest_that_fits():
    """The makespans are those of the policy list at effort fast; the best is the smallest of them."""
    found = ks.fit(flash_attention.launch("2k"), "tile", [32, 64, 128, 256, 512], goal="time")
    for row in found:
        if row.fits:
            made = ks.schedule(ks.trace(flash_attention.launch("2k"), tile=row.value), "list", effort="fast")
            assert (row.makespan_ps, row.bound_ps, row.ratio) == (made.makespan_ps, made.bound_ps, made.ratio)
    assert found[512].makespan_ps is None
    assert found.best.makespan_ps == min(row.makespan_ps for row in found if row.fits)


def test_of_equally_fast_values_the_smallest_is_taken():
    """A tie needs a rule: less is asked of the kernel."""

    def same(*, n: int) -> None:
        tl.zeros((16, 16), tl.float32)

    assert ks.fit(same, "n", [3, 1, 2], goal="time").best.value == 1
    assert ks.fit(same, "n", [3, 1, 2], goal="memory").best.value == 3


def test_a_deadlock_is_a_row():
    """Ranks that both wait first: the linter calls that an error, whatever the goal."""

    def ring(*, n: int) -> None:
        tile = tl.zeros((16, 16), tl.float32)
        if n == 1:
            tl.send("next", tile)
        tl.recv("prev", (16, 16), tl.float32)
        if n == 2:
            tl.send("next", tile)

    for goal in ("memory", "time"):
        found = ks.fit(ring, "n", [1, 2], goal=goal, ranks=2)
        assert found[1].fits and not found[2].fits
        assert "KS402" in found[2].reason or found[2].verdict == "deadlock"


def test_other_arguments_machine_and_ranks_come_from_the_launch_or_the_call():
    """A launch's arguments hold; keywords override them; a machine's budget counts."""
    assert ks.fit(flash_attention.launch("small"), "tile", [128]).title == "flash_attention:small"
    narrow = ks.load_machine("ahbm-pe").override({"scratch.bytes": "524288"})
    assert narrow.target.capacities.max() == 524288
    found = ks.fit(flash_attention, "tile", [32, 64, 128], machine=narrow)
    assert found.best.value == 64 and found.budget_bytes == 524288
    assert ks.fit(fill, "rows", [3], odd=True).best.value == 3
    assert ks.fit(functools.partial(fill, odd=True), "rows", [3]).best.value == 3


def test_values_are_sorted_and_tried_once():
    """Numbers of numpy count as Python's; order and repetition mean nothing."""
    found = ks.fit(fill, "rows", np.array([4, 2, 4]))
    assert [row.value for row in found] == [2, 4] and type(found[2].value) is int


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([], "no values"),
        (["a"], "'a' is no number"),
        ([True], "True is no number"),
        ([float("nan")], "nan is no number"),
        (7, "cannot be iterated"),
        (itertools.count(), "more than 10,000 values"),
    ],
)
def test_wrong_values_are_one_error(values, told):
    """No values, too many, or what is no number."""
    with pytest.raises(ks.ArgumentError, match=told) as caught:
        ks.fit(fill, "rows", values)
    assert caught.value.help


def test_what_is_wrong_for_every_value_raises():
    """A misspelt parameter, missing arguments, an unknown goal or machine are errors and no table of refusals."""
    with pytest.raises(ks.ArgumentError, match="did you mean 'rows'"):
        ks.fit(fill, "row", [1])
    with pytest.raises(ks.ArgumentError, match="missing a required argument"):
        ks.fit(lambda x, n: None, "n", [1])
    with pytest.raises(ks.OptionError, match="goal 'speed'"):
        ks.fit(fill, "rows", [2], goal="speed")
    with pytest.raises(ks.MachineError):
        ks.fit(fill, "rows", [2], machine="nowhere")
    with pytest.raises(ks.ArgumentError, match="cannot fit 3"):
        ks.fit(3, "rows", [2])


def test_the_table_and_its_conclusion():
    """The text names the best, what stops the next one, and the next that the kernel takes; HTML is escaped."""
    found = ks.fit(fill, "rows", range(1022, 1028))
    text = str(found)
    assert "rows = 1024 is the largest that fits: 1,048,576 B of scratch" in text
    assert "rows = 1025, the next one: refused, ValueError: 1025 rows are odd" in text
    assert "rows = 1026, the next one that the kernel takes: overflow" in text
    assert "1,050,624 B are needed in all" in text
    assert "nothing is known of larger ones" in str(ks.fit(fill, "rows", [2]))
    assert "no value fits; rows = 1" in str(ks.fit(fill, "rows", [1]))

    def rude(*, n: int) -> None:
        raise ValueError("<b>&\x1b[31m")

    html = ks.fit(rude, "n", [1])._repr_html_()
    assert "&lt;b&gt;&amp;" in html and "<b>" not in html and "\x1b" not in html


def test_long_runs_are_one_line():
    """A thousand refusals do not bury what was found; the best and the next stand alone."""
    text = str(ks.fit(flash_attention, "tile", range(200, 300)))
    assert len(text.splitlines()) < 12
    assert "200 to 255  refused" in text and "and 55 more like it" in text
    assert "258 to 299  refused" in text


def test_the_command_prints_the_table(kernscope):
    """The command is the function: same text; ``--goal``, ``--launch``, ``--set`` and ``--arg`` count."""
    target = "kernscope.kernels.flash_attention:flash_attention"
    done = kernscope("fit", target, "--param", "tile", "--range", "32:1024:32")
    assert done.status == 0 and done.err == ""
    assert done.out == f"{ks.fit(flash_attention, 'tile', range(32, 1025, 32))}\n"
    small = kernscope(
        "fit", target, "--param", "tile", "--range", "32:128:32", "--launch", "small", "--goal", "time",
        "--set", "scratch.bytes=65536", "--arg", "causal=False",
    )  # fmt: skip
    assert small.status == 0 and "flash_attention:small on" in small.out and "65,536 B of scratch" in small.out


def test_no_value_that_fits_is_exit_status_1_and_none_that_the_kernel_takes_2(kernscope, write):
    """The table is printed all the same; what the kernel prints goes to stderr."""
    path = write("""
        @ks.kernel
        def never(*, tile=1):
            print("tracing", tile)
            raise ValueError("never")
    """)
    done = kernscope("fit", path, "--param", "tile", "--range", "1:3", "--arg", "tile=1")
    assert done.status == 2 and "--arg tile with --param tile" in done.err
    path.write_text(path.read_text().replace("@ks.kernel", '@ks.launch("only")\n@ks.kernel'))
    done = kernscope("fit", path, "--param", "tile", "--range", "1:3")
    assert done.status == 2 and "no value fits" in done.out
    path.write_text(path.read_text().replace('raise ValueError("never")', 'tl.zeros((1 << 20, tile), "f32")'))
    assert kernscope("fit", path, "--param", "tile", "--range", "1:3").status == 1
    assert "tracing" not in done.out and "tracing 3" in done.err


@pytest.mark.parametrize(
    ("span", "told"),
    [
        ("32", "write LOW:HIGH"),
        ("a:b", "write LOW:HIGH"),
        ("64:32", "holds no value"),
        ("1:9:0", "holds no value"),
        ("0:1000000000000", "give a larger STEP"),
        ("", "write LOW:HIGH"),
        ("0:8:x2", "LOW is from 1"),
        ("9:8:x2", "LOW is from 1"),
        ("1:8:x1", "N of xN at least 2"),
        ("1:8:x", "write LOW:HIGH"),
    ],
)
def test_a_wrong_range_is_exit_status_2(kernscope, good, span, told):
    """One line and what to write."""
    done = kernscope("fit", good, "--param", "amount", "--range", span)
    assert done.status == 2 and told in done.err and "Traceback" not in done.err


def test_ranges_hold_both_ends():
    """``32:1024`` means up to and including 1,024."""
    assert list(parse_range("32:35")) == [32, 33, 34, 35]
    assert list(parse_range("32:128:32")) == [32, 64, 96, 128]
    assert list(parse_range("12:100:x2")) == [12, 24, 48, 96]
    assert list(parse_range("3:81:x3")) == [3, 9, 27, 81]
    assert list(parse_range("5:5:x2")) == [5]
    assert list(parse_range("-2:2:2")) == [-2, 0, 2]


def test_mistakes_of_the_command(kernscope, good):
    """A saved graph has no parameter; an unknown parameter is named with the nearest."""
    kernscope("trace", good, "-o", "graph.ksg")
    done = kernscope("fit", "graph.ksg", "--param", "amount", "--range", "1:2")
    assert done.status == 2 and "fit of a saved graph" in done.err
    done = kernscope("fit", good, "--param", "amout", "--range", "1:2")
    assert done.status == 2 and "did you mean 'amount'?" in done.err
    assert kernscope("fit", good, "--range", "1:2").status == 2


def test_a_value_with_which_nothing_is_done_does_not_fit() -> None:
    """Zero iterations take no scratch and no time, and are no kernel."""

    def rows_of(x: ks.HbmTensor, o: ks.HbmTensor, *, rows: int) -> None:
        for i in range(0, 32, rows):
            with tl.scratch_scope():
                tl.store(o[i : i + rows, :], tl.load(x[i : i + rows, :]) * 2)

    found = ks.fit(rows_of, "rows", (-8, 8, 16), goal="time", x=ks.hbm((32, 8), "f32"), o=ks.hbm((32, 8), "f32"))
    assert found[-8].verdict == "refused" and "does nothing" in found[-8].reason
    assert found.best is not None and found.best.value > 0


WIDE = """
    @ks.launch("first", x=ks.hbm((64, 64), "f32"))
    @ks.launch("wide", x=ks.hbm((2048, 512), "f32"), tile=1024)
    @ks.kernel
    def wide(x, *, tile=64, depth=1):
        for i in range(tl.program_id(0) * tile, x.shape[0], tl.num_programs(0) * tile):
            with tl.scratch_scope():
                rows = tl.load(x[i : i + tile, :])
                for _ in range(depth):
                    rows = tl.exp(rows)
                tl.store(x[i : i + tile, :], rows)
"""


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("lint", ()),
        ("lint", ("--set", "scratch.bytes=2097152")),
        ("lint", ("--machine", "ahbm-pe-2dma")),
        ("report", ("--set", "scratch.bytes=2097152")),
        ("report", ("--arg", "depth=3")),
        ("report", ("--arg", "tile=768", "--arg", "depth=2", "--arg", "x=f32[1536,512]")),
        ("schedule", ()),
        ("schedule", ("--arg", "depth=2", "--machine", "ahbm-pe-2dma", "--ranks", "2")),
        ("run", ("--arg", "depth=3", "--set", "scratch.bytes=2097152")),
    ],
)
def test_the_command_that_a_help_names_works_when_it_is_followed(kernscope, write, command, options):
    """Whichever command met the overflow: its help repeats all that was given but what it varies, every value in it
    divides the problem, and it finds the largest that fits on that very machine."""
    path = write(WIDE)
    done = kernscope(command, path, "--launch", "wide", *options)
    text = done.out if command == "lint" else done.err
    if command == "report":  # it goes on past an overflow, and shows the finding in its page
        text = html.unescape(path.with_name("wide.html").read_text(encoding="utf-8"))
    found = re.search(r"`kernscope (fit [^`]+)`", text)
    assert found is not None, text
    words = shlex.split(found[1])
    for option in options[1::2]:
        assert option in words or option.startswith("tile="), words
    followed = kernscope(*words)
    assert followed.status == 0, followed
    assert "refused" not in followed.out and "fits" in followed.out and "overflow" in followed.out
