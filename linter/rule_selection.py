"""Which rules run, and with which options: codes, names and prefixes resolved, values checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..ir.errors import OptionError, RuleError, did_you_mean, shown
from .rule import Option, OptionValue, Rule

__all__ = ["find_rule", "option_values", "select_rules"]


def find_rule(code: str, rules: Mapping[str, Rule], *, also: Iterable[str] = ()) -> Rule:
    """The rule of a code (in any case) or a name. Raises ``RuleError`` with the nearest one, of ``also`` too."""
    wanted = str(code).strip()
    for rule in rules.values():
        if wanted.upper() == rule.code or wanted.lower() == rule.name:
            return rule
    raise _unknown(code, rules, also)


def select_rules(select: Iterable[str], ignore: Iterable[str], rules: Mapping[str, Rule]) -> tuple[Rule, ...]:
    """The rules that run, in order of their codes: those selected (none named: all) without those ignored.

    An entry is a code, a name, or the beginning of codes (``KS2``). Raises ``RuleError`` for one that means no rule.
    """
    selected, ignored = _meant(select, rules), _meant(ignore, rules)
    return tuple(
        rules[code] for code in sorted(rules) if (selected is None or code in selected) and code not in (ignored or ())
    )


def _meant(entries: Iterable[str], rules: Mapping[str, Rule]) -> set[str] | None:
    listed = [entries] if isinstance(entries, str) else list(entries)
    if not listed:
        return None
    found: set[str] = set()
    for entry in listed:
        wanted = str(entry).strip()
        codes = [r.code for r in rules.values() if r.name == wanted.lower()]
        if len(wanted) >= 2:
            codes += [code for code in rules if code.startswith(wanted.upper())]
        if not codes:
            raise _unknown(entry, rules)
        found.update(codes)
    return found


def _unknown(entry: str, rules: Mapping[str, Rule], also: Iterable[str] = ()) -> RuleError:
    known = [*sorted(rules), *(rules[code].name for code in sorted(rules)), *also]
    what = "no rule or error" if also else "no rule"
    return RuleError(
        f"{what} {shown(entry)}",
        help=did_you_mean(str(entry), known, listed="`kernscope explain` lists all codes with their names"),
    )


def option_values(
    given: Mapping[str, Mapping[str, Any]], rules: Mapping[str, Rule]
) -> dict[str, dict[str, OptionValue]]:
    """By rule code the values of its options: defaults, and what was given by code or name, then by option.

    Raises ``RuleError`` for an unknown rule, ``OptionError`` for an unknown option, a wrong type or a value out of
    range.
    """
    values: dict[str, dict[str, OptionValue]] = {
        code: {option.name: option.default for option in rule.options} for code, rule in rules.items()
    }
    for code, chosen in given.items():
        rule = find_rule(code, rules)
        options = {option.name: option for option in rule.options}
        for name, value in chosen.items():
            if name not in options:
                raise OptionError(
                    f"{rule.code} has no option {name!r}", help=did_you_mean(str(name), options, what="its options")
                )
            values[rule.code][name] = _checked(rule, options[name], value)
    return values


def _checked(rule: Rule, option: Option, value: Any) -> OptionValue:
    kind = type(option.default)
    if type(value) is not kind:
        raise OptionError(
            f"{rule.code}: option {option.name} is {value!r}, not {kind.__name__}", help=f"{option.name}: {option.doc}"
        )
    checked: OptionValue = value
    number = checked if isinstance(checked, int) else 0
    too_low = option.lower is not None and number < option.lower
    too_high = option.upper is not None and number > option.upper
    if too_low or too_high:
        raise OptionError(
            f"{rule.code}: option {option.name} is {value!r}",
            help=f"it lies between {option.lower} and {option.upper}",
        )
    return checked
