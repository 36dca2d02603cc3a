"""Times for a reader."""

import pytest

from kernscope.machine.units import format_ps


@pytest.mark.parametrize(
    ("ps", "text"),
    [
        (0, "0 ps"),
        (7, "7 ps"),
        (999, "999 ps"),
        (1_000, "1 ns"),
        (1_001, "1.001 ns"),
        (999_999, "999.999 ns"),
        (1_000_000, "1 us"),
        (1_224_000, "1.224 us"),
        (1_000_000_000, "1 ms"),
        (1_500_000_000, "1.5 ms"),
        (10**12, "1 s"),
        (120 * 10**12, "120 s"),
        (-999, "-999 ps"),
        (-1_000, "-1 ns"),
    ],
)
def test_a_time_is_said_in_its_largest_fitting_unit(ps: int, text: str) -> None:
    """From one of it on, with no more decimals than it has, three at most; a change may be negative."""
    assert format_ps(ps) == text
