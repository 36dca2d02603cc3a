"""What holds for every command: ``--debug``, ``--quiet`` and ``--color``, before the command's name or after it."""

from __future__ import annotations

import os
from typing import Any

import attrs
import click

from .choices import Choice

__all__ = ["COLOURS", "Settings", "settings", "with_settings"]

#: By what ``--color`` says: whether there are colours; None: where the stream is a terminal.
COLOURS: dict[str, bool | None] = {"auto": None, "always": True, "never": False}


@attrs.define
class Settings:
    """Of one run of the program. ``colour`` is None where the stream decides."""

    debug: bool = False
    quiet: bool = False
    colour: bool | None = attrs.field(factory=lambda: _colour_of_environment())


def _colour_of_environment() -> bool | None:
    """What the conventions NO_COLOR and FORCE_COLOR say, which click does not know; an empty one says nothing."""
    if os.environ.get("NO_COLOR"):
        return False
    return True if os.environ.get("FORCE_COLOR") else None


def settings() -> Settings:
    """Those of the command that is running."""
    context = click.get_current_context(silent=True)
    return (context.find_object(Settings) if context is not None else None) or Settings()


def _flag(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        assert parameter.name is not None, "a flag of ours has a name"
        setattr(context.ensure_object(Settings), parameter.name, True)


def _colour(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    held = context.ensure_object(Settings)
    if value is not None:
        held.colour = COLOURS[value]
    context.color = held.colour


def with_settings(command: click.Command) -> click.Command:
    """The command (or the group) with these options; they are settled before anything else of it is looked at."""
    shared: dict[str, Any] = {"expose_value": False, "is_eager": True}
    command.params += [
        click.Option(["--debug"], is_flag=True, callback=_flag, help="Show the traceback of an error.", **shared),
        click.Option(
            ["-q", "--quiet"],
            is_flag=True,
            callback=_flag,
            help="Results and errors only: no notes, no progress.",
            **shared,
        ),
        click.Option(
            ["--color"],
            type=Choice(tuple(COLOURS)),
            callback=_colour,
            help="Default: auto, where the terminal has it; NO_COLOR and FORCE_COLOR are heard.",
            **shared,
        ),
    ]
    return command
