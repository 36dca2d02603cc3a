"""The names of ``triton.language``: what runs, and what is refused and why."""

from __future__ import annotations

from typing import Any

from .builtins import BUILTINS

__all__ = ["BUILTINS", "LIBDEVICE", "MATH", "NAMES", "REFUSED"]

#: ``triton.language``, ``triton.language.math`` and ``triton.language.extra.libdevice``, by name.
NAMES: dict[str, Any] = {}
MATH: dict[str, Any] = {}
LIBDEVICE: dict[str, Any] = {}
#: Names of ``triton.language`` that cannot run, each with the reason.
REFUSED: dict[str, str] = {}
