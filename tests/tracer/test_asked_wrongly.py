"""What newcomers write first: a kernel that is called, a launch that is given arguments, names that are not there."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import kernscope as ks
from kernscope import tl


@ks.launch("small", x=ks.hbm((16,), "f32"), o=ks.hbm((16,), "f32"))
@ks.kernel
def copy(x: ks.HbmTensor, o: ks.HbmTensor) -> None:
    tl.store(o[:], tl.load(x[:]))


@ks.kernel
def bare(x: ks.HbmTensor) -> None:
    tl.load(x[:])


@pytest.mark.parametrize(
    ("kernel", "said"),
    [(copy, "ks.trace(copy.launch('small'))"), (bare, "ks.trace(bare, x)")],
    ids=lambda v: str(v)[:9],
)
def test_calling_a_kernel_says_how_it_is_traced(kernel: ks.Kernel, said: str) -> None:
    """With the kernel's own name, and a launch that it has; what is proposed works."""
    with pytest.raises(ks.NotTracingError, match=f"kernel {kernel.name} was called outside a trace") as caught:
        kernel(1)
    assert f"trace it: graph = {said}" in caught.value.help
    assert len(eval(said, {"ks": ks, "copy": copy, "bare": bare, "x": ks.hbm((16,), "f32")}))


def test_a_launch_takes_no_arguments_where_it_is_looked_up() -> None:
    """The error says where arguments go; and there they go."""
    with pytest.raises(ks.ArgumentError, match=r"copy.launch\('small'\) with tile=3") as caught:
        copy.launch("small", tile=3)
    assert "ks.trace(copy.launch('small'), ...)" in caught.value.help
    graph = ks.trace(copy.launch("small"), x=ks.hbm((8,), "f32"), o=ks.hbm((8,), "f32"))
    assert graph.layouts[graph.storages.layout[graph.tensors["x"]]].shape == (8,)


def test_a_name_that_the_package_has_not() -> None:
    """The nearest one, also of an error; without one, where they are listed. Python's own protocols see a plain
    error."""
    for name, near in (("lnt", "lint"), ("shedule", "schedule"), ("ShapError", "ShapeError")):
        with pytest.raises(ks.UnknownNameError, match=f"has no attribute '{name}'") as caught:
            getattr(ks, name)
        assert caught.value.help == f"did you mean '{near}'?"
    with pytest.raises(AttributeError) as listed:
        ks.zzz  # noqa: B018
    assert "dir(kernscope)" in str(listed.value)
    assert not hasattr(ks, "__wrapped__") and not hasattr(ks, "lnt")


@pytest.mark.parametrize("name", ["gelu", "hardswish", "zzz"])
def test_an_unknown_name_is_answered_in_a_line(name: str) -> None:
    """Not with every name that there is."""
    with pytest.raises(ks.UnknownNameError) as caught:
        getattr(tl, name)
    assert len(caught.value.help) < 120 and "dir(tl)" in caught.value.help


@pytest.mark.parametrize(
    "body",
    [
        lambda x, o: tl.load(x + tl.arange(0, 8)),
        lambda x, o: tl.load(x + (8 + tl.arange(0, 8))),
        lambda x, o: tl.store(o + tl.arange(0, 8), tl.load(x[0:8])),
        lambda x, o: tl.load((x + 8) - tl.arange(0, 8)),
    ],
)
def test_tiles_of_pointers_are_answered_with_regions(body: Callable[..., Any]) -> None:
    """The habit of pointer arithmetic meets the load that is meant."""
    with pytest.raises(ks.TracedValueError) as caught:
        ks.trace(lambda x, o: body(x, o), ks.hbm((16,), "f32"), ks.hbm((16,), "f32"))
    assert re.search(r"no tiles of pointers.* tl\.load\([xo]\[start : start \+ n\]\)", caught.value.help)


@pytest.mark.parametrize(
    "body",
    [
        lambda x: tl.exp([x, x]),
        lambda x: tl.full((4,), x, tl.float32),
        lambda x: tl.store(x, x),
        lambda x: x.foo,
        lambda x: tl.zeros(x, tl.float32),
        lambda x: tl.sum(x, axis=x),
        lambda x: x @ x,
        lambda x: tl.copy_to(tl.broadcast_to(x[0:1], (8,)), tl.zeros((8,), tl.float32)),
        lambda x: tl.copy_to(x, tl.zeros((4,), tl.float32)),
    ],
)
def test_messages_call_a_handle_by_its_name(body: Callable[..., Any]) -> None:
    """No address, no angle brackets: neither helps who wrote the line."""

    def kernel(x: ks.HbmTensor) -> None:
        query = tl.load(x[:])
        body(query)

    with pytest.raises(ks.KernscopeError) as caught:
        ks.trace(kernel, ks.hbm((16,), "f32"))
    told = caught.value.message
    assert "<handle" not in str(caught.value) and " at 0x" not in str(caught.value)
    assert "`query` (f32[16])" in told or "unnamed f32" in told or "(f32[" in told or "shape" in told, told
