"""The protobuf wire format, as much of it as a trace needs (https://protobuf.dev/programming-guides/encoding/), and
interned strings."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...ir.tables import IntArray

__all__ = ["Strings", "message", "message_head", "tag", "text", "uint", "varint", "varints"]

_VARINT, _BYTES = 0, 2


def _encode(value: int) -> bytes:
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


_KNOWN = tuple(map(_encode, range(1 << 12)))


def varint(value: int) -> bytes:
    """An unsigned integer, seven bits a byte, the lowest first; a negative one as its 64-bit two's complement."""
    return _KNOWN[value] if 0 <= value < len(_KNOWN) else _encode(value & (1 << 64) - 1)


def varints(column: IntArray) -> list[bytes]:
    """:func:`varint` of every integer of a column, none of which may be negative; ten times as fast."""
    rest = np.asarray(column, dtype=np.int64)
    digits = np.zeros((len(rest), 9), dtype=np.uint8)  # 63 bits
    length = np.ones(len(rest), dtype=np.int64)
    for place in range(9):
        more = rest > 127
        digits[:, place] = (rest & 127) | np.where(more, 128, 0)
        rest = rest >> 7
        length += more
    flat = digits.tobytes()
    return [flat[at : at + size] for at, size in zip(range(0, len(flat), 9), length.tolist(), strict=True)]


def tag(field: int, wire: int) -> bytes:
    return varint(field << 3 | wire)


def uint(field: int, value: int) -> bytes:
    """An integer, boolean or enum field."""
    return tag(field, _VARINT) + varint(value)


def message(field: int, *parts: bytes) -> bytes:
    """A nested message, or bytes."""
    body = b"".join(parts)
    return tag(field, _BYTES) + varint(len(body)) + body


def message_head(field: int, before: bytes, longest: int) -> list[bytes]:
    """The head of a nested message that begins with the bytes ``before``, by the length of what follows them."""
    return [tag(field, _BYTES) + varint(len(before) + size) + before for size in range(longest + 1)]


def text(field: int, value: str) -> bytes:
    """A string field; the text must be free of lone surrogates, as :func:`kernscope.ir.forms.text.quote` leaves it."""
    return message(field, value.encode())


class Strings:
    """Strings of one kind, each written once and referred to by its number, from 1 on."""

    def __init__(self, field: int, text_field: int) -> None:
        """``field`` of ``InternedData``; ``text_field``: where its entries hold the text."""
        self._field = field
        self._text_field = text_field
        self._numbers: dict[str, int] = {}

    def number(self, value: str) -> int:
        return self._numbers.setdefault(value, len(self._numbers) + 1)

    def entries(self) -> Iterator[bytes]:
        """The fields of ``InternedData`` for all strings so far."""
        for value, number in self._numbers.items():
            yield message(self._field, uint(1, number), text(self._text_field, value))
