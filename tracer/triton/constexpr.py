"""``tl.constexpr``: a value that is known while a kernel is compiled. To a kernel it is the bare Python value.

Host code makes them, computes with them and asks for their ``.value``; a kernel's own names never hold one: they are
taken off where a kernel is called and where it looks a name up. ``tl.constexpr(x)`` inside a kernel is ``x``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ..recording.current import CURRENT

__all__ = ["bare", "constexpr"]


def bare(value: Any) -> Any:
    """A value without ``constexpr``, in tuples (named ones too) as well."""
    if isinstance(value, Constexpr):
        return bare(value.value)
    if isinstance(value, tuple) and any(isinstance(v, Constexpr | tuple) for v in value):
        values = [bare(v) for v in value]
        return type(value)(*values) if hasattr(value, "_fields") else tuple(values)
    return value


class Constexpr:
    """A compile-time value of host code. Arithmetic and comparison give another one, as in Triton."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = bare(value)

    @property
    def type(self) -> Any:
        """Itself: what annotates a parameter says no more."""
        return constexpr

    def __repr__(self) -> str:
        return f"constexpr[{self.value}]"

    def __hash__(self) -> int:
        return hash(self.value)

    def __index__(self) -> int:
        return operator.index(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __float__(self) -> float:
        return float(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Any:
        return iter(self.value)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.value(*args, **kwargs)

    def __getitem__(self, index: Any) -> Any:
        return self.value[bare(index)]

    def __format__(self, specification: str) -> str:
        return format(self.value, specification)

    def __getattr__(self, name: str) -> Any:
        if name == "value" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.value, name)


def _unary(compute: Callable[[Any], Any]) -> Any:
    return lambda self: Constexpr(compute(self.value))


def _binary(compute: Callable[[Any, Any], Any], *, swapped: bool = False) -> Any:
    def method(self: Constexpr, other: Any) -> Any:
        other = bare(other)
        result = compute(other, self.value) if swapped else compute(self.value, other)
        # With a value of a trace the result is one, too.
        return Constexpr(result) if isinstance(other, int | float | str | tuple | None) else result

    return method


for _name in ("neg", "pos", "invert"):
    setattr(Constexpr, f"__{_name}__", _unary(getattr(operator, f"__{_name}__")))
for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "and", "or", "xor"):
    _compute = getattr(operator, f"__{_name}__")
    setattr(Constexpr, f"__{_name}__", _binary(_compute))
    setattr(Constexpr, f"__r{_name}__", _binary(_compute, swapped=True))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Constexpr, f"__{_name}__", _binary(getattr(operator, f"__{_name}__")))


class _Constexpr(type):
    """In a kernel ``constexpr(x)`` is ``x``; plain functions of the host find no other than those that were made."""

    def __call__(cls, value: Any = None) -> Any:
        return bare(value) if CURRENT.get() is not None else Constexpr(value)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, Constexpr)


class constexpr(metaclass=_Constexpr):
    """``tl.constexpr``, as a script names it: in annotations, in calls, in ``isinstance``."""
