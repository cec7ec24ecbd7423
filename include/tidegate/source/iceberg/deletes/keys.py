"""Read equality delete files as rows of keys, with the types of the data (ICE-4.8, 6.8, 6.9)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from tidegate.physical.arrays import no_rows
from tidegate.read.removed import RemovedKeys
from tidegate.source.projection import Projection

if TYPE_CHECKING:
    from tidegate.model.file_slice import Delta
    from tidegate.physical import PhysicalRows
    from tidegate.source.iceberg.columns.field_ids import FieldIds
    from tidegate.source.iceberg.columns.key_columns import KeyColumn

_ROW_BYTES = 64
_COLUMN_BYTES = 48
_BYTES_PER_BYTE = 8
"""What a delete file takes in memory, ready to be looked up, by its rows, columns and length; high
enough for what was measured (dictionary-encoded texts grow most)."""

OpenDeletes = Callable[["Delta"], AbstractContextManager["PhysicalRows"]]


def memory_bytes(files: Sequence[Delta]) -> int:
    """Estimate the memory of key sets before anything is read."""
    return sum(
        file.rows * (_ROW_BYTES + _COLUMN_BYTES * len(file.field_ids))
        + file.file_bytes * _BYTES_PER_BYTE
        for file in files
    )


def read_keys(
    rows: PhysicalRows, path: str, columns: Sequence[KeyColumn], fields: FieldIds
) -> Iterator[pa.RecordBatch]:
    """Read the keys of one delete file; its other columns are not decoded.

    Args:
        rows: the open delete file.
        path: its own path, for errors.
        columns: of the key.
        fields: assigns ids to the file's columns.

    Yields:
        Batches with the key's columns, named and ordered as `columns`.
    """
    roots = [column.root for column in columns]
    keys = {root.key for root in roots}
    found = [column for column in fields.found(rows.schema, path) if column.key in keys]
    projection = Projection(roots, found, {}, path)
    for _, batch in rows.batches([column.name for column in found], 0, rows.rows):
        projected = projection.apply(batch, path)
        arrays = [
            column.of(array) for column, array in zip(columns, projected.columns, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(arrays, [column.name for column in columns])


def one_set(columns: Sequence[KeyColumn], batches: Sequence[pa.RecordBatch]) -> RemovedKeys:
    """Join batches of keys."""
    names = tuple(column.name for column in columns)
    schema = pa.schema([pa.field(column.name, column.type) for column in columns])
    joined = pa.Table.from_batches(list(batches), schema).combine_chunks().to_batches()
    return RemovedKeys(names, joined[0] if joined else no_rows(schema))


@dataclass(frozen=True, eq=False)
class KeyPasses:
    """Key sets that do not fit into memory: every iteration reads them again, part by part."""

    files: Sequence[Delta]
    columns: Sequence[KeyColumn]
    fields: FieldIds
    open: OpenDeletes
    most_bytes: int
    """The memory of one part."""

    def __iter__(self) -> Iterator[RemovedKeys]:
        rows_at_once = max(1, self.most_bytes // (memory_bytes(self.files) // self._rows + 1))
        held: list[pa.RecordBatch] = []
        for batch in self._batches(rows_at_once):
            if held and sum(part.num_rows for part in held) + batch.num_rows > rows_at_once:
                yield one_set(self.columns, held)
                held = []
            held.append(batch)
        if held:
            yield one_set(self.columns, held)

    @property
    def _rows(self) -> int:
        return max(1, sum(file.rows for file in self.files))

    def _batches(self, most_rows: int) -> Iterator[pa.RecordBatch]:
        for file in self.files:
            with self.open(file) as rows:
                for batch in read_keys(rows, file.path, self.columns, self.fields):
                    for start in range(0, batch.num_rows, most_rows):
                        yield batch.slice(start, most_rows)
