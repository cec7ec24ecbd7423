"""Open a file with the reader of its format."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

import pyarrow as pa

from tidegate.physical.avro import AvroRows
from tidegate.physical.orc import OrcRows
from tidegate.physical.parquet import ParquetRows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tidegate.physical.protocol import PhysicalRows

FORMATS: Mapping[str, Callable[[pa.NativeFile], PhysicalRows]] = MappingProxyType(
    {"parquet": ParquetRows, "orc": OrcRows, "avro": AvroRows}
)
"""Readers by the name of their format, in lower case."""


def open_rows(file: pa.NativeFile, file_format: str) -> PhysicalRows:
    """Open a file and read its metadata, but no rows.

    Args:
        file: open for random reads; closed with the rows, or here if it cannot be read.
        file_format: one of `FORMATS`.

    Raises:
        OSError, pa.ArrowException: the file does not have this format.
    """
    return open_with(FORMATS[file_format], file)


def open_with(reader: Callable[[pa.NativeFile], PhysicalRows], file: pa.NativeFile) -> PhysicalRows:
    """Open a file with a reader; see `open_rows`."""
    try:
        rows = reader(file)
        _ = rows.schema.names
    except (OSError, pa.ArrowException):
        file.close()
        raise
    except UnicodeDecodeError as broken:
        file.close()
        problem = f"a column's name is no text: {broken}"
        raise pa.ArrowInvalid(problem) from broken
    return rows
