"""Commands that take an option as often as it can count."""

from __future__ import annotations

from collections import Counter

import click

from ..ir.errors import OptionError

__all__ = ["Command"]


class Command(click.Command):
    """A command that refuses an option given twice of which only the last would count. Raises ``OptionError``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse, as click does."""
        if ctx.resilient_parsing:  # a line that is still being typed
            return super().parse_args(ctx, args)
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        for parameter, times in Counter(order).items():
            if times > 1 and isinstance(parameter, click.Option) and not (parameter.multiple or parameter.is_flag):
                name = parameter.opts[-1]
                raise OptionError(f"{name} is given {times} times", help="give it once: it takes one value")
        return super().parse_args(ctx, args)
