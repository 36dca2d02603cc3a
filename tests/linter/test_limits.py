"""Lists that a finding cuts at a limit: one less, exactly as many, and one more than are shown; and one or several."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kernscope as ks
from kernscope.ir.source.location import Location
from kernscope.linter import Diagnostic, LintReport
from kernscope.linter.source_places import shares_its_line

from .rules.rulecases import body

Lint = Callable[..., LintReport]
X: Any = ks.hbm((64, 64), "f32")


def lines(text: str, count: int) -> str:
    """A line for each number, which stands in the place of a %."""
    return "\n".join(text.replace("%", str(n)) for n in range(count))


def holding(finding: Diagnostic) -> int:
    return sum(place.role.startswith("holds ") for place in finding.locations)


@pytest.mark.parametrize(("count", "shown"), [(1, 1), (4, 4), (5, 5), (6, 5)])
def test_a_growing_loop_shows_the_lines_that_hold_the_most(lint: Lint, count: int, shown: int) -> None:
    """KS103: five of them."""
    text = "for j in range(4):\n" + lines("    t% = tl.load(x[%, :])\n    tl.store(o[%, :], t%)\n", count)
    (finding,) = lint(body(text), X, X, select=["KS103"])
    assert holding(finding) == shown


@pytest.mark.parametrize(("count", "shown"), [(1, 1), (4, 4), (5, 5), (6, 5)])
def test_an_oversized_scope_shows_the_lines_that_hold_the_most(lint: Lint, count: int, shown: int) -> None:
    """KS104: five of them."""
    text = (
        "with tl.scratch_scope():\n"
        + lines("    t% = tl.load(x[%, :])\n", count)
        + lines("    tl.store(o[%, :], t%)\n", count)
        + "    b = tl.load(x[0:16, :])\n    tl.store(o[0:16, :], b)\n"
    )
    (finding,) = lint(body(text), X, X, select=["KS104"], options={"KS104": {"percent": 0}})
    assert holding(finding) == shown


@pytest.mark.parametrize(
    ("count", "hidden"),
    [
        (9, ""),
        (10, ""),
        (11, "; 1 line not shown holds 131,072 B"),
        (12, "; 2 lines not shown hold 262,144 B"),
    ],
)
def test_an_overflow_shows_the_lines_that_hold_the_most(lint: Lint, count: int, hidden: str) -> None:
    """KS101: ten of them, and what the others hold."""
    text = lines("t% = tl.load(x[%, :])", count) + "\n" + lines("tl.store(o[%, :], t%)", count)
    wide: Any = ks.hbm((16, 32768), "f32")
    (finding,) = lint(body(text), wide, wide, select=["KS101"])
    assert holding(finding) == min(count, 10)
    assert finding.message.endswith(f"the budget is 1,048,576 B{hidden}")


@pytest.mark.parametrize(("count", "shown"), [(1, 1), (4, 4), (5, 4)])
def test_a_partly_stored_output_shows_the_lines_that_store_the_rest(lint: Lint, count: int, shown: int) -> None:
    """KS504: the first four."""
    text = "t = tl.load(x[0, :])\n" + lines("tl.store(o[%, :], t)", count)
    (finding,) = lint(body(text), X, X, select=["KS504"])
    assert [place.location.line for place in finding.locations] == [7 + n for n in range(shown)]


@pytest.mark.parametrize(
    ("count", "names"),
    [(1, "`s0`"), (4, "`s0`, `s1`, `s2`, `s3`"), (5, "`s0`, `s1`, `s2`, `s3` and 1 more")],
)
def test_what_must_outlive_a_scope_is_named(lint: Lint, count: int, names: str) -> None:
    """KS103, of a loop on whose lines too much is carried for an edit: four names."""
    together = "; ".join(f"s{n} = s{n} + row" for n in range(count))
    text = (
        lines("s% = tl.load(x[%, :])", count)
        + f"\nother = s0\nfor j in range(8):\n    row = tl.load(x[j, :])\n    {together}\ntl.store(o[0, :], other)\n"
        + lines("tl.store(o[%, :], s%)", count)
    )
    (finding,) = lint(body(text), X, X, select=["KS103"])
    assert finding.help.endswith(
        f"; {names} must not go with it: make a handle before the loop and `tl.copy_to` into it"
    )


@pytest.mark.parametrize(("callers", "more"), [(1, ""), (4, ""), (5, "1 more call"), (6, "2 more calls")])
def test_the_calls_that_led_to_a_line_are_shown(lint: Lint, callers: int, more: str) -> None:
    """The nearest four, and how many there are besides."""
    inner = "def call0(x, o):\n    a = tl.load(x[0, :])\n    unused = tl.exp(a)\n    tl.store(o[0, :], a)\n"
    helpers = "".join(f"def call{n}(x, o):\n    call{n - 1}(x, o)\n" for n in range(1, callers))
    kernel = f"@ks.kernel\ndef kernel(x, o):\n    call{callers - 1}(x, o)\n"
    (finding,) = lint(inner + helpers + kernel, X, X, select=["KS302"])
    told = [line.removeprefix("  = ") for line in str(finding).splitlines() if line.startswith("  = ")]
    assert [line.startswith("called from") for line in told].count(True) == min(callers, 4)
    assert [line.removeprefix("... and ") for line in told if line.startswith("...")] == ([more] if more else [])


@pytest.mark.parametrize(
    ("unused", "message", "help"),
    [
        ((), "stores nothing", "`tl.store(o[...], ...)`"),
        (("a",), "stores nothing: `a` stays as before", "`tl.store(a[...], ...)`"),
        (("a", "b"), "stores nothing: `a`, `b` stay as before", "`tl.store(b[...], ...)` or `tl.store(a[...], ...)`"),
    ],
)
def test_one_output_stays_and_several_stay(lint: Lint, unused: tuple[str, ...], message: str, help: str) -> None:
    """KS505: of those that nothing uses the last one first."""
    text = f"@ks.kernel\ndef kernel(x, {', '.join(unused)}):\n    tl.load(x[0, :])\n"
    (finding,) = lint(text, X, *(X for _ in unused), select=["KS505"])
    assert finding.message == f"kernel {message}"
    assert finding.help == f"write the result to HBM: {help}"


@pytest.mark.parametrize(
    ("times", "message"), [(1, "in one command"), (2, "in one command, 2 times"), (1000, "in one command, 1,000 times")]
)
def test_once_is_not_counted(lint: Lint, times: int, message: str) -> None:
    """How often a fault occurs, where it is more than once."""
    text = (
        f"a = tl.load(x[:, :])\nfor j in range({times}):\n    tl.copy_to(a[1:64, :], a[0:63, :])\ntl.store(o[:, :], a)"
    )
    (finding,) = lint(body(text), X, X, select=["KS205"])
    assert finding.message.endswith(message) and len(finding.nodes) == times


@pytest.mark.parametrize(
    ("faulty", "of", "where"),
    [
        ("True", 1, ""),
        ("True", 2, " on all 2 ranks"),
        ("rank == 1", 2, " on rank 1"),
        ("rank > 0", 4, " on 3 of 4 ranks, the first is 1"),
    ],
)
def test_the_ranks_of_a_fault_are_told(lint: Lint, faulty: str, of: int, where: str) -> None:
    """None where there is one; all; the one; or how many, and the first."""
    text = (
        "rank = tl.program_id(0)\n"
        f"if {faulty}:\n    for j in range(4):\n        tl.store(o[rank, :], tl.load(x[rank, :]))\n"
    )
    (finding,) = lint(body(text), X, X, ranks=of, select=["KS103"])
    assert f"per iteration of line 8{where} (4 iterations)" in finding.message


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(
    "line",
    [
        "«tl.exp(a)»",
        "b = «tl.exp(a)»",
        "b=«tl.exp(a)»",
        "b: object = «tl.exp(a)»",
        "b = c = «tl.exp(a)»  # a comment; b, c = 0, 0",
        "b += «tl.exp(a)»",
        "b = («tl.exp(a)»)",
        "b = (\n  «tl.exp(\na)»\n)",
        "ü = «tl.exp(a)»",
    ],
)
def test_what_shares_its_line_is_known(tmp_path: Path, line: str, shared: bool) -> None:
    """Names that it is assigned to and comments are no other code; anything before it or after it is."""
    for before, after in [("c, ", ", a"), ("print(", ")"), ("d = 1; ", ""), ("", "; d = 1")] if shared else [("", "")]:
        text = line.replace("\n  «", "«").replace("»\n)", "»)") if shared else line
        text = text.replace("«", f"{before}«").replace("»", f"»{after}")
        start, stop = text.index("«"), text.replace("«", "").index("»")
        plain = text.replace("«", "").replace("»", "")
        path = tmp_path / "lines.py"
        path.write_text(plain, encoding="utf-8")
        (first, column), (last, end) = (
            (plain[:at].count("\n") + 1, len(plain[:at].rpartition("\n")[2].encode())) for at in (start, stop)
        )
        place = Location(str(path), first, "f", column=column, end_line=last, end_column=end)
        assert shares_its_line(place) is shared, text
        assert not shares_its_line(Location(str(path), first, "f"))
