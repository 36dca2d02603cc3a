"""Colours, quiet, versions and completion: what every command has of a terminal."""

from __future__ import annotations

import json
import sys
from importlib import metadata
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from kernscope.cli.app import app
from kernscope.ir.errors import ERRORS
from kernscope.linter import RULES
from kernscope.machine.description import machine_names
from kernscope.scheduler.policy.registry import POLICIES

RED = "\x1b[31m"


def is_painted(text: str) -> bool:
    return click.unstyle(text) != text


@pytest.mark.parametrize("flag", ["-V", "--version"])
def test_the_version_has_a_short_flag(kernscope, flag):
    """Both print the installed version."""
    assert metadata.version("kernscope") in kernscope(flag).out


@pytest.mark.parametrize("form", ["full", "concise"])
def test_colours_add_nothing_but_colours(kernscope, stale, form):
    """A finding in colours says, without them, what it says plainly."""
    plain = kernscope("lint", stale, "--output-format", form)
    painted = kernscope("--color", "always", "lint", stale, "--output-format", form)
    assert is_painted(painted.out) and not is_painted(plain.out)
    assert click.unstyle(painted.out) == plain.out and "KS201" in plain.out
    assert painted.status == plain.status == 1


def test_severity_carets_and_help_have_colours(kernscope, stale):
    """Each of these parts of a finding, and no line of the source."""
    lines = kernscope("lint", stale, "--color=always").out.splitlines()
    head, caret = lines[0], next(line for line in lines if "^^^" in line)
    assert head.startswith("\x1b[31m\x1b[1merror[KS201]\x1b[0m:")
    assert f"{RED}^^^" in caret
    assert any("\x1b[32m\x1b[1mhelp\x1b[0m" in line for line in lines)
    source = [line for line in lines if "tl.store(" in line and "^" not in line and "help" not in line]
    assert source and all(is_painted(line) and "tl.store(o[:, :], t + 1)" in line for line in source)


@pytest.mark.parametrize("form", ["json", "sarif", "github"])
def test_what_programs_read_has_no_colours(kernscope, stale, form):
    """Whatever is asked for."""
    assert not is_painted(kernscope("lint", stale, "--output-format", form, "--color", "always").out)


@pytest.mark.parametrize(
    ("environment", "option", "painted"),
    [
        ({}, None, False),
        ({"FORCE_COLOR": "1"}, None, True),
        ({"NO_COLOR": "1"}, None, False),
        ({"NO_COLOR": "", "FORCE_COLOR": ""}, None, False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, None, False),
        ({"NO_COLOR": "1"}, "always", True),
        ({"FORCE_COLOR": "1"}, "never", False),
        ({"FORCE_COLOR": "1"}, "auto", False),
    ],
)
@pytest.mark.parametrize("what", ["finding", "error"])
def test_the_option_wins_over_the_environment(kernscope, stale, monkeypatch, environment, option, painted, what):
    """NO_COLOR wins over FORCE_COLOR, an empty one says nothing; errors of every command follow, too."""
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    arguments = {"finding": ["lint", stale], "error": ["schedule", stale, "--launch", "none"]}
    done = kernscope(*arguments[what], *([] if option is None else ["--color", option]))
    assert is_painted(done.out + done.err) == painted


def test_an_unknown_colour_is_told_the_nearest(kernscope):
    """As every option's value."""
    assert "Did you mean 'always'?" in kernscope("lint", "x.py", "--color", "alway").err


@pytest.mark.parametrize("place", ["before", "after"])
def test_quiet_leaves_results_and_errors(kernscope, good, place):
    """What was written where is a note; a graph printed is a result, and so are findings; errors are told."""

    def quiet(*arguments: object):
        return kernscope(*(["-q", *arguments] if place == "before" else [*arguments, "--quiet"]))

    assert quiet("trace", good, "-o", "graph.ksg")[:] == (0, "", "")
    assert quiet("trace", good).out == kernscope("trace", good).out
    assert quiet("timeline", good, "-o", "t.json")[:] == (0, "", "")
    assert "wrote" in kernscope("report", good).out and "wrote" not in quiet("report", good).out
    assert quiet("lint", good).out == kernscope("lint", good).out != ""
    assert "KE106" in quiet("schedule", good, "--launch", "none").err


def test_quiet_linting_has_no_notes(kernscope, write):
    """A kernel without a launch is a note."""
    bare = write("@ks.kernel\ndef bare(x):\n    pass\n")
    assert kernscope("lint", bare).err != "" and kernscope("lint", bare, "-q").err == ""


@pytest.mark.parametrize("name", sorted(app.commands))
def test_every_command_has_the_shared_options(name):
    """Once each, and the group has them as well."""
    for command in (app.commands[name], app):
        options = [option for parameter in command.params for option in parameter.opts]
        assert [options.count(option) for option in ("--debug", "--quiet", "-q", "--color")] == [1, 1, 1, 1]


def complete(*words: str) -> list[str]:
    """What a shell is offered for the last word."""
    shell = ShellComplete(app, {}, "kernscope", "_KERNSCOPE_COMPLETE")
    return [
        f"<{item.type}>" if item.type != "plain" else str(item.value)
        for item in shell.get_completions(list(words[:-1]), words[-1])
    ]


def test_names_are_completed(good: Path):
    """Files, kernels of a file, its launches, machines and their fields, policies, codes."""
    assert complete("lint", "ker") == complete("schedule", "") == ["<file>"]
    assert complete("schedule", f"{good}::") == [f"{good}::plus_one"]
    assert complete("schedule", str(good), "--launch", "") == ["small", "wide"]
    assert complete("lint", str(good), "--launch", "w") == ["wide"]
    assert complete("schedule", str(good), "--launch", "small", "--launch", "w") == ["wide"]
    assert complete("schedule", f"{good}::other", "--launch", "") == []
    assert complete("schedule", "x.py", "--machine", "") == list(machine_names())
    assert complete("machine", "ahbm-m") == ["ahbm-mesh"]
    assert complete("machine", "./") == ["<file>"]
    assert "gemm.rows=" in complete("schedule", "x.py", "--set", "gemm.")
    assert complete("schedule", "x.py", "--policy", "") == list(POLICIES)
    assert complete("lint", "--select", "KS20") == [code for code in RULES if code.startswith("KS20")]
    assert complete("lint", "--ignore", "KS101,KS201") == ["KS101,KS201"]
    assert complete("explain", "") == [*RULES, *ERRORS]


def test_completing_runs_nothing(write, tmp_path: Path):
    """A file is parsed; one that is none, or cannot be parsed, has no names."""
    trap = write("raise SystemExit(3)\n@ks.launch('one')\n@ks.kernel\ndef k(): pass\n", "trap.py")
    before = set(sys.modules)
    assert complete("schedule", str(trap), "--launch", "") == ["one"]
    broken = write("def (", "broken.py")
    for file in (broken, tmp_path, tmp_path / "none.py"):
        assert complete("schedule", str(file), "--launch", "") == []
    assert "trap" not in " ".join(set(sys.modules) - before)


def test_json_stays_json_with_colours(kernscope, good):
    """A schedule's document is parsed as before."""
    assert json.loads(kernscope("--color=always", "schedule", good, "--json").out)["policy"] == "list"
