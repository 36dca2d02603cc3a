"""The errors a user can cause: each has a code and a page of its own."""

from __future__ import annotations

import re

import pytest

import kernscope as ks
from kernscope.ir import errors
from kernscope.ir.errors import ERRORS, KernscopeError
from kernscope.linter import RULES

KINDS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, KernscopeError) and kind is not KernscopeError
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_error_has_a_code_and_a_page_of_its_own(kind: type[KernscopeError]) -> None:
    """One list: the class is found by its code, and its page by code, name and class."""
    assert re.fullmatch(r"KE\d{3}", vars(kind)["code"]) and vars(kind)["fix"].endswith((".", "`"))
    assert ERRORS[kind.code] is kind
    page = ks.explain(kind.code)
    assert page == ks.explain(kind.title()) == ks.explain(kind.__name__)
    assert [line for line in page.splitlines() if line.startswith("#")] == [
        f"# {kind.code} {kind.title()}",
        "## What it means",
        "## What to do",
    ]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_error_is_a_builtin_too(kind: type[KernscopeError]) -> None:
    """A Python programmer catches what they would expect, and the page names it."""
    (builtin,) = (base for base in kind.__bases__ if base is not KernscopeError)
    assert builtin.__module__ == "builtins" and f"`except {builtin.__name__}`" in ks.explain(kind.code)


def test_codes_and_names_are_told_apart() -> None:
    """No two errors share one, and none is a rule's."""
    assert len({kind.code for kind in KINDS}) == len({kind.title() for kind in KINDS}) == len(KINDS) == len(ERRORS)
    assert not {*ERRORS, *(kind.title() for kind in KINDS)} & {*RULES, *(rule.name for rule in RULES.values())}


def test_a_misspelt_code_of_an_error_is_refused_with_the_nearest() -> None:
    """Rules and errors are one list."""
    with pytest.raises(ks.RuleError, match="did you mean 'shape-error'"):
        ks.explain("shape-eror")
