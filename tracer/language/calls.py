"""Calls of the kernel language: what they take, and errors that blame the kernel's line."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

from ...ir.errors import (
    ArgumentError,
    KernscopeError,
    NotTracingError,
    ShapeError,
    TracedValueError,
    shown,
)
from ..recording.current import CURRENT
from ..values.handles import TensorHandle
from ..values.refusals import NotInScratch, first_step

__all__ = ["as_destination", "as_handle", "at_the_call", "check_arguments", "check_thread", "located", "whole"]

_P = ParamSpec("_P")
_R = TypeVar("_R")


def located(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Errors of the function blame the kernel's line."""

    @functools.wraps(function)
    def wrapper(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return function(*args, **kwargs)
        except NotTracingError as error:
            check_thread((*args, *kwargs.values()))
            raise at_the_call(error) from None
        except KernscopeError as error:
            raise at_the_call(error) from None
        except TypeError:
            check_arguments(function, args, kwargs)
            raise

    return wrapper


def check_thread(values: Iterable[Any]) -> None:
    """Where no trace runs in this thread: raise ``OtherThreadError`` if one of the values is of a trace that runs in
    another."""
    for value in values:
        if isinstance(value, TensorHandle):
            value._recorder.check_thread()
        elif isinstance(value, NotInScratch):
            value._owner.check_thread()


def at_the_call(error: KernscopeError) -> KernscopeError:
    """The error with the kernel's line, where a kernel is being traced."""
    recorder = CURRENT.get()
    return error if recorder is None else recorder.located(error)


def check_arguments(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> inspect.BoundArguments:
    """Bind the arguments of a call. Raises ``ArgumentError`` where the function does not take them."""
    name, signature = function.__name__, inspect.signature(function)
    try:
        return signature.bind(*args, **kwargs)
    except TypeError as error:
        shape = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
        unknown = [key for key in kwargs if key not in signature.parameters]
        hint = _FOREIGN.get((name, unknown[0])) if unknown else None
        wanted = f"its signature is {name}{inspect.Signature(shape)}"
        raise at_the_call(ArgumentError(f"{name}: {error}", help=hint or wanted)) from None


_RAGGED = "regions take the place of masks: tl.load(t[a:b, :], pad=0.0) fills what lies outside the tensor"
#: What to write instead of other languages' keywords.
_FOREIGN = {
    ("load", "mask"): _RAGGED,
    ("load", "other"): _RAGGED,
    (
        "store",
        "mask",
    ): "regions take the place of masks: tl.store(t[a:b, :], h, clip=True) leaves out what lies outside",
}


def whole(name: str, value: Any) -> int:
    try:
        return int(operator.index(value))
    except TracedValueError:
        raise
    except TypeError:
        raise ArgumentError(f"{name} {shown(value)} is no integer", help="use a Python integer") from None


def as_handle(name: str, value: Any) -> TensorHandle:
    if isinstance(value, TensorHandle):
        return value
    raise ArgumentError(f"{name}: {shown(value)} is no handle", help=first_step(value))


def as_destination(name: str, value: Any) -> TensorHandle:
    handle = as_handle(name, value)
    if handle.layout.is_broadcast:
        raise ShapeError(
            f"{name}: {shown(handle)} is a broadcast view, no destination", help="write to what it is a view of"
        )
    return handle
