"""Read a small table as a whole: the upstream counts of a pipeline's partitions (PC-C03)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds

from tidegate.errors import CountsUnreadable, TidegateError
from tidegate.importing import import_at_rest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tidegate.config import IcebergSourceConfig


def read_folder(path: str) -> Mapping[str, Sequence[Any]]:
    """Return the rows of the Parquet files below a folder, column by column.

    Directories `key=value` are columns; hidden files are no part of it.

    Raises:
        CountsUnreadable: there is no such folder, or a file in it cannot be read (Transient).
    """
    try:
        read = ds.dataset(path, format="parquet", partitioning="hive").to_table()
        # Times may be beyond those that Python has.
        found: Mapping[str, Sequence[Any]] = read.to_pydict()
    except (OSError, ValueError, OverflowError, pa.ArrowException) as broken:
        raise CountsUnreadable(place=path, problem=_first_line(broken)) from broken
    return found


def read_iceberg(config: IcebergSourceConfig) -> Mapping[str, Sequence[Any]]:
    """Return the rows of an Iceberg table as it is now, column by column.

    Raises:
        CountsUnreadable: it cannot be opened or read (Transient).
    """
    try:
        opening = import_at_rest("tidegate.source.iceberg.table.opening")
        read: pa.Table = opening.TableOpener(config).open().scan().to_arrow()
        found: Mapping[str, Sequence[Any]] = read.to_pydict()
    except TidegateError as refused:
        raise CountsUnreadable(place=config.address, problem=str(refused)) from refused
    except (OSError, ValueError, OverflowError, pa.ArrowException) as broken:
        raise CountsUnreadable(place=config.address, problem=_first_line(broken)) from broken
    return found


def _first_line(broken: Exception) -> str:
    return str(broken).strip().splitlines()[0] if str(broken).strip() else type(broken).__name__
