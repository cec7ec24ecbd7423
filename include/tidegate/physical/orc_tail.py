"""Read the tails of ORC files for stripes, which pyarrow does not expose, and write a tail for one.

Implements only the necessary parts of protocol buffers: variable-length integers and nested
messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from tidegate.physical.protocol import RowGroup

if TYPE_CHECKING:
    from collections.abc import Iterator

# Field numbers of orc_proto.proto.
_TAIL_POSTSCRIPT, _TAIL_FOOTER = 1, 2
_POSTSCRIPT_FOOTER_LENGTH, _POSTSCRIPT_COMPRESSION, _POSTSCRIPT_METADATA_LENGTH = 1, 2, 5
_FOOTER_STRIPES, _FOOTER_ROWS, _FOOTER_WRITER, _FOOTER_CALENDAR = 3, 6, 9, 11
_JAVA, _GREGORIAN = 0, 2
"""The library that wrote a file; the calendar of its dates, if it is one for all."""
_STRIPE_OFFSET, _STRIPE_ROWS = 1, 5
_STRIPE_LENGTHS = frozenset({2, 3, 4})
"""Lengths of index, rows, and footer of a stripe."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED_LENGTHS = {_FIXED64: 8, _FIXED32: 4}
_CHUNK_BYTES = 1 << 10
"""Length of the pieces of a footer, smaller than any writer's compression block."""


class _Field(NamedTuple):
    number: int
    value: int
    """The value of a variable-length integer, else 0."""
    content: bytes
    """The content of a nested message, else empty."""
    raw: bytes
    """The bytes of the field in the message."""


def stripes(tail: bytes) -> tuple[RowGroup, ...]:
    """Return the stripes of a file in order.

    Args:
        tail: the result of `serialized_file_tail`: a FileTail message, uncompressed.

    Raises:
        pa.ArrowInvalid: it is not such a message.
    """
    footer = _nested(tail, _TAIL_FOOTER)
    return tuple(
        _stripe(field.content) for field in _fields(footer) if field.number == _FOOTER_STRIPES
    )


def has_old_dates(tail: bytes) -> bool:
    """Return whether dates before 1582-10-15 are counted by the Julian calendar.

    Args:
        tail: see `stripes`.
    """
    footer = {field.number: field.value for field in _fields(_nested(tail, _TAIL_FOOTER))}
    is_of_java = footer.get(_FOOTER_WRITER, _JAVA) == _JAVA
    return is_of_java and footer.get(_FOOTER_CALENDAR) != _GREGORIAN


def tail_of(tail: bytes, number: int) -> bytes:
    """Return the end of a file that has only one of the stripes of another.

    Args:
        tail: the tail of the other file, see `stripes`.
        number: the number of the stripe, which stays at its offset.

    Returns:
        Footer, postscript and its length, to be placed after the stripe.
    """
    postscript, footer = _nested(tail, _TAIL_POSTSCRIPT), _nested(tail, _TAIL_FOOTER)
    stripe = [field for field in _fields(footer) if field.number == _FOOTER_STRIPES][number]
    replaced = {_FOOTER_STRIPES, _FOOTER_ROWS}
    others = b"".join(field.raw for field in _fields(footer) if field.number not in replaced)
    rows = _integer_field(_FOOTER_ROWS, _stripe(stripe.content).rows)
    new_footer = others + stripe.raw + rows
    compression = {field.number: field.value for field in _fields(postscript)}
    if compression.get(_POSTSCRIPT_COMPRESSION):
        new_footer = _uncompressed_chunks(new_footer)
    lengths = {_POSTSCRIPT_FOOTER_LENGTH: len(new_footer), _POSTSCRIPT_METADATA_LENGTH: 0}
    new_postscript = b"".join(
        _integer_field(number, length) for number, length in lengths.items()
    ) + b"".join(field.raw for field in _fields(postscript) if field.number not in lengths)
    return new_footer + new_postscript + bytes([len(new_postscript)])


def _stripe(message: bytes) -> RowGroup:
    numbers = {field.number: field.value for field in _fields(message)}
    size_bytes = sum(numbers.get(number, 0) for number in _STRIPE_LENGTHS)
    return RowGroup(numbers.get(_STRIPE_ROWS, 0), size_bytes, numbers.get(_STRIPE_OFFSET))


def _uncompressed_chunks(footer: bytes) -> bytes:
    """Cut a footer into chunks that are marked as not compressed."""
    chunks = (footer[at : at + _CHUNK_BYTES] for at in range(0, len(footer), _CHUNK_BYTES))
    return b"".join((len(chunk) << 1 | 1).to_bytes(3, "little") + chunk for chunk in chunks)


def _nested(message: bytes, number: int) -> bytes:
    return b"".join(field.content for field in _fields(message) if field.number == number)


def _fields(message: bytes) -> Iterator[_Field]:
    """Yield the fields of a message.

    Raises:
        pa.ArrowInvalid: it is not a message.
    """
    at = 0
    try:
        while at < len(message):
            field, at = _field(message, at)
            yield field
    except IndexError as cut:
        problem = "the ORC tail ends within a field"
        raise pa.ArrowInvalid(problem) from cut


def _field(message: bytes, start: int) -> tuple[_Field, int]:
    key, at = _varint(message, start)
    number, wire = key >> 3, key & 7
    value, content = 0, b""
    if wire == _VARINT:
        value, at = _varint(message, at)
    elif wire == _BYTES:
        length, at = _varint(message, at)
        content = message[at : at + length]
        at += length
    elif wire in _FIXED_LENGTHS:
        at += _FIXED_LENGTHS[wire]
    else:
        problem = f"no wire type {wire} in an ORC tail"
        raise pa.ArrowInvalid(problem)
    return _Field(number, value, content, message[start:at]), at


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7


def _integer_field(number: int, value: int) -> bytes:
    encoded = bytearray([number << 3 | _VARINT])
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
