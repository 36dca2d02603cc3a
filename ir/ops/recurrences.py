"""The linear recurrence: what filters, decayed sums and state-space models do along an axis, as one operation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..dtypes import DType
from ..errors import DTypeError, ShapeError
from ..layout import Layout, Shape, resolve_axis
from .elementwise import TABLE
from .numbers import Array, cast_array
from .operation import Cost, Family, Kind, Operand, Operation, output_elements

__all__: list[str] = []


def _rule(operands: Sequence[Operand], *, axis: int) -> tuple[Shape, DType]:
    factors, terms, *initial = operands
    assert isinstance(factors, Layout) and isinstance(terms, Layout)
    at = resolve_axis(axis, factors.ndim)
    one = (*factors.shape[:at], 1, *factors.shape[at + 1 :])
    for given, wanted, name in ((terms, factors.shape, "b"), *((layout, one, "initial") for layout in initial)):
        assert isinstance(given, Layout)
        if given.shape != wanted:
            raise ShapeError(
                f"recurrence of a {factors.shape} along dimension {at} with {name} of shape {given.shape}",
                help=f"{name} must have shape {wanted}",
            )
        if given.dtype is not factors.dtype:
            raise DTypeError(
                f"recurrence of a in {factors.dtype} with {name} in {given.dtype}", help="convert first: h.to(...)"
            )
    if not factors.dtype.is_float:
        raise DTypeError(f"recurrence of {factors.dtype}", help="convert to a float first: h.to(tl.float32)")
    return factors.shape, factors.dtype


def _evaluate(a: Array, b: Array, *initial: Array, axis: int, result: DType, operands: Sequence[Operand]) -> Array:
    wide = result.computed_in
    factors, terms = (np.moveaxis(cast_array(x, wide), axis, 0) for x in (a, b))
    state = np.moveaxis(cast_array(initial[0], wide), axis, 0)[0] if initial else np.zeros_like(terms[0])
    made = np.empty_like(terms)
    with np.errstate(all="ignore"):
        for at in range(len(terms)):
            state = factors[at] * state + terms[at]
            made[at] = state
    return cast_array(np.moveaxis(made, 0, axis), result)


TABLE.add(
    Operation(
        name="recurrence",
        family=Family.RECURRENCE,
        kind=Kind.ELEMENTWISE,
        cost=Cost.SCAN,
        log="math/recurrence",
        rule=_rule,
        evaluate=_evaluate,
        work=output_elements,
        doc="``h[i] = a[i] * h[i - 1] + b[i]`` along an axis, in f32 (f64 in f64). Example: "
        "``tl.recurrence(decay, x, axis=1)``.",
    )
)
