"""What a rewritten kernel calls where Python would ask a tensor for its truth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["attribute", "both", "either", "negated", "truth"]


def truth(value: Any) -> bool:
    """The one answer of all lanes: divides them where it is not one."""
    return bool(value)


def both(a: Any, other: Callable[[], Any]) -> Any:
    """``a and b``; of tensors elementwise, without a branch."""
    raise NotImplementedError


def either(a: Any, other: Callable[[], Any]) -> Any:
    """``a or b``; of tensors elementwise, without a branch."""
    raise NotImplementedError


def negated(a: Any) -> Any:
    """``not a``; of tensors elementwise."""
    raise NotImplementedError


def attribute(value: Any, name: str) -> Any:
    """``value.name``, of a plain number that of the tensor it stands for."""
    raise NotImplementedError
