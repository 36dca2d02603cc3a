"""What commands print, to the word: not only that they end well."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

import kernscope as ks
from kernscope.machine.description import machine_names

Kernscope = Callable[..., Any]

MANY_STALE = """
    @ks.launch("small", x=ks.hbm((16, 16), "f32"), o=ks.hbm(({count}, 16), "f32"))
    @ks.kernel
    def stale(x, o):
        with tl.scratch_scope():
            t = tl.load(x[0:1, :])
        tl.zeros((1, 16), tl.float32)
        for row in range({count}):
            tl.store(o[row : row + 1, :], t)
"""


def test_saving_a_graph_prints_nothing_but_where(kernscope: Kernscope, good: Path, tmp_path: Path) -> None:
    """``trace -o`` leaves standard output empty, says on the other one what it wrote, and the file is that graph."""
    done = kernscope("trace", good, "--launch", "small", "-o", "saved.ksg")
    assert (done.status, done.out, done.err) == (0, "", "wrote saved.ksg: 3 nodes\n")
    assert str(ks.load(tmp_path / "saved.ksg")) == kernscope("trace", good, "--launch", "small").out


def test_a_saved_graph_is_scheduled_on_the_machine_asked_for(kernscope: Kernscope, good: Path) -> None:
    """``--machine`` holds for a saved graph as for a kernel; without it, the machine that it was traced for."""
    kernscope("trace", good, "--launch", "small", "-o", "saved.ksg")
    asked = kernscope("schedule", "saved.ksg", "--machine", "ahbm-pe-2dma")
    assert asked.status == 0 and "ahbm-pe-2dma" in asked.out
    own = kernscope("schedule", "saved.ksg")
    assert own.status == 0 and "ahbm-pe" in own.out and "ahbm-pe-2dma" not in own.out
    for option, value in (("--launch", "small"), ("--ranks", "2"), ("--arg", "amount=2.0")):
        refused = kernscope("schedule", "saved.ksg", option, value)
        assert refused.status == 2 and f"{option} with a saved graph" in refused.err


def test_machine_lists_or_shows(kernscope: Kernscope) -> None:
    """Without a name the presets, one a line; with a name or an override a description that reads back."""
    assert kernscope("machine").out.split() == list(machine_names())
    shown = kernscope("machine", "--set", "gemm.rows=7")
    assert shown.status == 0 and "rows = 7" in shown.out
    assert "rows = 64" in kernscope("machine", "ahbm-pe").out


@pytest.mark.parametrize("count", [1, 10, 11, 13])
def test_ten_accesses_of_a_kind_are_shown_and_the_rest_counted(
    kernscope: Kernscope, write: Callable[..., Path], count: int
) -> None:
    """Each with its line of the text form; more than ten end in a number."""
    done = kernscope("run", write(MANY_STALE.format(count=count)), "--poison")
    assert done.status == 1
    lines = done.out.splitlines()
    (at,) = [number for number, line in enumerate(lines) if line.startswith(f"{count} stale read")]
    assert sum("store t@" in line for line in lines[at:]) == min(count, 10)
    assert done.out.endswith(f"  and {count - 10} more; `kernscope lint` explains them\n") == (count > 10)


def test_a_module_that_is_not_there_is_told_from_one_that_fails(
    kernscope: Kernscope, write: Callable[..., Path], tmp_path: Path
) -> None:
    """The name that is missing is the module's own, or one that it imports itself."""
    (tmp_path / "a_folder").mkdir()
    (tmp_path / "a_folder" / "inner.py").write_text("import no_such_module_there\n", encoding="utf-8")
    for name in ("no_such_folder.inner", "a_folder.outer"):
        missing = kernscope("trace", f"{name}:k")
        assert missing.status == 2 and f"no module {name!r}" in missing.err
    failing = kernscope("trace", "a_folder.inner:k")
    assert failing.status == 2 and "no_such_module_there" in failing.err
    assert "no module 'a_folder.inner'" not in failing.err


WAYS = """
    @ks.launch("kept", x=ks.hbm((16, 64), "f32"), o=ks.hbm((16, 1), "f32"), carry=True)
    @ks.launch("lost", x=ks.hbm((16, 64), "f32"), o=ks.hbm((16, 1), "f32"), carry=False)
    @ks.kernel
    def row_sum(x, o, *, carry):
        total = tl.zeros((16, 1), tl.float32)
        for j in range(0, x.shape[1], 16):
            with tl.scratch_scope():
                part = tl.sum(tl.load(x[:, j : j + 16]), axis=1, keep_dims=True)
                if carry:
                    tl.copy_to(total, total + part)
                else:
                    total = total + part
        tl.store(o[:, :], total)
"""


def test_a_finding_of_one_launch_says_where_another_went_another_way(
    kernscope: Kernscope, write: Callable[..., Path]
) -> None:
    """Only then: a launch alone, and one whose branches are not known, says nothing of it."""
    path = write(WAYS)
    note = "  = launch kept does not have this; it goes another way at mine.py:13: `carry`: false here, true there"
    for jobs in ("0", "1"):
        assert kernscope("lint", path, "--jobs", jobs).out.splitlines().count(note) == 2
    assert "another way" not in kernscope("lint", path, "--launch", "lost").out
    quiet = kernscope("lint", path, "--output-format", "concise").out
    assert "another way" not in quiet and quiet.count("KS201") == 2


def test_branches_are_printed(kernscope: Kernscope, write: Callable[..., Path]) -> None:
    """Of a kernel, and of a graph saved with them; one that was saved without them is refused, and told how to get
    them."""
    path = write(WAYS)
    expected = (
        "mine.py:10: for `range(0, x.shape[1], 16)`: ran 4 times (x.shape=(16, 64)); depends on x.shape\n"
        "mine.py:13: if `carry`: true, 4 times (carry=True); depends on carry\n"
    )
    assert kernscope("trace", path, "--branches").out == expected
    assert kernscope("trace", path, "-o", "saved.ksg").status == 0
    assert kernscope("trace", "saved.ksg", "--branches").out == expected
    attrs.evolve(ks.load("saved.ksg"), branches=None).save("bare.ksg")
    done = kernscope("trace", "bare.ksg", "--branches")
    assert done.status == 2 and "save the graph again with `kernscope trace -o`" in done.err
