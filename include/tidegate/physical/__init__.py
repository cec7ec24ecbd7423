"""Read the files of tables as bounded batches of physical rows, in any file format.

Knows file formats, not table formats: the meaning of columns and the deleted rows are determined
elsewhere.
"""

from tidegate.physical.opening import FORMATS, open_rows, open_with
from tidegate.physical.parquet import ParquetRows
from tidegate.physical.protocol import (
    BATCH_BYTES,
    BATCH_ROWS,
    PhysicalRows,
    RowGroup,
    UnreadableValue,
)

__all__ = [
    "BATCH_BYTES",
    "BATCH_ROWS",
    "FORMATS",
    "ParquetRows",
    "PhysicalRows",
    "RowGroup",
    "UnreadableValue",
    "open_rows",
    "open_with",
]
