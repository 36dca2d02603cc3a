"""How what is linted was asked for: what a help that names another command has to repeat, so that it does the same."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from ..ir.arrays.frozen_map import FrozenMap

__all__ = ["Invocation"]


@attrs.frozen
class Invocation:
    """A launch and the options of the command line beside it.

    ``launch`` is its name (empty: it has none), ``arguments`` are the kernel's by parameter, as the launch and the
    options set them; ``given`` are those of the options alone (``"tile=64"``). ``options`` are further words:
    ``("--machine", "ahbm-mesh", "--set", "gemm.rows=64")``. ``is_known`` says whether these make a whole command: what
    was linted from Python, with arguments that no word stands for, has none.
    """

    launch: str = ""
    arguments: Mapping[str, Any] = FrozenMap({})
    given: Sequence[str] = ()
    options: Sequence[str] = ()
    is_known: bool = True

    def words(self, varied: str) -> list[str]:
        """The options of a command that varies one of the arguments."""
        found = ["--launch", self.launch] if self.launch else []
        for text in self.given:
            if text.partition("=")[0].strip() != varied:
                found += ["--arg", text]
        return [*found, *self.options]

    def command(self, name: str, target: str, varied: str, *more: str) -> str:
        """A command for a shell."""
        return shlex.join(["kernscope", name, target, *self.words(varied), *more])
