"""``kernscope explain``: documentation of rules and errors."""

from __future__ import annotations

import click

from ..ir.errors import ERRORS
from ..linter import RULES
from ..linter import explain as explain_rule
from .command import Command
from .completion import complete_pages
from .tables import say, table

__all__ = ["explain"]


@click.command(cls=Command, short_help="Print the page of a rule or an error.")
@click.argument("code", required=False, shell_complete=complete_pages)
def explain(code: str | None) -> None:
    """Print the documentation of CODE, a rule (such as KS201) or an error (KE101); without one, list all codes."""
    if code is None:
        rows = [(rule.code, rule.name, str(rule.severity)) for rule in RULES.values()]
        say(table(rows + [(kind.code, kind.title(), "error") for kind in ERRORS.values()]))
        return
    click.echo(explain_rule(code))
