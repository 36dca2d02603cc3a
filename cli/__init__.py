"""The command line: ``kernscope COMMAND TARGET [options]``."""

from __future__ import annotations

from .app import main, program

__all__ = ["main", "program"]
