"""Dates that a writer of Java counted by two calendars, as dates of the one that Arrow has.

Java's older classes count days before 1582-10-15 by the Julian calendar. A date is its year, month
and day: the engine that wrote 0001-01-01 reads it back, while the count of its days is two days
less in the Gregorian calendar, which Arrow, Parquet and Iceberg use for all times.
"""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.physical.arrays import has_type
from tidegate.physical.views import with_child

FIRST_DAY = date(1582, 10, 15)
"""The first day of the Gregorian calendar."""
_FIRST_DAY = (FIRST_DAY - date(1970, 1, 1)).days
_FIRST_MARCH = -719_470
"""1 March of the year 0 in the Julian calendar, in days since 1970-01-01."""
_FOUR_YEARS = 1_461
"""Days of four Julian years."""


def gregorian(column: pa.Array) -> pa.Array:
    """Return a column whose dates, at any depth, have the same year, month and day as before.

    Args:
        column: dates of days by both calendars, or a nested column of ORC with such dates.
    """
    kind = column.type
    if not has_type(kind, pa.types.is_date):
        return column
    if pa.types.is_struct(kind):
        children = [gregorian(column.field(index)) for index in range(kind.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=column.is_null())
    if pa.types.is_map(kind):
        children = [gregorian(column.keys), gregorian(column.items)]
        entries = pa.struct([kind.key_field, kind.item_field])
        return with_child(column, kind, pa.StructArray.from_arrays(children, type=entries))
    if pa.types.is_list(kind):
        return with_child(column, kind, gregorian(column.values))
    days = np.frombuffer(column.buffers()[1], np.int32, count=column.offset + len(column))
    if not (days < _FIRST_DAY).any():
        return column
    buffers = [column.buffers()[0], pa.py_buffer(_moved(days))]
    return pa.Array.from_buffers(kind, len(column), buffers, offset=column.offset)


def _moved(days: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
    """Return the days of the Gregorian calendar whose dates are the same.

    The calendars differ by a day more in each century whose last year is a leap year only in the
    Julian one; a year begins in March here, so that its leap day is its last.
    """
    wide = days.astype(np.int64)
    years = (4 * (wide - _FIRST_MARCH) + 3) // _FOUR_YEARS
    later = wide - (years // 100 - years // 400 - 2)
    return np.where(days < _FIRST_DAY, later, wide).astype(np.int32)
