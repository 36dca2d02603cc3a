"""What cannot be computed with: things in HBM and receives not yet waited for. Each attempt is one clear error."""

from __future__ import annotations

from typing import Any, NoReturn, Protocol

from ...ir.errors import ArgumentError, IndexingError, KernscopeError, TracedValueError, UnknownNameError, shown

__all__ = ["NotInScratch", "Owner", "check_attribute", "first_step"]


class Owner(Protocol):
    """What a handle or a place in HBM asks of the trace that it belongs to, whatever it is used for."""

    def located(self, error: KernscopeError) -> KernscopeError:
        """The error with the user's line added."""

    def space_of(self, storage: int) -> str:
        """The name of the memory that a storage lies in."""

    def check_thread(self) -> None:
        """Raise ``OtherThreadError`` while the trace runs in another thread than the caller's."""


def first_step(value: object) -> str:
    """The ``help:`` text where something that is no handle stands for one: what to do with it first."""
    if isinstance(value, NotInScratch):
        return value._first
    if isinstance(value, bool | int | float):
        return "make a tensor of it: tl.full(shape, value, dtype)"
    return "bring data into scratch first: h = tl.load(...); arrays are passed to the kernel as arguments"


def check_attribute(holder: object, name: str) -> None:
    """Raise a plain ``AttributeError`` for what Python's own protocols ask for, and for a field that is not set yet
    (while copying): no message can be made of such an object."""
    if name.startswith("_") or any(name in getattr(kind, "__slots__", ()) for kind in type(holder).__mro__):
        raise AttributeError(name)


#: How values come along that decide what is traced.
_HOST_DATA = (
    "an array that the host knows, such as a page table, is a keyword-only parameter: def kernel(x, o, *, table)"
)


class NotInScratch:
    """Base of what a kernel holds that is no tensor in scratch: operators, numpy and iteration refuse it."""

    __slots__ = ()
    #: What to do before computing with it.
    _first = "bring it into scratch first: h = tl.load(...)"

    @property
    def _owner(self) -> Owner:
        """The trace that it belongs to."""
        raise NotImplementedError

    def _refuse(self, error: KernscopeError) -> KernscopeError:
        """The error with the user's line added."""
        return self._owner.located(error)

    def __copy__(self) -> Any:
        return self  # nothing can change it, and a deep copy would be of the whole trace

    def __deepcopy__(self, memo: object) -> Any:
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise self._refuse(
            ArgumentError(f"pickle of {shown(self)}: it belongs to this trace", help="send another process the kernel")
        )

    def _no_arithmetic(self, *_: object) -> Any:
        raise self._refuse(ArgumentError(f"cannot compute with {shown(self)}", help=self._first))

    # Declared as Any: a pointer's own `+` and `-` take their places.
    __add__: Any = _no_arithmetic
    __radd__: Any = _no_arithmetic
    __sub__: Any = _no_arithmetic
    __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = _no_arithmetic
    __mod__ = __rmod__ = __pow__ = __rpow__ = __matmul__ = __rmatmul__ = __and__ = __or__ = __xor__ = _no_arithmetic
    __lt__ = __le__ = __gt__ = __ge__ = __neg__ = __invert__ = __abs__ = _no_arithmetic

    def __array__(self, *_: object, **__: object) -> Any:
        return self._no_arithmetic()

    def __array_ufunc__(self, *_: object, **__: object) -> Any:
        return self._no_arithmetic()

    def __setitem__(self, items: Any, value: Any) -> NoReturn:
        raise self._refuse(
            IndexingError(f"elements of {shown(self)} cannot be assigned", help="write tl.store(t[a:b, :], handle)")
        )

    def __bool__(self) -> bool:
        raise self._refuse(
            TracedValueError(
                f"the truth of {shown(self)}: its values are not known while tracing",
                help=f"compare with None: `if mask is not None:`; {_HOST_DATA}",
            )
        )

    def __index__(self) -> int:
        raise self._refuse(
            TracedValueError(
                f"{shown(self)} as an index, a size or a number: its values are not known while tracing",
                help=f"use integers; {_HOST_DATA}",
            )
        )

    __int__ = __float__ = __index__

    def __format__(self, specification: str) -> str:
        if not specification:
            return repr(self)
        raise self._refuse(
            TracedValueError(
                f"format {specification!r} of {shown(self)}: its values are not known while tracing", help=self._first
            )
        )

    def __iter__(self) -> NoReturn:
        raise self._refuse(
            TracedValueError(
                f"iteration over {shown(self)}: its values are not known while tracing",
                help="loop over range(t.shape[0]) and load t[i]",
            )
        )

    def __contains__(self, item: object) -> bool:
        return bool(self.__iter__())  # refused there; Python itself would hide the reason

    def __getattr__(self, name: str) -> Any:
        check_attribute(self, name)
        raise self._refuse(UnknownNameError(f"{shown(self)} has no attribute {name!r}", help=self._first))
