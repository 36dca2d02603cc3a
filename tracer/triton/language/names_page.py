"""The names of ``triton.language`` as a table: ``python -m kernscope.tracer.triton.language.names_page`` prints it."""

from __future__ import annotations

import sys

from . import LIBDEVICE, NAMES, RANDOM, REFUSED, REFUSED_LIBDEVICE

__all__ = ["names_table"]

#: What is to be said of a name that runs.
_NOTES = {
    "associative_scan": "in steps that double",
    "atomic_cas": "programs run one by one, in the order of the grid",
    "clamp": "a bound wins over NaN, but for `propagate_nan=tl.PropagateNan.ALL`",
    "const": "a store through such a pointer is refused",
    "debug_barrier": "a program is one thread: nothing to wait for",
    "device_assert": "what does not hold is a fact of the launch; the program goes on",
    "device_print": "prints nothing",
    "dot": "`input_precision` is accepted; products are computed in f32 (f64, i32)",
    "histogram": "what is in no bin is not counted",
    "map_elementwise": "functions without branches",
    "max_constancy": "checked against lines of numbers",
    "max_contiguous": "checked against lines of numbers",
    "max": "numbers win over NaN",
    "maximum": "a number wins over NaN, but for `propagate_nan=tl.PropagateNan.ALL`",
    "min": "numbers win over NaN",
    "minimum": "a number wins over NaN, but for `propagate_nan=tl.PropagateNan.ALL`",
    "multiple_of": "checked against single numbers",
    "reduce": "halves are combined, again and again",
    "static_print": "prints nothing",
    "sum": "floats are added in f32",
}


def names_table() -> str:
    """A row for each name: whether it runs, or why it is refused."""
    rows = ["| name | | |", "|---|---|---|"]
    for name in sorted({*NAMES, *REFUSED}):
        refused = REFUSED.get(name)
        rows.append(f"| `{name}` | {'refused' if refused else 'runs'} | {refused or _NOTES.get(name, '')} |")
    functions = ", ".join(f"`{name}`" for name in sorted(LIBDEVICE))
    reasons: dict[str, list[str]] = {}
    for name, why in sorted(REFUSED_LIBDEVICE.items()):
        reasons.setdefault(why, []).append(f"`{name}`")
    refused_functions = "; ".join(f"{', '.join(names)} ({why})" for why, names in reasons.items())
    numbers = ", ".join(f"`{name}`" for name in sorted(RANDOM))
    return (
        "\n".join(rows)
        + f"\n\nOf `triton.language.random`: {numbers}. Of `libdevice`: {functions}."
        + f"\n\nOf `libdevice` are refused: {refused_functions}.\n"
    )


if __name__ == "__main__":
    sys.stdout.write(names_table())
