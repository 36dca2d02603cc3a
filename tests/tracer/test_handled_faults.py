"""A kernel that catches an overflow, or an access out of bounds: the linter judges the path that a trace takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import kernscope as ks
from kernscope import tl

BIG = (1024, 1024)
X = np.arange(8, dtype=np.float32)


def codes(kernel: Any, **arguments: Any) -> list[str]:
    return [d.code for d in ks.lint(kernel, **arguments) if d.code in ("KS101", "KS501")]


def tries_a_size(x: Any, o: Any) -> None:
    try:
        a = tl.zeros(BIG, tl.float32)
    except ks.ScratchOverflowError:
        a = tl.zeros((8,), tl.float32)
    tl.store(o[:], tl.load(x[:]) + a)


def tries_a_size_as_a_result(x: Any, o: Any) -> None:
    """The overflow is an operator's: the recorder's innermost path."""
    h = tl.load(x[:])
    try:
        h = h[:, None] + tl.zeros((1, 100_000), tl.float32)
    except ks.ScratchOverflowError:
        h = h * 2.0
    tl.store(o[:], h)


def tries_a_region(x: Any, o: Any) -> None:
    try:
        h = tl.load(x[4:12])
    except IndexError:
        h = tl.load(x[0:8])
    tl.store(o[:], h)


@pytest.mark.parametrize("kernel", [tries_a_size, tries_a_size_as_a_result, tries_a_region])
def test_recording_takes_the_path_that_raising_takes(kernel: Any) -> None:
    """A fault that the kernel handles is none: no finding, and the same graph."""
    arguments = {"x": X, "o": ks.hbm((8,), "f32")}
    raised = ks.trace(kernel, **arguments)
    assert codes(kernel, **arguments) == []
    assert ks.trace(kernel, on_overflow="record", **arguments) == raised


def test_a_fault_that_is_not_handled_is_recorded_beside_one_that_is() -> None:
    """Only lines at which the kernel went on after the error are handled; the other line's fault is reported."""

    def kernel(x: Any, o: Any) -> None:
        tries_a_size(x, o)
        tl.store(o[:], tl.load(x[4:12]))

    assert codes(kernel, x=X, o=ks.hbm((8,), "f32")) == ["KS501"]
    with pytest.raises(ks.BoundsError):
        ks.trace(kernel, x=X, o=ks.hbm((8,), "f32"))


def test_a_helper_is_told_apart_by_who_called_it() -> None:
    """The same line, handled under one caller and not under the other."""

    def make() -> Any:
        return tl.zeros(BIG, tl.float32)

    def kernel(o: Any) -> None:
        try:
            make()
        except ks.ScratchOverflowError:
            tl.store(o[:], tl.zeros((8,), tl.float32))
        make()

    assert codes(kernel, o=ks.hbm((8,), "f32")) == ["KS101"]


def test_an_error_that_the_kernel_makes_of_a_fault_is_the_fault() -> None:
    """`raise ... from` does not handle it: the fault is what lint reports."""

    def kernel(o: Any) -> None:
        try:
            tl.store(o[:], tl.zeros(BIG, tl.float32)[0, 0:8])
        except ks.ScratchOverflowError as error:
            raise ValueError("too large") from error

    assert codes(kernel, o=ks.hbm((8,), "f32")) == ["KS101"]
    with pytest.raises(ValueError, match="too large"):
        ks.trace(kernel, o=ks.hbm((8,), "f32"))


def test_an_error_of_the_kernels_own_after_a_handled_fault_passes_through() -> None:
    """It does not come from the fault."""

    def kernel(x: Any, o: Any) -> None:
        tries_a_size(x, o)
        raise ValueError("something else")

    with pytest.raises(ValueError, match="something else"):
        ks.lint(kernel, x=X, o=ks.hbm((8,), "f32"))
