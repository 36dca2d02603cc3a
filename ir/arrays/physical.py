"""How much memory this machine has for columns."""

from __future__ import annotations

import os

__all__ = ["physical_bytes"]


def physical_bytes() -> int | None:
    """The bytes of this machine's physical memory; None where the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None
