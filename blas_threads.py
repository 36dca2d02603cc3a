"""How many threads numpy's matrix products take: in the commands one, unless the user has set a number.

A kernel's tiles are small, and a second thread of BLAS spins while it waits for the next of them: alone on a machine it
gains little, on a busy one it multiplies a run's time. BLAS reads the number from the environment as it is loaded, with
numpy; so the package imports this module before any other. Where it is imported by a program of its user's it leaves
the environment as it is.
"""

from __future__ import annotations

import os
import sys
from collections.abc import MutableMapping, Sequence
from pathlib import PurePath

__all__ = ["VARIABLES", "is_command", "set_one_thread"]

#: What OpenBLAS, OpenMP, MKL, Apple's Accelerate and BLIS read.
VARIABLES = (
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "BLIS_NUM_THREADS",
)


def is_command(argv: Sequence[str], orig_argv: Sequence[str]) -> bool:
    """Whether Python was started as ``kernscope`` or as ``python -m kernscope``: while the package is imported for the
    latter, ``sys.argv`` begins with ``-m``, and only ``sys.orig_argv`` has the module's name."""
    if argv[:1] == ["-m"]:
        return orig_argv[-len(argv)] in ("kernscope", "-mkernscope")
    program = PurePath(argv[0] if argv else "")
    return program.stem == "kernscope" and program.suffix in ("", ".exe")


def set_one_thread(environment: MutableMapping[str, str]) -> None:
    """Ask for one thread of whichever BLAS there is, unless a number is set for any."""
    if not any(environment.get(name) for name in VARIABLES):
        environment.update(dict.fromkeys(VARIABLES, "1"))


if is_command(sys.argv, sys.orig_argv):
    set_one_thread(os.environ)
