"""Decode and filter in one step with polars, if the result is provably that of two steps.

This is half the work of decoding with Arrow and filtering afterwards, because values of rows that
fail are never created. It is used only for plain column types of files that are open on this
machine; if polars cannot read a file, Arrow continues from the row where it stopped.
"""

from __future__ import annotations

import io
import os
from typing import IO, TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa

from tidegate.physical.arrays import Flags, boolean_column, integers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow.parquet as pq

    from tidegate.physical.protocol import Passing, RowGroup

# polars decodes whole row groups, and some ahead: memory is bounded by rejecting large ones, and by
# passing one at a time, which is also 10 % cheaper.
_GROUP_ROWS = 1 << 21
_GROUP_BYTES = 128 << 20
# Opening a file again costs as much as decoding some thousand rows: small groups are combined.
TOGETHER_ROWS = 1 << 18
"""The most rows that are decoded together."""
TOGETHER_BYTES = 8 << 20
"""The most compressed bytes that are decoded together."""

STOPPED = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)
"""The errors of polars for a file or a value that it cannot read."""


def can_push(file: pa.NativeFile, parquet: pq.ParquetFile, columns: Sequence[str]) -> bool:
    """Return whether polars would decode the columns to the same values, in bounded memory.

    Args:
        file: the open file.
        parquet: its footer.
        columns: top-level columns that are wanted.
    """
    schema, metadata = parquet.schema_arrow, parquet.metadata
    if not columns or _descriptor(file) is None:
        return False
    leaves = {parquet.schema.column(index).path: index for index in range(metadata.num_columns)}
    wanted = []
    for name in columns:
        index = leaves.get(name)
        if index is None or not _is_plain(schema.field(name).type):
            return False
        if parquet.schema.column(index).physical_type == "INT96":
            return False
        wanted.append(index)
    groups = (metadata.row_group(index) for index in range(metadata.num_row_groups))
    return all(
        group.num_rows <= _GROUP_ROWS and _decoded_bytes(group, wanted) <= _GROUP_BYTES
        for group in groups
    )


def portions(groups: Sequence[RowGroup], start: int, end: int) -> Iterator[tuple[int, int]]:
    """Divide a range of rows into portions to decode: a row group, or some small ones.

    Args:
        groups: the row groups of the file.
        start: physical position of the first row.
        end: one past the last.

    Yields:
        Adjacent ranges that make up the range, none of them empty.
    """
    low = position = rows = size_bytes = 0
    for group in groups:
        rows, size_bytes = rows + group.rows, size_bytes + group.size_bytes
        if rows > TOGETHER_ROWS or size_bytes > TOGETHER_BYTES:
            yield from _common(low, position, start, end)
            low, rows, size_bytes = position, group.rows, group.size_bytes
        position += group.rows
    yield from _common(low, position, start, end)


def _common(low: int, high: int, start: int, end: int) -> Iterator[tuple[int, int]]:
    low, high = max(low, start), min(high, end)
    if low < high:
        yield low, high


def _decoded_bytes(group: pq.RowGroupMetaData, columns: Sequence[int]) -> int:
    return sum(group.column(index).total_uncompressed_size for index in columns)


def filtered_batches(
    file: pa.NativeFile,
    schema: pa.Schema,
    rows: tuple[int, int],
    passing: Passing,
    batch_rows: int,
) -> Iterator[pa.RecordBatch]:
    """Decode the rows of a range that pass a filter.

    Args:
        file: the open file, for which `can_push` is true.
        schema: physical columns to decode.
        rows: physical position of the first row, and one past the last; one of its `portions`.
        passing: which of them are wanted.
        batch_rows: the number of passing rows in each batch but the last, so that batches do not
            depend on timing.

    Raises:
        Exception: one of `STOPPED`; all batches before it are correct.
    """
    start, end = rows
    gone = _flags(passing.without, start, end) if passing.without is not None else None
    # Counting rows costs next to nothing; a join with the positions would cost a third more.
    counted = None if gone is None else _free_name(schema)
    with descriptor_of(file) as copy:
        # polars assumes that values computed from minima and maxima enclose all between them.
        scanned = pl.scan_parquet(
            copy, row_index_name=counted, use_statistics=passing.predicate.is_plain
        )
        wanted = scanned.slice(start, end - start).select(
            schema.names + ([counted] if counted else [])
        )
        passed = wanted.filter(passing.predicate.expression)
        for frame in decoded(passed, batch_rows):
            kept = frame
            if gone is not None and counted is not None:
                positions = frame.get_column(counted).to_arrow()
                alive = ~gone[integers(positions).astype(np.int64) - start]
                kept = frame.drop(counted).filter(pl.Series(pl.from_arrow(boolean_column(alive))))
            yield from as_batches(kept, schema)


def decoded(passed: pl.LazyFrame, batch_rows: int) -> Iterator[pl.DataFrame]:
    """Decode the rows that pass, in frames of as many rows, in their order.

    Raises:
        Exception: one of `STOPPED`, before the first frame.
    """
    # `collect_batches` would end, as if there were no more rows, where a thread of polars panics.
    yield from passed.collect(engine="streaming").iter_slices(batch_rows)


def descriptor_of(file: pa.NativeFile) -> IO[bytes]:
    """Return a duplicate of an open file, which is closed separately."""
    return os.fdopen(os.dup(file.fileno()), "rb")


def as_batches(frame: pl.DataFrame, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a frame as Arrow batches: none or one."""
    # Texts are copied for Arrow, which costs half as much in one chunk.
    table = frame.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest()).cast(schema)
    yield from table.combine_chunks().to_batches()


def _flags(positions: pa.Int64Array, start: int, end: int) -> Flags:
    known = integers(positions)
    low, high = np.searchsorted(known, (start, end))
    gone: Flags = np.zeros(end - start, dtype=np.bool_)
    gone[known[low:high] - start] = True
    return gone


def _free_name(schema: pa.Schema) -> str:
    name = "position"
    while name in schema.names:
        name += "'"
    return name


def _is_plain(kind: pa.DataType) -> bool:
    types = pa.types
    if types.is_timestamp(kind):
        return bool(kind.unit != "s")
    return bool(
        types.is_integer(kind)
        or types.is_float32(kind)
        or types.is_float64(kind)
        or types.is_decimal128(kind)
        or types.is_boolean(kind)
        or types.is_string(kind)
        or types.is_string_view(kind)
        or types.is_date32(kind)
    )


def _descriptor(file: pa.NativeFile) -> int | None:
    try:
        return int(file.fileno())
    except (AttributeError, io.UnsupportedOperation):
        return None
