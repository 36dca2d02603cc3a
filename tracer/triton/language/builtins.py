"""Python's own functions as a kernel knows them."""

from __future__ import annotations

import builtins
from typing import Any

from ..constexpr import bare, constexpr
from ..values.value import Value
from . import arithmetic, control

__all__ = ["BUILTINS", "kernel_assert"]


def _extremum(python: Any, of_values: Any) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        args = tuple(map(bare, args))
        if len(args) < 2 or not any(isinstance(a, Value) for a in args):
            return python(*args, **kwargs)
        found = args[0]
        for other in args[1:]:
            found = of_values(found, other)
        return found

    return call


def kernel_assert(condition: Any, message: Any = "") -> None:
    """``assert`` in a kernel: of a plain value at once, of tensors a ``device_assert``."""
    if isinstance(bare(condition), Value):
        control.device_assert(condition, message)
    else:
        control.static_assert(condition, message)


def _float(x: Any = 0.0) -> Any:
    x = bare(x)
    return x if isinstance(x, Value) else float(x)


def _isinstance(value: Any, kinds: Any) -> bool:
    """Every plain value that a kernel holds is a compile-time one."""
    kinds = kinds if isinstance(kinds, tuple) else (kinds,)
    return isinstance(value, kinds) or (constexpr in kinds and isinstance(value, bool | int | float | str | None))


BUILTINS: dict[str, Any] = {
    "isinstance": _isinstance,
    "range": control.range_,
    "min": _extremum(builtins.min, arithmetic.minimum),
    "max": _extremum(builtins.max, arithmetic.maximum),
    "abs": lambda x: abs(bare(x)),
    "print": control.device_print,
    "float": _float,
    "len": lambda x: len(bare(x)),
}
BUILTINS = {**vars(builtins), **BUILTINS}
