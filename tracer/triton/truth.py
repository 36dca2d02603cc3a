"""What a rewritten kernel calls where Python would ask a tensor for its truth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .constexpr import bare
from .values.arithmetic import elementwise
from .values.value import Value, lift

__all__ = ["attribute", "both", "either", "negated", "truth"]


def truth(value: Any) -> bool:
    """The one answer of all lanes: divides them where it is not one."""
    return bool(bare(value))


def _as_bool(x: Any) -> Value:
    value = lift(x)
    return value if value.numpy == np.bool_ else elementwise("ne", value, 0)


def both(a: Any, other: Callable[[], Any]) -> Any:
    """``a and b``; of tensors elementwise, without a branch."""
    a = bare(a)
    if not isinstance(a, Value):
        return a and bare(other())
    b = bare(other())
    return elementwise("and", _as_bool(a), _as_bool(b))


def either(a: Any, other: Callable[[], Any]) -> Any:
    """``a or b``; of tensors elementwise, without a branch."""
    a = bare(a)
    if not isinstance(a, Value):
        return a or bare(other())
    b = bare(other())
    return elementwise("or", _as_bool(a), _as_bool(b))


def negated(a: Any) -> Any:
    """``not a``; of tensors elementwise."""
    a = bare(a)
    return elementwise("not", _as_bool(a)) if isinstance(a, Value) else not a


def attribute(value: Any, name: str) -> Any:
    """``value.name``, of a plain number that of the tensor it stands for; its ``.value`` is itself."""
    if name == "value" and not hasattr(value, "value"):
        return value
    if isinstance(value, bool | int | float) and not hasattr(value, name):
        return getattr(lift(value), name)
    return getattr(value, name)
