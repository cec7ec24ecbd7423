"""Write and read part files in any format: one module per format, one line each below.

`check_fit` refuses columns before a file is begun, `begin_part` writes, `open_part` reads.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, BinaryIO

from tidegate.errors import ColumnUnfit
from tidegate.model.part_format import PARQUET, PartFormat
from tidegate.physical.parts.protocol import PartKind, PartRows, PartWriter
from tidegate.storage import PlacedFile, Stores

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from tidegate.storage import Storage

__all__ = [
    "PartFiles",
    "PartKind",
    "PartRows",
    "PartWriter",
    "begin_part",
    "check_fit",
    "open_part",
    "part_kind",
]

_MODULES: Mapping[str, str] = MappingProxyType(
    {
        "parquet": "parquet",
        "orc": "orc",
        "csv": "csv",
        "json": "json_lines",
        "avro": "avro",
    }
)
"""Format → the module with its `KIND`. The others are not imported."""


_ANY = Stores()
"""Reaches what needs no options of a pipeline file."""


@functools.cache
def part_kind(name: str) -> PartKind:
    """Return a format by its name."""
    found: PartKind = import_module(f"{__name__}.{_MODULES[name]}").KIND
    return found


def check_fit(schema: pa.Schema, form: PartFormat) -> None:
    """Check that files of a format can have some columns.

    Raises:
        ColumnUnfit: one of them has a type that the format cannot hold.
    """
    for found in part_kind(form.name).unfit(schema, form):
        raise ColumnUnfit(column=found.column, type=found.type, format=form.name, problem=found.why)


def begin_part(file: BinaryIO, first: pa.RecordBatch, form: PartFormat) -> PartWriter:
    """Begin to write a part file.

    Args:
        file: new and empty; not closed.
        first: the first row group, which is not written yet: it may decide the encoding.
        form: format and options.
    """
    return part_kind(form.name).writer(file, first, form)


def open_part(
    path: str, form: PartFormat, columns: pa.Schema | None = None, storage: Storage = _ANY
) -> PartRows:
    """Open a part file, staged or published, for reading in bounded batches.

    Args:
        path: of the file.
        form: format and options of the table; the file's name tells its own compression.
        columns: the columns of the file in its order, with the types that its plan had. None: as
            the file says, which files of text do not (`FormatKind.has_columns`).
        storage: that has the file.

    Raises:
        OSError, pa.ArrowException: it is not such a file.
    """
    return part_kind(form.name).rows(PlacedFile(storage, path), form.of_file(path), columns)


@dataclass(frozen=True, eq=False)
class PartFiles:
    """Opens the part files of one table; can be sent to other processes."""

    form: PartFormat = PARQUET
    columns: Mapping[str, pa.Schema | None] = field(default_factory=dict)
    """Path → the columns that the plan of a file had, where the file does not say them."""
    storage: Storage = _ANY
    """Has the files."""

    def __call__(self, path: str) -> PartRows:
        """Open a file; see `open_part`."""
        return open_part(path, self.form, self.columns.get(path), self.storage)
