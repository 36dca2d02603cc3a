"""Colours of findings: severity, arrows, gutters, carets and helps. click takes them out where there are to be none."""

from __future__ import annotations

import re

import click

__all__ = ["painted"]

_SEVERITY = {"error": "red", "warning": "yellow", "info": "cyan"}
_HEAD = re.compile(r"^((?:[^\s:].*?: )?)(error|warning|info)(\[K[SE]\d+\])(?=:)", re.MULTILINE)
_ARROW = re.compile(r"^( *)(-->|:::)(?= )", re.MULTILINE)
#: Under a line of the source: carets are the place itself, dashes other places.
_MARKS = re.compile(r"^( *\| *)(\^+|-+)( .*)?$", re.MULTILINE)
_GUTTER = re.compile(r"^( *\d* *)(\|)(?= |$)", re.MULTILINE)
_NOTE = re.compile(r"^( *= )(help|note)(?=:)", re.MULTILINE)


def painted(text: str) -> str:
    """The full or the concise form of findings in colours."""
    text = _MARKS.sub(_marks, text)
    text = _GUTTER.sub(lambda m: m[1] + click.style(m[2], fg="blue"), text)
    text = _ARROW.sub(lambda m: m[1] + click.style(m[2], fg="blue"), text)
    text = _NOTE.sub(lambda m: m[1] + click.style(m[2], fg="green", bold=True), text)
    return _HEAD.sub(lambda m: m[1] + click.style(m[2] + m[3], fg=_SEVERITY[m[2]], bold=True), text)


def _marks(match: re.Match[str]) -> str:
    colour = "red" if match[2].startswith("^") else "blue"
    return match[1] + click.style(match[2] + (match[3] or ""), fg=colour)
