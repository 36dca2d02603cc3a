"""Each decision record stands in English and in Korean, with one number, one status, and code that exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ENGLISH, KOREAN = ROOT / "docs" / "adr", ROOT / "docs" / "adr-ko"
STATUSES = {"accepted", "proposed", "superseded"}
SECTIONS = {
    ENGLISH: ["Context", "Decision", "Consequences", "Alternatives"],
    KOREAN: ["배경", "결정", "결과", "대안"],
}
STATUS = {ENGLISH: "Status", KOREAN: "상태"}
#: In a record: a file or a folder of the repository.
PATH = re.compile(r"`([\w.]+/[\w./-]*)`")
#: Parts of a record that are the same in any language.
CODE = re.compile(r"`[^`\n]+`")


def records(folder: Path) -> dict[str, Path]:
    """By name below the folder, all records of a language."""
    return {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*.md")) if path.name != "index.md"}


NAMES = sorted(records(ENGLISH))


def head(folder: Path, path: Path) -> tuple[str, str, str]:
    """Number, title and status of a record."""
    title, blank, status = path.read_text(encoding="utf-8").splitlines()[:3]
    named = re.fullmatch(r"# (\d{4})\. (\S.*)", title)
    stated = re.fullmatch(rf"{STATUS[folder]}: (\w+)", status)
    assert named is not None and blank == "" and stated is not None, path
    return named[1], named[2], stated[1]


def test_every_record_has_its_pair() -> None:
    """The same files in both folders, and enough of them to be all."""
    assert sorted(records(KOREAN)) == NAMES
    assert len(NAMES) >= 22


def test_a_number_is_given_once() -> None:
    """A record can be referred to by its number."""
    numbers = [Path(name).name[:4] for name in NAMES]
    assert sorted(set(numbers)) == sorted(numbers)


@pytest.mark.parametrize("name", NAMES)
def test_a_pair_says_the_same(name: str) -> None:
    """One number (the file's), one status, a title of its own, the language's sections, the same pieces of code."""
    pair = {folder: folder / name for folder in (ENGLISH, KOREAN)}
    heads = {folder: head(folder, path) for folder, path in pair.items()}
    (english_number, english_title, status), (number, title, korean_status) = heads[ENGLISH], heads[KOREAN]
    assert english_number == number == Path(name).name[:4]
    assert status == korean_status and status in STATUSES
    assert (status == "proposed") == name.startswith("proposed/")
    assert english_title != title and re.search("[가-힣]", title)
    for folder, path in pair.items():
        assert re.findall(r"^## (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE) == SECTIONS[folder]
    pieces = [sorted(set(CODE.findall(path.read_text(encoding="utf-8")))) for path in pair.values()]
    assert pieces[0] == pieces[1]


@pytest.mark.parametrize("folder", [ENGLISH, KOREAN], ids=lambda folder: folder.name)
def test_the_code_that_records_name_is_there(folder: Path) -> None:
    """A record follows the code when it moves."""
    named = {
        (path.name, place)
        for path in records(folder).values()
        for place in PATH.findall(path.read_text(encoding="utf-8"))
        if place not in {"memory/dma_read", "ipcq/ipcq_copy", "proposed/"}  # kinds of nodes; a folder of records
    }
    assert len(named) > 15
    assert sorted(pair for pair in named if not (ROOT / pair[1]).exists()) == []


@pytest.mark.parametrize("folder", [ENGLISH, KOREAN], ids=lambda folder: folder.name)
def test_every_record_is_in_its_index_under_its_title(folder: Path) -> None:
    """The table of the index has each record once, proposed ones apart, with number, link and title."""
    index = (folder / "index.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[(\d{4})\]\(([^)]+)\) \| (.+) \|$", index, re.MULTILINE)
    found = records(folder)
    expected = {(head(folder, path)[0], name, head(folder, path)[1]) for name, path in found.items()}
    assert len(rows) == len(found) and set(rows) == expected
    accepted, _, proposed = index.partition("\n## ")
    for name in found:
        assert f"]({name})" in (proposed if name.startswith("proposed/") else accepted)
