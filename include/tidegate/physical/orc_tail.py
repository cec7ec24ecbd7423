"""Read from an ORC file's tail where its stripes are, which pyarrow does not tell.

Knows of protocol buffers only what the tail needs: variable-length integers and nested messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from tidegate.physical.protocol import RowGroup

if TYPE_CHECKING:
    from collections.abc import Iterator

# Field numbers of orc_proto.proto.
_TAIL_FOOTER = 2
_FOOTER_STRIPES = 3
_STRIPE_OFFSET = 1
_STRIPE_LENGTHS = frozenset({2, 3, 4})
"""Index, rows, and footer of a stripe."""
_STRIPE_ROWS = 5

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def stripes(tail: bytes) -> tuple[RowGroup, ...]:
    """Give the stripes of a file in order.

    Args:
        tail: as `serialized_file_tail` gives it: a FileTail message, uncompressed.

    Raises:
        pa.ArrowInvalid: it is none.
    """
    try:
        return tuple(
            _stripe(stripe)
            for number, footer in _fields(tail)
            if number == _TAIL_FOOTER and isinstance(footer, bytes)
            for inner, stripe in _fields(footer)
            if inner == _FOOTER_STRIPES and isinstance(stripe, bytes)
        )
    except IndexError as cut:
        problem = "the ORC tail ends within a field"
        raise pa.ArrowInvalid(problem) from cut


def _stripe(message: bytes) -> RowGroup:
    numbers = {number: value for number, value in _fields(message) if isinstance(value, int)}
    size_bytes = sum(numbers.get(number, 0) for number in _STRIPE_LENGTHS)
    return RowGroup(numbers.get(_STRIPE_ROWS, 0), size_bytes, numbers.get(_STRIPE_OFFSET))


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Give number and value of each field; fixed-length values are passed over."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, wire = key >> 3, key & 7
        if wire == _VARINT:
            value, at = _varint(message, at)
            yield number, value
        elif wire == _BYTES:
            length, at = _varint(message, at)
            yield number, message[at : at + length]
            at += length
        elif wire in {_FIXED64, _FIXED32}:
            at += 8 if wire == _FIXED64 else 4
        else:
            problem = f"no wire type {wire} in an ORC tail"
            raise pa.ArrowInvalid(problem)


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7
