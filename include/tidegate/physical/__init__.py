"""The files of tables as bounded batches of physical rows, whatever their file format.

Knows formats of files, not of tables: what a column means, and which rows were deleted, is told
elsewhere.
"""

from tidegate.physical.parquet import ParquetRows
from tidegate.physical.protocol import BATCH_ROWS, PhysicalRows, RowGroup

__all__ = ["BATCH_ROWS", "ParquetRows", "PhysicalRows", "RowGroup"]
