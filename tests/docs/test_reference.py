"""The reference page holds every public name."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

import kernscope
from kernscope.ir import errors

DOCS = Path(__file__).resolve().parents[2] / "docs"
DIRECTIVE = re.compile(r"^\.\. auto(?:function|class|module):: (?:kernscope\.)?([\w.]+)$", re.MULTILINE)


def documented() -> list[str]:
    """What the page's directives name."""
    return DIRECTIVE.findall((DOCS / "api.md").read_text(encoding="utf-8"))


def test_every_public_name_is_on_the_reference_page() -> None:
    """Errors, the language and Triton's kernels come by their modules, every other name by a directive of its own."""
    names = documented()
    assert {"ir.errors", "tracer.tl", "face.triton"} <= set(names)
    expected = set(kernscope.__all__) - set(errors.__all__) - {"tl", "triton"}
    assert sorted(expected - set(names)) == []


def test_nothing_is_on_the_reference_page_twice() -> None:
    """A name that is documented twice has two places to link to."""
    names = documented()
    assert sorted(name for name in set(names) if names.count(name) > 1) == []


def resolved(name: str) -> Any:
    """What a dotted name below the package leads to; None: nothing."""
    *above, last = f"kernscope.{name}".split(".")
    module = ".".join([*above, last])
    try:
        found = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        found = None
    if found is not None:
        return importlib.import_module(module)
    holder = resolved(".".join(above[1:])) if above[1:] else kernscope
    return getattr(holder, last, None)


def test_what_the_reference_page_names_stands_there() -> None:
    """Each directive leads to something, and a part of a result to the module that it is defined in."""
    for name in documented():
        found = resolved(name)
        assert found is not None, name
        if isinstance(found, type) and "." in name:
            assert found.__module__ == f"kernscope.{name.rpartition('.')[0]}", name


def test_what_docstrings_and_pages_refer_to_exists() -> None:
    """Full names in the sources and the documentation follow what they name when that moves."""
    role = re.compile(r"(?::(?:mod|func|class|data|meth):|\{(?:mod|func|class|data|meth)\})`~?kernscope\.([\w.]+)`")
    pages = [page for page in DOCS.rglob("*.md") if "_build" not in page.parts]
    sources = [
        path
        for path in (DOCS.parent).glob("*/**/*.py")
        if not {"tests", "docs", "benchmarks", "build"} & set(path.relative_to(DOCS.parent).parts)
        and not any(part.startswith(".") for part in path.relative_to(DOCS.parent).parts)
    ]
    named = {(path, name) for path in [*pages, *sources] for name in role.findall(path.read_text(encoding="utf-8"))}
    assert len(named) > 5
    assert sorted((str(path), name) for path, name in named if resolved(name) is None) == []


def test_every_page_is_linked() -> None:
    """A page that no table of contents names is not found by anybody. Pages that the build makes are linked, too."""
    linked = set()
    pages = {page.resolve() for page in DOCS.rglob("*.md") if not {"_build", "generated"} & set(page.parts)}
    for index in (page for page in pages if page.name == "index.md"):
        for tree in re.findall(r"```\{toctree\}\n(.*?)```", index.read_text(encoding="utf-8"), re.DOTALL):
            names = [line for line in tree.splitlines() if line and not line.startswith(":")]
            linked |= {(index.parent / f"{name}.md").resolve() for name in names}
    made = {DOCS / "generated" / f"{name}.md" for name in ("gallery", "machines", "operations", "published")}
    assert made <= linked
    assert pages - linked == {(DOCS / "index.md").resolve()}
    assert [page for page in linked - made if not page.exists()] == []


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_python_examples_compile(page: Path) -> None:
    """Every block of Python on a page is Python."""
    for block in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        compile(block, str(page), "exec")
