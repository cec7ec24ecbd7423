"""Read Parquet files: row groups are the atoms, described by the footer before a page is read."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Self

import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.physical import int96, joined_files
from tidegate.physical.parquet_footer import FileEnd, ParquetFooter
from tidegate.physical.protocol import BATCH_BYTES, BATCH_ROWS, FilterStopped, RowGroup
from tidegate.physical.pushed_filter import STOPPED, can_push, filtered_batches, portions
from tidegate.physical.views import column_without_views, schema_without_views

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tidegate.physical.protocol import Joinable, Passing


_AT_HAND = (pa.OSFile, pa.MemoryMappedFile, pa.BufferReader)
"""Files of which reading a part costs little."""


class ParquetRows:
    """See `PhysicalRows`.

    Args:
        file: open for random reads; closed with this.

    Raises:
        OSError, pa.ArrowException: there is no Parquet footer.
    """

    def __init__(self, file: pa.NativeFile) -> None:
        self._file = file
        # Elsewhere each read is a request, and those of neighbouring columns become one.
        self._joins_reads = not isinstance(file, _AT_HAND)
        # Pages with checksums (Iceberg writes them) are verified to detect flipped bits.
        self._parquet = pq.ParquetFile(
            file,
            pre_buffer=self._joins_reads,
            page_checksum_verification=True,
            coerce_int96_timestamp_unit=int96.UNIT,
        )

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns, typed as Arrow reads them, but without views."""
        plain = schema_without_views(self._parquet.schema_arrow)
        return int96.with_marks(plain, self._parquet.schema)

    @property
    def rows(self) -> int:
        """All rows, from the footer."""
        return int(self._parquet.metadata.num_rows)

    @cached_property
    def row_groups(self) -> tuple[RowGroup, ...]:
        """Row groups, from the footer."""
        metadata = self._parquet.metadata
        groups = (metadata.row_group(index) for index in range(metadata.num_row_groups))
        return tuple(
            RowGroup(group.num_rows, _compressed_bytes(group), _offset(group)) for group in groups
        )

    @property
    def footer(self) -> ParquetFooter:
        """The footer by itself, which can be used after the file is closed."""
        return ParquetFooter(FileEnd.of(self._file), self._parquet)

    def raw_bounds(self, column: str) -> tuple[int | None, int | None] | None:
        """Return the smallest and largest stored number of a top-level column, from the footer.

        Returns:
            (None, None) if every value is NULL; None if a row group has no bounds.
        """
        found: list[int] = []
        metadata = self._parquet.metadata
        for index in range(metadata.num_row_groups):
            group = metadata.row_group(index)
            statistics = _statistics(group, column)
            if statistics is None:
                return None
            if statistics.has_min_max:
                found += (statistics.min_raw, statistics.max_raw)
            elif not statistics.has_null_count or statistics.null_count < group.num_rows:
                return None
        return min(found, default=None), max(found, default=None)

    def text_bounds(self, column: str) -> tuple[str, str] | None:
        """Return the smallest and largest text of a top-level column, from the footer.

        Returns:
            None if a row group has no bounds.

        Raises:
            ArrowInvalid: a bound is no UTF-8.
        """
        found: list[str] = []
        metadata = self._parquet.metadata
        for index in range(metadata.num_row_groups):
            statistics = _statistics(metadata.row_group(index), column)
            if statistics is None or not statistics.has_min_max:
                return None
            try:
                bounds = statistics.min, statistics.max
            except UnicodeDecodeError as broken:
                problem = f"a bound of column {column!r} is no text: {broken}"
                raise pa.ArrowInvalid(problem) from broken
            if not isinstance(bounds[0], str):
                return None
            found += bounds
        return (min(found), max(found)) if found else None

    def batches(
        self, columns: Sequence[str], start: int, end: int, batch_rows: int = BATCH_ROWS
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Decode the row groups that overlap the range, and slice off rows outside it."""
        groups, position = self._groups_in(start, end)
        if not groups:
            return
        size = min(batch_rows, self._rows_of_bytes(groups[0], set(columns)))
        for decoded in self._decoded(size, groups, list(columns)):
            batch = self._as_in_schema(decoded)
            low = max(start - position, 0)
            high = min(end - position, batch.num_rows)
            if low < high:
                whole = high - low == batch.num_rows
                yield position + low, batch if whole else batch.slice(low, high - low)
            position += batch.num_rows
            if position >= end:
                return
        # A damaged page header can end a column early without an error from Arrow.
        if position < min(end, self.rows):
            problem = f"expected {min(end, self.rows)} rows, found {position}"
            raise pa.ArrowInvalid(problem)

    def _decoded(
        self, size: int, groups: list[int], columns: list[str]
    ) -> Iterator[pa.RecordBatch]:
        # What is joined is held in memory: the bytes of one row group, never of all (ICE-6.2).
        for some in ([group] for group in groups) if self._joins_reads else (groups,):
            yield from self._parquet.iter_batches(size, some, columns, False)

    def _as_in_schema(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self.schema is self._parquet.schema_arrow or not batch.num_columns:
            return batch
        fields = [self.schema.field(name) for name in batch.schema.names]
        columns = [
            column_without_views(column, field.type)
            for column, field in zip(batch.columns, fields, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))

    def filtered(
        self, columns: Sequence[str], start: int, end: int, passing: Passing, batch_rows: int
    ) -> Iterator[pa.RecordBatch] | None:
        """Decode and filter in one step if `can_push` allows it."""
        if not can_push(self._file, self._parquet, columns):
            return None
        return self._filtered(columns, start, end, passing, batch_rows)

    def _filtered(
        self, columns: Sequence[str], start: int, end: int, passing: Passing, batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        groups, _ = self._groups_in(start, end)
        if not groups:
            return
        size = min(batch_rows, self._rows_of_bytes(groups[0], set(columns)))
        schema = pa.schema([self.schema.field(name) for name in columns])
        try:
            for rows in portions(self.row_groups, start, end):
                yield from filtered_batches(self._file, schema, rows, passing, size)
        except STOPPED as stopped:
            raise FilterStopped(str(stopped)) from stopped

    def joinable(self, columns: Sequence[str]) -> Joinable | None:
        """Return the file for decoding with later ones, if `can_push` allows it."""
        if not self.rows or not can_push(self._file, self._parquet, columns):
            return None
        schema = pa.schema([self.schema.field(name) for name in columns])
        return joined_files.joinable(self._file, self._parquet, schema)

    def joining(self, first: Joinable) -> Joinable | None:
        """Compare the columns of two files, because equal columns can be decoded together."""
        return joined_files.joining(self._file, self._parquet, first)

    def _groups_in(self, start: int, end: int) -> tuple[list[int], int]:
        """Return the row groups that overlap a range, and the position of their first row."""
        groups: list[int] = []
        first_position = position = 0
        for index, group in enumerate(self.row_groups):
            if position < end and position + group.rows > start:
                if not groups:
                    first_position = position
                groups.append(index)
            position += group.rows
        return groups, first_position

    def _rows_of_bytes(self, index: int, wanted: set[str]) -> int:
        """Return how many rows of the wanted columns fit in `BATCH_BYTES`, judged by one group."""
        group = self._parquet.metadata.row_group(index)
        chunks = (group.column(position) for position in range(group.num_columns))
        size = sum(
            chunk.total_uncompressed_size
            for chunk in chunks
            if not wanted.isdisjoint({path := _path(chunk), path.partition(".")[0]})
        )
        return max(1, BATCH_BYTES * group.num_rows // size) if size else BATCH_ROWS

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the file."""
        self._parquet.close()
        self._file.close()


def _compressed_bytes(group: pq.RowGroupMetaData) -> int:
    return sum(group.column(index).total_compressed_size for index in range(group.num_columns))


def _offset(group: pq.RowGroupMetaData) -> int | None:
    """Return the position of the first byte of a row group, as in split offsets."""
    if not group.num_columns:
        return None
    first = group.column(0)
    pages = (first.dictionary_page_offset, first.data_page_offset)
    # Some writers store 0 if there is no dictionary, or no page at all.
    return min((int(offset) for offset in pages if offset), default=None)


def _statistics(group: pq.RowGroupMetaData, column: str) -> pq.Statistics | None:
    chunks = (group.column(index) for index in range(group.num_columns))
    chunk = next((chunk for chunk in chunks if _path(chunk) == column), None)
    return chunk.statistics if chunk is not None else None


def _path(chunk: pq.ColumnChunkMetaData) -> str:
    """Return the column path of a chunk, which the footer has a second time."""
    try:
        return str(chunk.path_in_schema)
    except UnicodeDecodeError as broken:
        problem = f"a column's name is no text: {broken}"
        raise pa.ArrowInvalid(problem) from broken
