"""How much of public Triton sources runs end to end, as it stands, with right numbers; and why the rest does not.

    python benchmarks/public_triton.py [FOLDER|FILE...] [--triton PATH] [--liger PATH] [--flaggems PATH] [--fetch]

``--triton``, ``--liger`` and ``--flaggems`` are checkouts of the projects; with ``--fetch`` those that are not given
are cloned from where they are published, and deleted afterwards. Triton's ``test_core.py`` gives a row a test function:
passed, refused by name, or failed. Liger-Kernel and FlagGems give the share of their files of operators of which at
least one test passes and none fails. ``--sample N`` (default: 2; 0: all) keeps N parametrisations of each test
function, the same ones each time: all of them take hours.

Of a FOLDER or FILE: a file of tests (``test_*.py``, ``*_test.py``) counts where at least one of its tests passes and
none fails, run by ``pytest --kernscope-triton``; any other file that imports Triton counts where ``kernscope triton
FILE`` runs it to its end and it launched a kernel: its own asserts hold. Each file has a process of its own. torch, and
what the files import besides, must be installed here; nothing of the sources is kept.
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
from typing import Any

import attrs
from public_projects import PROJECTS, Project, fetched, outcomes_of, with_kernels

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
    """Print what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path)
    for name, project in PROJECTS.items():
        parser.add_argument(f"--{name}", type=Path, help=f"a checkout of {project.url}")
    parser.add_argument("--fetch", action="store_true", help="clone the projects that are not given")
    parser.add_argument("--sample", type=int, default=2, help="parametrisations of a test function; 0: all")
    parser.add_argument("--limit", type=float, default=60.0, help="processor seconds of a test (default: %(default)g)")
    parser.add_argument("--only", action="append", default=[], help="files of tests whose names have this; repeatable")
    parser.add_argument("--timeout", type=float, default=1800.0, help="seconds a file may take (default: %(default)g)")
    parser.add_argument("--machine", default="ahbm-pe")
    parser.add_argument("--pytest-args", default="", help="more arguments for pytest, of a FOLDER or FILE")
    given = parser.parse_args(arguments)
    roots = {name: getattr(given, name) for name in PROJECTS if getattr(given, name) is not None}
    if not (given.paths or roots or given.fetch):
        parser.error("name a file or a folder, a project's checkout, or --fetch")
    status = 0
    if given.paths:
        status = _run_files(given)
    with tempfile.TemporaryDirectory() as folder:
        for name, project in PROJECTS.items():
            if name not in roots and given.fetch:
                roots[name] = fetched(project, Path(folder))
            if name in roots:
                _run_project(project, roots[name].resolve(), given)
    return status


def _run_files(given: argparse.Namespace) -> int:
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


# --- projects ---------------------------------------------------------------------------------------------------------


def _run_project(project: Project, root: Path, given: argparse.Namespace) -> None:
    sampled = (
        f"{given.sample} parametrisations of each test function, the same ones each time" if given.sample else "all"
    )
    print(f"\n{project.name}: {sampled}; a test may take {given.limit:g} s of processor time", flush=True)
    lines: list[dict[str, Any]] = []
    for file, outcomes, trouble in outcomes_of(
        project,
        root,
        machine=given.machine,
        sample=given.sample,
        limit_s=given.limit,
        timeout_s=given.timeout,
        only=given.only,
    ):
        counts = Counter(line["what"] for line in outcomes)
        told = ", ".join(f"{counts[what]} {what}" for what in _WHAT if counts[what]) or "no test"
        print(f"  {file.relative_to(root)}: {told}{'  ' + trouble if trouble else ''}", flush=True)
        lines += outcomes
    if project.operators:
        _print_operators(project, root, lines)
    else:
        _print_functions(lines)


#: What can come of a test. ``finding``: its own asserts hold, and kernscope's linter found an error.
_WHAT = ("passed", "finding", "refused", "failed", "skipped")


def _print_functions(lines: Sequence[dict[str, Any]]) -> None:
    """A row a test function. One whose tests only stop at machine code, which kernscope does not make, is told apart:
    what they assert before it holds."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for line in lines:
        rows.setdefault(line["test"].rpartition("::")[2], []).append(line)
    print(
        f"\n  {'test function':<44}"
        + "".join(f"{what:>9}" for what in ("passed", "to asm", "refused", "finding", "failed", "skipped"))
    )
    verdicts: Counter[str] = Counter()
    for name, found in rows.items():
        to_asm = sum(_asks_for_asm(line) for line in found)
        counts = Counter(line["what"] for line in found)
        counts["refused"] -= to_asm
        reasons = Counter(
            _short(line["why"])
            for line in found
            if line["what"] in ("refused", "failed", "finding") and not _asks_for_asm(line)
        )
        numbers = (counts["passed"], to_asm, counts["refused"], counts["finding"], counts["failed"], counts["skipped"])
        told = "".join(f"{n or '-':>9}" for n in numbers)
        print(f"  {name:<44} {told}  {'; '.join(reasons)[:160]}")
        verdicts[
            "failed"
            if counts["failed"]
            else "refused"
            if counts["refused"]
            else "passed"
            if counts["passed"] or to_asm or counts["finding"]
            else "skipped"
        ] += 1
    print(f"\n  {len(rows)} test functions: " + ", ".join(f"{count} {what}" for what, count in verdicts.most_common()))


def _asks_for_asm(line: dict[str, Any]) -> bool:
    return line["what"] == "refused" and "a compiled kernel has no 'asm'" in line["why"]


def _short(why: str) -> str:
    return " ".join(why.split())[:150]


def _print_operators(project: Project, root: Path, lines: Sequence[dict[str, Any]]) -> None:
    """The share of the files of operators that run: of the tests that ran their kernels one passed, and none failed."""
    met: dict[str, list[dict[str, Any]]] = {str(file): [] for file in with_kernels(project, root)}
    for line in lines:
        for file in line["files"]:
            if file in met and line["what"] != "skipped":
                met[file].append(line)
    good = ("passed", "finding")
    bad = {file: [line for line in found if line["what"] not in good] for file, found in met.items()}
    for file, found in met.items():
        if bad[file]:
            reasons = Counter(f"{line['what']}: {_short(line['why'])}" for line in bad[file])
            print(f"  {Path(file).relative_to(root)}: {len(bad[file])} of {len(found)}  {'; '.join(reasons)[:240]}")
    tested = [file for file, found in met.items() if found]
    right = [file for file in tested if not bad[file]]
    untested = sorted(Path(file).name for file in met if file not in tested)
    if tested:
        print(
            f"\n  {project.name}: {len(right)} of {len(tested)} files of operators run end to end with right numbers "
            f"({100 * len(right) / len(tested):.1f} %)"
        )
    if untested:
        print(f"  {len(untested)} more have kernels that no test ran: {', '.join(untested)}")
    findings = Counter(_short(line["why"]) for line in lines if line["what"] == "finding")
    for why, count in findings.most_common():
        print(f"  {count} tests pass, with the finding {why}")


# --- files ------------------------------------------------------------------------------------------------------------


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
