"""Find whole numbers in texts of which a double would lose digits; fractions are rounded anyway.

Only where the first rows decided that a column is double: who declares one accepts its digits.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_EVERY_WHOLE_BELOW = 1 << 53
"""Smaller whole numbers are doubles."""
_LONG = r"^[ \t]*[+-]?[0-9]{16,}[ \t]*$"
_LONG_IN_OBJECTS = re.compile(rb"(?<![\d.])\d{16}")
_SHORTER = 16
"""Whole numbers of fewer digits are doubles."""


LOST_DIGITS = (
    "expected whole numbers of which a double keeps every digit, found {}; declare all columns in "
    "`source.columns`: this one as {}, or as `double` if its last digits do not matter"
)
"""What is said of a number, and of the types that hold it."""


class _Lost(str):
    """A whole number that its double does not tell any more."""

    __slots__ = ()


def has_large(column: pa.Array | pa.ChunkedArray) -> bool:
    """Return whether a column has doubles, at any depth, that may have lost digits."""
    kind = column.type
    if pa.types.is_struct(kind):
        return any(has_large(column.field(index)) for index in range(kind.num_fields))
    if pa.types.is_list(kind):
        return has_large(column.flatten())
    if not pa.types.is_float64(kind):
        return False
    bounds = pc.min_max(column).as_py().values()
    return any(bound is not None and abs(bound) >= _EVERY_WHOLE_BELOW for bound in bounds)


def first_lost_text(texts: pa.Array | pa.ChunkedArray) -> tuple[int, str] | None:
    """Return the position and text of the first number that loses digits; None if there is none."""
    long = pc.fill_null(pc.match_substring_regex(texts, _LONG), False)
    for index in pc.indices_nonzero(long).to_pylist():
        if isinstance(_read(found := texts[index].as_py()), _Lost):
            return index, found
    return None


def first_lost_in_objects(
    objects: bytes, fields: Sequence[pa.Field]
) -> tuple[int, str, str] | None:
    """Look through JSON objects.

    Args:
        objects: one after the other, as Arrow has parsed them without an error.
        fields: of the objects, at whose doubles is looked.

    Returns:
        The position of the first object with a number that loses digits, its field, and the number.
    """
    # Large fractions such as 1.2345678901234567e+300 need not be decoded once more.
    if _LONG_IN_OBJECTS.search(objects) is None:
        return None
    for index, values in enumerate(_decoded(objects.decode("utf-8-sig", errors="replace"))):
        for field in fields:
            for found in _lost_in(values.get(field.name), field.type):
                return index, field.name, found
    return None


def _decoded(text: str) -> Iterator[dict[str, Any]]:
    decoder = json.JSONDecoder(parse_int=_read, strict=False)
    at = 0
    while rest := text[at : at + 1]:
        if rest.isspace():
            at += 1
        else:
            values, at = decoder.raw_decode(text, at)
            yield values


def _lost_in(value: Any, kind: pa.DataType) -> Iterator[str]:
    if pa.types.is_float64(kind) and isinstance(value, _Lost):
        yield str(value)
    elif pa.types.is_list(kind) and isinstance(value, list):
        for item in value:
            yield from _lost_in(item, kind.value_type)
    elif pa.types.is_struct(kind) and isinstance(value, dict):
        for field in kind:
            yield from _lost_in(value.get(field.name), field.type)


def _read(whole: str) -> float | _Lost:
    """Return a whole number as a double if that is printed as the same number."""
    number = float(whole)
    # The double of 9007199254740993 is 9007199254740992, and that of 10^23 is a little less, but
    # printed as 1e+23: other digits than those were never there.
    is_kept = len(whole) < _SHORTER or Decimal(repr(number)) == Decimal(whole)
    return number if is_kept else _Lost(whole)
