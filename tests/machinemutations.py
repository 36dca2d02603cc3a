"""Machine files changed at random: numbers, words, lines."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import kernscope as ks

__all__ = ["machine_mutations"]

_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?")
_VALUES = [
    "0",
    "-1",
    "1",
    "3",
    "0.5",
    "1e3",
    "1e29",
    "1e31",
    "1e-29",
    "9" * 40,
    "1e999999999",
    "inf",
    "-inf",
    "nan",
    "true",
]
_VALUES += [
    '"1"',
    "[]",
    "[1, 2]",
    "[-1, 2]",
    "{}",
    "{ default = 1 }",
    "1_000",
    "0x10",
    "1979-05-27",
    '"\\u001b]0;x\\u0007"',
]
_VALUES += ['"a\\n::error::b"', "'''x'''", "1" + "0" * 5000, "4294967297", "18446744073709551616", '"mesh2d"', '"ring"']
_LINES = [
    "[dma_read]",
    "[a.b.c]",
    "x = 1",
    'base = "ahbm-pe"',
    'base = "/dev/zero"',
    'base = "ahbm-mesh"',
    "[[math]]",
    "= 1",
    "\x00",
]
_LINES += [
    "[" * 3000,
    'name = "' + "n" * 5000 + '"',
    "a" * 300 + ".b" * 300 + " = 1",
    'kind = "mesh2d"',
    "shape = [2, 2]",
    "\ufeff",
]


def machine_mutations(count: int, seed: int) -> Iterator[str]:
    """Texts of descriptions with one to three changes each."""
    draw = random.Random(seed)
    presets = [ks.load_machine(name).to_toml() for name in ks.machine_names()]
    for _ in range(count):
        lines = draw.choice(presets).split("\n")
        for _ in range(draw.choice((1, 1, 2, 3))):
            at = draw.randrange(len(lines))
            what = draw.random()
            numbers = list(_NUMBER.finditer(lines[at]))
            if what < 0.5 and numbers:
                found = draw.choice(numbers)
                lines[at] = lines[at][: found.start()] + draw.choice(_VALUES) + lines[at][found.end() :]
            elif what < 0.6:
                del lines[at]
                lines = lines or [""]
            elif what < 0.7:
                lines.insert(at, draw.choice(lines))
            elif what < 0.8:
                lines[at], other = lines[draw.randrange(len(lines))], lines[at]
                lines.append(other)
            elif what < 0.9:
                lines.insert(at, draw.choice(_LINES))
            else:
                place = draw.randrange(len(lines[at]) + 1)
                lines[at] = lines[at][:place] + draw.choice("x=.[]\"'{}#-_9 \\\t") + lines[at][place + 1 :]
        yield "\n".join(lines)
