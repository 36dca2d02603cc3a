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
import cattrs
from cattrs.errors import ClassValidationError, ForbiddenExtraKeysError
from cattrs.gen import make_dict_structure_fn, override

from ..ir.errors import KernscopeError, OptionError, did_you_mean, shown
from .findings import SEVERITIES, Diagnostic, LintReport, Severity
from .rules import RULES
from .selection import option_values, select_rules

__all__ = ["LintConfig", "find_config", "read_config"]

_HELP = "the keys of [tool.kernscope.lint]: select, ignore, per-file-ignores, exclude, fail-on, options"


class _Fault(ValueError):
    """One mistake in a value; the path to it is found from where it was raised."""


@attrs.frozen
class _Mistakes(Exception):
    """Several mistakes within one value, each with its path from there."""

    found: tuple[tuple[str, str], ...]


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
    try:
        lint = _CONVERTER.structure(table, _Tool).lint
    except (ClassValidationError, _Fault) as error:
        lines = [
            f"{shown_file}: tool.kernscope{f'.{path}' if path else ''}: {text}" for path, text in _mistakes(error, "")
        ]
        raise OptionError("\n".join(lines), help=_HELP) from None
    return attrs.evolve(lint, folder=str(file.resolve().parent))


# --- structuring ------------------------------------------------------------------------------------------------------


@attrs.frozen
class _Tool:
    """The table ``[tool.kernscope]``."""

    lint: LintConfig = attrs.field(factory=LintConfig)


def _key(field: attrs.Attribute[Any]) -> str:
    return field.name.replace("_", "-")


def _strings(value: Any, _: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise _Fault(f"must be a list of strings, not {shown(value)}")
    mistakes = [(f"[{n}]", f"must be a string, not {shown(v)}") for n, v in enumerate(value) if not isinstance(v, str)]
    if mistakes:
        raise _Mistakes(tuple(mistakes))
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
        raise _Mistakes(tuple(mistakes))
    return listed


def _codes_by_pattern(value: Any, kind: Any) -> Mapping[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    mistakes: list[tuple[str, str]] = []
    for pattern, codes in _items(value):
        try:
            found[pattern] = _codes(codes, kind)
        except (_Fault, _Mistakes) as error:
            mistakes += _mistakes(error, pattern)
    if mistakes:
        raise _Mistakes(tuple(mistakes))
    return MappingProxyType(found)


def _options(value: Any, _: Any) -> Mapping[str, Mapping[str, Any]]:
    found: dict[str, Mapping[str, Any]] = {}
    mistakes: list[tuple[str, str]] = []
    for code, options in _items(value):
        try:
            option_values({code: {}}, RULES)
            found[code] = MappingProxyType(dict(_items(options)))
        except KernscopeError as error:
            mistakes.append((code, f"{error.message}; {error.help}"))
        except _Fault as error:
            mistakes.append((code, str(error)))
        else:
            mistakes += _wrong_options(code, found[code])
    if mistakes:
        raise _Mistakes(tuple(mistakes))
    return MappingProxyType(found)


def _wrong_options(code: str, options: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in options.items():
        try:
            option_values({code: {name: value}}, RULES)
        except KernscopeError as error:
            yield f"{code}.{name}", f"{error.message}; {error.help}"


def _items(value: Any) -> list[tuple[str, Any]]:
    if not isinstance(value, dict):
        raise _Fault(f"must be a table, not {shown(value)}")
    return list(value.items())


def _severity(value: Any, _: Any) -> Severity:
    for severity in SEVERITIES:
        if value == severity:
            return severity
    raise _Fault(f"is {shown(value)}; {did_you_mean(str(value), SEVERITIES, what='it can be')}")


#: How each field is read: what it takes depends on what it means, not on its type alone.
_READERS: Mapping[str, Any] = {
    "select": _codes,
    "ignore": _codes,
    "per_file_ignores": _codes_by_pattern,
    "exclude": _strings,
    "fail_on": _severity,
    "options": _options,
}


def _converter() -> cattrs.Converter:
    converter = cattrs.Converter(forbid_extra_keys=True, detailed_validation=True)

    @converter.register_structure_hook_factory(attrs.has)
    def section(kind: Any) -> Any:
        attrs.resolve_types(kind)
        names: dict[str, Any] = {
            field.name: override(rename=_key(field), omit=_is_ours(field), struct_hook=_READERS.get(field.name))
            for field in attrs.fields(kind)
        }
        structure = make_dict_structure_fn(kind, converter, _cattrs_forbid_extra_keys=True, **names)

        def structured(value: Any, wanted: Any) -> Any:
            # cattrs would look for the keys in a string, too.
            if not isinstance(value, dict):
                raise _Fault(f"must be a table, not {shown(value)}")
            return structure(value, wanted)

        return structured

    return converter


def _is_ours(field: attrs.Attribute[Any]) -> bool:
    """Whether a field is no key of the table."""
    return field.metadata.get("key") is False


def _mistakes(error: BaseException, path: str) -> Iterator[tuple[str, str]]:
    """The leaves of an error, each with its path."""
    if isinstance(error, ClassValidationError):
        placed, rest = error.group_exceptions()
        for inner, note in placed:
            key = note.name.replace("_", "-")
            yield from _mistakes(inner, f"{path}.{key}" if path else key)
        for inner in rest:
            yield from _mistakes(inner, path)
    elif isinstance(error, ForbiddenExtraKeysError):
        known = [_key(field) for field in attrs.fields(error.cl) if not _is_ours(field)]
        for key in sorted(error.extra_fields):
            yield f"{path}.{key}" if path else key, f"unknown key; {did_you_mean(key, known, what='known')}"
    elif isinstance(error, _Mistakes):
        for inside, text in error.found:
            joint = "" if inside.startswith("[") or not path else "."
            yield f"{path}{joint}{inside}", text
    elif isinstance(error, _Fault):
        yield path, str(error)
    else:
        raise error


_CONVERTER = _converter()
