"""From TOML to attrs classes and back, strictly.

Every mistake of a description is reported at once, each with its path (``gemm.rows``); an unknown key names the nearest
known one. Decimals are read exactly.
"""

from __future__ import annotations

import functools
import json
import math
import tomllib
from collections.abc import Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, TypeVar, get_args, get_origin

import attrs

from ..ir.errors import MachineError, did_you_mean
from ..ir.forms.strict_tables import Fault, Mistakes, StrictTables
from .parts import NumberRule, Table, TableKeys

__all__ = ["SEE_VALID", "known_paths", "listed", "overlaid", "plain", "read_toml", "replace", "structure", "write_toml"]

T = TypeVar("T")
SEE_VALID = "see a valid one: kernscope machine ahbm-pe"
#: Numbers outside 10 ** +-this are no machine's, and would only fill the memory as exact rationals.
_DIGITS = 30


# --- reading ----------------------------------------------------------------------------------------------------------


def read_toml(source: bytes | str, file: str) -> dict[str, Any]:
    """The tables of a TOML text, floats as exact rationals. Raises ``MachineError``, which
    calls the text ``file``."""
    try:
        text = source.decode("utf-8") if isinstance(source, bytes) else source
        # A UTF-8 byte order mark is what some editors write; TOML has none.
        return tomllib.loads(text.removeprefix("\ufeff"), parse_float=_exact)
    except (RecursionError, ValueError) as error:
        raise MachineError(f"{file}: no valid TOML: {error}", help=SEE_VALID) from error


def _exact(text: str) -> Fraction | float:
    """A TOML float as an exact rational; what is no such number stays a float, to be refused where it stands."""
    number = Decimal(text.replace("_", ""))
    if not number.is_finite() or (number and abs(number.adjusted()) > _DIGITS):
        return float(number) if not number.is_finite() else math.inf
    return Fraction(number)


def overlaid(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Tables over tables: what both have is that of ``above``, tables within them key by key."""
    merged = dict(below)
    for key, value in above.items():
        known = merged.get(key)
        merged[key] = overlaid(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return merged


def listed(file: str, mistakes: list[tuple[str, str]]) -> str:
    """One line a mistake: the file, the path, what is wrong."""
    return "\n".join(f"{file}: {path}: {text}" if path else f"{file}: {text}" for path, text in mistakes)


# --- structuring ------------------------------------------------------------------------------------------------------


def _number(value: Any, rule: NumberRule) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, int | Fraction | float):
        raise Fault(f"must be {rule.words}, not {_shown(value)}")
    if isinstance(value, float) or abs(value) >= 10**_DIGITS:
        raise Fault(f"must be {rule.words} (below 1e{_DIGITS}), not {_shown(value)}")
    exact = Fraction(value)
    if rule.most is not None and exact > rule.most and rule.most > 1024:
        raise Fault(f"must be {rule.words} (at most {rule.most:,}), not {_shown(value)}")
    if not rule.accepts(exact) or (rule.integer and not isinstance(value, int)):
        raise Fault(f"must be {rule.words}, not {_shown(value)}")
    return exact


def _table(value: Any, keys: TableKeys) -> Table:
    given = _tables().items(value)
    mistakes: list[tuple[str, str]] = []
    found: dict[str, Fraction] = {}
    aliases = dict(keys.aliases)
    for key, number in given:
        name = aliases.get(key, key)
        if name in keys.fixed:
            mistakes.append((key, "always costs the default; it cannot be listed"))
        elif name != "default" and name not in keys.keys:
            mistakes.append((key, f"unknown key; {did_you_mean(key, ('default', *keys.keys), what='known')}"))
        elif name in found:
            mistakes.append((key, f"is {name} again"))
        else:
            try:
                found[name] = _number(number, keys.number)
            except Fault as fault:
                mistakes.append((key, str(fault)))
    if "default" not in value:
        mistakes.append(("default", "is missing"))
    if mistakes:
        raise Mistakes(tuple(mistakes))
    return Table(found.pop("default"), tuple(sorted(found.items())))


def _annotated(value: Any, kind: Any) -> Any:
    base, rule = get_args(kind)
    if isinstance(rule, TableKeys):
        return _table(value, rule)
    number = _number(value, rule)
    return int(number) if base is int else number


def _string(value: Any, _: Any) -> str:
    if not isinstance(value, str) or not value:
        raise Fault(f"must be a string, not {_shown(value)}")
    return value


def _boolean(value: Any, _: Any) -> bool:
    if not isinstance(value, bool):
        raise Fault(f"must be true or false, not {_shown(value)}")
    return value


def _is_annotated(kind: Any) -> bool:
    origin: Any = get_origin(kind)
    return origin is Annotated


def _is_tuple(kind: Any) -> bool:
    origin: Any = get_origin(kind)
    return origin is tuple


def _sequence(kind: Any) -> Any:
    element = get_args(kind)[0]

    def structured(value: Any, _: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise Fault(f"must be a list, not {_shown(value)}")
        return tuple(_annotated(item, element) for item in value)

    return structured


def structure(kind: type[T], data: Mapping[str, Any]) -> tuple[T | None, list[tuple[str, str]]]:
    """An object of the class, or None and every mistake as (path, text), in the order of the fields."""
    return _tables().structure(kind, data)


@functools.cache
def _tables() -> StrictTables:
    tables = StrictTables(_shown)
    tables.converter.register_structure_hook_func(_is_annotated, _annotated)
    tables.converter.register_structure_hook(str, _string)
    tables.converter.register_structure_hook(bool, _boolean)
    tables.converter.register_structure_hook_factory(_is_tuple, _sequence)
    return tables


# --- paths ------------------------------------------------------------------------------------------------------------


def known_paths(kind: type, prefix: str = "") -> Iterator[str]:
    """Every path that a description of this class can have, in the order of the fields."""
    attrs.resolve_types(kind)
    for field in attrs.fields(kind):
        if _is_annotated(field.type) and isinstance(get_args(field.type)[1], TableKeys):
            keys = get_args(field.type)[1]
            yield from (f"{prefix}{field.name}.{key}" for key in ("default", *keys.keys, *dict(keys.aliases)))
        elif attrs.has(field.type):
            yield from known_paths(field.type, f"{prefix}{field.name}.")
        else:
            yield f"{prefix}{field.name}"


def replace(kind: type, data: dict[str, Any], path: str, text: str) -> None:
    """Put a value at one of the known paths: ``text`` is TOML, or a bare string."""
    *sections, key = path.split(".")
    table = data
    for section in sections:
        field = attrs.fields_dict(kind)[section]
        table = table[section]
        if _is_annotated(field.type):
            # A dtype has two spellings, and a listed one is to be replaced rather than joined by the other.
            key = dict(get_args(field.type)[1].aliases).get(key, key)
        else:
            assert field.type is not None
            kind = field.type
    table[key] = _toml_value(text)


def _toml_value(text: str) -> Any:
    try:
        parsed = tomllib.loads(f"value = {text}", parse_float=_exact)
    except (RecursionError, ValueError):
        return text
    return parsed["value"] if len(parsed) == 1 else text


def plain(value: Any) -> Any:
    """A description as the nested tables that its TOML file would hold."""
    if isinstance(value, Table):
        return {"default": value.default, **dict(value.listed)}
    if attrs.has(type(value)):
        held = {field.name: getattr(value, field.name) for field in attrs.fields(type(value))}
        return {name: plain(one) for name, one in held.items() if one is not None}
    return list(value) if isinstance(value, tuple) else value


# --- writing ----------------------------------------------------------------------------------------------------------


def write_toml(value: Any) -> str:
    """A description as TOML; reading it gives an equal one."""
    return "\n".join(_written(plain(value), "")).lstrip("\n") + "\n"


def _written(table: Mapping[str, Any], path: str) -> Iterator[str]:
    if path and any(not isinstance(value, dict) for value in table.values()):
        yield f"\n[{path}]"
    for key, value in table.items():
        # An empty shape stands for "none given".
        if not isinstance(value, dict) and value != []:
            yield f"{key} = {_shown(value)}"
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _written(value, f"{path}.{key}" if path else key)


def _shown(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Fraction):
        return _decimal(value)
    if isinstance(value, str):
        # JSON's strings are TOML's, except for one control character that JSON leaves as it is.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list):
        return "[" + ", ".join(map(_shown, value)) + "]"
    if isinstance(value, dict):
        return "a table"
    return str(value)


def _decimal(value: Fraction) -> str:
    """A rational as a decimal: exact, as a machine's numbers come from decimals."""
    if value.denominator == 1:
        return str(value.numerator)
    places = 0
    while (value * 10**places).denominator != 1:
        places += 1
    digits = str(abs(int(value * 10**places))).rjust(places + 1, "0")
    return f"{'-' if value < 0 else ''}{digits[:-places]}.{digits[-places:]}"
