"""The files of tables as bounded batches of physical rows, whatever their file format.

Knows formats of files, not of tables: what a column means, and which rows were deleted, is told
elsewhere.
"""

from tidegate.physical.opening import FORMATS, open_rows
from tidegate.physical.parquet import ParquetRows
from tidegate.physical.protocol import BATCH_ROWS, PhysicalRows, RowGroup, UnreadableValue

__all__ = [
    "BATCH_ROWS",
    "FORMATS",
    "ParquetRows",
    "PhysicalRows",
    "RowGroup",
    "UnreadableValue",
    "open_rows",
]
