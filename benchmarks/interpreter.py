"""Launches of Triton kernels beside Triton's own interpreter (``TRITON_INTERPRET=1``), as ratios; one run, both sides.

    python benchmarks/interpreter.py [NAME...] [--triton-python PYTHON] [--times N]

``--triton-python`` is a Python that has Triton and torch (default: this one). The numbers of both sides are compared
too: they must agree as closely as the order of sums in f32 allows, counts exactly.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from measure import Row, print_rows

__all__ = ["main"]

_SCRIPT = Path(__file__).with_name("interpreted_kernels.py")
#: What is launched, by name; the kernels themselves can only be imported where there is a Triton.
_LAUNCHES = {
    "add": "2^20 elements, 8,192 programs",
    "matmul": "512^3, 1,024 programs",
    "softmax": "4,096 rows of 781, as many programs",
    "layer_norm": "2,048 rows of 1,024, as many programs",
    "dropout": "2^20 elements, 4,096 programs",
    "atomics": "2^18 counts in 512 bins, 2,048 programs",
}
#: The project's target, in times the interpreter's speed.
_ASKED = 50


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a row a launch. The exit status is 1 where numbers differ, 2 where there is no Triton."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(_LAUNCHES)} (default: all)")
    parser.add_argument("--triton-python", default=sys.executable, help="a Python that has Triton and torch")
    parser.add_argument("--times", type=int, default=3, help="runs of kernscope, of which the least time counts")
    given = parser.parse_args(arguments)
    if unknown := set(given.names) - set(_LAUNCHES):
        parser.error(f"no such launch: {', '.join(sorted(unknown))}")
    probe = subprocess.run(
        [given.triton_python, "-c", "import triton, torch; print(triton.__version__)"],
        capture_output=True,
        text=True,
        check=False,
    )
    if probe.returncode:
        print(
            f"needs Triton installed, and torch: {given.triton_python} has not both (--triton-python names another one)"
        )
        return 2
    names = given.names or list(_LAUNCHES)
    rows, is_equal = [], True
    for name in names:
        ours = _measured("kernscope", sys.executable, given.times, name)
        theirs = _measured("triton", given.triton_python, 1, name)
        equal = _agree(ours[f"{name}.out"], theirs[f"{name}.out"])
        is_equal = is_equal and equal
        run, whole, interpreted = (
            float(x) for x in (ours[f"{name}.seconds"], ours[f"{name}.whole"], theirs[f"{name}.seconds"])
        )
        rows.append(
            Row(
                f"{name}: {_LAUNCHES[name]}",
                f"{interpreted / run:.0f} x",
                f"{run:.3f} s beside {interpreted:.2f} s; with findings and schedules {whole:.3f} s, "
                f"{interpreted / whole:.0f} x; numbers {'agree' if equal else 'DIFFER'}",
            )
        )
    print_rows(f"Triton {probe.stdout.strip()}, interpreted ({_ASKED} x asked); processor time", rows)
    return 0 if is_equal else 1


def _measured(side: str, python: str, times: int, name: str) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder, "result.npz")
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        environment["TRITON_INTERPRET"] = "1" if side == "triton" else "0"
        subprocess.run(
            [python, str(_SCRIPT), side, str(result), str(times), name], check=True, env=environment, cwd=folder
        )
        with np.load(result) as found:
            return dict(found)


def _agree(ours: Any, theirs: Any) -> bool:
    if ours.dtype.kind == "f":
        return bool(np.allclose(ours, theirs, rtol=1e-4, atol=1e-4))
    return bool((ours == theirs).all())


if __name__ == "__main__":
    sys.exit(main())
