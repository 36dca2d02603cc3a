"""Saved graphs: what comes back, and what a file that somebody made can do."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import machinemutations
import pytest
import savedmutations

import kernscope as ks
from kernscope import tl
from kernscope.machine.description import parse_machine

POLICIES = ("blocking", "lazy", "queued", "list")
#: How long reading one hostile file, and all that is done with it then, may take, in seconds.
PATIENCE_S = 20
#: Names that would move the cursor, begin a line, turn it around, or command a runner that reads the log.
HOSTILE = "x\x1b]0;title\x07\n::error file=a::pwned\r\u202e##[error]y"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("saved")


@ks.kernel
def double(x: Any, o: Any) -> None:
    """o = x * 2."""
    for i in range(2):
        with tl.scratch_scope():
            tl.store(o[i], tl.load(x[i]) * 2.0)


def of_double(machine: Any = None) -> ks.Graph:
    return ks.trace(double, ks.hbm((2, 8), "f32"), ks.hbm((2, 8), "f32"), machine=machine)


# --- what comes back --------------------------------------------------------------------------------------------------


def test_a_graph_comes_back_with_its_machine(tmp_path: Path) -> None:
    """Scheduled and linted without another word, wherever it is read; another machine of its target may be named."""
    mine = ks.load_machine().override({"name": "mine", "dma_read.latency_ns": "7.25"})
    graph = of_double(mine)
    graph.save(tmp_path / "double.ksg")
    loaded = ks.load(tmp_path / "double.ksg")
    assert loaded == graph
    schedule = ks.schedule(loaded)
    assert schedule.machine == mine and schedule.makespan_ps == ks.schedule(graph, machine=mine).makespan_ps
    assert ks.schedule(loaded, machine="ahbm-pe").machine.name == "ahbm-pe"
    assert ks.lint(loaded) == ks.lint(graph)
    with pytest.raises(ks.TargetMismatchError):
        ks.schedule(loaded, machine="ahbm-mesh")


@pytest.mark.parametrize("name", ["/dev/zero", "/dev/stdin", "machine.toml", "../x.toml", "no such"])
@pytest.mark.parametrize("says", ["nothing", "its name"])
def test_a_saved_graph_opens_no_path(tmp_path: Path, name: str, says: str) -> None:
    """Whatever name its machine has, with a description or without: no command reads a file of that name, not even one
    that is there."""
    (tmp_path / "machine.toml").write_text(ks.load_machine().to_toml())
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    name = str(fifo) if name == "/dev/stdin" else name
    path = tmp_path / "g.ksg"
    of_double(ks.load_machine().override({"name": name})).save(path)
    header, columns = savedmutations.split(path.read_bytes())
    if says == "nothing":
        header["machine_toml"] = ""
    path.write_bytes(savedmutations.sealed(header, columns))
    graph = ks.load(path)
    with patience():
        if says == "its name":
            assert ks.schedule(graph).machine.name == name
        else:
            with pytest.raises(ks.MachineError, match="says nothing of its machine"):
                ks.schedule(graph)
        assert ks.lint(graph, select=["KS2"]).ok


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"machine": "other"}, "not the one that the graph was traced for"),
        ({"machine_toml": "x = ["}, "no valid TOML"),
        ({"machine_toml": ks.load_machine("ahbm-mesh").to_toml()}, "not the one"),
        ({"machine_toml": 'base = "/dev/zero"'}, "no preset '/dev/zero'"),
        ({"machine_toml": "#" * 10_000_000}, "long"),
    ],
)
def test_a_machine_that_is_not_the_graph_s_is_refused(tmp_path: Path, change: dict[str, Any], what: str) -> None:
    """When the graph is read, not when it is used."""
    path = tmp_path / "g.ksg"
    of_double().save(path)
    header, columns = savedmutations.split(path.read_bytes())
    path.write_bytes(savedmutations.sealed({**header, **change}, columns))
    with pytest.raises(ks.GraphFormatError, match=what):
        ks.load(path)


# --- only text that was traced is shown -------------------------------------------------------------------------------

KERNEL = """\
import kernscope as ks
from kernscope import tl


@ks.launch("only", x=ks.hbm((8,), "f32"), o=ks.hbm((8,), "f32"))
@ks.kernel
def faulty(x, o):
    with tl.scratch_scope():
        h = tl.load(x[:])  # kernscope: ignore[KS303]
    b = tl.load(x[:])
    tl.store(o[:], h + b)
"""


def saved_from(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A kernel's file, and its graph, saved."""
    monkeypatch.chdir(tmp_path)
    source, path = tmp_path / "faulty.py", tmp_path / "g.ksg"
    source.write_text(text)
    space: dict[str, Any] = {}
    exec(compile(text, str(source), "exec"), space)
    ks.trace(space["faulty"]).save(path)
    return source, path


def test_carets_are_never_drawn_over_other_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An edit after the trace: lines are named, and nothing is quoted, proposed or suppressed from the new text."""
    source, path = saved_from(KERNEL, tmp_path, monkeypatch)
    before = ks.lint(ks.load(path))
    (finding,) = before.of("KS201")
    assert "^^^^^" in str(finding) and "tl.store(o[:], h + b)" in str(finding) and finding.fixes
    source.write_text(
        KERNEL.replace("import kernscope as ks\n", "import kernscope as ks\nSECRET = 1  # kernscope: ignore[KS201]\n")
    )
    after = ks.lint(ks.load(path))
    (finding,) = after.of("KS201")
    assert "faulty.py:11:" in str(finding)
    for word in ("SECRET", "tl.", "with", "^^"):
        assert word not in str(finding).partition("= help")[0]
    assert finding.fixes == () and not after.suppressed


def test_a_report_copies_no_line_of_a_file_that_was_not_traced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A saved graph may name any file there is."""
    source, path = saved_from(KERNEL, tmp_path, monkeypatch)
    secret = tmp_path / "secret.txt"
    secret.write_text("\n".join(f"password {n}" for n in range(40)))
    header, columns = savedmutations.split(path.read_bytes())
    for digests in ({}, {str(secret): header["digests"][str(source)]}, {str(secret): ""}):
        header["names"] = [str(secret) if name in (str(source), str(secret)) else name for name in header["names"]]
        header["digests"] = digests
        path.write_bytes(savedmutations.sealed(header, columns))
        graph = ks.load(path)
        page = tmp_path / "page.html"
        ks.report(graph, page)
        assert "password" not in page.read_text()
        assert "password" not in str(ks.lint(graph))


# --- whatever the bytes -----------------------------------------------------------------------------------------------


class Hangs(BaseException):
    """What was done took too long. No ``Exception``: nothing may catch it."""


@contextmanager
def patience() -> Iterator[None]:
    """An end to what hangs."""

    def ring(*_: object) -> None:
        raise Hangs

    previous = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def use(graph: ks.Graph, folder: Path, *, pictures: bool) -> None:
    """Do all that can be done with a graph. What comes out is right as far as the independent checks can tell, or one
    typed error."""
    assert ks.verify(graph) == []
    assert all(
        printed(text) for text in (str(ks.lint(graph)), repr(graph), graph._repr_html_(), repr(ks.liveness(graph)))
    )
    assert printed(str(graph))
    for policy in POLICIES:
        try:
            schedule = ks.schedule(graph, policy, effort="fast")
        except ks.KernscopeError as error:
            assert printed(str(error))
            continue
        assert ks.check(schedule) == []
        json.loads(schedule.to_json())
        assert printed(str(schedule.critical_chain()))
    try:
        ks.run(graph, poison=True)
    except ks.KernscopeError as error:
        assert printed(str(error))
    ks.to_networkx(graph)
    graph.save(folder / "again.ksg")
    data = (folder / "again.ksg").read_bytes()
    ks.load(folder / "again.ksg").save(folder / "again.ksg")
    assert (folder / "again.ksg").read_bytes() == data
    if pictures:
        ks.draw(graph, folder / "g.dot")
        ks.report(graph, folder / "g.html")


def printed(text: str) -> bool:
    """Whether a text can go to a terminal and into a runner's log. (``:::`` marks another file of a finding.)"""
    lines = [line.lstrip() for line in text.split("\n")]
    commands = [line for line in lines if line.startswith("::") and not line.startswith("::: ")]
    return "##[" not in text and not commands and all(line.isprintable() for line in lines)


def try_saved(folder: Path, count: int, seed: int) -> dict[str, int]:
    """Read and use mutated files; how many were refused, and how many were fit to be used."""
    told = {"refused": 0, "used": 0}
    for data in savedmutations.mutations(folder, count, seed):
        path = folder / "mutated.ksg"
        path.write_bytes(data)
        with patience():
            try:
                graph = ks.load(path)
            except ks.GraphFormatError as error:
                told["refused"] += 1
                assert error.help and len(str(error)) < 1000 and printed(str(error))
                continue
            told["used"] += 1
            use(graph, folder, pictures=told["used"] % 20 == 0)
    return told


def try_machines(folder: Path, count: int, seed: int) -> dict[str, int]:
    """Read and use mutated descriptions of machines."""
    told = {"refused": 0, "used": 0}
    kernels = [ks.load(folder / f"{number}.ksg") for number in range(2)]
    for text in machinemutations.machine_mutations(count, seed):
        with patience():
            try:
                machine = parse_machine(text, "m.toml")
            except ks.MachineError as error:
                told["refused"] += 1
                assert error.help and printed(str(error)) and len(str(error)) < 20_000
                continue
            told["used"] += 1
            assert parse_machine(machine.to_toml(), "again.toml") == machine
            tomllib.loads(machine.to_toml())
            for graph in kernels:
                for policy in POLICIES:
                    try:
                        schedule = ks.schedule(graph, policy, machine, effort="fast")
                    except ks.KernscopeError as error:
                        assert printed(str(error))
                        continue
                    assert ks.check(schedule) == []
    return told


def test_a_changed_file_is_refused_or_fit(folder: Path) -> None:
    """One clear error, or a graph with which all can be done: never a crash, a hang, or an error of ours."""
    told = try_saved(folder, 120, seed=9)
    assert min(told.values()) > 20


def test_a_changed_machine_is_refused_or_fit(folder: Path) -> None:
    """The same for machine files: all mistakes by one error, or a machine for which schedules can be checked."""
    savedmutations.originals(folder)
    told = try_machines(folder, 120, seed=9)
    assert min(told.values()) > 10


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_thousands_of_changed_files_are_refused_or_fit(folder: Path, seed: int) -> None:
    """5,000 saved graphs and 1,000 machine files in all, each in a process of its own memory."""
    script = (
        "import resource, sys, warnings, pathlib; warnings.simplefilter('error')\n"
        "resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))\n"
        f"sys.path[:0] = {sys.path!r}\n"
        "import test_saved_untrusted as t\n"
        f"folder = pathlib.Path({str(folder)!r})\n"
        f"print(t.try_saved(folder, 500, {100 + seed}), t.try_machines(folder, 100, {100 + seed}))\n"
        "most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10\n"
        "assert most < 1000, f'{most} MiB'\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent)])}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=env, timeout=1200)
    assert done.returncode == 0, done.stderr[-3000:]


# --- names ------------------------------------------------------------------------------------------------------------


def test_hostile_names_reach_no_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernel, tensors, scopes, files, machine and launch of a hostile name: all commands, each with what it prints."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "g.ksg"
    of_double(ks.load_machine().override({"name": HOSTILE})).save(path)
    header, columns = savedmutations.split(path.read_bytes())
    header["kernel"] = HOSTILE
    header["names"] = [f"{HOSTILE}{number}" for number in range(len(header["names"]))]
    path.write_bytes(savedmutations.sealed(header, columns))
    commands = [
        *(["trace"], ["schedule"], ["run"], ["draw", "-o", "g.dot"], ["timeline", "-o", "g.json"], ["report"]),
        *(["lint", "--output-format", form] for form in ("full", "concise", "github")),
        ["schedule", "--policy", "lazy"],
    ]
    for command in commands:
        done = subprocess.run(
            [sys.executable, "-m", "kernscope", command[0], "g.ksg", *command[1:]], capture_output=True, timeout=120
        )
        for text in (done.stdout.decode(), done.stderr.decode()):
            told = [line for line in text.split("\n") if not line.startswith(("::notice ", "::warning "))]
            assert all(printed(line) for line in told), (command, text)
            assert "\x1b]" not in text and "\u202e" not in text and "\r" not in text
