"""The content of a Parquet footer, for decisions about a file without reading it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.physical.thrift import Struct, read_struct

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_END = 8
"""Bytes after the footer: its length and the magic word."""
# Field ids of parquet.thrift.
_ROW_GROUPS, _COLUMNS, _ENCRYPTION = 4, 1, 8
_OTHER_FILE, _META, _CRYPTO = 1, 3, 8
_STATISTICS, _IS_MAX_EXACT, _IS_MIN_EXACT = 12, 7, 8

_SPARK = b"org.apache.spark.version"
_OLD_CALENDAR = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_HIVE_CALENDAR = b"writer.date.proleptic"
_FIRST_SPARK_WITH_NEW_CALENDAR = 3

_LARGE = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}
_LEFT_OUT = ("is_from_converted_type", "force_set_converted_type")
"""How a writer declared a type, which does not affect the type."""

Layout = tuple[Any, ...]
"""For comparison only: equal layouts have the same column names, order, types and nullability."""


@dataclass(frozen=True)
class FileEnd:
    """The length and footer of a file, by which two files are compared."""

    length: int
    footer: bytes

    @classmethod
    def of(cls, file: pa.NativeFile) -> Self:
        """Read it from an open file, whatever its content."""
        length = file.size()
        last = file.read_at(min(_END, length), max(0, length - _END))
        footer = int.from_bytes(last[:4], "little")
        start = max(0, length - _END - footer)
        return cls(length, file.read_at(length - start, start))


class ParquetFooter:
    """A footer without its file, which may be closed.

    Args:
        end: the end of the file.
        parquet: the file, opened by Arrow.
    """

    def __init__(self, end: FileEnd, parquet: pq.ParquetFile) -> None:
        self.end = end
        self._metadata: pq.FileMetaData = parquet.metadata
        self._columns: pq.ParquetSchema = parquet.schema
        self._schema: pa.Schema = parquet.schema_arrow

    @property
    def rows(self) -> int:
        """All rows of the file."""
        return int(self._metadata.num_rows)

    @cached_property
    def layout(self) -> Layout:
        """The columns as they are stored, and as Arrow types them.

        Arrow's large types are left out: they record how a writer held texts and lists in memory,
        and the bytes are the same. The names inside nested columns are in the paths.
        """
        leaves = [self._columns.column(index) for index in range(len(self._columns))]
        return tuple(map(_shape, self._schema)), tuple(map(_leaf, leaves))

    @property
    def key_values(self) -> Mapping[bytes, bytes]:
        """The writer's metadata."""
        return self._metadata.metadata or {}

    @property
    def is_of_old_calendar(self) -> bool:
        """Whether old times and dates may be counted by the calendar that ended in 1582.

        Readers that know this metadata convert them; other readers do not.
        """
        notes = self.key_values
        spark = notes.get(_SPARK, b"3").partition(b".")[0]
        return (
            any(key in notes for key in _OLD_CALENDAR)
            or not spark.isdigit()
            or int(spark) < _FIRST_SPARK_WITH_NEW_CALENDAR
            or notes.get(_HIVE_CALENDAR, b"true") != b"true"
        )

    @property
    def has_pandas_index(self) -> bool:
        """Whether pandas makes a column the index of its frames instead of a column."""
        note = self.key_values.get(b"pandas")
        if note is None:
            return False
        try:
            return any(isinstance(column, str) for column in json.loads(note)["index_columns"])
        except (ValueError, TypeError, KeyError):
            # Unreadable metadata may name an index.
            return True

    @property
    def codecs(self) -> frozenset[str]:
        """The codecs of all column chunks, with Arrow's names."""
        return frozenset(
            str(group.column(index).compression)
            for group in self._groups()
            for index in range(group.num_columns)
        )

    @cached_property
    def largest_group(self) -> tuple[int, int]:
        """The maximum of rows, and of uncompressed bytes, over the row groups."""
        sizes = [(group.num_rows, group.total_byte_size) for group in self._groups()]
        return max((rows for rows, _ in sizes), default=0), max((b for _, b in sizes), default=0)

    @property
    def groups(self) -> int:
        """The number of row groups."""
        return int(self._metadata.num_row_groups)

    @property
    def last_group_bytes(self) -> int:
        """Compressed bytes of the last row group."""
        if not self.groups:
            return 0
        group = self._metadata.row_group(self.groups - 1)
        chunks = (group.column(index) for index in range(group.num_columns))
        return sum(int(chunk.total_compressed_size) for chunk in chunks)

    @property
    def is_plain(self) -> bool:
        """Whether nothing is encrypted, and every column chunk is in this file."""
        whole = self._thrift
        chunks = (chunk for group in whole.get(_ROW_GROUPS, ()) for chunk in group[_COLUMNS])
        return _ENCRYPTION not in whole and not any(
            _CRYPTO in chunk or chunk.get(_OTHER_FILE) or _META not in chunk for chunk in chunks
        )

    def exact_bounds(self, column: str) -> tuple[int, int] | None:
        """Return the smallest and the largest stored number of a top-level column without NULLs.

        Returns:
            None if a row group does not have both exactly, or may have a NULL.
        """
        position = self._position(column)
        if position is None:
            return None
        found: list[int] = []
        described = self._thrift.get(_ROW_GROUPS, ())
        for group, said in zip(self._groups(), described, strict=True):
            statistics = group.column(position).statistics
            if statistics is None or not statistics.has_min_max:
                return None
            if not statistics.has_null_count or statistics.null_count:
                return None
            exact = said[_COLUMNS][position][_META].get(_STATISTICS, {})
            if not (exact.get(_IS_MIN_EXACT, True) and exact.get(_IS_MAX_EXACT, True)):
                return None
            bounds = statistics.min_raw, statistics.max_raw
            if not all(isinstance(bound, int) for bound in bounds):
                return None
            found += bounds
        return (min(found), max(found)) if found else None

    @cached_property
    def _thrift(self) -> Struct:
        return read_struct(self.end.footer)

    def _groups(self) -> Iterator[pq.RowGroupMetaData]:
        return (self._metadata.row_group(index) for index in range(self.groups))

    def _position(self, column: str) -> int | None:
        paths = [self._columns.column(index).path for index in range(len(self._columns))]
        return paths.index(column) if paths.count(column) == 1 else None


def _shape(field: pa.Field) -> Layout:
    kind, types = field.type, pa.types
    if types.is_struct(kind):
        return field.name, field.nullable, "struct", *map(_shape, kind)
    if types.is_map(kind):
        return field.name, field.nullable, "map", _shape(kind.key_field), _shape(kind.item_field)
    if types.is_list(kind) or types.is_large_list(kind):
        return field.name, field.nullable, "list", _shape(kind.value_field)
    return field.name, field.nullable, str(_LARGE.get(kind, kind))


def _leaf(column: pq.ColumnSchema) -> Layout:
    logical = json.loads(column.logical_type.to_json())
    return (
        column.path,
        column.physical_type,
        column.length,
        sorted((key, item) for key, item in logical.items() if key not in _LEFT_OUT),
        column.max_definition_level,
        column.max_repetition_level,
    )
