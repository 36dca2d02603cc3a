"""A rule is one file: it is found by itself, runs, has a page, and its name says where it stands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import sourcecopy

from kernscope.linter import RULES, rules

FOLDER = Path(rules.__path__[0])
TESTS = Path(__file__).parent / "rules"

NEW_RULE = """
from ..rule import Finding, Option, Rule


def _long_kernel(context, options):
    if len(context.graph) > options["nodes"]:
        yield Finding(f"{len(context.graph)} nodes", nodes=(0,), help="split it")


RULE = Rule(
    code="KS901",
    name="long-kernel",
    severity="info",
    summary="a kernel is long",
    what="Counts nodes.",
    why="It is long.",
    example="x",
    fix="x",
    check=_long_kernel,
    options=(Option("nodes", 2, "how many"),),
)
"""

USE = """
import json
import sys
from pathlib import Path
import kernscope as ks
from kernscope import tl
from kernscope.linter.pages import write_pages

def kernel(x, o):
    tl.store(o[:], tl.load(x[:]) * 2.0)

t = ks.hbm((8,), "f32")
found = [(d.code, d.message) for d in ks.lint(kernel, t, t, select=["long-kernel"])]
silent = [d.code for d in ks.lint(kernel, t, t, select=["KS9"], options={"KS901": {"nodes": 3}})]
write_pages(Path(sys.argv[1]))
pages = sorted(path.name for path in Path(sys.argv[1]).glob("KS9*"))
print(json.dumps([ks.__file__, found, silent, pages, "KS901" in Path(sys.argv[1], "index.md").read_text()]))
"""


def test_a_file_holds_one_rule_and_is_named_for_it() -> None:
    """By code and name, so that the folder reads like a table of contents."""
    expected = {f"{rule.code}_{rule.name}".lower().replace("-", "_") for rule in RULES.values()}
    assert {path.stem for path in FOLDER.glob("*.py")} - {"__init__"} == expected


def test_every_rule_has_tests_of_its_own() -> None:
    """A file beside the rule's, of the same name; and no file for a rule that is gone."""
    expected = {f"test_{path.stem}" for path in FOLDER.glob("ks*.py")}
    assert {path.stem for path in TESTS.glob("test_*.py")} == expected


def _with_new_rule(folder: Path, name: str) -> Path:
    root = sourcecopy.copy_sources(folder)
    (root / "linter" / "rules" / f"{name}.py").write_text(NEW_RULE, encoding="utf-8")
    return root


def test_a_new_file_is_a_new_rule(tmp_path: Path) -> None:
    """Nothing else is touched: it is selected by code, name and family, takes its options and has its page."""
    root = _with_new_rule(tmp_path, "ks901_long_kernel")
    done = sourcecopy.run_beside(root, USE, "pages")
    assert done.returncode == 0, done.stderr
    file, found, silent, pages, listed = json.loads(done.stdout)
    assert Path(file) == root / "__init__.py"
    assert (found, silent, pages, listed) == ([["KS901", "3 nodes"]], [], ["KS901.md"], True)


@pytest.mark.parametrize("name", ["ks901_long", "long_kernel", "ks902_long_kernel"])
def test_a_rule_in_a_file_of_another_name_is_refused(tmp_path: Path, name: str) -> None:
    """So two files cannot declare the same code, either."""
    done = sourcecopy.run_beside(_with_new_rule(tmp_path, name), "import kernscope.linter")
    assert f"AssertionError: rule KS901 stands in {name}.py" in done.stderr
