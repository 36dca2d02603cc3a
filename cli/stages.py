"""What a command is at, on a terminal: one line on stderr that the next stage writes over, and the end takes away; or a
bar. ``--quiet`` and any other stderr have neither."""

from __future__ import annotations

import contextlib
import importlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import click

from .settings import settings

__all__ = ["bar", "stages"]


@contextlib.contextmanager
def stages() -> Iterator[Callable[[str], None]]:
    """What is to be called with the name of each stage as it begins. Without effect where nobody watches.

    Plain text and no library: most commands are over before one that draws bars is imported.
    """
    if not _is_watched():
        yield lambda stage: None
        return
    started, width = time.monotonic(), 0

    def tell(stage: str) -> None:
        nonlocal width
        passed = time.monotonic() - started
        text = f"{stage} ..." if passed < 1 else f"{stage} ... ({passed:.0f} s so far)"
        click.echo("\r" + text.ljust(width), err=True, nl=False)
        width = len(text)

    try:
        yield tell
    finally:
        click.echo("\r" + " " * width + "\r", err=True, nl=False)


def bar(count: int, doing: str) -> contextlib.AbstractContextManager[Callable[[int, int, str], None]]:
    """A bar for so many things, if there are several; to be called with how many are done, of how many, and what was
    done last."""
    if count < 2 or not _is_watched():
        return contextlib.nullcontext(lambda done, total, last: None)
    module: Any = importlib.import_module(".progress", __package__)
    shown: contextlib.AbstractContextManager[Callable[[int, int, str], None]] = module.LaunchProgress(
        doing, no_color=settings().colour is False
    )
    return shown


def _is_watched() -> bool:
    return sys.stderr.isatty() and not settings().quiet
