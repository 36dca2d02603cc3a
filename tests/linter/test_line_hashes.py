"""GitHub's fingerprint of a line."""

from __future__ import annotations

from collections import Counter

import pytest

from kernscope.linter.formats.line_hashes import line_hashes


def hashed(lines: list[str]) -> list[str]:
    """The hash as its description has it: of each line the 100 characters from its beginning on."""
    seen: Counter[int] = Counter()
    found: list[str] = []
    for number in range(len(lines) + 1):
        rest = "".join(line + "\n" for line in lines[number:]).replace(" ", "").replace("\t", "")
        units = rest.encode("utf-16-le")
        codes = [units[i] + 256 * units[i + 1] for i in range(0, len(units), 2)]
        value = 0
        for code in [*codes, 0xFFFF, *[0] * 100][:100]:
            value = (value * 37 + code) % (1 << 64)
        seen[value] += 1
        found.append(f"{value:x}:{seen[value]}")
    return found


@pytest.mark.parametrize(
    "lines",
    [
        ["a"],
        ["def k(x, o):", "    t = tl.load(x)", "", "\ttl.store(o, t)"],
        ["größe = 1", "# 타일 🙂", ""],
        ["pass"] * 300,
        [f"x{i} = {i}" * (i % 40) for i in range(200)],
        ["x" * 500, "y" * 99, "z" * 100],
    ],
)
def test_every_line_has_its_hash(lines: list[str]) -> None:
    """All lines at once, as one after the other."""
    assert line_hashes(lines) == hashed(lines)[:-1]


def test_the_end_of_a_file_has_the_known_hash() -> None:
    """Of every file that ends with a line's end, the empty line behind it: the constant that GitHub's uploads show."""
    assert hashed([])[-1] == hashed(["a"])[-1] == "c129715d7a2bc9a3:1"
    assert line_hashes([]) == []


def test_a_line_keeps_its_hash_when_lines_above_it_change() -> None:
    """And when its indentation does."""
    lines = ["import kernscope as ks", "t = tl.load(x)", "tl.store(o, t)"]
    moved = ["# new", "", lines[0], "    t = tl.load( x )", lines[2]]
    assert line_hashes(moved)[-2:] == line_hashes(lines)[-2:]
