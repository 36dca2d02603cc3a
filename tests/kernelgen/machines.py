"""Machines that a random kernel may run on: options that change distances, costs, and what may go on at once."""

from __future__ import annotations

from kernscope.machine.description import parse_machine

__all__ = ["MACHINE_OPTIONS", "SEVERAL_MEMORIES", "Option"]

#: The default machine with three memories a rank: products go from one into another, arithmetic between two, and
#: results of some operations elsewhere than the rest.
SEVERAL_MEMORIES = parse_machine(
    """
name = "several"
base = "ahbm-pe"
[memory.psum]
bytes = 1048576
align = 64
[memory.l0]
bytes = 1048576
align = 32
[engine.gemm]
reads = ["l0"]
writes = ["psum"]
latency_cycles = 30
[engine.math]
reads = ["tcm", "psum"]
writes = ["tcm", "psum"]
ops = ["elementwise", "move"]
latency_cycles = 9
[engine.feed]
kind = "transfer"
reads = ["tcm", "l0"]
writes = ["l0", "tcm"]
latency_ns = 30
bytes_per_ns = 16
pipelined = true
[place]
default = "tcm"
exp = "psum"
sub = "psum"
cast = "psum"
""",
    "several.toml",
)

#: A field of the machine and its value, as ``--set`` takes them.
Option = tuple[str, str]

_VALUES = {
    "clock_ghz": ("1.4", "0.3"),
    "cpu.issue_cycles.default": ("3", "20", "200"),
    "cpu.issue_cycles.load": ("30",),
    "cpu.issue_cycles.composite": ("50",),
    "cpu.issue_cycles.math": ("7",),
    "dma_read.channels": ("2", "3"),
    "dma_read.latency_ns": ("0", "12.5", "2000"),
    "dma_read.bytes_per_ns": ("0.7", "3"),
    "dma_write.channels": ("2", "3"),
    "dma_write.latency_ns": ("0", "900"),
    "gemm.rows": ("1", "3"),
    "gemm.startup_cycles": ("0", "400"),
    "gemm.rate.float16": ("2.5",),
    "math.lanes": ("1", "5"),
    "math.startup_cycles": ("0",),
    "math.cycles.default": ("0", "9"),
    "link.latency_ns": ("0", "700"),
    "link.bytes_per_ns": ("0.1",),
    "link.slots": ("1", "3", "5"),
    "scratch.align": ("1", "12", "256"),
    "scratch.bytes": ("3000001",),
}
MACHINE_OPTIONS: tuple[Option, ...] = tuple((path, value) for path, values in _VALUES.items() for value in values)
