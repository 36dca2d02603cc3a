"""The text of kernels' source files, and proof that it is the text that was traced.

A graph keeps a digest of each file that it was traced from. Text is shown, copied and edited only where the file still
has it: an edit after the trace would put carets under other words, and a saved graph may name any file there is.
"""

from __future__ import annotations

import hashlib
import linecache
import os

from .location import Location

__all__ = ["lines_at", "source_digest", "source_lines"]

#: What is larger than this is no kernel's source and is not read.
_LARGEST_SOURCE_BYTES = 4 << 20

#: By file the lines as ``linecache`` holds them, the same without their ends, and their digest: a file of thousands of
#: lines is asked for with each of its findings. What ``linecache`` has read anew is another list.
_KNOWN: dict[str, tuple[list[str], tuple[str, ...], str]] = {}
_FILES_KEPT = 64


def source_lines(file: str, digest: str | None = None) -> tuple[str, ...]:
    """The lines of a source file, or of a notebook's cell, without line ends; none where it cannot be read, and none
    where a ``digest`` is given that is not theirs."""
    _, lines, known = _read(file) if digest != "" else ([], (), "")
    return lines if digest is None or digest == known else ()


def lines_at(location: Location) -> tuple[str, ...]:
    """The lines of a place's file, if it has the text that was traced."""
    return source_lines(location.file, location.digest)


def source_digest(file: str) -> str:
    """What tells a file's text from any other; empty where there is none."""
    return _read(file)[2]


def _read(file: str) -> tuple[list[str], tuple[str, ...], str]:
    linecache.checkcache(file)
    if file not in linecache.cache and not _is_source(file):
        return [], (), ""
    lines = linecache.getlines(file)
    known = _KNOWN.get(file)
    if known is None or known[0] is not lines:
        if len(_KNOWN) >= _FILES_KEPT:
            _KNOWN.clear()
        bare = tuple(line.rstrip("\r\n") for line in lines)
        text = "\n".join(bare).encode("utf-8", "surrogatepass")
        known = _KNOWN[file] = (lines, bare, hashlib.sha256(text).hexdigest() if bare else "")
    return known


def _is_source(file: str) -> bool:
    try:
        return os.path.isfile(file) and os.path.getsize(file) <= _LARGEST_SOURCE_BYTES
    except (OSError, ValueError):
        return False
