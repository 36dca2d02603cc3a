"""``kernscope explain`` and ``kernscope machine``: documentation of rules and errors, descriptions of machines."""

from __future__ import annotations

from collections.abc import Sequence

import click

from ..face.tracing import described_machine
from ..ir.errors import ERRORS
from ..linter import RULES
from ..linter import explain as explain_rule
from ..machine.description import DEFAULT_MACHINE, load_machine, machine_comments, machine_names
from .tables import say, table

__all__ = ["explain", "machine"]


@click.command(short_help="Print the page of a rule or an error.")
@click.argument("code", required=False)
def explain(code: str | None) -> None:
    """Print the documentation of CODE, a rule (such as KS201) or an error (KE101); without one, list all codes."""
    if code is None:
        rows = [(rule.code, rule.name, str(rule.severity)) for rule in RULES.values()]
        say(table(rows + [(kind.code, kind.title(), "error") for kind in ERRORS.values()]))
        return
    click.echo(explain_rule(code))


@click.command(short_help="Show, list or validate machines.")
@click.argument("name", metavar="[NAME|FILE]", required=False)
@click.option("--set", "overrides", metavar="FIELD=VALUE", multiple=True, help="Override a field. Repeatable.")
def machine(name: str | None, overrides: Sequence[str]) -> None:
    """Show a machine with where its numbers come from, or validate a machine file; without one, list the machines that
    come with kernscope."""
    if name is None and not overrides:
        say("\n".join(machine_names()))
        return
    shown = described_machine(name, overrides)
    source = name or DEFAULT_MACHINE
    told = shown.same_as(load_machine(source), machine_comments(source))
    say(shown.to_toml(told).removesuffix("\n"))
