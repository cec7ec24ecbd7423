"""Read ORC files: stripes are the atoms (ICE-6.18), described by the tail before any is read."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Self

import pyarrow as pa
import pyarrow.orc as orc

from tidegate.physical.arrays import has_type
from tidegate.physical.old_dates import gregorian
from tidegate.physical.orc_tail import has_old_dates, stripes, tail_of
from tidegate.physical.orc_types import meant
from tidegate.physical.orc_view import WithOtherEnd
from tidegate.physical.protocol import (
    BATCH_BYTES,
    BATCH_ROWS,
    RowGroup,
    UnreadableValue,
    counted_rows,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tidegate.physical.protocol import Joinable, Passing

_COMPRESSION = 4
"""The assumed ratio of a stripe's size in memory to its size in the file."""


class OrcRows:
    """See `PhysicalRows`.

    Args:
        file: open for random reads; closed with this.
        old_dates: whether dates before 1582-10-15 are of the Julian calendar in files that say so,
            as Spark and Hive have them; Iceberg's writer says so, and has none.

    Raises:
        OSError, pa.ArrowException: there is no ORC tail.
    """

    def __init__(self, file: pa.NativeFile, *, old_dates: bool = False) -> None:
        self._file = file
        self._may_have_old_dates = old_dates
        self._orc = orc.ORCFile(file)
        self._physical: pa.Schema = self._orc.schema
        self._schema = pa.schema([meant(field) for field in self._physical])

    @property
    def schema(self) -> pa.Schema:
        """The columns, with the types of their Iceberg attributes if they have any."""
        return self._schema

    @property
    def rows(self) -> int:
        """All rows, from the tail."""
        return int(self._orc.nrows)

    @cached_property
    def row_groups(self) -> tuple[RowGroup, ...]:
        """The stripes, from the tail."""
        groups = stripes(self._orc.reader.serialized_file_tail())
        if sum(group.rows for group in groups) != self.rows:
            problem = f"expected {self.rows} rows in the stripes of the ORC tail, found {groups}"
            raise pa.ArrowInvalid(problem)
        return groups

    @cached_property
    def _has_old_dates(self) -> bool:
        return self._may_have_old_dates and has_old_dates(self._orc.reader.serialized_file_tail())

    def batches(
        self, columns: Sequence[str], start: int, end: int, batch_rows: int = BATCH_ROWS
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Decode the stripes that overlap the range, and slice off rows outside it."""
        first = 0
        for number, stripe in enumerate(self.row_groups):
            low, high = max(start, first), min(end, first + stripe.rows)
            if low < high:
                decoded = self._stripe(number, columns, batch_rows)
                for position, batch in _between(low, high, decoded, first):
                    yield position, self._meant(batch, columns)
            first += stripe.rows

    def filtered(
        self, columns: Sequence[str], start: int, end: int, passing: Passing, batch_rows: int
    ) -> Iterator[pa.RecordBatch] | None:
        """Return None: ORC is not decoded and filtered in one step."""
        del columns, start, end, passing, batch_rows
        return None

    def joinable(self, columns: Sequence[str]) -> None:
        """Return None: ORC files are not decoded together."""
        del columns

    def joining(self, first: Joinable) -> None:
        """See `joinable`."""
        del first

    def _stripe(
        self, number: int, columns: Sequence[str], batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Decode one stripe into batches of at most `batch_rows` rows."""
        rows = self.row_groups[number].rows
        if not columns:
            yield from _sliced(counted_rows(rows), batch_rows)
            return
        batch_rows = min(batch_rows, _rows_of_bytes(self.row_groups[number]))
        # The ORC library selects by path: `a.b` may be a column, or a field of a column `a`.
        by_name = not any("." in name for name in columns)
        try:
            if by_name and rows > batch_rows:
                yield from self._scanned(number, list(columns), batch_rows)
            else:
                batch = self._orc.read_stripe(number, list(columns) if by_name else None)
                yield from _sliced(batch, batch_rows)
        except pa.ArrowInvalid as refused:
            self._name_the_column(number, columns)
            raise pa.ArrowInvalid(str(refused)) from refused

    def _meant(self, batch: pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch:
        if not columns:
            return batch
        fields = [self._schema.field(name) for name in columns]
        arrays = [batch.column(field.name).cast(field.type) for field in fields]
        if self._has_old_dates:
            arrays = [gregorian(array) for array in arrays]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))

    def _scanned(
        self, number: int, columns: list[str], batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Decode a stripe in pieces, in a third of the time and memory of a whole one."""
        # It imports pandas, which costs as much as reading many small stripes whole.
        import pyarrow.dataset as ds

        fragment = ds.OrcFileFormat().make_fragment(self._file_of(number))
        yield from fragment.to_batches(
            columns=columns,
            batch_size=batch_rows,
            use_threads=False,
            batch_readahead=0,
            fragment_readahead=0,
        )

    def _file_of(self, number: int) -> pa.NativeFile:
        """Return a file with a single stripe, because only whole files can be scanned."""
        if len(self.row_groups) == 1:
            return self._file
        stripe = self.row_groups[number]
        length = (stripe.offset or 0) + stripe.size_bytes
        tail = tail_of(self._orc.reader.serialized_file_tail(), number)
        return pa.PythonFile(WithOtherEnd(self._file, length, tail), mode="r")

    def _name_the_column(self, number: int, columns: Sequence[str]) -> None:
        """Find the column with a timestamp that does not fit in 64-bit nanoseconds (ICE-6.18)."""
        for name in columns:
            if has_type(self._physical.field(name).type, pa.types.is_timestamp):
                try:
                    self._orc.read_stripe(number, [name])
                except pa.ArrowInvalid as refused:
                    raise UnreadableValue(name, str(refused)) from refused

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the file."""
        self._file.close()


def _between(
    low: int, high: int, batches: Iterable[pa.RecordBatch], position: int
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the rows of a range with their positions; the first batch begins at `position`."""
    for batch in batches:
        start, end = max(low, position), min(high, position + batch.num_rows)
        if start < end:
            yield start, batch.slice(start - position, end - start)
        position += batch.num_rows
        if position >= high:
            return
    problem = f"expected {high} rows in ORC stripes, found {position}"
    raise pa.ArrowInvalid(problem)


def _rows_of_bytes(stripe: RowGroup) -> int:
    """Return the number of rows in `BATCH_BYTES`; a tail has compressed bytes only."""
    most_bytes = BATCH_BYTES // _COMPRESSION
    return max(1, most_bytes * stripe.rows // max(1, stripe.size_bytes))


def _sliced(batch: pa.RecordBatch, batch_rows: int) -> Iterator[pa.RecordBatch]:
    for position in range(0, batch.num_rows, batch_rows):
        yield batch.slice(position, batch_rows)
