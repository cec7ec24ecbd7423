"""ORC files: stripes are the atoms (ICE-6.18), the tail says everything before one is read."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Self

import pyarrow as pa
import pyarrow.orc as orc

from tidegate.physical.orc_tail import stripes
from tidegate.physical.orc_types import has_timestamps, meant
from tidegate.physical.protocol import BATCH_ROWS, RowGroup, UnreadableValue, counted_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tidegate.physical.protocol import Passing


class OrcRows:
    """See `PhysicalRows`. One stripe of the wanted columns is decoded at a time.

    Args:
        file: open for random reads; closed with this.

    Raises:
        OSError, pa.ArrowException: there is no ORC tail.
    """

    def __init__(self, file: pa.NativeFile) -> None:
        self._file = file
        self._orc = orc.ORCFile(file)
        self._physical: pa.Schema = self._orc.schema
        self._schema = pa.schema([meant(field) for field in self._physical])

    @property
    def schema(self) -> pa.Schema:
        """The columns, typed as their Iceberg attributes say where they have any."""
        return self._schema

    @property
    def rows(self) -> int:
        """All rows by the tail."""
        return int(self._orc.nrows)

    @cached_property
    def row_groups(self) -> tuple[RowGroup, ...]:
        """Stripes by the tail."""
        groups = stripes(self._orc.reader.serialized_file_tail())
        if sum(group.rows for group in groups) != self.rows:
            problem = f"expected {self.rows} rows in the stripes of the ORC tail, found {groups}"
            raise pa.ArrowInvalid(problem)
        return groups

    def batches(
        self, columns: Sequence[str], start: int, end: int, batch_rows: int = BATCH_ROWS
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Decode the stripes that the range touches one by one, and give them in slices."""
        first = 0
        for index, stripe in enumerate(self.row_groups):
            low, high = max(start, first), min(end, first + stripe.rows)
            if low < high:
                batch = self._stripe(index, stripe.rows, list(columns))
                for position in range(low, high, batch_rows):
                    length = min(batch_rows, high - position)
                    yield position, batch.slice(position - first, length)
            first += stripe.rows
            if first >= end:
                return

    def filtered(
        self, columns: Sequence[str], start: int, end: int, passing: Passing, batch_rows: int
    ) -> Iterator[pa.RecordBatch] | None:
        """Nothing decodes and filters ORC in one step."""
        del columns, start, end, passing, batch_rows
        return None

    def _stripe(self, index: int, rows: int, columns: list[str]) -> pa.RecordBatch:
        if not columns:
            return counted_rows(rows)
        try:
            batch = self._orc.read_stripe(index, self._selection(columns))
        except pa.ArrowInvalid as refused:
            self._name_the_column(index, columns)
            raise pa.ArrowInvalid(str(refused)) from refused
        if batch.num_rows != rows:
            problem = f"expected {rows} rows in ORC stripe {index}, found {batch.num_rows}"
            raise pa.ArrowInvalid(problem)
        fields = [self._schema.field(name) for name in columns]
        arrays = [batch.column(field.name).cast(field.type) for field in fields]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))

    def _selection(self, columns: list[str]) -> list[str] | None:
        # The ORC library selects by path: `a.b` may be a column, or the field `b` of a column `a`.
        return None if any("." in name for name in columns) else columns

    def _name_the_column(self, index: int, columns: list[str]) -> None:
        """Find the column with a timestamp that has no nanoseconds in 64 bits (ICE-6.18)."""
        for name in columns:
            if has_timestamps(self._physical.field(name).type):
                try:
                    self._orc.read_stripe(index, self._selection([name]))
                except pa.ArrowInvalid as refused:
                    raise UnreadableValue(name, str(refused)) from refused

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the file."""
        self._file.close()
