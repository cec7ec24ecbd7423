"""The formats of a folder's files, opened by the pipeline's options. A new one is a function here.

Text files have the types that a pipeline declares, or those that the first files seemed to have; a
pin names them, so that tasks read what was planned.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from tidegate.config.column_types import parse_type
from tidegate.physical import open_rows, open_with
from tidegate.physical.avro import AvroRows
from tidegate.physical.csv import CsvDialect, CsvFile, CsvRows
from tidegate.physical.json_lines import JsonFile, JsonRows
from tidegate.physical.orc import OrcRows
from tidegate.physical.text_stream import compression_of
from tidegate.physical.text_types import csv_schema, json_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tidegate.config import FilesSourceConfig
    from tidegate.config.column_types import ColumnType
    from tidegate.physical import PhysicalRows


class FolderFormat(Protocol):
    """How the files of one folder are opened."""

    @property
    def name(self) -> str:
        """As `source.format` names it."""
        ...

    @property
    def tells_rows(self) -> bool:
        """Whether files tell how many rows they have, and of which types."""
        ...

    @property
    def declared(self) -> pa.Schema | None:
        """The columns that the pipeline declares; None: the files have their own."""
        ...

    def open(
        self, file: pa.NativeFile, path: str, columns: pa.Schema | None = None
    ) -> PhysicalRows:
        """Open a file; closed with the rows, or if it cannot be opened.

        Args:
            file: open for random reads.
            path: its name tells its compression.
            columns: the types to read it with; None: those that are declared, or that its first
                rows seem to have. Only for files that do not tell them.

        Raises:
            OSError, pa.ArrowException: it does not have this format.
        """
        ...


@dataclass(frozen=True)
class _TableFormat:
    """A format whose files have a footer or header with their columns."""

    name: str
    tells_rows: bool = True
    declared: pa.Schema | None = None

    def open(
        self, file: pa.NativeFile, path: str, columns: pa.Schema | None = None
    ) -> PhysicalRows:
        del path, columns
        return open_rows(file, self.name)


class _OrcFormat(_TableFormat):
    def open(
        self, file: pa.NativeFile, path: str, columns: pa.Schema | None = None
    ) -> PhysicalRows:
        del path, columns
        return open_with(partial(OrcRows, old_dates=True), file)


class _AvroFormat(_TableFormat):
    def open(
        self, file: pa.NativeFile, path: str, columns: pa.Schema | None = None
    ) -> PhysicalRows:
        del path, columns
        return open_with(partial(AvroRows, instants=True), file)


@dataclass(frozen=True)
class _CsvFormat:
    dialect: CsvDialect
    declared: pa.Schema | None
    name: str = "csv"
    tells_rows: bool = False

    def open(
        self, file: pa.NativeFile, path: str, columns: pa.Schema | None = None
    ) -> PhysicalRows:
        source = CsvFile(file, self.dialect, compression_of(path))
        columns = columns or self.declared or csv_schema(source)
        types = {field.name: field.type for field in columns}
        return CsvRows(source, types, inferred=self.declared is None)


@dataclass(frozen=True)
class _JsonFormat:
    declared: pa.Schema | None
    name: str = "json"
    tells_rows: bool = False

    def open(
        self, file: pa.NativeFile, path: str, columns: pa.Schema | None = None
    ) -> PhysicalRows:
        source = JsonFile(file, compression_of(path))
        known = columns or self.declared or json_schema(source)
        return JsonRows(source, known, inferred=self.declared is None)


def _csv(config: FilesSourceConfig) -> FolderFormat:
    said = config.dialect
    dialect = CsvDialect(
        header=said.header,
        names=tuple(config.columns or ()),
        delimiter=said.delimiter,
        quote=said.quote,
        escape=said.escape,
        null=said.null,
        quoted_null=said.quoted_null,
        encoding=said.encoding,
    )
    return _CsvFormat(dialect, _declared(config))


PARQUET: FolderFormat = _TableFormat("parquet")

_FORMATS: Mapping[str, Callable[[FilesSourceConfig], FolderFormat]] = {
    "parquet": lambda _: PARQUET,
    "orc": lambda _: _OrcFormat("orc"),
    "avro": lambda _: _AvroFormat("avro"),
    "csv": _csv,
    "json": lambda config: _JsonFormat(_declared(config)),
}


def format_of(config: FilesSourceConfig) -> FolderFormat:
    """Return the format of a folder's files."""
    return _FORMATS[config.format](config)


def _declared(config: FilesSourceConfig) -> pa.Schema | None:
    if config.columns is None:
        return None
    return pa.schema(
        [(name, arrow_type(parse_type(kind))) for name, kind in config.columns.items()]
    )


_PLAIN: Mapping[str, pa.DataType] = {
    "string": pa.string(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}


def arrow_type(kind: ColumnType) -> pa.DataType:
    """Return the Arrow type of a declared column."""
    if kind.word == "decimal":
        return pa.decimal128(*kind.digits)
    if kind.word == "array":
        return pa.list_(pa.field("element", arrow_type(kind.children[0][1])))
    if kind.word == "struct":
        return pa.struct([(name, arrow_type(child)) for name, child in kind.children])
    return _PLAIN[kind.word]
