"""``kernscope lint`` over files and folders: configuration, processes, faults that must stay where they are."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from kernscope.cli.job_pool import run_jobs
from kernscope.face.lint_job import LintJob
from kernscope.face.targets import Target
from kernscope.linter import LintReport

COMMAND = [sys.executable, "-m", "kernscope", "lint"]

MODES = """
    import os, signal, sys, time

    @ks.launch("fine", x=ks.hbm((16, 16), "f32"), how="fine")
    @ks.launch("exit", x=ks.hbm((16, 16), "f32"), how="exit")
    @ks.launch("sysexit", x=ks.hbm((16, 16), "f32"), how="sysexit")
    @ks.launch("crash", x=ks.hbm((16, 16), "f32"), how="crash")
    @ks.launch("hang", x=ks.hbm((16, 16), "f32"), how="hang")
    @ks.launch("swallow", x=ks.hbm((16, 16), "f32"), how="swallow")
    @ks.launch("stale", x=ks.hbm((16, 16), "f32"), how="stale")
    @ks.kernel
    def modes(x, how):
        print("how:", how)
        if how == "exit":
            os._exit(0)
        if how == "sysexit":
            sys.exit(0)
        if how == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        if how == "hang":
            time.sleep(1000)
        while how == "swallow":
            try:
                time.sleep(1)
            except BaseException:
                pass
        with tl.scratch_scope():
            t = tl.load(x[:, :])
            if how == "fine":
                tl.store(x[:, :], t)
        if how == "stale":
            tl.store(x[:, :], t)
"""


def job(path: Path) -> LintJob:
    return LintJob(target=Target(str(path), None, True), select=("KS2",))


@pytest.mark.slow
def test_faults_of_a_launch_stay_its_own(kernscope, write):
    """One that exits, crashes, hangs, or cannot even be interrupted is one error line; all others are linted, and what
    kernels print is no output."""
    write(MODES)
    done = kernscope("lint", "mine.py", "--select", "KS2", "--timeout", "5", "--output-format", "concise")
    assert done.status == 2
    assert re.sub(r":\d+:\d+", ":L:C", done.out).splitlines() == [
        "mine.py:L:C: error[KS201]: `t` is read by store after the exit of its scope",
        "mine.py::modes (exit): KE509 mine.py::modes (exit) ended its process: exit status 0",
        "mine.py:L:C: KE504 kernel modes raised SystemExit: 0",
        "mine.py::modes (crash): KE509 mine.py::modes (crash) ended its process: killed by SIGSEGV",
        "mine.py:L:C: KE507 mine.py::modes (hang) did not end within 5 s",
        "mine.py::modes (swallow): KE507 mine.py::modes (swallow) did not end within 5 s: its process was killed",
    ]
    told = kernscope("lint", "mine.py", "--launch", "crash", "--jobs", "1").out
    assert "help: run it alone: kernscope lint --jobs 0 mine.py::modes --launch crash\n" in told


@pytest.mark.slow
def test_a_file_that_ends_its_process_on_import_harms_no_other(kernscope, write, stale, tmp_path):
    """Nor does one that hangs there."""
    write("import os\nos._exit(0)\n", "exits.py")
    write("while True: pass\n", "hangs.py")
    done = kernscope("lint", tmp_path, "--timeout", "4", "--select", "KS2")
    assert done.status == 2
    assert "exits.py ended its process: exit status 0" in done.out
    assert re.search(r"run it alone: kernscope lint --jobs 0 \S*exits\.py\n", done.out)
    assert "hangs.py did not end within 4 s" in done.out and "hangs.py:4" in done.out
    assert "KS201" in done.out


@pytest.mark.slow
def test_results_come_in_the_order_of_files_and_launches(write, tmp_path):
    """However long each takes; the launches of a file that is looked into come with it."""
    body = """
        import time
        @ks.launch("slow", x=ks.hbm((16,), "f32"), wait={slow})
        @ks.launch("quick", x=ks.hbm((16,), "f32"), wait=0)
        @ks.kernel
        def {name}(x, wait):
            time.sleep(wait)
            tl.store(x[:], tl.load(x[:]))
    """
    jobs = [job(write(body.format(name=n, slow=s), f"{n}.py")) for n, s in (("b", 3), ("a", 0))]
    states = []
    answers = run_jobs(jobs, processes=3, timeout_s=60, progress=lambda *state: states.append(state[:2]))
    titles = [answers[key].title for key in sorted(answers) if isinstance(answers[key], LintReport)]
    assert titles == ["b:slow", "b:quick", "a:slow", "a:quick"]
    assert sorted(answers) == [(0, -1), (0, 0), (0, 1), (1, -1), (1, 0), (1, 1)]
    assert [done for done, _ in states] == [1, 2, 3, 4] and states[-1] == (4, 4)


@pytest.mark.slow
def test_processes_and_none_find_the_same(kernscope, write, stale, tmp_path):
    """``--jobs 0``, ``--jobs 1`` and the default print the same."""
    write(
        MODES.replace('"exit"', '"x1"').replace("os.kill", "print").replace("sys.exit(0)", "pass").replace("1000", "0")
    )
    options = ("lint", tmp_path, "--launch", "stale", "--launch", "small")
    outputs = {
        kernscope("lint", tmp_path, "--launch", "stale", *jobs) for jobs in ((), ("--jobs", "0"), ("--jobs", "1"))
    }
    assert len({done.out for done in outputs}) == 1 and options
    assert {done.status for done in outputs} == {1}


def test_a_sole_launch_needs_no_process(kernscope, stale, monkeypatch):
    """It is linted here, unless ``--jobs`` says otherwise."""
    monkeypatch.setattr("kernscope.cli.linting.run_jobs", lambda *_, **__: pytest.fail("a process was started"))
    assert kernscope("lint", stale).status == 1
    with pytest.raises(pytest.fail.Exception):
        kernscope("lint", stale, "--jobs", "1")


def test_a_sole_launch_has_its_time_limit(kernscope, write):
    """And its line."""
    path = write(
        """
        @ks.launch("x", x=ks.hbm((16,), "f32"))
        @ks.kernel
        def endless(x):
            while True:
                pass
        """
    )
    done = kernscope("lint", path, "--timeout", "0.5")
    assert done.status == 2
    assert "endless (x) did not end within 0.5 s" in done.out
    assert re.search(r" --> mine.py:[89]:\d+\n", done.out)


def test_what_kernels_print_is_no_output(kernscope, write):
    """In this process as in others."""
    path = write(
        'print("on import")\n' + "@ks.launch('x', x=ks.hbm((16,), 'f32'))\n@ks.kernel\ndef k(x):\n    print('traced')\n"
    )
    for jobs in ((), ("--jobs", "1")):
        json.loads(kernscope("lint", path, "--output-format", "json", *jobs).out)


@pytest.mark.parametrize("option", [("--jobs", "-1"), ("--timeout", "0"), ("--timeout", "nan"), ("--fail-on", "warn")])
def test_wrong_options(kernscope, good, option):
    """Refused by name."""
    done = kernscope("lint", good, *option)
    assert done.status == 2 and option[0] in done.err


# --- which files ------------------------------------------------------------------------------------------------------


def test_files_that_cannot_hold_kernels_are_not_imported(kernscope, write, stale, tmp_path):
    """Named or in a folder; those of environments and hidden folders are not looked at."""
    (tmp_path / "setup.py").write_text("raise SystemExit('imported')", encoding="utf-8")
    for folder in (".hidden", "venv", "build", "__pycache__"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "kernel.py").write_text("raise SystemExit('kernel imported')", encoding="utf-8")
    (tmp_path / "venv" / "pyvenv.cfg").touch()
    done = kernscope("lint", tmp_path, "--output-format", "concise")
    assert done.status == 1 and done.err == "" and done.out.count("KS201") == 1
    assert kernscope("lint", tmp_path / "setup.py").err.endswith("setup.py: no kernels\n")
    (tmp_path / "cut.ksg").write_bytes(b"")
    done = kernscope("lint", tmp_path / "cut.ksg")
    assert done.status == 2 and "is no Python file" in done.out, "a file that was named is never passed over as clean"


def test_a_folder_without_kernels_says_so(kernscope, tmp_path):
    """Not an error: but not silent either."""
    (tmp_path / "a.py").touch()
    done = kernscope("lint", tmp_path)
    assert (done.status, done.err) == (0, f"{tmp_path}: no kernels\n")


def test_a_path_given_twice_is_linted_once(kernscope, stale, tmp_path):
    """As pre-commit and shells may give it, by its folder too."""
    done = kernscope("lint", stale, "./stale.py", tmp_path, "--output-format", "concise")
    assert done.out.count("KS201") == 1


def test_a_module_of_a_package_imports_its_neighbours(kernscope, write, tmp_path):
    """Relatively, without the package being installed."""
    (tmp_path / "pack" / "inner").mkdir(parents=True)
    for folder in ("pack", "pack/inner"):
        (tmp_path / folder / "__init__.py").touch()
    write("def keep(o, t):\n    tl.store(o[:], t)\n", "pack/tiles.py")
    write(
        """
        from ..tiles import keep
        @ks.launch("x", x=ks.hbm((16,), "f32"))
        @ks.kernel
        def k(x):
            with tl.scratch_scope():
                t = tl.load(x[:])
            keep(x, t)
        """,
        "pack/inner/k.py",
    )
    done = kernscope("lint", "pack", "--output-format", "concise")
    assert done.status == 1 and done.out.startswith("pack/tiles.py:5:5: error[KS201]")


# --- configuration ----------------------------------------------------------------------------------------------------


def configure(folder: Path, text: str) -> None:
    (folder / "pyproject.toml").write_text("[tool.kernscope.lint]\n" + text, encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "arguments", "status"),
    [
        ("", (), 1),
        ('ignore = ["KS201"]', (), 0),
        ('select = ["KS1"]', (), 0),
        ('per-file-ignores = { "stale.py" = ["KS2"] }', (), 0),
        ('per-file-ignores = { "other.py" = ["KS2"] }', (), 1),
        ('ignore = ["KS201"]', ("--select", "KS201"), 1),
        ('select = ["KS201"]', ("--ignore", "KS201"), 0),
        ('fail-on = "error"', ("--exit-zero",), 0),
    ],
)
def test_configuration_and_command_line(kernscope, stale, tmp_path, text, arguments, status):
    """The table is heard, the command line wins."""
    configure(tmp_path, text)
    assert kernscope("lint", stale, *arguments).status == status


def test_fail_on_and_options(kernscope, write, tmp_path):
    """A kernel at half its budget: an info once the option says so, and a failure once that is asked for."""
    path = write(
        """
        @ks.launch("x", x=ks.hbm((512, 256), "f32"))
        @ks.kernel
        def half(x):
            tl.store(x[:, :], tl.load(x[:, :]))
        """
    )
    configure(tmp_path, "options.KS102.percent = 40\n")
    done = kernscope("lint", path)
    assert done.status == 0 and "KS102" in done.out
    configure(tmp_path, 'options.KS102.percent = 40\nfail-on = "info"\n')
    assert kernscope("lint", path).status == 1
    assert kernscope("lint", path, "--fail-on", "warning").status == 0
    configure(tmp_path, 'fail-on = "info"\n')
    assert "KS102" not in kernscope("lint", path).out


def test_each_file_has_its_own_configuration(kernscope, stale, tmp_path):
    """The nearest one, also when a folder above is linted."""
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "stale.py").write_text(stale.read_text(encoding="utf-8"), encoding="utf-8")
    configure(tmp_path / "inner", 'ignore = ["KS201"]')
    done = kernscope("lint", tmp_path, "--output-format", "concise")
    assert done.out.count("KS201") == 1 and done.out.startswith("stale.py")


def test_a_wrong_configuration_is_one_error(kernscope, stale, tmp_path):
    """Before anything is linted."""
    configure(tmp_path, 'selct = ["KS2"]\nfail-on = "never"')
    done = kernscope("lint", stale)
    assert done.status == 2 and done.out == ""
    assert "lint.selct: unknown key; did you mean 'select'?" in done.err and "lint.fail-on" in done.err


def test_excluded_files_are_not_imported(kernscope, write, stale, tmp_path):
    """Of folders; a file that is named is meant."""
    broken = write("@ks.kernel\ndef k(x):\n    pass\n1 / 0\n", "broken.py")
    configure(tmp_path, 'exclude = ["broken.py"]')
    assert kernscope("lint", tmp_path).status == 1
    assert kernscope("lint", broken).status == 2


# --- as a program -----------------------------------------------------------------------------------------------------


SLEEPS = """
    import os, subprocess, sys, time

    @ks.launch("a", x=ks.hbm((16,), "f32"), name="a")
    @ks.launch("b", x=ks.hbm((16,), "f32"), name="b")
    @ks.kernel
    def sleeps(x, name):
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        with open(name + ".pid.new", "w") as file:
            file.write(f"{os.getpid()} {child.pid}")
        os.rename(name + ".pid.new", name + ".pid")
        time.sleep(600)
"""


def is_alive(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere processes are spawned")
def test_processes_are_forked_from_one_that_has_imported_the_package(write, tmp_path):
    """Importing it anew takes longer than linting a launch: each process finds it there, and nothing of the others'."""
    path = write("""
        import os, sys
        print("parent", os.getppid(), getattr(sys, "seen", 0), file=sys.stderr)
        sys.seen = 1

        @ks.launch("a", x=ks.hbm((16,), "f32"))
        @ks.launch("b", x=ks.hbm((16,), "f32"))
        @ks.launch("c", x=ks.hbm((16,), "f32"))
        @ks.kernel
        def twice(x):
            tl.store(x[:], tl.load(x[:]) * 2)
    """)
    done = subprocess.run(
        [*COMMAND, str(path), "--jobs", "2"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    lines = done.stderr.splitlines()
    assert len(lines) == 3 and len(set(lines)) == 1
    assert lines[0].endswith(" 0")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_is_left(write, tmp_path, number):
    """Ctrl-C ends all launches and what they started, with one line and no traceback; so does a kill."""
    path = write(SLEEPS)
    # A shell's background job would ignore Ctrl-C, and so would its children.
    command = subprocess.Popen(
        [*COMMAND, str(path), "--jobs", "2"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    files = [tmp_path / "a.pid", tmp_path / "b.pid"]
    deadline = time.monotonic() + 90
    while not all(file.exists() for file in files):
        assert command.poll() is None and time.monotonic() < deadline
        time.sleep(0.1)
    pids = [int(pid) for file in files for pid in file.read_text(encoding="utf-8").split()]
    assert all(map(is_alive, pids))
    command.send_signal(number)
    _, err = command.communicate(timeout=60)
    if number == signal.SIGINT:
        assert command.returncode == 130 and err.strip() == "aborted"
    while any(map(is_alive, pids)):
        assert time.monotonic() < deadline + 30
        time.sleep(0.1)


@pytest.mark.slow
def test_a_bar_on_a_terminal_only(write, stale, tmp_path):
    """On stderr if that is a terminal; not a byte of it otherwise, and none on stdout."""
    write(stale.read_text(encoding="utf-8"), "again.py")
    arguments = [*COMMAND, ".", "--output-format", "concise"]
    piped = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert piped.stderr == "" and piped.stdout.count("KS201") == 2
    ours, theirs = pty.openpty()
    shown: list[bytes] = []
    reader = threading.Thread(target=_read_all, args=(ours, shown))
    reader.start()  # a terminal that nobody reads would hold up the program
    environment = {**os.environ, "TERM": "xterm"}
    done = subprocess.run(arguments, cwd=tmp_path, stdout=subprocess.PIPE, stderr=theirs, env=environment, check=False)
    os.close(theirs)
    reader.join()
    os.close(ours)
    bar = b"".join(shown).decode()
    assert "linting" in bar and "2/2" in bar
    assert done.stdout.decode() == piped.stdout


def _read_all(terminal: int, shown: list[bytes]) -> None:
    with contextlib.suppress(OSError):  # how Linux says that the other side is closed
        while part := os.read(terminal, 4096):
            shown.append(part)


#: Ways to make the kernel `k` whose function was not written in this file, as Python sees it.
ELSEWHERE = {
    "a decorator without functools.wraps": "k = ks.launch('s', **H)(ks.kernel(timed(base)))",
    "a partial": "k = ks.launch('s', **H)(ks.kernel(functools.partial(base, n=3)))",
    "executed code": "ns = {'tl': tl}; exec(SOURCE, ns); k = ks.launch('s', **H)(ks.kernel(ns['base']))",
    "a factory of another module": "k = make(H)",
}


@pytest.mark.parametrize("way", ELSEWHERE)
def test_a_kernel_counts_where_it_is_made(kernscope, write, tmp_path, way):
    """Whatever wraps it, and wherever its function was written: no kernel of a file is passed over in silence. In one
    that imports it, it does not count a second time."""
    write(
        """
        def timed(function):
            def inner(*args, **kwargs):
                return function(*args, **kwargs)
            return inner

        def make(arguments):
            @ks.launch("s", **arguments)
            @ks.kernel
            def k(x, o):
                with tl.scratch_scope():
                    a = tl.load(x[:])
                tl.store(o[:], a)
            return k
        """,
        "wrapping.py",
    )
    path = write(
        f"""
        import functools
        from wrapping import make, timed
        H = dict(x=ks.hbm((8,), "f32"), o=ks.hbm((8,), "f32"))
        SOURCE = "def base(x, o):\\n with tl.scratch_scope():\\n  a = tl.load(x[:])\\n tl.store(o[:], a)"
        def base(x, o, n=1):
            with tl.scratch_scope():
                a = tl.load(x[:])
            tl.store(o[:], a)
        {ELSEWHERE[way]}
        alias = k
        """,
        "making.py",
    )
    done = kernscope("lint", path, "--output-format", "concise")
    assert done.status == 1 and done.out.count("KS201") == 1, done
    write("from making import k", "importing.py")
    done = kernscope("lint", tmp_path / "importing.py")
    assert done.status == 0 and "importing.py: no kernels" in done.err, done


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="limits of time by a timer")
@pytest.mark.parametrize("where", ["import", "launch"])
@pytest.mark.parametrize("output_format", ["json", "sarif", "concise", "full", "github"])
def test_a_sole_launch_that_pays_no_heed_to_its_limit_is_told_in_the_format(write, tmp_path, where, output_format):
    """It ends this process, yet standard output holds the whole answer, as of a launch in a process of its own."""
    stuck = "while True:\n    try: time.sleep(100)\n    except BaseException: pass\n"
    body = textwrap.indent(stuck, "    ") if where == "launch" else "    pass\n"
    write(
        f"import time\n{stuck if where == 'import' else ''}\n"
        f'@ks.launch("one", x=ks.hbm((16, 16), "f32"))\n@ks.kernel\ndef k(x):\n    print("from the kernel")\n{body}'
    )
    command = [*COMMAND, "mine.py", "--timeout", "0.5", "--output-format", output_format]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    # The full form says it itself, and once.
    assert done.returncode == 2 and ("error: not linted: mine.py" in done.stderr) is (output_format != "full")
    assert output_format != "full" or done.stdout.count(": not linted\n") == 1
    assert "did not end within 0.5 s" in done.stdout and "KE507" in done.stdout and "\x1b" not in done.stdout
    assert ("from the kernel" in done.stderr) is (where == "launch") and "from the kernel" not in done.stdout
    if output_format in ("json", "sarif"):
        told = json.loads(done.stdout)
        assert output_format == "sarif" or told["counts"]["error"] == len(told["not_linted"]) == 1
