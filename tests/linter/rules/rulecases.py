"""What the tests of several rules are made with: kernels from their lines, and the codes of a report."""

from __future__ import annotations

from typing import Any

import kernscope as ks
from kernscope.linter import LintReport


def body(text: str) -> str:
    """A kernel of two tensors ``x`` and ``o``; its first line is line 6."""
    lines = "".join(f"    {line}\n" for line in text.strip().splitlines())
    return f"@ks.kernel\ndef kernel(x, o):\n{lines}"


def codes(report: LintReport) -> list[str]:
    """The codes of the findings, in their order."""
    return [d.code for d in report]


def peak_of(text: str, x: Any) -> int:
    """The peak of a kernel given by its text."""
    space: dict[str, Any] = {"ks": ks, "tl": ks.tl}
    exec(text, space)
    return ks.liveness(ks.trace(space["kernel"], x, x)).peak_bytes
