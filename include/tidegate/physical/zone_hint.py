"""Tell of a text that is no value of its column's type whether only the zone is the mistake."""

from __future__ import annotations

import pyarrow as pa


def zone_hint(text: object, kind: pa.DataType) -> str:
    """Return what to add to an error about a value, with the type that it could have.

    Args:
        text: the value, as it was found.
        kind: the type of its column, which it is not.

    Returns:
        Nothing, unless the value is a time without a zone for a type with one, or the reverse.
    """
    if not pa.types.is_timestamp(kind) or not isinstance(text, str):
        return ""
    try:
        pa.array([text]).cast(pa.timestamp(kind.unit, None if kind.tz else "UTC"))
    except pa.ArrowInvalid:
        return ""
    if kind.tz:
        return ", which has no zone; `timestamp_ntz` in `source.columns` is for times without one"
    return ", which has a zone; `timestamp` in `source.columns` is for times with one"
