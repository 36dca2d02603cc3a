"""What is added is added in one place: each addition is made as CONTRIBUTING says, on a copy of the sources, and used.

A rule has its tests in tests/linter/test_rule_files.py, a policy in tests/scheduler/test_policies.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import sourcecopy

ELEMENTWISE = '''

@_elementwise(_numeric, Cost.SIMPLE)
def square(x: Array) -> Array:
    """``x * x``. Example: ``tl.square(x)``."""
    return x * x
'''

USE_ELEMENTWISE = """
import numpy as np
import kernscope as ks
from kernscope import tl

def kernel(x, o):
    tl.store(o[:, :], tl.square(tl.load(x[:, :])))

x = np.arange(32, dtype=np.float32).reshape(4, 8)
graph = ks.trace(kernel, x, ks.hbm((4, 8), "f32"))
assert graph[1].op == "square" and ks.verify(graph) == []
assert np.array_equal(ks.run(graph)["o"], x * x)
made = ks.schedule(graph)
assert ks.check(made) == [] and made.end_ps[1] > made.start_ps[1]
slow = ks.load_machine().override({"math.cycles.square": "1000"})
assert ks.schedule(graph, machine=slow).makespan_ps > made.makespan_ps
assert ks.lint(graph).ok
"""

#: A transfer within the rank's own memory: no operation has these places on this kind of engine.
SCRATCH_TRANSFER = '''

@_declared(Family.MEMORY, Kind.TRANSFER, "memory/dma_copy", _same, _moved, copies=True, asynchronous=True)
def dma_copy(x: Array, *, result: DType, operands: Sequence[Operand]) -> Array:
    """Copy a tile within scratch, beside the CPU. Example: ``dma_copy(tile)``."""
    return x
'''

USE_SCRATCH_TRANSFER = '''
import attrs
import numpy as np
import kernscope as ks
from kernscope import tl
from kernscope.machine.description import parse_machine
from kernscope.tracer.recording.current import current

COPYING = """
name = "copying"
base = "ahbm-pe"
[engine.dma_copy]
kind = "transfer"
reads = ["tcm"]
writes = ["tcm"]
latency_ns = 100
bytes_per_ns = 128
"""

def kernel(x, o):
    tile = tl.load(x[:, :])
    copy = current().compute("dma_copy", (tile,))
    tl.store(o[:, :], copy + tl.exp(tile))

x = np.arange(32, dtype=np.float32).reshape(4, 8) / 32
machine = parse_machine(COPYING, "copying.toml")
graph = ks.trace(kernel, x, ks.hbm((4, 8), "f32"), machine=machine)
load, copy, exp, _, store = graph
assert (copy.op, copy.log, ks.verify(graph)) == ("dma_copy", "memory/dma_copy", [])
assert [edge.reason.label for edge in copy.edges_in] == ["data"]

try:
    ks.schedule(graph, machine="ahbm-pe")
except ks.TargetMismatchError as error:
    assert "transfer from tcm to tcm" in str(error)
else:
    raise AssertionError("no engine of that machine reads and writes scratch, and transfers")

for policy in ("blocking", "lazy", "queued", "list"):
    made = ks.schedule(graph, policy, machine=machine)
    took = made.end_ps - made.start_ps
    assert made.engines[made.engine[copy.id]].name == "dma_copy"
    assert took[copy.id] == took[store.id] > 0
    assert ks.check(made) == []
    assert np.array_equal(ks.run(graph, order=made)["o"], x + np.exp(x))
wrong = attrs.evolve(made, end_ps=np.where(np.arange(len(graph)) == copy.id, made.end_ps - 1, made.end_ps))
assert [violation.rule for violation in ks.check(wrong)] == ["duration"]
# Beside the vector engine: what a copy that takes it could not.
assert made.start_ps[copy.id] < made.end_ps[exp.id] and made.start_ps[exp.id] < made.end_ps[copy.id]
assert np.array_equal(ks.run(graph, poison=True)["o"], x + np.exp(x))
assert ks.lint(graph, machine=machine).ok
ks.timeline(made, format="svg")
'''

MACHINE = """
name = "ahbm-wide"
base = "ahbm-pe"

[dma_read]
bytes_per_ns = 2048    # assumed
"""

USE_MACHINE = """
import kernscope as ks
from kernscope.kernels.softmax import softmax

wide, base = ks.load_machine("ahbm-wide"), ks.load_machine("ahbm-pe")
assert "ahbm-wide" in ks.machine_names()
assert wide == base.override({"dma_read.bytes_per_ns": "2048", "name": "ahbm-wide"})
graph = ks.trace(softmax.launch("1k"), machine="ahbm-wide")
made = ks.schedule(graph)
assert made.machine == wide and ks.check(made) == []
assert made.makespan_ps < ks.schedule(graph, machine=base).makespan_ps
"""

BACKEND = '''
"""A graph as lines of comma-separated values."""

from __future__ import annotations

from ..ir.graph import Graph

__all__ = ["to_csv"]


def to_csv(graph: Graph) -> str:
    """A line a node: its number and its operation."""
    return "".join(f"{node.id},{node.op}\\n" for node in graph)
'''

USE_BACKEND = """
import kernscope as ks
from kernscope import tl

def kernel(x, o):
    tl.store(o[:], tl.load(x[:]))

x = ks.hbm((8,), "f32")
assert ks.to_csv(ks.trace(kernel, x, x)).splitlines() == ["0,load", "1,store"]
assert "to_csv" in dir(ks)
"""


def _use(root: Path, script: str) -> None:
    done = sourcecopy.run_beside(root, f"import kernscope\nassert kernscope.__path__ == [{str(root)!r}]\n{script}")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("file", "declaration", "use"),
    [
        ("elementwise.py", ELEMENTWISE, USE_ELEMENTWISE),
        ("movement.py", SCRATCH_TRANSFER, USE_SCRATCH_TRANSFER),
    ],
    ids=["elementwise", "a transfer within scratch"],
)
def test_an_operation_is_one_declaration(tmp_path: Path, file: str, declaration: str, use: str) -> None:
    """Recorded, verified, timed, scheduled, checked, executed and linted from it, whatever kind it is of."""
    root = sourcecopy.copy_sources(tmp_path)
    with (root / "ir" / "ops" / file).open("a", encoding="utf-8") as family:
        family.write(declaration)
    _use(root, use)


def test_what_an_operation_costs_is_asked_for(tmp_path: Path) -> None:
    """One of the elementwise kind without a class of cost is refused, not silently a cycle."""
    root = sourcecopy.copy_sources(tmp_path)
    with (root / "ir" / "ops" / "movement.py").open("a", encoding="utf-8") as family:
        family.write(SCRATCH_TRANSFER.replace("Kind.TRANSFER", "Kind.ELEMENTWISE"))
    done = sourcecopy.run_beside(root, "import kernscope")
    assert "AssertionError: what does dma_copy cost? see Cost" in done.stderr


def test_a_machine_is_one_file(tmp_path: Path) -> None:
    """With ``base`` it says only what is different."""
    root = sourcecopy.copy_sources(tmp_path)
    (root / "machine" / "presets" / "ahbm-wide.toml").write_text(MACHINE, encoding="utf-8")
    _use(root, USE_MACHINE)


def test_a_backend_is_one_module_and_its_registration(tmp_path: Path) -> None:
    """A line in the root's table makes it a function of ``ks``, loaded on first use."""
    root = sourcecopy.copy_sources(tmp_path)
    (root / "backends" / "csv_lines.py").write_text(BACKEND, encoding="utf-8")
    face = root / "__init__.py"
    text = face.read_text(encoding="utf-8")
    assert text.count("_LAZY = {\n") == 1
    face.write_text(text.replace("_LAZY = {\n", '_LAZY = {\n    "to_csv": ".backends.csv_lines",\n'), encoding="utf-8")
    _use(root, USE_BACKEND)
