"""All rules. Each module here declares those of one family in its ``RULES``; a new module is found by itself."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType

from ..rule import Rule

__all__ = ["RULES"]


def _collect() -> Mapping[str, Rule]:
    found: dict[str, Rule] = {}
    for module in sorted(info.name for info in pkgutil.iter_modules(__path__)):
        for rule in import_module(f".{module}", __name__).RULES:
            assert rule.code not in found, f"rule {rule.code} is declared twice"
            found[rule.code] = rule
    return MappingProxyType(dict(sorted(found.items())))


#: The rules by code.
RULES: Mapping[str, Rule] = _collect()
