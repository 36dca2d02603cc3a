"""``kernscope lsp``: the language server."""

from __future__ import annotations

import importlib
from typing import Any

import click

from .command import Command

__all__ = ["lsp"]


@click.command(cls=Command, short_help="Serve an editor (Language Server Protocol).")
def lsp() -> None:
    """Talk to an editor over standard input and output: findings as files are saved, quick fixes, makespan and peak of
    each launch above its kernel, and what is known of a tile where it is pointed at.

    Needs the extra lsp.
    """
    server: Any = importlib.import_module("kernscope.face.editor.server")
    server.serve()
