"""The wire format of protobuf, byte by byte, as its documentation gives it."""

import numpy as np
import pytest

from kernscope.backends.timelines.perfetto_wire import (
    Strings,
    message,
    message_head,
    tag,
    text,
    uint,
    varint,
    varints,
)

#: A number and its bytes: on both sides of each length, and of the table of small ones.
KNOWN = [
    (0, "00"),
    (1, "01"),
    (127, "7f"),
    (128, "8001"),
    (150, "9601"),
    (255, "ff01"),
    (4095, "ff1f"),
    (4096, "8020"),
    (16383, "ff7f"),
    (16384, "808001"),
    (2**21 - 1, "ffff7f"),
    (2**21, "80808001"),
    (2**56 - 1, "ff" * 7 + "7f"),
    (2**56, "80" * 8 + "01"),
    (2**63 - 1, "ff" * 8 + "7f"),
]


@pytest.mark.parametrize(("value", "encoded"), KNOWN)
def test_a_number_has_seven_bits_a_byte(value: int, encoded: str) -> None:
    """The lowest first, and no byte more than it needs; alone and in a column."""
    assert varint(value).hex() == encoded
    assert [each.hex() for each in varints(np.array([value, 0, value]))] == [encoded, "00", encoded]


def test_negative_numbers_are_those_of_64_bits() -> None:
    """Ten bytes each."""
    assert varint(-1).hex() == "ff" * 9 + "01"
    assert varint(-(2**63)).hex() == "80" * 9 + "01"
    assert varints(np.zeros(0, dtype=np.int64)) == []


def test_fields_are_a_tag_and_what_they_hold() -> None:
    """The examples of the documentation: an integer, a string, a message in a message; a head knows its length."""
    assert uint(1, 150).hex() == "089601"
    assert text(2, "testing").hex() == "120774657374696e67"
    assert message(3, uint(1, 150)).hex() == "1a03089601"
    assert message(3, b"ab", b"", b"c") == message(3, b"abc")
    assert (tag(1, 2).hex(), tag(15, 0).hex(), tag(16, 0).hex()) == ("0a", "78", "8001")
    heads = message_head(3, b"xy", 126)
    assert len(heads) == 127
    for size in (0, 1, 125, 126):
        assert heads[size] + b"z" * size == message(3, b"xy" + b"z" * size)


def test_a_string_is_written_once_and_known_by_its_number() -> None:
    """From 1 on, in the order in which they came."""
    strings = Strings(4, 2)
    assert [strings.number(each) for each in ("a", "b", "a", "c", "b")] == [1, 2, 1, 3, 2]
    assert list(strings.entries()) == [message(4, uint(1, n), text(2, each)) for n, each in enumerate("abc", start=1)]
