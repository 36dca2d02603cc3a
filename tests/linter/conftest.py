"""Kernels from text: the linter's excerpts need source files, and tests that show them need stable lines."""

from __future__ import annotations

import importlib.util
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kernscope as ks
from kernscope.linter import LintReport

HEADER = "import kernscope as ks\nfrom kernscope import tl\n\n"
TRITON_HEADER = "import numpy as np\nimport triton\nimport triton.language as tl\n\n"


@pytest.fixture
def load_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ks.Kernel]:
    """The kernel of a module's text, which becomes the file ``kernel.py`` of the current folder."""
    monkeypatch.chdir(tmp_path)

    def load(text: str) -> ks.Kernel:
        path = tmp_path / "kernel.py"
        path.write_text(text, encoding="utf-8")
        spec = importlib.util.spec_from_file_location("kernel", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        (kernel,) = (value for value in vars(module).values() if isinstance(value, ks.Kernel))
        return kernel

    return load


@pytest.fixture
def lint(load_kernel: Callable[[str], ks.Kernel]) -> Callable[..., LintReport]:
    """Lint a kernel given by its text, which starts in line 4 of ``kernel.py``, below the usual imports."""

    def lint_text(text: str, *args: Any, **kwargs: Any) -> LintReport:
        return ks.lint(load_kernel(HEADER + textwrap.dedent(text).lstrip("\n")), *args, **kwargs)

    return lint_text


@pytest.fixture
def lint_triton(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., LintReport]:
    """Lint the one launch of a script in Triton's language, which becomes the file ``kernel.py``, below the usual
    imports (or as a whole where it has some)."""
    monkeypatch.chdir(tmp_path)

    def lint_text(text: str, **kwargs: Any) -> LintReport:
        path = tmp_path / "kernel.py"
        path.write_text(text if "import triton" in text else TRITON_HEADER + textwrap.dedent(text).lstrip("\n"))
        with ks.triton.session("ahbm-pe") as session:
            exec(compile(path.read_bytes(), str(path), "exec"), {"__name__": "__main__", "__file__": str(path)})
        (launch,) = session.launches
        return launch.lint(**kwargs)

    return lint_text


@pytest.fixture
def lint_page(
    load_kernel: Callable[[str], ks.Kernel], lint_triton: Callable[..., LintReport]
) -> Callable[[str], LintReport]:
    """Lint a kernel of a rule's page, in its first launch."""

    def lint_text(text: str) -> LintReport:
        if "import triton" in text:
            return lint_triton(text.strip() + "\n")
        kernel = load_kernel(text.strip() + "\n")
        return ks.lint(kernel.launch(next(iter(kernel.launches))))

    return lint_text
