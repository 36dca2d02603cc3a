"""Options that take one of some names."""

from __future__ import annotations

from typing import Any

import click

from ..ir.errors import did_you_mean

__all__ = ["Choice"]


class Choice(click.Choice[str]):
    """One of some names; another one is refused with the nearest of them."""

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> str:
        try:
            return super().convert(value, parameter, context)
        except click.BadParameter as error:
            near = did_you_mean(str(value), self.choices)
            if not near.startswith("did you mean"):
                raise
            message = f"{error.message} {near[:1].upper()}{near[1:]}"
            raise click.BadParameter(message, context, parameter) from None
