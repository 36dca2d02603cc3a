"""The functions of ``tl`` that the operation table declares: their names, signatures and documentation come from it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from ...ir import layout as layouts
from ...ir.ops import OPERATIONS, Family, Operation
from ..recording.current import CURRENT, current
from ..recording.plans import Static
from ..values.handles import TensorHandle
from .calls import as_handle, check_arguments, check_thread, located
from .transfers import check_destination

__all__ = ["declared", "declared_operations", "record_into"]


@located
def record_into(name: str, operands: tuple[Any, ...], static: Static, out: TensorHandle) -> TensorHandle:
    """Record an operation whose result goes into a handle of its shape and dtype; that handle."""
    recorder = current()
    plan, reads = recorder.planned(name, operands, static)
    check_destination(recorder, f"{name}(out=)", out, plan.result.shape, plan.result.dtype)
    return recorder.record(plan, reads, into=out)


def _elementwise(count: int) -> Callable[[str], Callable[..., TensorHandle]]:
    names = ("x",) if count == 1 else ("a", "b", "c")[:count]
    parameters = [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in names]
    named = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in ("out", "space")]
    signature = inspect.Signature([*parameters, *named])

    def make(name: str) -> Callable[..., TensorHandle]:
        def function(*operands: Any, **keywords: Any) -> TensorHandle:
            recorder = CURRENT.get()
            if recorder is None:
                check_thread((*operands, *keywords.values()))
                recorder = current()  # which says that there is none
            if keywords or len(operands) != count:
                bound = check_arguments(function, operands, keywords)
                operands, out, space = bound.args, bound.kwargs.get("out"), bound.kwargs.get("space")
                if out is not None:
                    return record_into(name, operands, (), out)
                return recorder.compute(name, operands, (), space)
            return recorder.compute(name, operands)

        function.__signature__ = signature  # type: ignore[attr-defined]  # inspect and documentation look here
        return function

    return make


def _reduction(name: str) -> Callable[..., TensorHandle]:
    def function(
        x: TensorHandle,
        axis: int | Sequence[int] | None = None,
        keep_dims: bool = False,
        *,
        keepdims: bool | None = None,
        out: TensorHandle | None = None,
        space: str | None = None,
    ) -> TensorHandle:
        keep = bool(keep_dims if keepdims is None else keepdims)
        handle = as_handle(name, x)
        axes = layouts.resolve_axes(axis, handle.ndim)
        return _recorded(name, handle, (("axis", axes), ("keep_dims", keep)), out, space)

    return function


def _along_axis(name: str) -> Callable[..., TensorHandle]:
    def function(
        x: TensorHandle, axis: int = -1, *, out: TensorHandle | None = None, space: str | None = None
    ) -> TensorHandle:
        handle = as_handle(name, x)
        return _recorded(name, handle, (("axis", layouts.resolve_axis(axis, handle.ndim)),), out, space)

    return function


def _recorded(name: str, x: TensorHandle, static: Static, out: TensorHandle | None, space: str | None) -> TensorHandle:
    return current().compute(name, (x,), static, space) if out is None else record_into(name, (x,), static, out)


_INTO = (
    " With ``out`` the result goes into that handle of its shape and dtype, which is returned; with ``space`` into the "
    "memory of that name, where a rank has several."
)

_MAKERS: dict[Family, Callable[[str], Callable[..., TensorHandle]]] = {
    Family.UNARY: _elementwise(1),
    Family.BINARY: _elementwise(2),
    Family.TERNARY: _elementwise(3),
    Family.REDUCTION: _reduction,
    Family.SOFTMAX: _along_axis,
}


def declared(operation: Operation, module: str) -> Callable[..., TensorHandle]:
    """The function of an operation, as a member of a module."""
    function = _MAKERS[operation.family](operation.name)
    function.__name__ = function.__qualname__ = operation.function
    function.__doc__ = operation.doc + _INTO
    function.__module__ = module
    return located(function) if operation.family in (Family.REDUCTION, Family.SOFTMAX) else function


def declared_operations() -> list[Operation]:
    """The operations whose functions are made from the table, in its order."""
    return [o for o in OPERATIONS.values() if o.public and o.family in _MAKERS]
