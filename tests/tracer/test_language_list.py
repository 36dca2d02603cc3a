"""What real kernels asked the language for: each name is there, with its class of cost and a place on the page."""

import inspect
import re
from pathlib import Path

import pytest

from kernscope import tl
from kernscope.ir import dtypes
from kernscope.ir.ops import OPERATIONS, Cost

PAGE = (Path(__file__).parents[2] / "docs" / "language.md").read_text(encoding="utf-8")
#: Words within backquotes.
CODE = {word for code in re.findall(r"`([^`\n]+)`", PAGE) for word in re.findall(r"\w+", code)}

#: By name in ``tl`` the operation it records, and its class of cost.
LISTED = {
    "sort": ("sort", Cost.SCAN),
    "topk": ("topk", Cost.SCAN),
    "gather": ("gather", Cost.SIMPLE),
    "cumprod": ("cumprod", Cost.SCAN),
    "cumsum": ("cumsum", Cost.SCAN),
    "mulhi": ("mulhi", Cost.SIMPLE),
    "rand": ("rand", Cost.TRANSCENDENTAL),
    "randn": ("randn", Cost.TRANSCENDENTAL),
    "randint": ("randint", Cost.TRANSCENDENTAL),
    "sum": ("sum", Cost.REDUCTION),
    "max": ("max", Cost.REDUCTION),
    "min": ("min", Cost.REDUCTION),
    "dot": ("dot", None),
    "cast": ("bitcast", Cost.MOVE),
}


@pytest.mark.parametrize("name", LISTED)
def test_each_name_has_a_function_a_declaration_and_a_place_on_the_page(name: str) -> None:
    """A function of ``tl`` with a docstring, an operation with its class of cost, and a word on the language's page."""
    operation, cost = LISTED[name]
    assert inspect.getdoc(getattr(tl, name))
    assert OPERATIONS[operation].cost is cost
    assert name in CODE


@pytest.mark.parametrize("name", ["trans_a", "stages", "epilogue", "acc"])
def test_composites_have_what_was_asked_for(name: str) -> None:
    """As a keyword with a default, and on the page."""
    parameter = inspect.signature(tl.composite).parameters[name]
    assert parameter.default is not parameter.empty
    assert f"{name}=" in PAGE


@pytest.mark.parametrize("short", ["f64", "i64", "u16", "u32", "u64"])
def test_wide_dtypes_are_there(short: str) -> None:
    """By their short and their long names."""
    dtype = dtypes.of(short)
    assert getattr(tl, short) is getattr(tl, dtype.name) is dtype
    assert dtype.name in PAGE
