"""The guard: what an author's code does to the process stays the author's, and green is what the tool says is green."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

from kernscope.face.guard.guard import Guard
from kernscope.face.guard.time_limit import time_limit
from kernscope.ir.errors import InputError, KernelRaisedError, KernscopeError, TimeLimitError

PROGRAM = [sys.executable, "-m", "kernscope"]
posix = pytest.mark.skipif(os.name != "posix", reason="descriptors and signals")

STALE = """
@ks.launch("s", x=ks.hbm((8,), "f32"), o=ks.hbm((8,), "f32"))
@ks.kernel
def k(x, o):
    {body}
    with tl.scratch_scope():
        a = tl.load(x[:])
    tl.store(o[:], a)
"""
#: The commands that run an author's code, and what they need besides the target.
COMMANDS = {
    "trace": (),
    "lint": (),
    "schedule": (),
    "run": (),
    "draw": ("-o", "k.dot"),
    "timeline": ("-o", "k.json"),
    "report": (),
    "fit": ("--param", "n", "--range", "1:2"),
}
GOOD = """
@ks.launch("s", x=ks.hbm((8,), "f32"), o=ks.hbm((8,), "f32"), {launch})
@ks.kernel
def k(x, o, n=1):
    {body}
    tl.store(o[:], tl.load(x[:]))
"""


def program(folder: Path, *arguments: object, **options) -> subprocess.CompletedProcess[str]:
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.run([*PROGRAM, *map(str, arguments)], cwd=folder, text=True, timeout=60, check=False, **options)


@pytest.fixture
def module(write):
    """Write a kernel's file: what stands before the kernel, what stands in it, and its launch's options."""

    def make(before: str = "", body: str = "pass", launch: str = "", kernel: str = GOOD, name: str = "mine.py") -> Path:
        return write(before + kernel.format(body=body, launch=launch), name)

    return make


def findings(output: str) -> list[dict[str, object]]:
    return [finding for report in json.loads(output)["reports"] for finding in report["findings"]]


def failure(error: BaseException) -> KernscopeError:
    return KernelRaisedError(f"{type(error).__name__}: {error}")


# --- standard output --------------------------------------------------------------------------------------------------


@posix
@pytest.mark.parametrize("jobs", [(), ("--jobs", "1")])
def test_standard_output_is_the_tools_alone(module, tmp_path, jobs):
    """Whoever writes to it while the author's code runs, afterwards, and at exit: print, the descriptor, a program, a
    thread, a stream that the author has wrapped, detached, closed."""
    path = module(
        """
import atexit, io, os, subprocess, sys, threading, time
print("print")
os.write(1, b"descriptor\\n")
os.system("echo program")
sys.__stdout__.write("original\\n")
sys.stdout = io.TextIOWrapper(sys.stdout.detach(), encoding="utf-8")
sys.stderr = io.TextIOWrapper(sys.stderr.detach(), encoding="utf-8")
print("wrapped")
sys.stderr.close()
def background():
    while True:
        print("thread")
        os.write(1, b"thread's descriptor\\n")
        time.sleep(0.001)
threading.Thread(target=background, daemon=True).start()
atexit.register(lambda: os.write(1, b"exit\\n"))
atexit.register(lambda: print("print at exit"))
""",
        body='print("traced"); os.system("echo traced program")',
        kernel=STALE,
    )
    done = program(tmp_path, "lint", path, "--output-format", "json", *jobs)
    assert done.returncode == 1
    assert "KS201" in {finding["code"] for finding in findings(done.stdout)}


@posix
def test_what_an_author_prints_is_read_on_standard_error(module, tmp_path):
    """Nothing of it is lost."""
    before = 'import os; print("on import"); os.system("echo a program")'
    done = program(tmp_path, "run", module(before, 'print("traced")', 'reference=lambda x: print("reference") or x'))
    assert done.returncode == 0 and "agrees" in done.stdout
    assert done.stderr.split("\n")[:4] == ["on import", "a program", "traced", "reference"]


@posix
@pytest.mark.parametrize("command", ["lint", pytest.param("schedule", marks=pytest.mark.slow)])
def test_standard_output_that_cannot_be_written(module, tmp_path, command):
    """A full disk, a closed descriptor: exit status 2 (not 1, which are findings; nor 0, since nobody has seen them)
    and one error. A reader that has gone, such as `head`: the status of a program that its signal ends, and not a
    word."""
    path = module(kernel=STALE)
    with open("/dev/full", "w") as full:
        done = program(tmp_path, command, path, stdout=full)
    assert done.returncode == 2 and "]: cannot write to standard output: no space left on device\n" in done.stderr
    assert done.stderr.count("\n") == 2, done.stderr
    ours, theirs = os.pipe()
    os.close(ours)
    done = program(tmp_path, command, path, stdout=theirs)
    os.close(theirs)
    assert (done.returncode, done.stderr) == (141, "")
    done = program(tmp_path, command, path, stdout=None, preexec_fn=lambda: os.close(1))
    assert done.returncode == 2 and "]: cannot write to standard output: it is closed\n" in done.stderr


@posix
def test_without_standard_error_the_result_is_what_it_is(module, tmp_path):
    """A note that nobody can be told is no failure, and no file opened later is taken for the stream."""
    path = module(kernel=STALE)
    with open("/dev/full", "w") as full:
        both = [{"preexec_fn": lambda: os.close(2), "stderr": None}, {"stderr": full}]
        several = [program(tmp_path, "lint", path, "--output-format", "json", **how) for how in both]
    for done in several:
        assert done.returncode == 1 and len(findings(done.stdout)) == 1


@posix
def test_results_go_to_standard_output_by_its_name(module, tmp_path):
    """``-o /dev/stdout`` is a pipe to the next program, as ever."""
    done = program(tmp_path, "report", module(), "-o", "/dev/stdout")
    assert done.returncode == 0 and "<!doctype html>" in done.stdout.lower()


# --- the process ------------------------------------------------------------------------------------------------------


CHANGES = """
import os, random, signal, sys, warnings
import numpy as np
assert sys.argv == ["mine.py"], sys.argv
os.makedirs("elsewhere", exist_ok=True)
os.chdir("elsewhere")
os.environ["PATH"], os.environ["NO_COLOR"], os.environ["MINE"] = "", "", "1"
sys.path[:] = [p for p in sys.path if "python3" in p or p == os.path.dirname(__file__)]
sys.argv.append("--mine")
warnings.simplefilter("error")
np.seterr(all="raise")
random.seed(1); np.random.seed(1)
signal.signal(signal.SIGINT, signal.SIG_IGN)
"""
STILL_CHANGED = (
    'assert os.path.basename(os.getcwd()) == "elsewhere" and os.environ["MINE"] == "1" and sys.argv[1:] == ["--mine"]; '
    'assert np.geterr()["over"] == "raise" and random.random() == random.Random(1).random()'
)


def test_what_the_author_changes_holds_for_the_author_alone(module, kernscope, tmp_path, monkeypatch):
    """From the import to the trace; but paths are shown, and outputs written, from where the command was run."""
    monkeypatch.setenv("MINE", "0")
    random.seed(5)
    before = random.getstate(), np.random.get_state()[1].tolist(), signal.getsignal(signal.SIGINT), np.geterr()
    paths, filters, arguments = list(sys.path), list(warnings.filters), list(sys.argv)
    module(CHANGES, STILL_CHANGED, 'reference=lambda x: (open("here", "w").close(), x)[1]')
    done = kernscope("run", "mine.py", "-o", "out.npz")
    assert done.status == 0, done
    assert (tmp_path / "out.npz").exists() and (tmp_path / "elsewhere" / "here").exists()
    assert os.getcwd() == str(tmp_path) and os.environ["MINE"] == "0"
    now = random.getstate(), np.random.get_state()[1].tolist(), signal.getsignal(signal.SIGINT), np.geterr()
    assert now == before
    assert (sys.path, list(warnings.filters), sys.argv) == (paths, filters, arguments)
    module(CHANGES, STILL_CHANGED, kernel=STALE)
    done = kernscope("lint", "mine.py", "--output-format", "concise")
    assert done.out.startswith("mine.py:"), done


def test_each_target_starts_afresh(module, kernscope, tmp_path):
    """One file's changes are not another's, linted in the same process."""
    module(CHANGES, STILL_CHANGED, name="mine.py")
    other = 'import os, sys\nassert os.environ.get("MINE") is None and sys.argv == ["other.py"], sys.argv\n'
    module(other + "import random\nassert random.random() != random.Random(1).random()", name="other.py")
    done = kernscope("lint", "mine.py", "other.py", "--jobs", "0")
    assert done.status == 0, done


def test_a_folder_that_is_deleted_is_no_error_of_ours(module, kernscope, tmp_path):
    """Where the author has gone to, and it is gone."""
    path = module("import os\nos.mkdir('gone'); os.chdir('gone'); os.rmdir(os.getcwd())")
    assert kernscope("trace", path).status == 0


def test_the_tools_command_line_is_not_the_modules(module, kernscope):
    """A module that reads arguments, as scripts do, finds none."""
    path = module("import argparse\nparser = argparse.ArgumentParser()\nparser.parse_args()")
    assert kernscope("trace", path, "--ranks", "1").status == 0


@posix
@pytest.mark.parametrize("command", ["trace", pytest.param("lint", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("where", "code"),
    [
        ("import", "os._exit(0)"),
        ("kernel", "os._exit(0)"),
        ("import", "os.execvp('true', ['true'])"),
        ("kernel", "sys.exit(0)"),
        ("import", "raise KeyboardInterrupt"),
        ("kernel", "raise KeyboardInterrupt"),
        ("kernel", "raise type('Odd', (BaseException,), {})('odd')"),
        ("import", "raise type('Odd', (BaseException,), {})('odd')"),
    ],
)
def test_no_author_ends_the_process_as_if_all_were_well(module, tmp_path, command, where, code):
    """It is an error of the author's, with its line; nor is it mistaken for Ctrl-C."""
    path = module("import os, sys\n" + (code if where == "import" else ""), code if where == "kernel" else "pass")
    done = program(tmp_path, command, path)
    told, other = (done.stdout, done.stderr) if command == "lint" else (done.stderr, done.stdout)
    assert done.returncode == 2 and other.count("\n") == (command == "lint"), done
    assert ("cannot import mine.py:" if where == "import" else "kernel k raised") in told.splitlines()[0]
    assert f"--> mine.py:{5 if where == 'import' else 9}:" in told, told
    assert "Traceback" not in done.stderr


@posix
def test_a_reference_that_exits_is_an_error(module, kernscope):
    """``SystemExit`` of a reference is not the command's."""
    path = module("import sys", launch="reference=lambda x: sys.exit(0)")
    done = kernscope("run", path)
    assert done.status == 2 and "the reference of k raised SystemExit" in done.err


@posix
def test_processes_of_the_authors_are_their_own(module, tmp_path):
    """A fork may end as it likes, and one that goes on does not do our work a second time."""
    before = "import os\nif os.fork() == 0:\n    os._exit(7)\nassert os.wait()[1] == 7 << 8"
    path = module(before, "pid = os.fork(); pid and os.waitpid(pid, 0)")
    done = program(tmp_path, "trace", path)
    assert done.returncode == 0 and done.stdout.count("= load") == 1, done


@posix
def test_threads_left_behind_do_not_keep_the_process(module, tmp_path):
    """Nor does what they do at exit; the result and the exit status are the command's."""
    before = """
import atexit, threading, time
threading.Thread(target=time.sleep, args=(300,)).start()
atexit.register(lambda: open("at exit", "w").close())
"""
    began = time.monotonic()
    done = program(tmp_path, "lint", module(before, kernel=STALE), "--output-format", "concise")
    assert done.returncode == 1 and "KS201" in done.stdout and time.monotonic() - began < 30
    assert (tmp_path / "at exit").exists(), "what is to be done at exit is done"


@posix
@pytest.mark.slow
def test_an_exit_that_hangs_is_ended(module, tmp_path):
    """With the command's exit status."""
    before = "import atexit, os, time\natexit.register(os._exit, 0)\natexit.register(time.sleep, 300)"
    assert program(tmp_path, "lint", module(before, kernel=STALE)).returncode == 1


@posix
def test_ctrl_c_is_no_error_of_the_authors(module, tmp_path):
    """Exit status 130 and one line, also where the author raises a ``KeyboardInterrupt`` of another kind of it."""
    path = module("import os, signal", "os.kill(os.getpid(), signal.SIGINT); import time; time.sleep(30)")
    done = program(tmp_path, "trace", path, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
    assert done.returncode == 130 and done.stderr.strip() == "aborted"


# --- the limit of time ------------------------------------------------------------------------------------------------


@posix
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_limit_of_time(module, kernscope, command):
    """For the kernel and for the import, with the line."""
    more = COMMANDS[command]
    if command != "fit":  # for which a kernel that does not end is a row
        done = kernscope(command, module(body="while True: pass"), "--timeout", "0.3", *more)
        told = done.out + done.err  # the linter tells it where it tells its findings
        assert done.status == 2 and "did not end within 0.3 s" in told and "mine.py:8:" in told, done
        assert told.count("--timeout SECONDS") == 1
    done = kernscope(command, module("while True: pass"), "--timeout", "0.3", *more)
    told = done.out + done.err
    assert done.status == 2 and "importing" in told and "mine.py:4:" in told, done


@posix
def test_a_value_at_which_the_kernel_does_not_end_does_not_fit(module, kernscope):
    """The other values have their rows."""
    done = kernscope("fit", module(body="while n == 2: pass"), "--timeout", "0.3", *COMMANDS["fit"])
    assert done.status == 0 and "did not end within 0.3 s" in done.out


@posix
def test_a_reference_has_a_limit_of_time(module, kernscope):
    """It is no mismatch and no error of its own."""
    before = "def slow(x):\n    while True: pass\n"
    for command in ("run", "report"):
        done = kernscope(command, module(before, launch="reference=slow"), "--timeout", "0.3")
        assert done.status == 2 and "the reference of k did not end within 0.3 s" in done.err, done


@posix
@pytest.mark.parametrize("swallow", ["except Exception: pass", "except BaseException: pass"])
def test_whoever_swallows_the_limit_is_ended(module, tmp_path, swallow):
    """The process ends with the error as its last line, whatever the author catches."""
    before = f"import time\ndef on():\n    while True:\n        try: time.sleep(100)\n        {swallow}\n"
    began = time.monotonic()
    done = program(tmp_path, "trace", module(before, "on()"), "--timeout", "0.5")
    assert done.returncode == 2 and done.stdout == "" and time.monotonic() - began < 20
    assert "did not end within 0.5 s" in done.stderr and "mine.py:7:" in done.stderr


def test_a_limit_that_was_swallowed_has_been_passed_all_the_same():
    """What the author's code did after that is not what it does in time."""
    author = contextlib.suppress(BaseException)
    with pytest.raises(TimeLimitError, match=r"it did not end within 0\.05 s"), time_limit(0.05, "it"), author:
        time.sleep(20)


@posix
def test_limits_nest_and_leave_the_timer_of_others_alone():
    """The sooner one holds; a test runner's timer goes on after ours."""
    with pytest.raises(TimeLimitError, match="outer"), time_limit(0.05, "outer"), time_limit(5, "inner"):
        time.sleep(20)
    with pytest.raises(TimeLimitError, match="inner"), time_limit(5, "outer"), time_limit(0.05, "inner"):
        time.sleep(20)
    fired: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, _: fired.append(number))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with time_limit(0.1, "ours"):
            pass
        assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 0.3
        time.sleep(0.5)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert fired == [signal.SIGALRM]


def test_without_a_timer_the_process_is_ended(tmp_path):
    """As on Windows, and outside the main thread: the line is named all the same."""
    code = (
        "import signal, threading\n"
        "from kernscope.face.guard.time_limit import time_limit\n"
        "def run():\n"
        "    with time_limit(0.3, 'it', ends_process=True):\n"
        "        while True: pass\n"
        "run() if not hasattr(signal, 'setitimer') else threading.Thread(target=run).start()\n"
    )
    (tmp_path / "code.py").write_text(code)
    done = subprocess.run([sys.executable, "code.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "it did not end within 0.3 s" in done.stderr and "code.py:5:" in done.stderr


# --- the guard itself -------------------------------------------------------------------------------------------------


def test_errors_of_ours_pass_and_all_others_are_the_authors():
    """``failure`` makes them; without it they are as they are."""
    guard = Guard("mine.py", lets_pass=(MemoryError,))
    for raised, expected in (
        (InputError("ours"), InputError),
        (ValueError("theirs"), KernelRaisedError),
        (SystemExit(0), KernelRaisedError),
        (KeyboardInterrupt(), KernelRaisedError),
        (GeneratorExit(), KernelRaisedError),
        (MemoryError(), MemoryError),
    ):
        with pytest.raises(expected), guard.running("it", failure):
            raise raised
    with pytest.raises(SystemExit), guard.running("it"):
        raise SystemExit(3)


def test_a_guard_works_outside_the_main_thread():
    """Where no handler of a signal can be set."""
    outcome: list[object] = []

    def run() -> None:
        with Guard("mine.py", timeout_s=10).running("it", failure):
            outcome.append(list(sys.argv))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(20)
    assert outcome == [["mine.py"]]


# --- relative imports -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", ["ns", "ns/inner", "test", "numpy", "my.ns"])
def test_a_folder_is_a_package_as_python_m_has_it(module, kernscope, tmp_path, folder):
    """Without ``__init__.py``, and whatever else has its name."""
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / folder / "common.py").write_text("T = 8\n")
    module("from .common import T", "assert T == 8", kernel=STALE, name=f"{folder}/kern.py")
    done = kernscope("lint", f"{folder}/kern.py", "--output-format", "concise")
    assert done.status == 1 and done.out.startswith(f"{folder}/kern.py:"), done


def test_two_packages_of_one_name_are_two(module, kernscope, tmp_path):
    """In one process, each file finds its own neighbours."""
    for one, size in (("a", 8), ("b", 9)):
        (tmp_path / one / "pack").mkdir(parents=True)
        (tmp_path / one / "pack" / "common.py").write_text(f"T = {size}\n")
        module("from .common import T", f"assert T == {size}", name=f"{one}/pack/kern.py")
    (tmp_path / "b" / "pack" / "__init__.py").touch()
    done = kernscope("lint", "a/pack/kern.py", "b/pack/kern.py", "--jobs", "0")
    assert (done.status, done.err) == (0, ""), done


def test_imports_beyond_the_own_folder(module, kernscope, tmp_path):
    """As many folders up as the file names."""
    (tmp_path / "top" / "inner").mkdir(parents=True)
    (tmp_path / "top" / "common.py").write_text("T = 8\n")
    path = module("from ..common import T", "assert T == 8", name="top/inner/kern.py")
    assert kernscope("lint", path).status == 0


@pytest.mark.parametrize("body", ["sys.setrecursionlimit(120)", "sys.path.clear(); sys.meta_path.clear()"])
@pytest.mark.parametrize("command", ["lint", "run", "schedule"])
def test_what_python_itself_can_do_is_as_before(module, tmp_path, command, body):
    """How deep calls may go, and how modules are found: the author's code changes it for itself."""
    module("import sys", body)
    done = program(tmp_path, command, "mine.py")
    assert done.returncode == 0 and "KE901" not in done.stdout + done.stderr, done


LEFT = {
    "a child": 'import subprocess; subprocess.Popen(["sleep", "251"])',
    "in a session of its own": 'import subprocess; subprocess.Popen(["sleep", "251"], start_new_session=True)',
    "behind a shell that has ended": 'import os; os.system("sleep 251 > /dev/null 2>&1 &")',
    "with a child of its own": 'import subprocess; subprocess.Popen(["sh", "-c", "sleep 251; true"])',
}


def sleepers() -> set[int]:
    """The processes of that one time to sleep, by their numbers."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (folder / "cmdline").read_bytes() == b"sleep\0251\0":
                found.add(int(folder.name))
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
@pytest.mark.parametrize("how", LEFT)
@pytest.mark.parametrize("where", ["import", "kernel", "reference"])
def test_processes_that_a_kernels_file_leaves_running_are_ended(module, tmp_path, how, where):
    """However they were started, and said; the result is what it is, and processes of others go on."""
    with subprocess.Popen(["sleep", "251"]) as others:
        known = sleepers()
        try:
            before, kernel = (LEFT[how] if where == "import" else ""), (LEFT[how] if where == "kernel" else "pass")
            call = f"exec({LEFT[how]!r})"
            reference = f"reference=lambda x: [{call}, x][1]" if where == "reference" else ""
            path = module(before, kernel, reference)
            done = program(tmp_path, "run" if where == "reference" else "lint", path)
            assert done.returncode == 0, done
            assert "note: the kernel's file left a process running, which was ended: s" in done.stderr
            assert sleepers() <= known and others.poll() is None
        finally:
            for left in sleepers() - known:
                os.kill(left, signal.SIGKILL)
            others.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_a_process_that_is_waited_for_is_none_that_is_left(module, tmp_path):
    """Nothing is said of it, nor of one that the file itself ends as the program does."""
    at_exit = 'import atexit, subprocess; p = subprocess.Popen(["sleep", "251"]); atexit.register(p.kill)'
    for before in ('import subprocess; subprocess.run(["true"])', at_exit):
        done = program(tmp_path, "lint", module(before))
        assert done.returncode == 0 and "left a process running" not in done.stderr, done
