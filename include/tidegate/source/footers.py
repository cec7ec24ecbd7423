"""Read what a Parquet footer tells: row groups, rows, columns."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.errors import SourceFileDamaged
from tidegate.source.protocol import RowGroup


def read_row_groups(file: pa.NativeFile, path: str) -> tuple[RowGroup, ...]:
    """Read the row groups of an open file.

    Args:
        file: open for random reads.
        path: the file, for errors.

    Raises:
        SourceFileDamaged: it has no Parquet footer.
    """
    footer = read_footer(file, path)
    groups = (footer.row_group(index) for index in range(footer.num_row_groups))
    return tuple(RowGroup(group.num_rows, _compressed_bytes(group)) for group in groups)


def read_footer(file: pa.NativeFile, path: str) -> pq.FileMetaData:
    """Read a file's footer.

    Raises:
        SourceFileDamaged: it has none.
    """
    try:
        return pq.read_metadata(file)
    except (pa.ArrowInvalid, OSError) as broken:
        raise SourceFileDamaged(path=path, problem=f"no Parquet footer: {broken}") from broken


def read_schema(file: pa.NativeFile, path: str) -> pa.Schema:
    """Read a file's columns as Arrow sees them.

    Raises:
        SourceFileDamaged: it has no footer.
    """
    try:
        return pq.read_schema(file)
    except (pa.ArrowInvalid, OSError) as broken:
        raise SourceFileDamaged(path=path, problem=f"no Parquet footer: {broken}") from broken


def _compressed_bytes(group: pq.RowGroupMetaData) -> int:
    return sum(group.column(index).total_compressed_size for index in range(group.num_columns))
