"""``kernscope sweep``: processes, the journal, files, and a real cluster on loopback that loses a worker."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernscope.cli import main

KERNEL = """
    import os
    import signal
    import time

    import kernscope as ks
    from kernscope import tl
    from doubling import FACTOR


    @ks.launch("small", x=ks.hbm((64, 64), "f32"), o=ks.hbm((64, 64), "f32"))
    @ks.kernel
    def scale(x, o, *, tile=16, mode="good"):
        print("noise on standard output")
        if mode == "crash":
            os.kill(os.getpid(), signal.SIGKILL)
        if mode == "exit":
            os._exit(3)
        if mode == "hang":
            time.sleep(1000)
        if mode == "slow":
            time.sleep(0.5)
        for i in range(0, 64, tile):
            with tl.scratch_scope():
                tl.store(o[i : i + tile, :], tl.load(x[i : i + tile, :]) * FACTOR)
"""


PROGRAM = (sys.executable, "-m", "kernscope")


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A kernel's file with a module beside it, in a folder that is on nobody's path."""
    folder = tmp_path / "kernels"
    folder.mkdir()
    (folder / "doubling.py").write_text("FACTOR = 2.0\n")
    path = folder / "scale.py"
    path.write_text(textwrap.dedent(KERNEL))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("NO_COLOR", "1")
    yield path
    sys.modules.pop("doubling", None)


def rows_of(path: str) -> list[dict[str, str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_a_process_that_ends_is_a_row(kernel, capsys):
    """A crash, an exit, and one that does not end: each is told, and the others have their rows."""
    modes = ["good", "crash", "exit", "hang", "slow"]
    arguments = ["sweep", kernel, "--axis", f"mode={','.join(modes)}", "--axis", "tile=16,32", "--timeout", "8"]
    assert main([str(word) for word in [*arguments, "-o", "rows.csv", "--jobs", "2"]]) == 0
    rows = rows_of("rows.csv")
    assert [(row["mode"], row["tile"]) for row in rows] == [(mode, tile) for mode in modes for tile in ("16", "32")]
    said = {row["mode"]: (row["verdict"], row["reason"]) for row in rows}
    assert said["good"] == said["slow"] == ("fits", "")
    assert said["crash"] == ("failed", "ended its process: killed by SIGKILL")
    assert said["exit"][0] in ("failed", "refused")
    assert said["hang"] == ("failed", "did not end within 8 s")
    assert "noise" not in capsys.readouterr().out


def test_only_what_is_not_there_is_computed(kernel, capsys):
    """The same sweep again, one of more values, and one after a line that was cut: rows are kept, in any order of
    axes; failed ones are tried again. Another kernel's rows are refused."""
    base = ["sweep", str(kernel), "--journal", "kept.jsonl", "--jobs", "1"]
    assert main([*base, "--axis", "tile=16,32", "-o", "a.csv"]) == 0
    lines = Path("kept.jsonl").read_bytes().splitlines(keepends=True)
    assert len(lines) == 3 and json.loads(lines[1])["point"] == {"tile": "16"}
    capsys.readouterr()
    assert main([*base, "--axis", "tile=16,32", "-o", "b.csv"]) == 0
    assert "2 of 2 points are in kept.jsonl" in capsys.readouterr().err
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()
    # Marked, to see that it is read and not computed; and the last line cut as a kill would leave it.
    marked = lines[1].replace(b'"peak_bytes": ', b'"peak_bytes": 9')
    Path("kept.jsonl").write_bytes(lines[0] + marked + lines[2][:20])
    assert main([*base, "--axis", "tile=64,32,16", "-o", "c.csv"]) == 0
    assert "1 of 3 points" in capsys.readouterr().err
    old, new = rows_of("a.csv"), rows_of("c.csv")
    assert [row["tile"] for row in new] == ["64", "32", "16"]
    assert new[2]["peak_bytes"] == "9" + old[0]["peak_bytes"] and new[1]["makespan_ps"] == old[1]["makespan_ps"]
    kernel.write_text(kernel.read_text() + "\n# edited\n")
    assert main([*base, "--axis", "tile=16"]) == 2
    assert "another kernel, or of other options" in capsys.readouterr().err
    assert main([*base, "--axis", "tile=16", "--fresh"]) == 0


@pytest.mark.parametrize("content", [b"mine\n", b'{"format": "kernscope-sweep"\n', b"\x00\xff\n"])
def test_a_file_of_something_else_is_not_written_over(kernel, capsys, content):
    """Nor is a damaged one."""
    Path("kept.jsonl").write_bytes(content)
    assert main(["sweep", str(kernel), "--axis", "tile=16", "--journal", "kept.jsonl"]) == 2
    assert Path("kept.jsonl").read_bytes() == content and "KE501" in capsys.readouterr().err


def test_a_kill_loses_nothing(kernel):
    """Killed half-way: the rows so far are in the journal, no process is left, and the sweep goes on from there."""
    command = [*PROGRAM, "sweep", str(kernel), "--arg", "mode=slow"]
    command += ["--axis", "tile=8:64:8", "--journal", "kept.jsonl", "--jobs", "1"]
    program = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: len(journal_rows()) >= 2)
    finally:
        program.kill()
        program.wait()
    kept = journal_rows()
    assert 2 <= len(kept) < 8
    done = subprocess.run([*command, "-o", "rows.csv"], capture_output=True, text=True, check=True)
    assert f"{len(kept)} of 8 points are in kept.jsonl" in done.stderr
    assert [row["verdict"] for row in rows_of("rows.csv")].count("fits") >= 4


def journal_rows() -> list[str]:
    path = Path("kept.jsonl")
    return path.read_text().splitlines()[1:] if path.exists() else []


def wait_for(condition, seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--axis", "tile"], "write NAME=VALUES"),
        (["--axis", "tyle=1"], "did you mean 'tile'"),
        (["--axis", "tile=1", "--axis", "tile=2"], "given twice"),
        (["--axis", "tile=1", "--arg", "tile=2"], "leave out the --arg"),
        (["--axis", "policy=lst"], "did you mean 'list'"),
        (["--axis", "tile=a b"], "no Python literal"),
        (["--axis", "tile=16", "-o", "rows.xls"], "formats are .csv, .parquet"),
        (["--axis", "tile=16", "--jobs", "1", "--cluster", "tcp://x"], "leave out --jobs"),
    ],
)
def test_mistakes_are_told(kernel, capsys, words, said):
    """One error each, exit status 2, nothing written."""
    assert main(["sweep", str(kernel), *words]) == 2
    assert said in capsys.readouterr().err and not list(Path.cwd().iterdir())


def test_parquet_holds_what_csv_holds(kernel):
    """With types of their own: null, integers, truth values."""
    parquet = pytest.importorskip("pyarrow.parquet")
    for name in ("rows.csv", "rows.parquet"):
        assert main(["sweep", str(kernel), "--axis", "tile=16,32", "-o", name]) == 0
    table = parquet.read_table("rows.parquet").to_pylist()
    assert [{k: "" if v is None else str(v) for k, v in row.items()} for row in table] == rows_of("rows.csv")
    assert isinstance(table[0]["makespan_ps"], int) and isinstance(table[0]["pareto"], bool)


# --- a cluster --------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def running(folder: Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A program of Dask's in a folder of its own, ended with all that it started."""
    folder.mkdir(exist_ok=True)
    program = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli." + words[0], *words[1:]],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield program
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)
        program.wait()


def address_in(place: Path) -> str:
    """The address that a scheduler wrote down."""
    address = json.loads(place.read_text())["address"]
    assert isinstance(address, str)
    return address


def count_workers(address: str) -> int:
    """How many workers a scheduler has: asked by a program, as Dask's client leaves threads behind."""
    text = "import sys, distributed as d; print(len(d.Client(sys.argv[1]).scheduler_info()['workers']))"
    done = subprocess.run([sys.executable, "-c", text, address], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="no groups of processes")
def test_a_cluster_that_loses_a_worker_has_all_rows(kernel, tmp_path):
    """A scheduler and two workers that know nothing of the kernel's folder; one is killed half-way. Every point has its
    row, the one that crashes too, and no worker went down with it."""
    pytest.importorskip("distributed")
    place = tmp_path / "scheduler.json"
    worker = ("dask_worker", "--scheduler-file", str(place), "--nthreads", "1", "--no-nanny", "--no-dashboard")
    with contextlib.ExitStack() as stack:
        start = stack.enter_context
        options = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(place))
        start(running(tmp_path / "s", "dask_scheduler", *options))
        wait_for(place.exists)
        nobody = subprocess.run(
            [
                sys.executable,
                "-m",
                "kernscope",
                "sweep",
                str(kernel),
                "--axis",
                "tile=16",
                "--cluster",
                address_in(place),
            ],
            capture_output=True,
            text=True,
        )
        assert nobody.returncode == 2 and "has no workers" in nobody.stderr
        doomed = start(running(tmp_path / "w1", *worker))
        start(running(tmp_path / "w2", *worker))
        address = address_in(place)
        wait_for(lambda: count_workers(address) == 2)
        command = [*PROGRAM, "sweep", str(kernel), "--cluster", address, "--timeout", "60"]
        command += ["--axis", "mode=slow,crash", "--axis", "tile=8,16,32,64", "--journal", "kept.jsonl"]
        program = subprocess.Popen([*command, "-o", "rows.csv"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            wait_for(lambda: len(journal_rows()) >= 2 or program.poll() is not None)
            os.killpg(doomed.pid, signal.SIGKILL)
            out, errors = program.communicate(timeout=120)
        finally:
            program.kill()
            program.wait()
        assert program.returncode == 0, (out, errors)
    rows = rows_of("rows.csv")
    assert [row["verdict"] for row in rows] == ["fits"] * 4 + ["failed"] * 4
    assert {row["reason"] for row in rows[4:]} == {"ended its process: killed by SIGKILL"}
    # In this process, on the same files, the numbers are the same.
    assert main(["sweep", str(kernel), "--axis", "tile=8,16,32,64", "-o", "local.csv"]) == 0
    assert [row["makespan_ps"] for row in rows_of("local.csv")] == [row["makespan_ps"] for row in rows[:4]]


def test_no_scheduler_is_told(kernel, capsys, monkeypatch):
    """An address where nobody answers is one error."""
    pytest.importorskip("distributed")
    command = [*PROGRAM, "sweep", str(kernel), "--axis", "tile=16"]
    done = subprocess.run([*command, "--cluster", "tcp://127.0.0.1:9"], capture_output=True, text=True)
    assert done.returncode == 2 and "no Dask scheduler answers" in done.stderr and "Traceback" not in done.stderr
