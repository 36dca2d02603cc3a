"""From TOML to attrs classes and back, strictly.

Every mistake of a description is reported at once, each with its path (``gemm.rows``); an unknown key names the nearest
known one. Decimals are read exactly.
"""

from __future__ import annotations

import functools
import itertools
import json
import math
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, TypeVar, get_args, get_origin

import attrs

from ..ir.errors import MachineError, did_you_mean
from ..ir.forms.strict_tables import Fault, Mistakes, StrictTables
from .parts import (
    ABOVE_ZERO,
    BY_DTYPE,
    ENGINE_KINDS,
    SHARE,
    EnginePart,
    Listed,
    MemoryPart,
    NumberRule,
    Table,
    TableKeys,
)

__all__ = [
    "SEE_VALID",
    "comments_of",
    "known_paths",
    "listed",
    "overlaid",
    "plain",
    "read_toml",
    "replace",
    "structure",
    "write_toml",
]

T = TypeVar("T")
SEE_VALID = "see a valid one: kernscope machine ahbm-pe"
#: Numbers outside 10 ** +-this are no machine's, and would only fill the memory as exact rationals.
_DIGITS = 30
_HEADING = re.compile(r"\[([\w.-]+)\]")
_KEY = re.compile(r"([\w.-]+)\s*=")
#: Comments stand below each other.
_COMMENTS_AT = 30
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


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
        elif name != "default" and name not in keys.keys and not keys.with_engines:
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


def _by_name(structured: Callable[[Any], tuple[Any, list[tuple[str, str]]]]) -> Callable[[Any, Any], Listed[str, Any]]:
    """How a table of tables is read: each by its name, with the mistakes of all of them."""

    def read(value: Any, _: Any) -> Listed[str, Any]:
        found: dict[str, Any] = {}
        mistakes: list[tuple[str, str]] = []
        for name, entry in _tables().items(value):
            if _NAME.fullmatch(name):
                found[name], wrong = structured(entry)
                mistakes += [(".".join(filter(None, (name, path))), text) for path, text in wrong]
            else:
                mistakes.append((json.dumps(name), "must be a name of letters, digits, - and _"))
        if mistakes:
            raise Mistakes(tuple(mistakes))
        return Listed(found)

    return read


def _memory(value: Any) -> tuple[MemoryPart | None, list[tuple[str, str]]]:
    return _tables().structure(MemoryPart, value)


def _engine(value: Any) -> tuple[EnginePart | None, list[tuple[str, str]]]:
    """An engine's table: its ``kind`` says which numbers it has."""
    if not isinstance(value, dict):
        return None, [("", f"must be a table, not {_shown(value)}")]
    kind = value.get("kind")
    if kind is None:
        return None, [("kind", "is missing")]
    if not isinstance(kind, str) or kind not in ENGINE_KINDS:
        nearest = did_you_mean(str(kind), tuple(ENGINE_KINDS), what="kinds")
        return None, [("kind", f"unknown kind {_shown(kind)}; {nearest}")]
    return _tables().structure(ENGINE_KINDS[kind], value)


def _by_dtype(value: Any) -> tuple[Table | None, list[tuple[str, str]]]:
    try:
        return _table(value, BY_DTYPE), []
    except (Fault, Mistakes) as error:
        return None, list(_tables().mistakes(error, ""))


def _strings(value: Any, _: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise Fault(f"must be a list of strings, not {_shown(value)}")
    return tuple(value)


def _lists_of_strings(value: Any, _: Any) -> tuple[tuple[str, ...], ...]:
    if not isinstance(value, list):
        raise Fault(f"must be a list of lists of strings, not {_shown(value)}")
    return tuple(_strings(item, None) for item in value)


def _places(value: Any, _: Any) -> Listed[str, str]:
    given = _tables().items(value)
    mistakes = [(k, f"must be a memory's name, not {_shown(name)}") for k, name in given if not isinstance(name, str)]
    if mistakes:
        raise Mistakes(tuple(mistakes))
    return Listed(value)


def _shares(value: Any, _: Any) -> tuple[tuple[Fraction, Fraction], ...]:
    """Pairs of (bytes of a run, share of the rate), both rising."""
    if not isinstance(value, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in value):
        raise Fault(f"must be a list of [bytes of a run, share of the rate], not {_shown(value)}")
    pairs = tuple((_number(run, ABOVE_ZERO), _number(share, SHARE)) for run, share in value)
    if any(a[0] >= b[0] or a[1] > b[1] for a, b in itertools.pairwise(pairs)):
        raise Fault("must have longer runs, and no smaller shares, one after the other")
    return pairs


#: What a field's type alone does not tell.
_READERS: dict[str, Callable[[Any, Any], Any]] = {
    "memory": _by_name(_memory),
    "engine": _by_name(_engine),
    "both_in": _by_name(_by_dtype),
    "place": _places,
    "efficiency": _shares,
    "reads": _strings,
    "writes": _strings,
    "ops": _strings,
    "operands": _lists_of_strings,
}


def structure(kind: type[T], data: Mapping[str, Any]) -> tuple[T | None, list[tuple[str, str]]]:
    """An object of the class, or None and every mistake as (path, text), in the order of the fields."""
    return _tables().structure(kind, data)


@functools.cache
def _tables() -> StrictTables:
    tables = StrictTables(_shown, readers=_READERS)
    tables.converter.register_structure_hook_func(_is_annotated, _annotated)
    tables.converter.register_structure_hook(str, _string)
    tables.converter.register_structure_hook(bool, _boolean)
    tables.converter.register_structure_hook_factory(_is_tuple, _sequence)
    return tables


# --- paths ------------------------------------------------------------------------------------------------------------


def known_paths(value: Any, names: tuple[str, ...], prefix: str = "") -> Iterator[str]:
    """Every path that can be replaced in a description, in the order of the fields; ``names`` are its engines'."""
    kind = type(value)
    attrs.resolve_types(kind)
    for field in attrs.fields(kind):
        path, held = f"{prefix}{field.name}", getattr(value, field.name)
        if isinstance(held, Listed):
            if field.name == "place":
                yield from (f"{path}.{key}" for key in held)
            for name, entry in held.items():
                if isinstance(entry, Table):
                    yield from _table_paths(BY_DTYPE, names, f"{path}.{name}")
                elif attrs.has(type(entry)):
                    yield from known_paths(entry, names, f"{path}.{name}.")
        elif _is_annotated(field.type) and isinstance(get_args(field.type)[1], TableKeys):
            yield from _table_paths(get_args(field.type)[1], names, path)
        elif attrs.has(type(held)):
            yield from known_paths(held, names, f"{path}.")
        else:
            yield path


def _table_paths(keys: TableKeys, names: tuple[str, ...], path: str) -> Iterator[str]:
    own = names if keys.with_engines else ()
    yield from (f"{path}.{key}" for key in ("default", *keys.keys, *own, *dict(keys.aliases)))


def replace(data: dict[str, Any], path: str, text: str) -> None:
    """Put a value at one of the known paths: ``text`` is TOML, or a bare string."""
    *sections, key = path.split(".")
    table = data
    for section in sections:
        table = table.setdefault(section, {})
    # A dtype has two spellings, and a listed one is to be replaced rather than joined by the other.
    if dict(BY_DTYPE.aliases).get(key) in table:
        key = dict(BY_DTYPE.aliases)[key]
    table[key] = _toml_value(text)


def _toml_value(text: str) -> Any:
    try:
        parsed = tomllib.loads(f"value = {text}", parse_float=_exact)
    except (RecursionError, ValueError):
        return text
    return parsed["value"] if len(parsed) == 1 else text


def plain(value: Any, *, whole: bool = True) -> Any:
    """A description as the nested tables that its TOML file would hold; unless ``whole``, without what is as where
    nothing is said."""
    if isinstance(value, Table):
        return {"default": value.default, **dict(value.listed)}
    if isinstance(value, Mapping):
        return {name: plain(one, whole=whole) for name, one in value.items()}
    if attrs.has(type(value)):
        held = {field.name: (getattr(value, field.name), _unsaid(field)) for field in attrs.fields(type(value))}
        return {
            name: plain(one, whole=whole)
            for name, (one, unsaid) in held.items()
            if one is not None and (whole or one != unsaid)
        }
    return [plain(one) for one in value] if isinstance(value, tuple) else value


def _unsaid(field: attrs.Attribute[Any]) -> Any:
    """What a field is where a description does not say it."""
    default: Any = field.default
    return default.factory() if isinstance(default, attrs.Factory) else default  # type: ignore[arg-type]


# --- writing ----------------------------------------------------------------------------------------------------------


def write_toml(value: Any, comments: Mapping[str, str]) -> str:
    """A description as TOML, with comments by path; reading it gives an equal one."""
    return "\n".join(_written(plain(value, whole=False), "", comments)).lstrip("\n") + "\n"


def _written(table: Mapping[str, Any], path: str, comments: Mapping[str, str]) -> Iterator[str]:
    if path and (not table or any(not isinstance(value, dict) for value in table.values())):
        yield f"\n{_commented(f'[{path}]', comments.get(path))}"
    for key, value in table.items():
        # An empty shape stands for "none given".
        if not isinstance(value, dict) and value != []:
            yield _commented(f"{key} = {_shown(value)}", comments.get(f"{path}.{key}" if path else key))
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _written(value, f"{path}.{key}" if path else key, comments)


def _commented(line: str, comment: str | None) -> str:
    return line if comment is None else f"{line.ljust(_COMMENTS_AT)}  # {comment}"


def comments_of(text: str) -> dict[str, str]:
    """What a TOML text says behind its values, by their paths: where each number comes from. Only of values on a line
    of their own."""
    found: dict[str, str] = {}
    section = ""
    for line in text.splitlines():
        code, comment = _split(line)
        if heading := _HEADING.fullmatch(code):
            section = heading[1]
        key = _KEY.match(code)
        path = section if heading else ".".join(filter(None, (section, key[1]))) if key else ""
        if path and comment:
            found[path] = comment
    return found


def _split(line: str) -> tuple[str, str]:
    """The code of a line, and its comment: a ``#`` within a string begins none."""
    quote = ""
    for at, sign in enumerate(line):
        if quote:
            quote = "" if sign == quote and line[at - 1] != "\\" else quote
        elif sign in "\"'":
            quote = sign
        elif sign == "#":
            return line[:at].strip(), line[at + 1 :].strip()
    return line.strip(), ""


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
