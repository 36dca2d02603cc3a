"""``kernscope lint --watch``: linting again whenever a file changes."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import click

from ..face.lint_files import python_files
from ..ir.errors import OptionError
from ..ir.forms.counts import plural
from .linting import LastWords, Linting, Outcome
from .tables import note

__all__ = ["watch"]

#: How often files are looked at.
_LOOK_S = 0.3
#: A file as it was: when it was written, and its size.
Seen = Mapping[str, tuple[int, int]]


def watch(linting: Linting, last_words: LastWords, tell: Callable[[Outcome], None]) -> None:
    """Lint, tell what was found, and do so again after every change, until Ctrl-C. What cannot be linted is told like
    any finding; the next change may mend it. Raises ``OptionError`` where there is no file to watch."""
    if not _seen(linting.paths):
        raise OptionError(f"--watch of {', '.join(linting.paths)}", help="give files or folders that are there")
    try:
        while True:
            # Looked at before linting: what is saved meanwhile is a change.
            seen = _seen(linting.paths)
            tell(linting.run(last_words))
            sys.stdout.flush()
            note(f"watching {plural(len(seen), 'file')}; Ctrl-C ends it", err=True)
            while _seen(linting.paths) == seen:
                time.sleep(_LOOK_S)
            click.clear()
    except KeyboardInterrupt:
        return


def _seen(paths: Sequence[str]) -> Seen:
    found: dict[str, tuple[int, int]] = {}
    for file in _files(paths):
        try:
            state = os.stat(file)
        except OSError:
            continue
        found[str(file)] = (state.st_mtime_ns, state.st_size)
    return found


def _files(paths: Sequence[str]) -> Iterator[Path]:
    """The Python files of folders; of a file also those beside it and below, which it may import."""
    for text in paths:
        path = Path(text.partition("::")[0])
        if path.is_file():
            yield path
        folder = path if path.is_dir() else path.parent
        if path.exists():
            yield from python_files(str(folder))
