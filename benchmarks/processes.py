"""What only a process of its own can tell: start-up and memory."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from measure import Row

__all__ = ["rows"]

_TIMED = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime)
"""

_MILLION = """
import resource
import kernscope as ks
from kernscope.kernels.gqa_attention_prefill_long import gqa_attention_prefill_long_kernel as kernel
keys = {name: ks.hbm((KEYS, 128), "f16") for name in ("k", "v")}
graph = ks.trace(kernel.launch("8k"), max_nodes=2_000_000, **keys)
ks.schedule(graph, effort="fast")
ks.lint(graph)
print(len(graph), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""

_KERNEL = '''import kernscope as ks
from kernscope import tl


@ks.launch("all", x=ks.hbm((64, 64), "f32"), y=ks.hbm((64, 64), "f32"))
@ks.kernel
def double(x, y):
    """Twice the input."""
    tl.store(y, tl.load(x) * 2)
'''


def _run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def rows(quick: bool) -> list[Row]:
    """Memory of a million nodes traced, scheduled and linted; `kernscope lint` beside an import of two libraries."""
    keys = 32768 if quick else 360448
    nodes, peak = map(int, _run(sys.executable, "-c", _MILLION.replace("KEYS", str(keys))).split())
    found = [Row(f"{nodes:,} nodes traced, scheduled, linted", f"{peak / 2**20:,.0f} MiB", "peak resident memory")]
    with tempfile.TemporaryDirectory() as folder:
        kernel = Path(folder, "double.py")
        kernel.write_text(_KERNEL, encoding="utf-8")
        commands = [["-m", "kernscope", "lint", str(kernel)], ["-c", "import numpy, networkx"]]
        spent = [
            min(float(_run(sys.executable, "-c", _TIMED, sys.executable, *command)) for _ in range(3))
            for command in commands
        ]
    return [*found, Row("kernscope lint, a small kernel", f"{spent[0] / spent[1]:.1f} x", "import numpy, networkx")]
