"""What the formats of plain text have in common: how values are spelled, compressed and told.

Times are ISO 8601: `2026-01-31T12:00:00.000000`, with `Z` and in UTC if the column has a zone.
"""

from __future__ import annotations

import gzip
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, BinaryIO

import polars as pl
import pyarrow as pa

from tidegate.model.part_format import NO_COMPRESSION
from tidegate.physical.parts.protocol import Unfit
from tidegate.physical.parts.types import is_list, is_odd, unfit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tidegate.storage import PlacedFile

_DIGITS = {"ms": 3, "us": 6, "ns": 9}
_GZIP_LEVEL = 6
"""The usual one; that of Arrow takes three times as long for a few percent."""
BLOCK_BYTES = 16 << 20
"""Bytes that a reader parses at a time; also the longest row that can be read back."""


class TextSink:
    """A file for text, compressed without a time of its own.

    Args:
        file: new and empty; not closed.
        compression: the codec.
    """

    def __init__(self, file: BinaryIO, compression: str) -> None:
        self._plain = file
        self._stream: Any = _STREAMS[compression](file)

    def write(self, text: bytes | memoryview) -> None:
        """Write text."""
        self._stream.write(text)

    def close(self) -> None:
        """Write what the compression holds back."""
        if self._stream is not self._plain:
            self._stream.close()


class _Unclosed:
    """A file that its user must not close."""

    closed = False

    def __init__(self, file: BinaryIO) -> None:
        self.write = file.write

    def flush(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


def _gzip(file: BinaryIO) -> gzip.GzipFile:
    return gzip.GzipFile("", "wb", _GZIP_LEVEL, file, mtime=0)


def _zstd(file: BinaryIO) -> pa.NativeFile:
    return pa.CompressedOutputStream(pa.PythonFile(_Unclosed(file), mode="w"), "zstd")


_STREAMS: Mapping[str, Callable[[BinaryIO], Any]] = MappingProxyType(
    {NO_COMPRESSION: lambda file: file, "gzip": _gzip, "zstd": _zstd}
)


def opened_text(placed: PlacedFile, compression: str) -> pa.NativeFile:
    """Open a file of text for reading from its beginning."""
    file = placed.open()
    if compression == NO_COMPRESSION:
        return file
    return pa.CompressedInputStream(file, compression)


def text_unfit(schema: pa.Schema, refusal: Callable[[pa.DataType], str | None]) -> Iterator[Unfit]:
    """Yield the columns that text cannot hold."""
    if not schema.names:
        yield Unfit("*", "none", "every column is a partition key, so that a file would have none")
    yield from unfit(schema, lambda kind: _refusal(kind) or refusal(kind))


def _refusal(kind: pa.DataType) -> str | None:
    if is_odd(kind):
        return "it has no common spelling"
    if (
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_binary_view(kind)
        or pa.types.is_fixed_size_binary(kind)
    ):
        return "bytes are no text"
    return None


def spelled(rows: pa.RecordBatch) -> pl.DataFrame:
    """Return rows with their times as texts; what else there is has one spelling."""
    frame: Any = pl.from_arrow(rows)
    texts = [
        _spelled(pl.col(name), kind).alias(name)
        for name, kind in frame.schema.items()
        if _has_times(kind)
    ]
    return frame.with_columns(texts) if texts else frame  # type: ignore[no-any-return]


def read_as(kind: pa.DataType) -> pa.DataType:
    """Return the type that a parser reads a `stored` type as, to be cast afterwards."""
    if pa.types.is_temporal(kind) or pa.types.is_decimal(kind) or pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(read_as(field.type)) for field in kind])
    if is_list(kind):
        return pa.list_(pa.field("element", read_as(kind.value_type)))
    return kind


def as_spelled(kind: pa.DataType) -> pa.DataType:
    """Return the type that holds what is written: times have more digits than some types."""
    if pa.types.is_time(kind):
        return pa.time64("us")
    if pa.types.is_timestamp(kind) and kind.unit == "s":
        return pa.timestamp("ms", kind.tz)
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(as_spelled(field.type)) for field in kind])
    if is_list(kind):
        return pa.list_(pa.field("element", as_spelled(kind.value_type)))
    return kind


def _has_times(kind: pl.DataType) -> bool:
    if isinstance(kind, pl.List):
        return _has_times(kind.inner)  # type: ignore[arg-type]
    if isinstance(kind, pl.Struct):
        return any(_has_times(field.dtype) for field in kind.fields)  # type: ignore[arg-type]
    return isinstance(kind, pl.Datetime | pl.Time)


def _spelled(values: pl.Expr, kind: Any) -> pl.Expr:
    """Spell the times in a column, at any depth."""
    if not _has_times(kind):
        return values
    if isinstance(kind, pl.List):
        return values.list.eval(_spelled(pl.element(), kind.inner))
    if isinstance(kind, pl.Struct):
        fields = [_spelled(pl.field(field.name), field.dtype) for field in kind.fields]
        return values.struct.with_fields(
            [text.alias(field.name) for text, field in zip(fields, kind.fields, strict=True)]
        )
    if isinstance(kind, pl.Time):
        return values.dt.strftime("%H:%M:%S%.6f")
    seconds = f"%Y-%m-%dT%H:%M:%S%.{_DIGITS[kind.time_unit]}f"
    if kind.time_zone is None:
        return values.dt.strftime(seconds)
    utc = values.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    return utc.dt.strftime(f"{seconds}Z")
