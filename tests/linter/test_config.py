"""``[tool.kernscope.lint]``: found, read, and refused with all its mistakes."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

import kernscope as ks
from kernscope.ir.source.location import Location
from kernscope.linter import Diagnostic, LintReport, Place
from kernscope.linter.config import LintConfig, find_config

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write a pyproject.toml, in the current folder or one below it."""
    monkeypatch.chdir(tmp_path)

    def make(text: str, folder: str = ".") -> Path:
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        path = tmp_path / folder / "pyproject.toml"
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    return make


def test_every_key_is_read(write: Write, tmp_path: Path) -> None:
    """Spelt with dashes, as TOML's are."""
    write(
        """
        [tool.kernscope.lint]
        select = ["KS2", "scratch-overflow"]
        ignore = ["ks203"]
        exclude = ["old"]
        fail-on = "warning"
        per-file-ignores = { "*_naive.py" = ["KS1"] }
        options.KS102.percent = 80
        """
    )
    assert find_config("kernels/k.py") == LintConfig(
        select=("KS2", "scratch-overflow"),
        ignore=("ks203",),
        exclude=("old",),
        fail_on="warning",
        per_file_ignores={"*_naive.py": ("KS1",)},
        options={"KS102": {"percent": 80}},
        folder=str(tmp_path.resolve()),
    )


def test_the_nearest_one_that_speaks_of_kernscope_counts(write: Write) -> None:
    """One without the table is passed over; one with it ends the search."""
    write('tool.kernscope.lint.select = ["KS1"]')
    write('tool.kernscope.lint.select = ["KS2"]', "inner")
    write('project.name = "x"', "inner/most")
    assert find_config("k.py").select == ("KS1",)
    assert find_config(".").select == ("KS1",)
    assert find_config("inner/most/deep/k.py").select == ("KS2",)
    assert find_config("inner").select == ("KS2",)


def test_without_one_there_are_defaults(write: Write) -> None:
    """An empty table is one, too."""
    write("tool.kernscope.lint = {}", "inner")
    assert find_config("inner/k.py") == LintConfig(folder=str(Path("inner").resolve()))
    assert find_config("k.py").select == ()


def test_all_mistakes_are_told_at_once(write: Write) -> None:
    """Each with its path; unknown names with the nearest; what is right is not mentioned."""
    write(
        """
        [tool.kernscope]
        lnt = {}
        [tool.kernscope.lint]
        selct = ["KS2"]
        ignore = ["KS201", "KS20I", 3]
        select = ["KS210", "use-after-scop"]
        exclude = "old"
        fail-on = "warnings"
        folder = "x"
        per-file-ignores = { "a.py" = ["KS2"], "b.py" = "KS2", "c.py" = ["KS777"] }
        [tool.kernscope.lint.options]
        KS102 = { percent = "80", percnt = 80 }
        KS1O2.percent = 80
        KS101 = 3
        """
    )
    with pytest.raises(ks.OptionError) as caught:
        find_config("k.py")
    told = dict(
        line.removeprefix("pyproject.toml: tool.kernscope.").split(": ", 1)
        for line in caught.value.message.splitlines()
    )
    assert set(told) == {
        "lnt",
        "lint.selct",
        "lint.folder",
        "lint.ignore[2]",
        "lint.select[0]",
        "lint.select[1]",
        "lint.exclude",
        "lint.fail-on",
        "lint.per-file-ignores.b.py",
        "lint.per-file-ignores.c.py[0]",
        "lint.options.KS102.percent",
        "lint.options.KS102.percnt",
        "lint.options.KS1O2",
        "lint.options.KS101",
    }
    assert told["lnt"] == "unknown key; did you mean 'lint'?"
    assert told["lint.selct"] == "unknown key; did you mean 'select'?"
    assert "did you mean 'use-after-scope'?" in told["lint.select[1]"]
    assert "did you mean 'warning'?" in told["lint.fail-on"]
    assert "did you mean 'percent'?" in told["lint.options.KS102.percnt"]
    assert told["lint.ignore[2]"] == "must be a string, not 3"


@pytest.mark.parametrize("text", ["a = [", "[tool]\nkernscope = 3\n", 'tool.kernscope.lint = "all"'])
def test_what_is_no_table_is_refused(write: Write, text: str) -> None:
    """With the file's name."""
    write(text)
    with pytest.raises(ks.OptionError, match=r"pyproject\.toml: "):
        find_config("k.py")


def test_what_is_not_utf8_is_refused(write: Write) -> None:
    """As broken TOML is."""
    write("").write_bytes(b'name = "\xff"')
    with pytest.raises(ks.OptionError, match="cannot be read"):
        find_config("k.py")


def test_the_command_line_wins() -> None:
    """A selection replaces both lists; ignoring adds; fail-on is replaced."""
    config = LintConfig(select=("KS1", "KS2"), ignore=("KS203",), fail_on="warning")
    assert config.overridden() == config
    selected = config.overridden(select=["KS203"])
    assert (selected.select, selected.ignore) == (("KS203",), ())
    ignored = config.overridden(ignore=["KS201"])
    assert (ignored.select, ignored.ignore) == (("KS1", "KS2"), ("KS203", "KS201"))
    assert config.overridden(fail_on="error").fail_on == "error"


PATTERNS = [
    ("k_naive.py", "kernels/k_naive.py", True),
    ("*_naive.py", "kernels/k_naive.py", True),
    ("kernels/*", "kernels/deep/k.py", True),
    ("kernels/**", "kernels/deep/k.py", True),
    ("**/k.py", "k.py", True),
    ("./kernels/k.py", "kernels/k.py", True),
    ("k.py", "kernels/k_naive.py", False),
    ("kernels/*", "other/k.py", False),
    ("deep/*", "kernels/deep/k.py", False),
    ("K.py", "k.py", False),
]


def found_in(file: str | None, code: str = "KS201") -> LintReport:
    places = () if file is None else (Place("read here", Location(file, 1)),)
    return LintReport("k", (Diagnostic(code, "n", "error", "m", places),))


@pytest.mark.parametrize(("pattern", "file", "fits"), PATTERNS)
def test_patterns(tmp_path: Path, pattern: str, file: str, fits: bool) -> None:
    """Relative to the configuration's folder, or a name alone; letters' case matters."""
    config = LintConfig(per_file_ignores={pattern: ("KS2",)}, exclude=(pattern,), folder=str(tmp_path))
    assert (len(config.apply(found_in(str(tmp_path / file)))) == 0) is fits
    assert config.excludes(str(tmp_path / file)) is fits


def test_an_excluded_folder_holds_excluded_files(tmp_path: Path) -> None:
    """Folders above the configuration have no say."""
    config = LintConfig(exclude=("old", tmp_path.name), folder=str(tmp_path))
    assert config.excludes(str(tmp_path / "a" / "old" / "b" / "k.py"))
    assert not config.excludes(str(tmp_path / "a" / "k.py"))


def test_per_file_ignores_ask_for_the_file_of_the_finding(tmp_path: Path) -> None:
    """A kernel's helper lies in another file; a finding without a place lies in the kernel's. Other rules stay."""
    config = LintConfig(per_file_ignores={"helpers.py": ("use-after-scope",)}, folder=str(tmp_path))
    inside, outside = str(tmp_path / "helpers.py"), str(tmp_path / "k.py")
    assert len(config.apply(found_in(inside), outside)) == 0
    assert len(config.apply(found_in(outside), inside)) == 1
    assert len(config.apply(found_in(None), inside)) == 0
    assert len(config.apply(found_in(None))) == 1
    assert len(config.apply(found_in(inside, "KS202"))) == 1


def test_help_names_every_key(write: Write) -> None:
    """The error's help does not go stale."""
    write("tool.kernscope.lint.x = 1")
    with pytest.raises(ks.OptionError) as caught:
        find_config("k.py")
    keys = re.findall(r"[a-z-]+", caught.value.help.partition(": ")[2])
    assert keys == ["select", "ignore", "per-file-ignores", "exclude", "fail-on", "options"]
