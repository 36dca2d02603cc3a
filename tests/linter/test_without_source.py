"""Kernels whose source text is not at hand (made by ``exec``, or by a generator): findings name lines all the same, and
their help says in words what no edit can be made of."""

# ruff: noqa: E501  (help as it is printed)

from __future__ import annotations

from typing import Any

import pytest

import kernscope as ks

SMALL: Any = ks.hbm((64, 64), "f32")
LARGE: Any = ks.hbm((128, 512), "f32")
FIND = "load and compute in smaller tiles: `kernscope fit` finds the largest that fits, where it is a parameter"


def compiled(text: str) -> ks.Kernel:
    """A kernel of two tensors, of no file: its first line is line 5."""
    head = "import kernscope as ks\nfrom kernscope import tl\n@ks.kernel\ndef kernel(x, o):\n"
    space: dict[str, Any] = {}
    exec(compile(head + "".join(f"    {line}\n" for line in text.splitlines()), "<generated>", "exec"), space)
    kernel = space["kernel"]
    assert isinstance(kernel, ks.Kernel)
    return kernel


RUNNING = "best = tl.load(x[:, :])\nfor j in range({n}):\n    best = tl.maximum(best, tl.load(x[:, :]))\ntl.store(o[:, :], best)"


@pytest.mark.parametrize(
    ("code", "text", "tensor", "help"),
    [
        (
            "KS103",
            "for j in range(4):\n    tl.store(o[:, :], tl.exp(tl.load(x[:, :])))",
            SMALL,
            "wrap the body of the loop around line 6 in `with tl.scratch_scope():`",
        ),
        (
            "KS103",
            RUNNING.format(n=4),
            SMALL,
            "wrap the body of the loop around line 7 in `with tl.scratch_scope():`; an unnamed f32[64,64] must not go with it: make a handle before the loop and `tl.copy_to` into it",
        ),
        (
            "KS101",
            "for j in range(9):\n    tl.store(o[:, :], tl.exp(tl.load(x[:, :])))",
            LARGE,
            "wrap the body of the loop around line 6 in `with tl.scratch_scope():`",
        ),
        (
            "KS101",
            RUNNING.format(n=9),
            LARGE,
            "wrap the body of the loop around line 7 in `with tl.scratch_scope():`, and `tl.copy_to` what the next iteration needs into handles made before the loop",
        ),
        (
            "KS101",
            "for j in range(9):\n    a = tl.load(x[:, :])\n    tl.store(o[:, :], tl.exp(tl.exp(tl.exp(tl.exp(a)))) + a)",
            LARGE,
            f"wrap the body of the loop around line 6 in `with tl.scratch_scope():`; that leaves 1,572,864 B, so {FIND}, too",
        ),
        (
            "KS104",
            "with tl.scratch_scope():\n    a = tl.load(x[:, :])\n    tl.store(o[:, :], a)\n    b = tl.load(x[:, :])\n    tl.store(o[:, :], b)",
            SMALL,
            "close the scope after line 7, and open another one for what follows",
        ),
        (
            "KS104",
            "with tl.scratch_scope():\n    kept = tl.load(x[:, :])\n    a = tl.load(x[:, :])\n    tl.store(o[:, :], a)\n    b = tl.load(x[:, :])\n    tl.store(o[:, :], b + kept)",
            SMALL,
            "close the scope after line 8, and open another one for what follows; an unnamed f32[64,64] must outlive it: make a handle before the scope and `tl.copy_to` into it",
        ),
        (
            "KS501",
            "tl.store(o[0:65, :], tl.zeros((65, 64), tl.float32))",
            SMALL,
            "for a ragged edge give the store `clip=True`; else run the loop one tile less",
        ),
        (
            "KS501",
            "tl.load(x[0:65, :])",
            SMALL,
            "for a ragged edge write `tl.load(region, pad=...)`, with what changes nothing (0 of a sum); else run the loop one tile less",
        ),
        (
            "KS501",
            "tl.store(o + 4095, tl.zeros((1, 2), tl.float32))",
            SMALL,
            "a pointer counts elements from the tensor's start; slice a region instead, t[a:b, :], to pad or clip",
        ),
    ],
)
def test_help_without_a_source(code: str, text: str, tensor: Any, help: str) -> None:
    """Each finding once, with its place, without an edit, and with the words that stand for one."""
    (finding,) = ks.lint(compiled(text), tensor, tensor, select=[code])
    assert finding.code == code and finding.fixes == ()
    assert finding.location is not None and finding.location.file == "<generated>"
    assert finding.help == help
