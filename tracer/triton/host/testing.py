"""``triton.testing``: benchmarks answer with the time that a launch would take on the machine; nothing is timed.

``do_bench`` calls its function once and sums the times of the launches in it. What launches no kernel of Triton's has
no such time: NaN. ``perf_report`` runs a benchmark's first size, or all of them where the session is asked for that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ....ir.errors import OptionError
from .session_state import current_session

__all__ = ["Benchmark", "Mark", "assert_close", "do_bench", "do_bench_cudagraph", "perf_report"]


def do_bench(
    fn: Callable[[], Any],
    warmup: Any = 25,
    rep: Any = 100,
    grad_to_none: Any = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
    **_: Any,
) -> Any:
    """The time of one call in ms, as often as ``quantiles`` ask for it; NaN for what launches no kernel."""
    if return_mode not in ("min", "max", "mean", "median", "all"):
        raise OptionError(f"return_mode={return_mode!r}", help="it can be: min, max, mean, median, all")
    session = current_session()
    with session.benchmarking() as launches:
        fn()
    total = math.fsum(session.milliseconds(launch) for launch in launches) if launches else math.nan
    if math.isnan(total):
        session.note("benchmarks answer NaN for what is no launch of a Triton kernel: it has no time on the machine")
    if quantiles is not None:
        return [total] * len(quantiles) if len(quantiles) > 1 else total
    return [total] if return_mode == "all" else total


def do_bench_cudagraph(fn: Callable[[], Any], rep: int = 20, **options: Any) -> Any:
    """As :func:`do_bench`."""
    return do_bench(fn, rep=rep, **options)


def assert_close(x: Any, y: Any, atol: Any = None, rtol: Any = None, err_msg: str = "") -> None:
    """Raise ``AssertionError`` where two arrays are not close: by 1e-2, unless told otherwise."""
    first, second = _array(x), _array(y)
    atol = 1e-2 if atol is None else atol(first.dtype) if callable(atol) else atol
    rtol = 0.0 if rtol is None else rtol(first.dtype) if callable(rtol) else rtol
    np.testing.assert_allclose(first, second, atol=atol, rtol=rtol, equal_nan=True, err_msg=err_msg)


def _array(value: Any) -> Any:
    if not hasattr(value, "detach"):
        return np.asarray(value)
    value = value.detach()
    return (value.float() if str(value.dtype).startswith(("torch.bfloat16", "torch.float8")) else value).cpu().numpy()


class Benchmark:
    """What ``perf_report`` varies: sizes, and lines of a plot."""

    def __init__(
        self,
        x_names: Sequence[str],
        x_vals: Iterable[Any],
        line_arg: str,
        line_vals: Sequence[Any],
        line_names: Sequence[str],
        plot_name: str,
        args: Mapping[str, Any],
        xlabel: str = "",
        ylabel: str = "",
        x_log: bool = False,
        y_log: bool = False,
        styles: Any = None,
    ) -> None:
        self.x_names, self.x_vals, self.line_arg = list(x_names), list(x_vals), line_arg
        self.line_vals, self.line_names, self.plot_name = list(line_vals), list(line_names), plot_name
        self.args, self.xlabel, self.ylabel = dict(args), xlabel, ylabel
        self.x_log, self.y_log, self.styles = x_log, y_log, styles


class Mark:
    """A function with benchmarks."""

    def __init__(self, fn: Callable[..., Any], benchmarks: Any) -> None:
        self.fn, self.benchmarks = fn, benchmarks

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.fn(*args, **kwargs)

    def run(
        self,
        show_plots: bool = False,
        print_data: bool = False,
        save_path: str = "",
        return_df: bool = False,
        diff_col: bool = False,
        save_precision: int = 6,
        **kwargs: Any,
    ) -> Any:
        """Run each benchmark for the sizes that the session is asked for, and print its table. Nothing is plotted or
        saved."""
        single = isinstance(self.benchmarks, Benchmark)
        tables = [self._run(bench, print_data, kwargs) for bench in ([self.benchmarks] if single else self.benchmarks)]
        if not return_df:
            return None
        return tables[0] if single else tables

    def _run(self, bench: Benchmark, print_data: bool, kwargs: Mapping[str, Any]) -> dict[str, list[Any]]:
        session = current_session()
        sizes = {"first": bench.x_vals[:1], "all": bench.x_vals, "none": []}[session.sweep]
        name = bench.plot_name or getattr(self.fn, "__name__", "a benchmark")
        if len(sizes) < len(bench.x_vals):
            session.note(f"benchmark {name}: {len(sizes)} of {len(bench.x_vals)} sizes run (--sweep all runs them all)")
        labels = [f"{line} ({bench.ylabel})" if bench.ylabel else str(line) for line in bench.line_names]
        table: dict[str, list[Any]] = {column: [] for column in [*bench.x_names, *labels]}
        for size in sizes:
            values = list(size) if isinstance(size, list | tuple) else [size] * len(bench.x_names)
            given = dict(zip(bench.x_names, values, strict=True))
            for column, value in given.items():
                table[column].append(value)
            for label, line in zip(labels, bench.line_vals, strict=True):
                result = self.fn(**given, **{bench.line_arg: line}, **bench.args, **kwargs)
                table[label].append(result[0] if isinstance(result, tuple | list) else result)
        if print_data and sizes:
            print(f"{name}:")
            print(_text(table))
        return table


def perf_report(benchmarks: Any) -> Callable[[Callable[..., Any]], Mark]:
    """``@triton.testing.perf_report``."""
    return lambda fn: Mark(fn, benchmarks)


def _text(table: Mapping[str, Sequence[Any]]) -> str:
    columns = [[name, *map(_cell, values)] for name, values in table.items()]
    widths = [max(map(len, column)) for column in columns]
    rows = zip(*columns, strict=True)
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)


def _cell(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
