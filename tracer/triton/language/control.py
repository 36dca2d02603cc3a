"""Programs, loops, assertions and hints."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import Any

import numpy as np

from ....ir.launch_facts import FactKind
from ..constexpr import bare
from ..values.arithmetic import elementwise, roots_of
from ..values.value import Running, Split, Value, along_lanes, constant, lift

__all__ = [
    "assume", "condition", "debug_barrier", "device_assert", "device_print", "map_elementwise",
    "max_constancy", "max_contiguous",
    "multiple_of", "num_programs", "program_id", "range_", "static_assert", "static_print", "static_range", "swizzle2d",
]  # fmt: skip


def _axis_of_grid(name: str, axis: Any) -> int:
    found = bare(axis)
    if found not in (0, 1, 2):
        raise Running.tracing.refused(f"{name} axis must be 0, 1, or 2 but got {found}", "a grid has three axes")
    return int(found)


def program_id(axis: Any) -> Value:
    """``tl.program_id``."""
    column = Running.tracing.ids[:, _axis_of_grid("program_id", axis)]
    return Value([column], (), stack=Running.tracing.here())


def num_programs(axis: Any) -> Value:
    """``tl.num_programs``."""
    return constant(int(Running.tracing.grid[_axis_of_grid("num_programs", axis)]), stack=Running.tracing.here())


def map_elementwise(scalar_fn: Any, *args: Any, pack: Any = 1) -> Any:
    """``tl.map_elementwise``: a function without branches does to whole tiles what it does to each element."""
    if int(bare(pack)) != 1:
        raise Running.tracing.refused(f"tl.map_elementwise with pack={bare(pack)}", "kernscope maps element by element")
    return scalar_fn(*map(lift, args))


# --- loops ------------------------------------------------------------------------------------------------------------


def range_(
    arg1: Any,
    arg2: Any = None,
    step: Any = None,
    num_stages: Any = None,
    loop_unroll_factor: Any = None,
    disallow_acc_multi_buffer: Any = False,
    flatten: Any = False,
    warp_specialize: Any = False,
    disable_licm: Any = False,
) -> Iterator[Any]:
    """``range`` and ``tl.range``: bounds may differ from lane to lane, the number of turns may not."""
    tracing = Running.tracing
    given = [bare(x) for x in (arg1, arg2, step) if x is not None]
    copies = bare(num_stages)
    loop = tracing.loop(None if copies is None else int(copies))
    for item in _items(given):
        tracing.turn(loop)
        yield item
    tracing.turn(loop)


def _items(given: list[Any]) -> Iterator[Any]:
    tracing = Running.tracing
    values = [lift(x) for x in given]
    if any(v.dependencies for v in values):
        for v in values:
            tracing.decide(v)
    columns = [v.array.reshape(-1).astype(np.int64) for v in values]
    start, stop, step = [np.zeros(1, np.int64), columns[0], np.ones(1, np.int64)]
    if len(columns) > 1:
        start, stop = columns[0], columns[1]
    if len(columns) > 2:
        step = columns[2]
    if (step == 0).any():
        raise tracing.refused("a loop whose step is 0", "give it another step")
    turns = np.maximum(0, -(-(stop - start) // step))
    if (turns != turns[0]).any():
        raise Split(np.array(along_lanes(turns, tracing.lanes)))
    if not any(isinstance(x, Value) for x in given):
        yield from builtins.range(*(int(x) for x in given))
        return
    wide = np.int64 if any(v.numpy.itemsize == 8 for v in values) else np.int32
    roots = roots_of(values)
    for turn in builtins.range(int(turns[0])):
        yield (
            Value([(start + turn * step).astype(wide)], (), stack=tracing.here(), roots=())
            if not roots
            else _counted(start, turn, step, wide)
        )


def _counted(start: Any, turn: int, step: Any, dtype: Any) -> Value:
    # The program decided by the bounds: what it counts from them is known to it.
    return Value([(start + turn * step).astype(dtype)], (), stack=Running.tracing.here())


def static_range(arg1: Any, arg2: Any = None, step: Any = None) -> Iterator[int]:
    """``tl.static_range``: numbers that are known while a kernel is compiled."""
    yield from builtins.range(*(int(bare(x)) for x in (arg1, arg2, step) if x is not None))


class condition:
    """``tl.condition``: what a ``while`` asks."""

    def __init__(self, arg1: Any, disable_licm: Any = False) -> None:
        self.value = arg1

    def __bool__(self) -> bool:
        return bool(self.value)


# --- assertions and output --------------------------------------------------------------------------------------------


def static_assert(cond: Any, msg: Any = "") -> None:
    """``tl.static_assert``."""
    if not bool(bare(cond)):
        raise Running.tracing.refused(
            f"static_assert failed{f': {bare(msg)}' if msg else ''}", "change what it asserts"
        )


def device_assert(cond: Any, msg: Any = "", mask: Any = None) -> None:
    """``tl.device_assert``: what does not hold is a fact of the launch."""
    tracing = Running.tracing
    value = elementwise("ne", lift(cond), 0) if lift(cond).numpy != np.bool_ else lift(cond)
    if bare(mask) is not None:
        value = elementwise("or", value, elementwise("not", lift(mask)))
    bad = ~value.array.reshape(len(value.array), -1).all(1)
    if bad.any():
        lanes = np.flatnonzero(along_lanes(bad, tracing.lanes))
        tracing.note(FactKind.ASSERTION, tracing.here(), str(bare(msg)), lanes, np.zeros(len(lanes), np.int64))


def static_print(*values: Any, sep: str = " ", end: str = "\n", file: Any = None, flush: bool = False) -> None:
    """``tl.static_print``: nothing is printed, since a kernel runs once for all programs, or several times."""


def device_print(prefix: Any, *args: Any, hex: bool = False) -> None:
    """``tl.device_print``: nothing is printed: a kernel runs once for all programs."""


def debug_barrier() -> None:
    """``tl.debug_barrier``: a program is one thread here."""


# --- hints ------------------------------------------------------------------------------------------------------------


def assume(cond: Any) -> None:
    """``tl.assume``: what the data contradicts is a fact of the launch."""
    value, tracing = lift(cond), Running.tracing
    bad = np.flatnonzero(along_lanes(~value.array.reshape(len(value.array), -1).astype(bool).all(1), tracing.lanes))
    if len(bad):
        tracing.note(FactKind.HINT, tracing.here(), "assume", bad, np.zeros(len(bad), np.int64))


def _numbers(values: Any) -> list[int]:
    given = bare(values)
    return [int(bare(v)) for v in (given if isinstance(given, tuple | list) else (given,))]


def _contradicted(name: str, bad: Any, seen: Any) -> None:
    tracing = Running.tracing
    lanes = np.flatnonzero(along_lanes(bad, tracing.lanes))
    if len(lanes):
        tracing.note(FactKind.HINT, tracing.here(), name, lanes, along_lanes(seen, tracing.lanes)[lanes])


def multiple_of(input: Any, values: Any) -> Value:
    """``tl.multiple_of``: of one number (or pointer) checked against the data."""
    x, factors = lift(input), _numbers(values)
    if x.is_splat and x.shape == () and x.numpy.kind in "iu":
        column = x.array.reshape(-1)
        _contradicted("multiple_of", column % factors[0] != 0, column)
    return x


def max_contiguous(input: Any, values: Any) -> Value:
    """``tl.max_contiguous``: of a line of numbers checked against the data."""
    x, runs = lift(input), _numbers(values)
    if len(x.shape) == 1 and runs[0] > 1 and x.shape[0] % runs[0] == 0:
        groups = x.array.reshape(len(x.array), -1, runs[0])
        _contradicted("max_contiguous", (np.diff(groups, axis=2) != 1).any((1, 2)), groups[:, 0, 0])
    return x


def max_constancy(input: Any, values: Any) -> Value:
    """``tl.max_constancy``: of a line of numbers checked against the data."""
    x, runs = lift(input), _numbers(values)
    if len(x.shape) == 1 and runs[0] > 1 and x.shape[0] % runs[0] == 0:
        groups = x.array.reshape(len(x.array), -1, runs[0])
        _contradicted("max_constancy", (groups != groups[:, :, :1]).any((1, 2)), groups[:, 0, 0].astype(np.int64))
    return x


def swizzle2d(i: Any, j: Any, size_i: Any, size_j: Any, size_g: Any) -> tuple[Any, Any]:
    """``tl.swizzle2d``: row-major indices as indices of groups of rows, each column-major."""
    i, j, size_i, size_j, size_g = map(lift, (i, j, size_i, size_j, size_g))
    add, mul, div, rem = (_of(name) for name in ("add", "mul", "truncdiv", "rem"))
    ij = add(mul(i, size_j), j)
    size_gj = mul(size_g, size_j)
    group, off_i = div(ij, size_gj), mul(div(ij, size_gj), size_g)
    size_g = elementwise("minimum", elementwise("sub", size_i, off_i), size_g)
    ij = elementwise("sub", ij, mul(group, size_gj))
    return add(off_i, rem(ij, size_g)), div(ij, size_g)


def _of(name: str) -> Any:
    return lambda a, b: elementwise(name, a, b)
