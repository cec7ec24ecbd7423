"""Dates that a writer of Java counted by two calendars, as dates of the one that Arrow has.

Java's older classes count days before 1582-10-15 by the Julian calendar. A date is its year, month
and day: the engine that wrote 0001-01-01 reads it back, while the count of its days is two days
less in the Gregorian calendar, which Arrow, Parquet and Iceberg use for all times.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_FIRST_DAY = -141_427
"""1582-10-15, the first day of the Gregorian calendar, in days since 1970-01-01."""
_FIRST_MARCH = -719_470
"""1 March of the year 0 in the Julian calendar, in days since 1970-01-01."""
_FOUR_YEARS = 1_461
"""Days of four Julian years."""


def has_dates(kind: pa.DataType) -> bool:
    """Return whether there are dates in a type, at any depth."""
    if pa.types.is_date(kind):
        return True
    return any(has_dates(kind.field(index).type) for index in range(kind.num_fields))


def gregorian(column: pa.Array) -> pa.Array:
    """Return a column whose dates, at any depth, have the same year, month and day as before.

    Args:
        column: dates of days by both calendars, or a nested column of ORC with such dates.
    """
    kind = column.type
    if not has_dates(kind):
        return column
    if pa.types.is_struct(kind):
        children = [gregorian(column.field(index)) for index in range(kind.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=column.is_null())
    if pa.types.is_map(kind):
        children = [gregorian(column.keys), gregorian(column.items)]
        entries = pa.struct([kind.key_field, kind.item_field])
        return _of(column, pa.StructArray.from_arrays(children, type=entries))
    if pa.types.is_list(kind):
        return _of(column, gregorian(column.values))
    days = np.frombuffer(column.buffers()[1], np.int32, count=column.offset + len(column))
    if not (days < _FIRST_DAY).any():
        return column
    buffers = [column.buffers()[0], pa.py_buffer(_moved(days))]
    return pa.Array.from_buffers(kind, len(column), buffers, offset=column.offset)


def _of(column: pa.Array, child: pa.Array) -> pa.Array:
    """Return lists of other values with the same lengths: a child is not sliced with its parent."""
    own = column.buffers()[:2]
    return pa.Array.from_buffers(
        column.type, len(column), own, offset=column.offset, children=[child]
    )


def _moved(days: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
    """Return the days of the Gregorian calendar whose dates are the same.

    The calendars differ by a day more in each century whose last year is a leap year only in the
    Julian one; a year begins in March here, so that its leap day is its last.
    """
    wide = days.astype(np.int64)
    years = (4 * (wide - _FIRST_MARCH) + 3) // _FOUR_YEARS
    later = wide - (years // 100 - years // 400 - 2)
    return np.where(days < _FIRST_DAY, later, wide).astype(np.int32)
