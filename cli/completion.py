"""What a shell completes: targets, launches, machines and their fields, codes. Nothing of an author's is run for it:
a kernel's file is parsed."""

from __future__ import annotations

import ast
import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from ..ir.errors import ERRORS, KernscopeError
from ..linter import RULES
from ..machine.description import DEFAULT_MACHINE, Machine, load_machine, machine_names

__all__ = [
    "complete_codes",
    "complete_fields",
    "complete_launches",
    "complete_machines",
    "complete_pages",
    "complete_targets",
]


def complete_targets(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Files; after ``::`` the kernels of the file."""
    file, joint, _ = incomplete.partition("::")
    if not joint:
        return [CompletionItem(incomplete, type="file")]
    return _items((f"{file}::{function.name}" for function in _kernels(file)), incomplete)


def complete_launches(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The launches of the targets that stand before: those whose names are written out."""
    # click leaves arguments unnamed where the last option still lacks its value.
    given = context.params.get("target") or context.params.get("paths") or context.args
    names: dict[str, None] = {}
    for target in [given] if isinstance(given, str) else given:
        file, _, kernel = str(target).partition("::")
        for function in _kernels(file):
            if kernel in ("", function.name):
                names.update(dict.fromkeys(_launches(function)))
    return _items(names, incomplete)


def complete_machines(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Presets; files, where none begins like that."""
    return _items(machine_names(), incomplete) or [CompletionItem(incomplete, type="file")]


def complete_fields(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Fields of a machine, ready for a value."""
    return _items((f"{path}=" for path in _machine(context).field_names), incomplete)


def _machine(context: click.Context) -> Machine:
    """The machine asked for, the default one where it cannot be had."""
    with contextlib.suppress(KernscopeError):
        return load_machine(context.params.get("machine") or context.params.get("name") or DEFAULT_MACHINE)
    return load_machine(DEFAULT_MACHINE)


def complete_codes(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Rules; after a comma the next one."""
    before, comma, last = incomplete.rpartition(",")
    known = {code: rule.summary for code, rule in RULES.items() if code.startswith(last.upper())}
    return [CompletionItem(f"{before}{comma}{code}", help=summary) for code, summary in known.items()]


def complete_pages(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Rules and errors."""
    known = {code: rule.name for code, rule in RULES.items()} | {code: kind.title() for code, kind in ERRORS.items()}
    return [CompletionItem(code, help=name) for code, name in known.items() if code.startswith(incomplete.upper())]


def _items(names: Iterable[str], incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def _kernels(file: str) -> Iterator[ast.FunctionDef]:
    """The decorated functions of a file that are kernels as they are usually written; none where it cannot be read."""
    path = Path(os.path.expanduser(file))
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and any(_name(each) == "kernel" for each in node.decorator_list):
            yield node


def _launches(function: ast.FunctionDef) -> Iterator[str]:
    for each in function.decorator_list:
        if isinstance(each, ast.Call) and _name(each) == "launch" and each.args:
            first = each.args[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value


def _name(decorator: ast.expr) -> str:
    """The last name of a decorator: ``launch`` of ``@ks.launch("small", ...)``."""
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
