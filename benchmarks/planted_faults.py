"""Faults planted in public Triton kernels: which of them are found, at which line and in which program, and what else
is said.

    python benchmarks/planted_faults.py --triton PATH --liger PATH [--only TEXT]

``--triton`` and ``--liger`` are checkouts of Triton's mirror for CPUs and of Liger-Kernel; nothing of them is kept. A
kernel is taken out of its file as it stands, at the lines where it stands there, and launched on arrays of a size that
is no multiple of its blocks. Each fault is one small edit of it (``planted_faults.csv``): a text of a line, what stands
there instead, and what has to be found. What the kernel as it stands is told already does not count, nor do infos. A
row of the output says *found* where exactly the expected findings are made, *beside* where there are others, *missed*
where one is missing, *not planted* where the source is another one.
"""

from __future__ import annotations

import argparse
import ast
import csv
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import attrs
from planted_launches import LAUNCHES

import kernscope as ks

__all__ = ["FAULTS", "Fault", "Outcome", "outcome_of", "with_fault"]

_HERE = Path(__file__).resolve().parent


@attrs.frozen
class Fault:
    """One edit of the launch ``kernel``: instead of the text ``find``, which stands once in its file (or the first one
    after ``after``), there is ``put``. ``wanted``: by code, the texts of the lines that are found, each in ``program``
    first."""

    kernel: str
    kind: str
    find: str
    put: str
    wanted: tuple[tuple[str, str], ...]
    program: str
    after: str = ""


@attrs.frozen
class Outcome:
    """What was found of a fault: as ``wanted``, what is ``missing`` of that, and what was said ``beside`` it, by code
    and text of the line."""

    fault: Fault
    missing: tuple[tuple[str, str], ...]
    beside: tuple[tuple[str, str], ...]

    @property
    def word(self) -> str:
        """The outcome."""
        return "missed" if self.missing else "beside" if self.beside else "found"


def _faults() -> tuple[Fault, ...]:
    with (_HERE / "planted_faults.csv").open(encoding="utf-8", newline="") as file:
        return tuple(
            Fault(
                kernel=line["kernel"],
                kind=line["kind"],
                find=line["find"],
                put=line["put"],
                wanted=tuple(_pair(part) for part in line["wanted"].split(" ; ")),
                program=line["program"],
                after=line["after"],
            )
            for line in csv.DictReader(file)
        )


def _pair(text: str) -> tuple[str, str]:
    code, _, line = text.partition(" ")
    return code, line


FAULTS = _faults()


def with_fault(source: str, fault: Fault) -> str:
    """The source with a fault in it. Raises ``ValueError`` where the text does not stand there once."""
    begin = source.index(fault.after) if fault.after else 0
    times = source.count(fault.find, begin)
    if not times or (times > 1 and not fault.after):
        raise ValueError(f"{fault.kernel}: {fault.find!r} stands there {times} times")
    at = source.index(fault.find, begin)
    return source[:at] + fault.put + source[at + len(fault.find) :]


def kernels_of(source: str) -> str:
    """The kernels of a file alone, with Triton's imports and the constants of the file, each at its line."""
    tree, lines = ast.parse(source), source.splitlines()
    kept = [""] * len(lines)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            jits = [d for d in node.decorator_list if ast.unparse(d) == "triton.jit"]
            parts = [(d.lineno, d.end_lineno) for d in jits] + [(node.lineno, node.end_lineno)] if jits else []
        else:
            parts = [(node.lineno, node.end_lineno)] if _is_kept(node) else []
        for first, last in parts:
            for number in range(first - 1, last or first):
                kept[number] = lines[number]
    return "\n".join(kept) + "\n"


def _is_kept(node: ast.stmt) -> bool:
    if isinstance(node, ast.Import):
        return all(alias.name.split(".")[0] == "triton" for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        return (node.module or "").split(".")[0] == "triton"
    value = getattr(node, "value", None)
    if isinstance(node, ast.Assign | ast.AnnAssign) and value is not None:
        return isinstance(value, ast.Constant) or ast.unparse(value).startswith("tl.constexpr(")
    return False


def _found(launch: str, text: str, folder: Path, machine: str) -> Counter[tuple[str, str, str]]:
    """The errors and warnings of a launch: code, text of the line, and message."""
    given = LAUNCHES[launch]
    path = folder / Path(given.file).name
    path.write_text(text, encoding="utf-8")
    names = {"__name__": "__main__", "__file__": str(path)}
    with ks.triton.session(machine) as session:
        exec(given.before, names)
        exec(compile(path.read_bytes(), str(path), "exec"), names)
        exec(given.call, names)
    lines = text.splitlines()
    found: Counter[tuple[str, str, str]] = Counter()
    for one in session.launches:
        for finding in one.lint():
            if finding.severity in ("error", "warning"):
                place = finding.location
                line = lines[place.line - 1].strip() if place is not None and place.file.endswith(path.name) else ""
                found[finding.code, line, finding.message] += 1
    return found


def outcome_of(fault: Fault, source: str, machine: str = "ahbm-pe") -> Outcome:
    """Plant a fault in the source of its file, and compare what is found with what has to be."""
    source = kernels_of(source)
    with tempfile.TemporaryDirectory() as folder:
        before = _found(fault.kernel, source, Path(folder), machine)
        after = _found(fault.kernel, with_fault(source, fault), Path(folder), machine)
    more = [*(after - before).elements()]
    missing = tuple(
        (code, line)
        for code, line in fault.wanted
        if not any(c == code and line in at and f"program {fault.program}" in said for c, at, said in more)
    )
    beside = tuple((code, at) for code, at, _ in more if not any(code == c and line in at for c, line in fault.wanted))
    return Outcome(fault, missing, beside)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a row for each fault; 1 where one is not found as it has to be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--triton", type=Path, required=True, help="a checkout of github.com/triton-lang/triton-cpu")
    parser.add_argument("--liger", type=Path, required=True, help="a checkout of github.com/linkedin/Liger-Kernel")
    parser.add_argument("--only", default="", help="kernels whose names have this")
    parser.add_argument("--machine", default="ahbm-pe")
    given = parser.parse_args(arguments)
    roots = {"triton": given.triton, "liger": given.liger}
    chosen = [fault for fault in FAULTS if given.only in fault.kernel]
    words: Counter[str] = Counter()
    for fault in chosen:
        launch = LAUNCHES[fault.kernel]
        try:
            source = (roots[launch.project] / launch.file).read_text(encoding="utf-8")
            outcome = outcome_of(fault, source, given.machine)
        except (OSError, ValueError) as error:  # another version of the source
            words["not planted"] += 1
            print(f"{'not planted':11} {fault.kernel:10} {fault.kind}: {error}", flush=True)
            continue
        words[outcome.word] += 1
        told = ", ".join(f"{code} at {line}" for code, line in outcome.missing or outcome.beside)
        print(f"{outcome.word:11} {fault.kernel:10} {fault.kind}" + (f": {told}" if told else ""), flush=True)
    counts = ", ".join(f"{count} {word}" for word, count in words.items())
    print(f"{len(chosen)} faults in {len({fault.kernel for fault in chosen})} kernels: {counts}")
    return int(words["found"] != len(chosen))


if __name__ == "__main__":
    sys.exit(main())
