"""Configuration: ``[tool.kernscope.lint]`` of a pyproject.toml.

Every mistake is reported at once, each with its path (``lint.options.KS102.percent``); an unknown key names the nearest
known one.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from types import MappingProxyType
from typing import Any

import attrs

from ..ir.errors import KernscopeError, OptionError, did_you_mean, shown
from ..ir.forms.strict_tables import Fault, Mistakes, StrictTables
from .findings import SEVERITIES, Diagnostic, LintReport, Severity
from .rule_selection import option_values, select_rules
from .rules import RULES

__all__ = ["LintConfig", "find_config", "read_config"]

_HELP = "the keys of [tool.kernscope.lint]: select, ignore, per-file-ignores, exclude, fail-on, options"


@attrs.frozen
class LintConfig:
    """How to lint the files below ``folder``.

    ``select`` and ``ignore`` are codes, names or beginnings of codes; ``per_file_ignores`` gives more to ignore by
    pattern of the file that a finding lies in; ``exclude`` are patterns of files and folders that are passed over
    where a whole folder is linted. Patterns are relative to ``folder``, or match a file's name alone; ``*`` also stands
    for ``/``. ``options`` are values by rule, then by option. ``fail_on`` is the severity from which on findings fail.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_file_ignores: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    exclude: tuple[str, ...] = ()
    fail_on: Severity = "error"
    options: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict)
    folder: str = attrs.field(default="", metadata={"key": False})

    def overridden(
        self, select: Sequence[str] = (), ignore: Sequence[str] = (), fail_on: Severity | None = None
    ) -> LintConfig:
        """The configuration with what the command line says: a selection takes the place of ``select`` and ``ignore``,
        what is ignored is so besides, ``fail_on`` is replaced."""
        chosen = (tuple(select), tuple(ignore)) if select else (self.select, (*self.ignore, *ignore))
        return attrs.evolve(self, select=chosen[0], ignore=chosen[1], fail_on=fail_on or self.fail_on)

    def apply(self, report: LintReport, file: str | None = None) -> LintReport:
        """The report without the findings that ``per-file-ignores`` silence. One without a place lies in ``file``."""
        if not self.per_file_ignores:
            return report
        return attrs.evolve(report, diagnostics=tuple(d for d in report if not self._ignored(d, file)))

    def _ignored(self, diagnostic: Diagnostic, file: str | None) -> bool:
        place = diagnostic.location.file if diagnostic.location else file
        if place is None:
            return False
        entries = [
            entry for pattern, codes in self.per_file_ignores.items() if self._fits(pattern, place) for entry in codes
        ]
        return bool(entries) and any(rule.code == diagnostic.code for rule in select_rules(entries, (), RULES))

    def excludes(self, file: str) -> bool:
        """Whether a file, or a folder that it lies in, is excluded."""
        path = Path(os.path.abspath(file))
        inside = [path, *(p for p in path.parents if self.folder and Path(self.folder) in p.parents)]
        return any(self._fits(pattern, str(part)) for pattern in self.exclude for part in inside)

    def _fits(self, pattern: str, file: str) -> bool:
        path = Path(os.path.abspath(file))
        wanted = pattern.removeprefix("./").rstrip("/")
        names = [path.name]
        if self.folder and path.is_relative_to(self.folder):
            names.append(path.relative_to(self.folder).as_posix())
        return any(fnmatchcase(name, wanted.removeprefix("**/")) or fnmatchcase(name, wanted) for name in names)


def find_config(path: str | os.PathLike[str]) -> LintConfig:
    """The configuration of a file or folder: of the nearest ``pyproject.toml`` in its folder or above that has a table
    ``[tool.kernscope]``; without one, the defaults. Raises ``OptionError`` as ``read_config`` does."""
    start = Path(os.path.abspath(path))
    for folder in (start, *start.parents) if start.is_dir() else start.parents:
        file = folder / "pyproject.toml"
        if file.is_file():
            found = read_config(file)
            if found is not None:
                return found
    return LintConfig()


def read_config(file: Path) -> LintConfig | None:
    """The configuration in a ``pyproject.toml``; None where it has no table ``[tool.kernscope]``.

    Raises ``OptionError`` that lists every mistake with its path, unknown keys and rules with the nearest known ones.
    """
    shown_file = os.path.relpath(file)
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise OptionError(
            f"{shown_file}: cannot be read: {error}", help="a pyproject.toml is TOML, in UTF-8"
        ) from error
    tool = document.get("tool", {})
    table = tool.get("kernscope") if isinstance(tool, dict) else None
    if table is None:
        return None
    read, mistakes = _TABLES.structure(_Tool, table)
    if read is None:
        lines = [f"{shown_file}: tool.kernscope{f'.{path}' if path else ''}: {text}" for path, text in mistakes]
        raise OptionError("\n".join(lines), help=_HELP)
    return attrs.evolve(read.lint, folder=str(file.resolve().parent))


# --- structuring ------------------------------------------------------------------------------------------------------


@attrs.frozen
class _Tool:
    """The table ``[tool.kernscope]``."""

    lint: LintConfig = attrs.field(factory=LintConfig)


def _key(field: attrs.Attribute[Any]) -> str | None:
    """A field's key in the file; None for one that is ours."""
    return None if field.metadata.get("key") is False else field.name.replace("_", "-")


def _strings(value: Any, _: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise Fault(f"must be a list of strings, not {shown(value)}")
    mistakes = [(f"[{n}]", f"must be a string, not {shown(v)}") for n, v in enumerate(value) if not isinstance(v, str)]
    if mistakes:
        raise Mistakes(tuple(mistakes))
    return tuple(value)


def _codes(value: Any, kind: Any) -> tuple[str, ...]:
    """A list of codes, names or beginnings of codes, each of which means a rule."""
    listed = _strings(value, kind)
    mistakes: list[tuple[str, str]] = []
    for number, entry in enumerate(listed):
        try:
            select_rules([entry], (), RULES)
        except KernscopeError as error:
            mistakes.append((f"[{number}]", f"{error.message}; {error.help}"))
    if mistakes:
        raise Mistakes(tuple(mistakes))
    return listed


def _codes_by_pattern(value: Any, kind: Any) -> Mapping[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    mistakes: list[tuple[str, str]] = []
    for pattern, codes in _TABLES.items(value):
        try:
            found[pattern] = _codes(codes, kind)
        except (Fault, Mistakes) as error:
            mistakes += _TABLES.mistakes(error, pattern)
    if mistakes:
        raise Mistakes(tuple(mistakes))
    return MappingProxyType(found)


def _options(value: Any, _: Any) -> Mapping[str, Mapping[str, Any]]:
    found: dict[str, Mapping[str, Any]] = {}
    mistakes: list[tuple[str, str]] = []
    for code, options in _TABLES.items(value):
        try:
            option_values({code: {}}, RULES)
            found[code] = MappingProxyType(dict(_TABLES.items(options)))
        except KernscopeError as error:
            mistakes.append((code, f"{error.message}; {error.help}"))
        except Fault as error:
            mistakes.append((code, str(error)))
        else:
            mistakes += _wrong_options(code, found[code])
    if mistakes:
        raise Mistakes(tuple(mistakes))
    return MappingProxyType(found)


def _wrong_options(code: str, options: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in options.items():
        try:
            option_values({code: {name: value}}, RULES)
        except KernscopeError as error:
            yield f"{code}.{name}", f"{error.message}; {error.help}"


def _severity(value: Any, _: Any) -> Severity:
    for severity in SEVERITIES:
        if value == severity:
            return severity
    raise Fault(f"is {shown(value)}; {did_you_mean(str(value), SEVERITIES, what='it can be')}")


#: How each field is read: what it takes depends on what it means, not on its type alone.
_READERS: Mapping[str, Any] = {
    "select": _codes,
    "ignore": _codes,
    "per_file_ignores": _codes_by_pattern,
    "exclude": _strings,
    "fail_on": _severity,
    "options": _options,
}


#: The table ``[tool.kernscope]`` and all in it.
_TABLES = StrictTables(shown, _key, _READERS)
