"""Widen the columns of files that were written before their type was changed (HUDI-M17)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.source.column_kernels import Wanted


_ZONELESS = pa.timestamp("ns")
"""As ORC has them: no column of a table has this type (HUDI-M17)."""


def widened(batch: pa.RecordBatch, wanted: Sequence[Wanted]) -> pa.RecordBatch:
    """Return a batch whose whole numbers are floats or texts where the table has those.

    Timestamps of ORC, which has no zone for them, are in UTC where those of the table are: so
    Hudi's writer has them. Every other difference of types is left to the conversions of all
    kinds of sources.
    """
    types = {column.name: column.type for column in wanted}
    for place, column in enumerate(batch.schema):
        kind = types.get(column.name, column.type)
        if pa.types.is_integer(column.type) and _takes_numbers(kind):
            # The nearest float, as Avro reads it.
            values = batch.column(place).cast(kind, safe=False)
            batch = batch.set_column(place, column.with_type(kind), values)
        elif column.type == _ZONELESS and getattr(kind, "tz", None) == "UTC":
            values = batch.column(place).cast(kind, safe=False)
            batch = batch.set_column(place, column.with_type(kind), values)
    return batch


def _takes_numbers(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_string(kind))
