"""The composite GEMM: one command that streams, multiplies and finishes a whole product tile by tile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from ...ir import dtypes
from ...ir.dtypes import DType
from ...ir.errors import ArgumentError, DTypeError, ShapeError, did_you_mean
from ...ir.layout import Layout, check_shape, transpose
from ...ir.ops import OPERATIONS, Family, Scalar
from ..recording.plans import Static, plain_scalar
from ..recording.recorder import Read, Recorder
from ..values.handles import TensorHandle
from ..values.hbm import Ref
from .transfers import check_destination, region_of

__all__ = ["gemm", "ref"]

#: More buffers than anyone has scratch for.
_MOST_STAGES = 64


def ref(recorder: Recorder, src: Any, shape: Any, dtype: Any) -> Ref:
    """A matrix in HBM as a composite's operand: see ``tl.ref``. It must lie inside its tensor: its tiles are read."""
    tensor, wanted, view, at = region_of(recorder, "ref", src, shape, dtype, ragged=False)
    if view is None or at is not None:
        # The fault is recorded. So that the trace can go on, the tensor's first element stands for the whole operand.
        return Ref(tensor, 0, Layout.of(wanted, (0,) * len(wanted), tensor.dtype))
    _, offset, layout = view
    return Ref(tensor, offset, layout)


@attrs.frozen
class _Operand:
    """One matrix operand, rows by columns as the product sees it. A streamed one has buffers, filled in turn."""

    name: str
    storage: int
    offset: int
    layout: Layout
    buffers: tuple[TensorHandle, ...] = ()

    def tile(self, row: int, col: int, rows: int, cols: int) -> Read:
        """The view of a tile, in place."""
        row_stride, col_stride = self.layout.strides
        offset = self.offset + row * row_stride + col * col_stride
        return self.storage, offset, Layout.of((rows, cols), self.layout.strides, self.layout.dtype)


def gemm(
    recorder: Recorder,
    op: str,
    a: Any,
    b: Any,
    *,
    trans_a: bool,
    trans_b: bool,
    stages: Any,
    tile: Any,
    out_dtype: Any,
    epilogue: Sequence[str | tuple[str, Scalar | TensorHandle]] | None,
    acc: TensorHandle | None,
) -> TensorHandle:
    """Record a composite GEMM: see ``tl.composite``.

    Allocates the result, one accumulator tile, ``stages`` buffers per ``ref`` operand; then for m, n, k tile by tile: a
    load per streamed operand, a dot into the accumulator, and after the last k the epilogue into the result. With
    ``acc`` its tiles are accumulator and result.
    """
    if op != "gemm":
        raise ArgumentError(f"composite {op!r}", help=did_you_mean(str(op), ["gemm"], what="composites"))
    sizes = check_shape(tile, "tile")
    if len(sizes) != 3:
        raise ShapeError(f"tile {sizes}", help="a composite's tile is (m, n, k)")
    if isinstance(stages, bool) or not isinstance(stages, int | np.integer) or not 1 <= stages <= _MOST_STAGES:
        raise ArgumentError(
            f"composite: stages={stages!r}", help=f"it is how many buffers a streamed operand has: 1 to {_MOST_STAGES}"
        )
    left, right = _matrix(recorder, "a", a), _matrix(recorder, "b", b)
    if trans_a:
        left = attrs.evolve(left, layout=transpose(left.layout, ()))
    if trans_b:
        right = attrs.evolve(right, layout=transpose(right.layout, ()))
    (m, k), (k_b, n) = left.layout.shape, right.layout.shape
    if k != k_b:
        raise ShapeError(
            f"composite of {left.layout.shape} and {right.layout.shape}: inner sizes {k} and {k_b} differ",
            help="(M, K) times (K, N); trans_b=True takes b as (N, K), trans_a=True a as (K, M)",
        )
    tm, tn, tk = min(sizes[0], m), min(sizes[1], n), min(sizes[2], k)
    operand_dtype, result_dtype = left.layout.dtype, dtypes.of(out_dtype)
    wide = operand_dtype.accumulator
    if result_dtype.is_float != wide.is_float:
        raise DTypeError(f"composite of {operand_dtype} into {result_dtype}", help=f"out_dtype can be {wide}")
    # Asked of the product as a whole, so that nothing is recorded of one that cannot be.
    OPERATIONS["dot"].rule((left.layout, right.layout), out_dtype=wide)
    steps = _steps(recorder, epilogue, wide, result_dtype, (m, n), in_place=acc is not None)
    if acc is None:
        result = recorder.allocate(Layout.dense((m, n), result_dtype))
        accumulator = recorder.allocate(Layout.dense((tm, tn), wide), memory=recorder.usual_place("dot"))
    else:
        if result_dtype is not wide:
            raise DTypeError(
                f"composite of {operand_dtype} into acc of {result_dtype}",
                help=f"acc is added to in {wide}: out_dtype={str(wide)!r}",
            )
        check_destination(recorder, "composite(acc=)", acc, (m, n), wide)
        if acc.storage in (left.storage, right.storage):
            raise ArgumentError(
                "composite(acc=): the product would be written over one of its operands",
                help="give a handle of its own",
            )
        result = accumulator = acc
    # A streamed transposed operand keeps its rows: the buffer of b holds (n, k) and is read as (k, n).
    left = _buffered(recorder, left, a, (tk, tm) if trans_a else (tm, tk), int(stages))
    right = _buffered(recorder, right, b, (tn, tk) if trans_b else (tk, tn), int(stages))
    with recorder.command():
        turn = 0
        for i in range(0, m, tm):
            for j in range(0, n, tn):
                rows, cols = min(tm, m - i), min(tn, n - j)
                row_stride, col_stride = result.layout.strides
                target = result._view(
                    Layout.of((rows, cols), result.layout.strides, result_dtype), i * row_stride + j * col_stride
                )
                total = (
                    accumulator._view(Layout.of((rows, cols), accumulator.layout.strides, wide))
                    if acc is None
                    else target
                )
                for depth in range(0, k, tk):
                    inner = min(tk, k - depth)
                    x = _fetch(recorder, left, (i, depth, rows, inner), turn, swapped=trans_a)
                    y = _fetch(recorder, right, (depth, j, inner, cols), turn, swapped=trans_b)
                    _multiply(recorder, x, y, total, first=acc is None and depth == 0)
                    turn += 1
                _finish(recorder, steps, (i, j), total, target)
    return result


def _matrix(recorder: Recorder, name: str, value: Any) -> _Operand:
    if isinstance(value, TensorHandle):
        recorder.check_handle(value)
        operand = _Operand(name, value.storage, value.offset, value.layout)
    elif isinstance(value, Ref):
        recorder.check_tensor(value.tensor)
        operand = _Operand(name, value.tensor.storage, value.offset, value.layout)
    else:
        raise ArgumentError(f"composite: operand {name} is {value!r}", help="pass a handle, or tl.ref(tensor)")
    if operand.layout.ndim != 2:
        raise ShapeError(f"composite: operand {name} has shape {operand.layout.shape}", help="operands are matrices")
    return operand


def _buffered(recorder: Recorder, operand: _Operand, value: Any, shape: tuple[int, int], stages: int) -> _Operand:
    if not isinstance(value, Ref):
        return operand
    layout = Layout.dense(shape, operand.layout.dtype)
    return attrs.evolve(operand, buffers=tuple(recorder.allocate(layout) for _ in range(stages)))


def _fetch(recorder: Recorder, operand: _Operand, box: tuple[int, int, int, int], turn: int, *, swapped: bool) -> Read:
    """The tile of an operand ready to multiply: in place, or loaded into the buffer whose turn it is."""
    source = operand.tile(*box)
    if not operand.buffers:
        return source
    storage, offset, view = source
    if swapped:
        view = transpose(view, ())
    buffer = operand.buffers[turn % len(operand.buffers)]
    into = buffer._view(Layout.of(view.shape, buffer.layout.strides, view.dtype))
    static: Static = (("shape", view.shape), ("dtype", view.dtype))
    recorder.record(recorder.plan("load", (view,), static), ((storage, offset, view),), into=into)
    return into.storage, into.offset, transpose(into.layout, ()) if swapped else into.layout


def _multiply(recorder: Recorder, x: Read, y: Read, total: TensorHandle, *, first: bool) -> None:
    reads = [x, y] if first else [x, y, (total.storage, total.offset, total.layout)]
    plan = recorder.plan("dot", tuple(view for _, _, view in reads), (("out_dtype", total.dtype),))
    recorder.record(plan, reads, into=total)


@attrs.frozen
class _Tensor:
    """A tile as the right operand of an epilogue's step, under the result's two dimensions: 1 where it is repeated."""

    storage: int
    offset: int
    layout: Layout

    def part(self, row: int, col: int, rows: int, cols: int) -> Read:
        """What belongs to a tile of the result."""
        (height, width), (row_stride, col_stride) = self.layout.shape, self.layout.strides
        offset = self.offset + (row * row_stride if height > 1 else 0) + (col * col_stride if width > 1 else 0)
        shape = (rows if height > 1 else 1, cols if width > 1 else 1)
        return self.storage, offset, Layout.of(shape, self.layout.strides, self.layout.dtype)


_Step = tuple[str, tuple[Scalar | _Tensor, ...]]


def _steps(
    recorder: Recorder, epilogue: Any, wide: DType, result: DType, shape: tuple[int, int], *, in_place: bool
) -> list[_Step]:
    """The epilogue's operations; a copy, or a cast, is added where the last one does not give the result's dtype.
    ``in_place``, that they end where they begin: nothing is added."""
    steps: list[_Step] = []
    if isinstance(epilogue, str):
        raise ArgumentError(f"composite: epilogue {epilogue!r}", help=f"it is a list of steps: [{epilogue!r}]")
    for entry in epilogue or ():
        name, *given_right = entry if isinstance(entry, tuple | list) and entry else (entry,)
        right = [value if isinstance(value, TensorHandle) else plain_scalar(value) for value in given_right]
        wanted = {0: (Family.UNARY,), 1: (Family.BINARY,)}.get(len(right), ())
        known = [o.name for o in OPERATIONS.values() if o.family in (Family.UNARY, Family.BINARY)]
        usable = all(isinstance(value, bool | int | float | TensorHandle) for value in right)
        if name not in known or OPERATIONS[name].family not in wanted or not usable:
            raise ArgumentError(
                f"composite: epilogue step {entry!r}",
                help=did_you_mean(str(name), known, what='steps are "exp" or ("mul", 0.125)')
                if name not in known
                else 'one operand: "exp"; two operands: ("mul", 0.125) or ("add", bias)',
            )
        operands = tuple(_tensor(recorder, name, v, shape) if isinstance(v, TensorHandle) else v for v in right)
        layouts = [v.layout if isinstance(v, _Tensor) else v for v in operands]
        _, given = OPERATIONS[name].rule((Layout.dense(shape, wide), *layouts))
        if given is not wide:
            raise DTypeError(
                f"composite: epilogue step {entry!r} gives {given}, not {wide}", help="steps keep the dtype"
            )
        steps.append((name, operands))
    if in_place:
        return steps
    if result is not wide:
        steps.append(("cast", ()))
    return steps or [("copy_to", ())]


def _tensor(recorder: Recorder, name: str, handle: TensorHandle, shape: tuple[int, int]) -> _Tensor:
    recorder.check_handle(handle)
    sizes, strides = handle.shape, handle.layout.strides
    missing = 2 - len(sizes)
    sizes, strides = (1,) * missing + sizes, (0,) * missing + strides
    if len(sizes) != 2 or any(size not in (1, whole) for size, whole in zip(sizes, shape, strict=True)):
        raise ShapeError(
            f"composite: epilogue step {name!r} with {handle!r} of shape {handle.shape} for a result of {shape}",
            help=f"it broadcasts to the result: ({shape[1]},) for each column, ({shape[0]}, 1) for each row",
        )
    return _Tensor(handle.storage, handle.offset, Layout.of(sizes, strides, handle.dtype))


def _finish(
    recorder: Recorder, steps: list[_Step], at: tuple[int, int], total: TensorHandle, target: TensorHandle
) -> None:
    """Each step works on the accumulator in place; the last one writes the result's tile."""
    rows, cols = total.shape
    for number, (name, right) in enumerate(steps):
        static: Static = (("dtype", target.dtype),) if name == "cast" else ()
        parts = [value.part(*at, rows, cols) for value in right if isinstance(value, _Tensor)]
        numbers = [value for value in right if not isinstance(value, _Tensor)]
        plan = recorder.plan(name, (total.layout, *(view for _, _, view in parts), *numbers), static)
        into = target if number == len(steps) - 1 else total
        recorder.record(plan, [(total.storage, total.offset, total.layout), *parts], into=into)
