"""Decode and filter small files of one layout in one step, because opening dominates their cost.

Knows open files that are decoded whole; the caller decides which of them may be combined.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from tidegate.physical.protocol import BATCH_BYTES, FilterStopped, Joinable
from tidegate.physical.pushed_filter import (
    STOPPED,
    TOGETHER_ROWS,
    as_batches,
    decoded,
    descriptor_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    import pyarrow.parquet as pq

    from tidegate.predicate import Predicate

MOST_FILES = 32
"""The most files that are open for one step; more files gain next to nothing."""


def joinable(file: pa.NativeFile, parquet: pq.ParquetFile, columns: pa.Schema) -> Joinable:
    """Return what other files need to be decoded with one for which `can_push` is true.

    Args:
        file: the open file.
        parquet: its footer.
        columns: physical columns to decode.
    """
    stored = parquet.schema
    paths = [stored.column(index).path for index in range(len(stored))]
    indices = [paths.index(name) for name in columns.names]
    size = _stored_bytes(parquet, indices)
    return Joinable(
        file, (stored, parquet.schema_arrow), columns, indices, parquet.metadata.num_rows, size
    )


def joining(file: pa.NativeFile, parquet: pq.ParquetFile, first: Joinable) -> Joinable | None:
    """Return the same for another file; None unless its columns are those of the first one."""
    stored, schema = first.layout
    if not parquet.schema.equals(stored):
        return None
    own = parquet.schema_arrow.remove_metadata()
    if not own.equals(schema.remove_metadata(), check_metadata=True):
        return None
    size = _stored_bytes(parquet, first.indices)
    return replace(first, file=file, rows=parquet.metadata.num_rows, size_bytes=size)


def are_few(files: Sequence[Joinable]) -> bool:
    """Return whether files are small enough to be in memory together."""
    return (
        len(files) <= MOST_FILES
        and sum(file.rows for file in files) <= TOGETHER_ROWS
        and sum(file.size_bytes for file in files) <= BATCH_BYTES
    )


def joined_batches(
    files: Sequence[Joinable], predicate: Predicate, batch_rows: int
) -> Iterator[pa.RecordBatch]:
    """Decode the rows of files that pass a filter, file after file.

    Args:
        files: with equal columns, and `are_few`.
        predicate: uses physical columns only.
        batch_rows: the most rows per batch.

    Raises:
        FilterStopped: decoding failed; all batches before it are correct.
    """
    columns = files[0].columns
    try:
        with ExitStack() as copies:
            sources = [copies.enter_context(descriptor_of(file.file)) for file in files]
            scanned = pl.scan_parquet(sources, use_statistics=predicate.is_plain)
            passed = scanned.select(columns.names).filter(predicate.expression)
            for frame in decoded(passed, batch_rows):
                yield from as_batches(frame, columns)
    except STOPPED as stopped:
        raise FilterStopped(str(stopped)) from stopped


def _stored_bytes(parquet: pq.ParquetFile, columns: Sequence[int]) -> int:
    """Return the uncompressed bytes of values."""
    metadata = parquet.metadata
    groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    return sum(group.column(index).total_uncompressed_size for group in groups for index in columns)
