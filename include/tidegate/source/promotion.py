"""Which Arrow types can be cast to which others without loss, and how. Knows no format."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import pyarrow as pa

_UTC_NAMES = frozenset({"UTC", "Etc/UTC", "Z", "+00:00"})

Cast = Callable[[pa.Array], pa.Array]


class CastTo(Protocol):
    """The promotions of a table format."""

    def __call__(
        self, found: pa.DataType, wanted: pa.DataType, *, zoneless: bool = False
    ) -> Cast | None:
        """Return the cast from one primitive type to another, None if it is not allowed."""
        ...


def cast_to(found: pa.DataType, wanted: pa.DataType, *, zoneless: bool = False) -> Cast | None:
    """Return the cast from one primitive type to another (ICE-6.16), None if it is not allowed.

    The cast checks its values: one that would lose digits raises ArrowInvalid (ICE-6.19).

    Args:
        found: the type in the file.
        wanted: the type in the schema.
        zoneless: whether a found timestamp is an INT96, which has no zone of its own.
    """
    if zoneless and pa.types.is_timestamp(wanted):
        return _plain_cast(wanted) if _is_zoneless(wanted) else None
    if pa.types.is_dictionary(found):
        found = found.value_type
        if found == wanted:
            return _plain_cast(wanted)
    if isinstance(wanted, pa.BaseExtensionType):
        return _wrap(wanted) if found == wanted.storage_type else None
    if isinstance(found, pa.BaseExtensionType):
        return _unwrap if found.storage_type == wanted else None
    if pa.types.is_null(found) or any(rule(found, wanted) for rule in _RULES):
        return _plain_cast(wanted)
    return None


def _plain_cast(wanted: pa.DataType) -> Cast:
    return lambda array: array.cast(wanted)


def _wrap(wanted: pa.DataType) -> Cast:
    return lambda array: pa.ExtensionArray.from_storage(wanted, array)


def _unwrap(array: pa.Array) -> pa.Array:
    return array.storage


def _integers(found: pa.DataType, wanted: pa.DataType) -> bool:
    if not (pa.types.is_integer(found) and pa.types.is_integer(wanted)):
        return False
    if pa.types.is_signed_integer(found) and not pa.types.is_signed_integer(wanted):
        return False
    return bool(found.bit_width < wanted.bit_width)


def _floats(found: pa.DataType, wanted: pa.DataType) -> bool:
    return bool(
        pa.types.is_floating(found)
        and pa.types.is_floating(wanted)
        and found.bit_width < wanted.bit_width
    )


def _decimals(found: pa.DataType, wanted: pa.DataType) -> bool:
    if not (pa.types.is_decimal(found) and pa.types.is_decimal(wanted)):
        return False
    return bool(found.scale == wanted.scale and found.precision <= wanted.precision)


def _texts(found: pa.DataType, wanted: pa.DataType) -> bool:
    return _is_text(found) and _is_text(wanted)


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def _binaries(found: pa.DataType, wanted: pa.DataType) -> bool:
    return _is_bytes(found) and _is_bytes(wanted)


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind)
    )


def _dates(found: pa.DataType, wanted: pa.DataType) -> bool:
    return bool(pa.types.is_date32(found) and pa.types.is_timestamp(wanted) and wanted.tz is None)


def _times(found: pa.DataType, wanted: pa.DataType) -> bool:
    return bool(pa.types.is_time(found) and pa.types.is_time(wanted))


def _timestamps(found: pa.DataType, wanted: pa.DataType) -> bool:
    if not (pa.types.is_timestamp(found) and pa.types.is_timestamp(wanted)):
        return False
    # Two zones have the same instants, but wall clock time has none.
    return (found.tz is None) == (wanted.tz is None)


def _is_zoneless(wanted: pa.TimestampType) -> bool:
    """Return whether an INT96 may be read so: writers use it for wall clock time, or for UTC."""
    # Its nanoseconds are not read, so it cannot become a column of nanoseconds.
    return wanted.unit != "ns" and (wanted.tz is None or wanted.tz in _UTC_NAMES)


_RULES = (_integers, _floats, _decimals, _texts, _binaries, _dates, _times, _timestamps)
