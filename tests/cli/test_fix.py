"""``lint --fix`` writes what findings propose, and puts it back where that was wrong; ``lint --watch`` lints again."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
from pathlib import Path

import attrs
import click
import pytest

from kernscope.cli import fixing
from kernscope.linter.edits import Edit, Fix
from kernscope.linter.findings import Diagnostic, LintReport
from kernscope.linter.fixes.applying import plan_fixes

UNUSED = """
    @ks.launch("small", x=ks.hbm((16, 16), "f32"), o=ks.hbm((16, 16), "f32"))
    @ks.launch("again", x=ks.hbm((16, 16), "f32"), o=ks.hbm((16, 16), "f32"))
    @ks.kernel
    def unused(x, o):
        t = tl.load(x[:, :])
        tl.exp(t)
        tl.sqrt(t)
        tl.store(o[:, :], t)
"""


@pytest.fixture
def unused(write) -> Path:
    return write(UNUSED, "unused.py")


def test_the_difference_is_shown_and_nothing_is_written_unasked(kernscope, unused):
    """Without a terminal and without --yes: the findings are as without --fix, and so is the exit status."""
    before = unused.read_bytes()
    plain = kernscope("lint", unused)
    shown = kernscope("lint", unused, "--fix")
    assert unused.read_bytes() == before and shown.status == plain.status
    assert "-    tl.exp(t)\n" in shown.out and "@@" in shown.out and shown.out.endswith(plain.out)
    assert "2 fixes in 1 file not applied: say --yes" in shown.err


def test_fixes_are_applied_once_for_all_launches(kernscope, unused):
    """Both lines go, whichever launches have the finding; what is told is what is found afterwards."""
    assert kernscope("lint", unused).out.count("KS302") == 4
    done = kernscope("lint", unused, "--fix", "--yes")
    text = unused.read_text(encoding="utf-8")
    assert "exp" not in text and "sqrt" not in text and "tl.store(o[:, :], t)" in text
    assert done.status == 0 and "KS302" not in done.out and "applied 2 fixes in 1 file" in done.err
    assert "nothing to fix" in kernscope("lint", unused, "--fix", "--yes").err


def test_a_chain_of_errors_is_fixed_until_none_is_left(kernscope, write):
    """The README's fault: a value that is carried out of its scope."""
    path = write("""
        @ks.launch("small", x=ks.hbm((16, 64), "f32"), o=ks.hbm((16, 1), "f32"))
        @ks.kernel
        def row_sum(x, o):
            total = tl.zeros((16, 1), tl.float32)
            for j in range(0, 64, 16):
                with tl.scratch_scope():
                    total += tl.sum(tl.load(x[:, j : j + 16]), axis=1, keep_dims=True)
            tl.store(o[:, :], total)
    """)
    assert kernscope("lint", path).status == 1
    assert kernscope("lint", path, "--fix", "--yes").status == 0
    assert "tl.copy_to(total, total + tl.sum(" in path.read_text(encoding="utf-8")


def test_line_ends_and_encoding_are_kept(kernscope, write):
    """A file of another system's line ends, and one of another encoding, differ by the fix alone."""
    path = write(UNUSED)
    text = path.read_text(encoding="utf-8")
    source = ("# -*- coding: latin-1 -*-\n# caf\xe9\n" + text).replace("\n", "\r\n").encode("latin-1")
    path.write_bytes(source)
    assert kernscope("lint", path, "--fix", "--yes").status == 0
    expected = source.replace(b"    tl.exp(t)\r\n", b"").replace(b"    tl.sqrt(t)\r\n", b"")
    assert path.read_bytes() == expected != source


def test_a_suppressed_finding_is_not_fixed(kernscope, write):
    """Nor one of a rule that is not selected."""
    path = write(UNUSED.replace("tl.exp(t)", "tl.exp(t)  # kernscope: ignore[KS302]"))
    assert "tl.exp(t)" not in kernscope("lint", path, "--fix").out.replace("ignore[KS302]", "").split("\n-")[1]
    kernscope("lint", path, "--fix", "--yes", "--select", "KS201")
    assert "tl.sqrt(t)" in path.read_text(encoding="utf-8")
    kernscope("lint", path, "--fix", "--yes")
    text = path.read_text(encoding="utf-8")
    assert "tl.exp(t)" in text and "tl.sqrt(t)" not in text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("    raise RuntimeError\n", "the kernels are worse for it"),
        ("    with tl.scratch_scope():\n        t = tl.load(x[:, :])\n", "the kernels are worse for it"),
        ("    tl.exp(t)  # still\n", "no finding is gone"),
    ],
)
def test_what_makes_it_worse_is_put_back(kernscope, unused, monkeypatch, text, why):
    """A launch that fails, an error more, or no finding less: every byte is as it was, and it is said."""
    before = unused.read_bytes()
    line = before.decode().splitlines().index("    tl.exp(t)") + 1
    plan = fixing.plan_fixes

    def wrong(reports, may_edit):
        fix = Fix("wrong", (Edit(str(unused), line, line, text),))
        changed = [attrs.evolve(r, diagnostics=tuple(attrs.evolve(d, fixes=(fix,)) for d in r)) for r in reports]
        return plan(changed, may_edit)

    monkeypatch.setattr(fixing, "plan_fixes", wrong)
    done = kernscope("lint", unused, "--fix", "--yes")
    assert unused.read_bytes() == before
    assert f"nothing was changed: {why}" in done.err and "KS302" in done.out


def test_files_of_others_are_left_alone(kernscope, write, tmp_path, monkeypatch):
    """A helper that somebody installed is not edited: its fix is counted."""
    installed = tmp_path / "site-packages"
    installed.mkdir()
    (installed / "helpers_of_others.py").write_text("from kernscope import tl\n\n\ndef waste(t):\n    tl.exp(t)\n")
    monkeypatch.syspath_prepend(installed)
    path = write("""
        from helpers_of_others import waste

        @ks.launch("small", x=ks.hbm((16, 16), "f32"), o=ks.hbm((16, 16), "f32"))
        @ks.kernel
        def copy(x, o):
            t = tl.load(x[:, :])
            waste(t)
            tl.store(o[:, :], t)
    """)
    assert "KS302" in kernscope("lint", path).out
    assert "fix for files elsewhere" in kernscope("lint", path, "--fix", "--yes").err
    assert "tl.exp(t)" in (installed / "helpers_of_others.py").read_text()


@pytest.mark.parametrize(
    "words",
    [
        ("--fix", "--watch"),
        ("--yes",),
        ("--fix", "--output-format", "json"),
        ("--watch", "--output-format", "sarif"),
    ],
)
def test_options_that_do_not_go_together(kernscope, unused, words):
    """One error, and nothing is done."""
    done = kernscope("lint", unused, *words)
    assert done.status == 2 and "KE501" in done.err and done.out == ""


def report(*fixes: Fix) -> LintReport:
    return LintReport("k", tuple(Diagnostic("KS302", "x", "warning", "m", fixes=(fix,)) for fix in fixes))


def test_fixes_that_touch_the_same_lines_wait(tmp_path):
    """The first one is taken, whole; one that overlaps it, or leaves no Python, is counted and leaves no trace."""
    one, two = tmp_path / "one.py", tmp_path / "two.py"
    one.write_text("a = 1\nb = 2\nc = 3\n")
    two.write_text("d = 4\n")
    plan = plan_fixes(
        [
            report(
                Fix("first", (Edit(str(one), 1, 2, "a = 0\n"),)),
                Fix("overlaps in its second file", (Edit(str(two), 1, 1, ""), Edit(str(one), 2, 2, ""))),
                Fix("no Python", (Edit(str(one), 3, 3, "c = (\n"),)),
                Fix("first", (Edit(str(one), 1, 2, "a = 0\n"),)),
                Fix("gone", (Edit(str(tmp_path / "none.py"), 1, 1, ""),)),
            )
        ],
        lambda file: True,
    )
    assert [fix.title for fix in plan.fixes] == ["first"] and plan.waiting == 3
    assert {change.file: change.after for change in plan.changes} == {str(one): b"a = 0\nc = 3\n"}


def test_watching_lints_again_after_a_change(stale: Path, tmp_path: Path):
    """The findings, after a save those of the new text (a change beside the file too), and Ctrl-C ends it well."""
    program = subprocess.Popen(
        [sys.executable, "-u", "-m", "kernscope", "lint", "--watch", str(stale)],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "NO_COLOR": "1"},
    )
    assert program.stdout is not None and program.stderr is not None
    lines: queue.Queue[str] = queue.Queue()
    readers = [
        threading.Thread(target=lambda stream=stream: [lines.put(line) for line in stream], daemon=True)
        for stream in (program.stdout, program.stderr)
    ]
    for reader in readers:
        reader.start()

    def until_watching() -> str:
        told = ""
        while "Ctrl-C ends it" not in told or "stale:small:" not in told:
            told += lines.get(timeout=60)
        return told

    try:
        assert "KS201" in until_watching()
        text = stale.read_text(encoding="utf-8")
        stale.write_text(text.replace("    tl.store(o", "        tl.store(o"), encoding="utf-8")
        assert "no findings" in until_watching()
        (tmp_path / "beside.py").write_text("")
        assert "no findings" in until_watching()
        program.send_signal(signal.SIGINT)
        assert program.wait(timeout=60) == 0
    finally:
        program.kill()
        program.wait()
        for reader in readers:
            reader.join()
        program.stdout.close()
        program.stderr.close()


def test_there_has_to_be_something_to_watch(kernscope):
    """A module is no file to look at."""
    done = kernscope("lint", "--watch", "kernscope.kernels.softmax:softmax")
    assert done.status == 2 and "give files or folders" in done.err


def test_the_difference_has_colours(kernscope, unused):
    """Lines that go are red; without the colours it is the same text."""
    painted = kernscope("lint", unused, "--fix", "--color", "always").out
    assert "\x1b[31m-    tl.exp(t)" in painted
    assert click.unstyle(painted) == kernscope("lint", unused, "--fix").out
