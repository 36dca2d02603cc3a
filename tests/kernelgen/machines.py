"""Machines that a random kernel may run on: options that change distances, costs, and what may go on at once."""

from __future__ import annotations

__all__ = ["MACHINE_OPTIONS", "Option"]

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
