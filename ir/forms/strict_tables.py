"""Tables of a TOML file as attrs classes, strictly.

Every mistake is reported at once, each with its path (``gemm.rows``); an unknown key names the nearest known one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import attrs
import cattrs
from cattrs.errors import ClassValidationError, ForbiddenExtraKeysError, IterableValidationError
from cattrs.gen import make_dict_structure_fn, override

from ..errors import did_you_mean

__all__ = ["Fault", "Mistakes", "StrictTables"]

T = TypeVar("T")


class Fault(ValueError):
    """One mistake in a value; the path to it is found from where it was raised."""


@attrs.define  # cattrs adds notes on the way, which older attrs refuse of a frozen one
class Mistakes(Exception):
    """Several mistakes within one value, each with its path from there."""

    found: tuple[tuple[str, str], ...]


class StrictTables:
    """How tables become objects. ``shown`` writes a value for a message; ``key`` tells what a field is called in the
    file (None: it is no key); ``readers`` are, by name of the field, hooks for what a type alone does not tell. Types
    are given their hooks at ``converter``."""

    def __init__(
        self,
        shown: Callable[[Any], str],
        key: Callable[[attrs.Attribute[Any]], str | None] = lambda field: field.name,
        readers: Mapping[str, Callable[[Any, Any], Any]] | None = None,
    ) -> None:
        self._shown, self._key, self._readers = shown, key, readers or {}
        self.converter = cattrs.Converter(forbid_extra_keys=True, detailed_validation=True)
        self.converter.register_structure_hook_factory(attrs.has, self._section)

    def items(self, value: Any) -> list[tuple[str, Any]]:
        """What a table holds. Raises ``Fault`` where the value is none."""
        if not isinstance(value, dict):
            raise Fault(f"must be a table, not {self._shown(value)}")
        return list(value.items())

    def structure(self, kind: type[T], data: Any) -> tuple[T | None, list[tuple[str, str]]]:
        """An object of the class, or None and every mistake as (path, text), in the order of the fields."""
        try:
            return self.converter.structure(data, kind), []
        except (ClassValidationError, Fault) as error:
            return None, list(self.mistakes(error, ""))

    def mistakes(self, error: BaseException, path: str) -> Iterator[tuple[str, str]]:
        """The leaves of an error, each with its path."""
        if isinstance(error, ClassValidationError):
            keys = self._keys(error.cl)
            placed, rest = error.group_exceptions()
            for inner, note in placed:
                yield from self.mistakes(inner, _joined(path, keys[note.name]))
            for inner in rest:
                yield from self.mistakes(inner, path)
        elif isinstance(error, ForbiddenExtraKeysError):
            known = list(self._keys(error.cl).values())
            for key in sorted(error.extra_fields):
                yield _joined(path, key), f"unknown key; {did_you_mean(key, known, what='known')}"
        elif isinstance(error, Mistakes):
            for inside, text in error.found:
                yield _joined(path, inside), text
        elif isinstance(error, KeyError):
            yield path, "is missing"
        elif isinstance(error, IterableValidationError | Fault):
            yield path, str(error)
        else:
            raise error

    def _keys(self, kind: type) -> dict[str, str]:
        """By field's name what it is called in the file."""
        return {field.name: key for field in attrs.fields(kind) if (key := self._key(field)) is not None}

    def _section(self, kind: Any) -> Callable[[Any, Any], Any]:
        attrs.resolve_types(kind)
        keys = self._keys(kind)
        given: dict[str, Any] = {
            field.name: override(
                rename=keys.get(field.name),
                omit=field.name not in keys,
                struct_hook=self._readers.get(field.name),
            )
            for field in attrs.fields(kind)
        }
        structure = make_dict_structure_fn(kind, self.converter, _cattrs_forbid_extra_keys=True, **given)

        def structured(value: Any, wanted: Any) -> Any:
            self.items(value)  # cattrs would look for the keys in a string, too
            return structure(value, wanted)

        return structured


def _joined(path: str, key: str) -> str:
    return f"{path}{'' if key.startswith('[') or not path else '.'}{key}"
