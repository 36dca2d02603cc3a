"""Text that somebody else chose (names of kernels, launches, tensors, files; messages), made fit to be shown.

All of it that goes to a terminal, into a log or an annotation passes :func:`printable`: whoever names a tensor cannot
move the cursor, set the window's title, turn the direction of the line around, begin a line of their own, or give a
command to a continuous-integration runner that reads the log.
"""

from __future__ import annotations

__all__ = ["printable", "printable_lines"]


def printable(text: str) -> str:
    """The text in one line of printable characters. Every other one (line ends, escape sequences, marks that turn the
    direction of writing, halves of surrogate pairs) is replaced by its escape; so is the beginning of what GitHub's
    runner takes for a command: ``::`` at the start of a line, ``##[`` anywhere."""
    if not text.isprintable():
        text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
    text = text.replace("##[", "#\\x23[")
    bare = text.lstrip()
    return f"{text[: len(text) - len(bare)]}\\x3a{bare[1:]}" if bare.startswith("::") else text


def printable_lines(text: str) -> str:
    """The same for a text of several lines, which it keeps."""
    return "\n".join(printable(line) for line in text.split("\n"))
