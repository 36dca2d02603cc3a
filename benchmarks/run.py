"""Prints the table of ratios: `python benchmarks/run.py`, or `--quick` for a version of a minute.

Each figure stands beside a peer that is measured in the same run; a peer that is not installed is named.
"""

from __future__ import annotations

import argparse
import os
import platform

import machines
import processes
import quality
import scheduling
import tracing
from measure import installed, print_rows

SECTIONS = {
    "tracing": ("Tracing and edges", tracing.rows),
    "scheduling": ("Scheduling and checking", scheduling.rows),
    "quality": ("Quality of schedules", quality.rows),
    "processes": ("Memory and start-up", processes.rows),
    "machines": ("Published times of kernels", machines.rows),
}


def main() -> None:
    """Run the sections that are asked for."""
    parser = argparse.ArgumentParser(description="kernscope beside its peers, as ratios")
    parser.add_argument("sections", nargs="*", choices=[[], *SECTIONS], default=[], help="default: all")
    parser.add_argument("--quick", action="store_true", help="smaller inputs, fewer runs")
    parser.add_argument(
        "--fit", nargs="*", metavar="MACHINE", help="with machines: fit these anew, or all; what comes of it is stored"
    )
    options = parser.parse_args()
    if options.fit is not None and (options.sections != ["machines"] or options.quick):
        parser.error("--fit goes with machines alone")
    numba = "with numba" if installed("numba") else "without numba: every loop as plain Python"
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, {numba}; processor time")
    for name in options.sections or SECTIONS:
        title, rows = SECTIONS[name]
        print_rows(title, rows(options.quick) if options.fit is None else machines.rows(False, fit=options.fit))


if __name__ == "__main__":
    main()
