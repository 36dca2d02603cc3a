"""The linter: rules over a traced graph, what they find, and how findings are written down."""

from __future__ import annotations

from .edits import Edit, Fix, apply_edits
from .findings import Diagnostic, LintReport, Place
from .lint import explain, lint_graph
from .rules import RULES

__all__ = [
    "RULES",
    "Diagnostic",
    "Edit",
    "Fix",
    "LintReport",
    "Place",
    "apply_edits",
    "explain",
    "in_order",
    "lint_facts",
    "lint_graph",
]
