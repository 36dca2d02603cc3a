"""Python's own functions as a kernel knows them."""

from __future__ import annotations

from typing import Any

__all__ = ["BUILTINS"]

BUILTINS: dict[str, Any] = {}
