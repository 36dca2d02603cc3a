"""What a command is at, on a terminal: one line on stderr that the next stage writes over, and the end takes away."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

import click

__all__ = ["stages"]


@contextlib.contextmanager
def stages() -> Iterator[Callable[[str], None]]:
    """What is to be called with the name of each stage as it begins. Without effect where stderr is no terminal.

    Plain text and no library: most commands are over before one that draws bars is imported.
    """
    if not sys.stderr.isatty():
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
