"""All rules. Each module here declares one in its ``RULE``, and is named for its code and name; a new one is found by
itself."""

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
        rule: Rule = import_module(f".{module}", __name__).RULE
        assert module == f"{rule.code}_{rule.name}".lower().replace("-", "_"), f"rule {rule.code} stands in {module}.py"
        found[rule.code] = rule
    return MappingProxyType(dict(sorted(found.items())))


#: The rules by code.
RULES: Mapping[str, Rule] = _collect()
