"""How many files of public Triton sources run end to end, as they stand, with right numbers; and why the others do not.

    python benchmarks/public_triton.py FOLDER|FILE... [--timeout SECONDS] [--machine NAME] [--pytest-args "..."]

A file of tests (``test_*.py``, ``*_test.py``) counts where at least one of its tests passes and none fails, run by
``pytest --kernscope-triton``; any other file that imports Triton counts where ``kernscope triton FILE`` runs it to its
end and it launched a kernel: its own asserts hold. Each file has a process of its own. torch, and what the files import
besides, must be installed here; the sources are fetched by whoever runs this, and nothing of them is kept.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs

_SCRIPT = """
import json, sys
from kernscope.face.guard.guard import Guard
from kernscope.face.triton.script import run_script
from kernscope.face.triton.session import session
path, machine, result = sys.argv[1:]
running = session(machine)
run_script(path, Guard(path), running)
open(result, "w").write(json.dumps({"launches": len(running.launches)}))
"""


@attrs.frozen
class Outcome:
    """What came of a file: ``why`` it does not count, empty where it does; and its tests, where it has any."""

    file: Path
    why: str
    seconds: float
    passed: int = 0
    failed: int = 0
    skipped: int = 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line a file, then the share and the reasons."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds a file may take (default: %(default)g)")
    parser.add_argument("--machine", default="ahbm-pe")
    parser.add_argument("--pytest-args", default="", help="more arguments for pytest")
    given = parser.parse_args(arguments)
    outcomes: list[Outcome] = []
    for file in _files(given.paths):
        outcome = _run(file, given.machine, given.timeout, shlex.split(given.pytest_args))
        outcomes.append(outcome)
        tests = f" {outcome.passed} passed, {outcome.failed} failed," if outcome.passed + outcome.failed else ""
        print(
            f"{'ok  ' if not outcome.why else 'FAIL'} {file}{tests} {outcome.seconds:.1f} s  {outcome.why}", flush=True
        )
    if not outcomes:
        print("no file imports Triton")
        return 2
    good = sum(not outcome.why for outcome in outcomes)
    print(f"\n{good} of {len(outcomes)} files run end to end with right numbers ({100 * good / len(outcomes):.1f} %)")
    passed, failed = sum(o.passed for o in outcomes), sum(o.failed for o in outcomes)
    if passed + failed:
        print(f"{passed} of {passed + failed} tests pass, {sum(o.skipped for o in outcomes)} were skipped")
    for why, count in Counter(_kind(outcome.why) for outcome in outcomes if outcome.why).most_common():
        print(f"{count:5}  {why}")
    return 0


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        for file in [path] if path.is_file() else sorted(path.rglob("*.py")):
            text = file.read_text(encoding="utf-8", errors="replace")
            if path.is_file() or re.search(r"^\s*(import|from) (triton|liger_kernel|flag_gems)\b", text, re.MULTILINE):
                yield file


def _run(file: Path, machine: str, timeout_s: float, more: Sequence[str]) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder, "result")
        if file.name.startswith("test_") or file.name.endswith("_test.py"):
            options = [f"--kernscope-triton={machine}", f"--junit-xml={result}", "-q", "-p", "no:cacheprovider"]
            command = [sys.executable, "-m", "pytest", str(file), *options, *more]
        else:
            command = [sys.executable, "-c", _SCRIPT, str(file.resolve()), machine, str(result)]
        environment = {
            **os.environ,
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        began = time.monotonic()
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=timeout_s,
                env=environment,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Outcome(file, f"not done within {timeout_s:g} s", timeout_s)
        seconds = time.monotonic() - began
        said = done.stdout + done.stderr
        if "pytest" in command:
            return _of_tests(file, said, seconds)
        if not result.exists():
            return Outcome(file, _last_error(said), seconds)
        launches = json.loads(result.read_text())["launches"]
        return Outcome(file, "" if launches else "launched no kernel", seconds)


def _of_tests(file: Path, said: str, seconds: float) -> Outcome:
    counts = {what: int(count) for count, what in re.findall(r"(\d+) (passed|failed|skipped|errors?)", said[-2000:])}
    passed, skipped = counts.get("passed", 0), counts.get("skipped", 0)
    failed = counts.get("failed", 0) + counts.get("error", 0) + counts.get("errors", 0)
    if failed:
        return Outcome(file, _last_error(said), seconds, passed, failed, skipped)
    return Outcome(file, "" if passed else f"no test passed: {_last_error(said)}", seconds, passed, failed, skipped)


def _last_error(said: str) -> str:
    """The line that says what went wrong: the last error's."""
    named = r"(?:[\w.]+(?:Error|Exception)\b|error\[\w+\])[^\n]*"
    lines = re.findall(rf"^(?:E\s+)?({named})|^E\s+(assert [^\n]*)", said, re.MULTILINE)
    lines = [first or second for first, second in lines]
    return lines[-1].strip()[:200] if lines else (said.strip().splitlines() or ["no output"])[-1][:200]


def _kind(why: str) -> str:
    """A reason without its numbers and paths, for counting."""
    return re.sub(r"\d+", "N", re.sub(r"/\S+/", "", why))[:120]


if __name__ == "__main__":
    sys.exit(main())
