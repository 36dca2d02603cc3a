"""Numbers of launches beside those of Triton's own interpreter (``TRITON_INTERPRET=1``), in tests of public projects.

    python benchmarks/interpreter_numbers.py [--triton PATH] [--liger PATH] [--triton-python PYTHON] [--sample N]

Each test runs twice, here and in ``--triton-python`` (default: this one), which must have Triton and torch. Of each
kernel of a test that passes on both sides the tensors of its last launch are compared: integers must be equal, floats
as close as their type's sums allow. FlagGems is left out: it needs a GPU's dispatch.
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
from public_projects import PROJECTS, Project

__all__ = ["main"]

_HERE = Path(__file__).resolve().parent
#: Relative and absolute tolerance by the bytes of a float.
_CLOSE = {2: (2e-2, 2e-2), 4: (1e-3, 1e-3), 8: (1e-6, 1e-6)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what was compared. The exit status is 1 where numbers differ, 2 where there is no Triton."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("triton", "liger"):
        parser.add_argument(f"--{name}", type=Path, help=f"a checkout of {PROJECTS[name].url}")
    parser.add_argument("--triton-python", default=sys.executable, help="a Python that has Triton and torch")
    parser.add_argument("--sample", type=int, default=1, help="parametrisations of a test function; 0: all")
    parser.add_argument("--limit", type=float, default=60.0, help="processor seconds of a test on a side")
    parser.add_argument("--only", action="append", default=[], help="files of tests whose names have this; repeatable")
    given = parser.parse_args(arguments)
    probe = [given.triton_python, "-c", "import triton, torch"]
    if subprocess.run(probe, capture_output=True, check=False).returncode:
        print(f"needs Triton installed, and torch: {given.triton_python} has not both (--triton-python names another)")
        return 2
    is_equal = True
    for name in ("triton", "liger"):
        root = getattr(given, name)
        if root is not None:
            is_equal = _compared(PROJECTS[name], root.resolve(), given) and is_equal
    return 0 if is_equal else 1


def _compared(project: Project, root: Path, given: argparse.Namespace) -> bool:
    files = [file for pattern in project.tests for file in sorted(root.glob(pattern))]
    tests = tensors = 0
    different: list[str] = []
    for file in files:
        if given.only and not any(part in file.name for part in given.only):
            continue
        with tempfile.TemporaryDirectory() as ours, tempfile.TemporaryDirectory() as theirs:
            _run(project, root, file, sys.executable, given, ours, interpreted=False)
            _run(project, root, file, given.triton_python, given, theirs, interpreted=True)
            both = sorted({path.name for path in Path(ours).iterdir()} & {path.name for path in Path(theirs).iterdir()})
            for name in both:
                with np.load(Path(ours, name)) as here, np.load(Path(theirs, name)) as there:
                    keys = [key for key in here.files if key != "test" and key in there.files]
                    tests, tensors = tests + 1, tensors + len(keys)
                    different += [f"{here['test']}: {key}" for key in keys if not _agree(here[key], there[key])]
            print(f"  {file.name}: {len(both)} tests ran on both sides", flush=True)
    print(
        f"\n{project.name}: {tests} tests ran on both sides, {tensors} tensors of their launches compared, "
        f"{len(different)} differ"
    )
    for line in different:
        print(f"  {line}")
    return not different


def _run(
    project: Project, root: Path, file: Path, python: str, given: argparse.Namespace, folder: str, *, interpreted: bool
) -> None:
    side = ["--interpreted"] if interpreted else ["--kernscope-triton=ahbm-pe"]
    if project.name == "triton":
        side += ["--device", "cpu", "-m", "interpreter"]
    paths = [str(_HERE), *(str(root / path) for path in project.paths)]
    paths += [] if interpreted else [os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        **project.environment,
        "TRITON_INTERPRET": "1",
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    subprocess.run(
        [
            *(python, "-m", "pytest", str(file.relative_to(root)), "-q", "--tb=no", "-W", "ignore"),
            *("-p", "no:cacheprovider", "-p", "public_sampling", "-p", "launch_numbers", "--numbers", folder),
            *("--sample", str(given.sample), "--limit", str(given.limit), *side),
        ],
        cwd=root,
        env=environment,
        capture_output=True,
        check=False,
    )


def _agree(ours: Any, theirs: Any) -> bool:
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return False
    if ours.dtype.kind != "f":
        return bool((ours == theirs).all())
    relative, absolute = _CLOSE[ours.dtype.itemsize]
    return bool(np.allclose(ours, theirs, rtol=relative, atol=absolute, equal_nan=True))


if __name__ == "__main__":
    sys.exit(main())
