"""Part files of JSON lines: one object per row, with every column in it."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, BinaryIO

import polars as pl
import pyarrow as pa
import pyarrow.json as json_reader

from tidegate.errors import ValueUnfit
from tidegate.physical.parts.odd_values import odd_columns
from tidegate.physical.parts.text_rows import TextRows
from tidegate.physical.parts.texts import (
    BLOCK_BYTES,
    TextSink,
    as_spelled,
    opened_text,
    read_as,
    spelled,
    text_unfit,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow.dataset as ds

    from tidegate.model.part_format import PartFormat
    from tidegate.physical.parts.protocol import PartKind, Unfit
    from tidegate.storage import PlacedFile


class JsonParts:
    """See `PartKind`."""

    def unfit(self, schema: pa.Schema, form: PartFormat) -> Iterator[Unfit]:
        """Yield columns whose type JSON does not have."""
        del form
        return text_unfit(schema, _refusal)

    def writer(self, file: BinaryIO, first: pa.RecordBatch, form: PartFormat) -> JsonWriter:
        """Begin a file."""
        del first
        return JsonWriter(file, form)

    def rows(self, file: PlacedFile, form: PartFormat, columns: pa.Schema | None) -> TextRows:
        """Open a file, whose columns have to be told: a decimal or a time is a text in it."""
        if columns is None:
            problem = f"nothing tells the columns of {file.path}"
            raise pa.ArrowInvalid(problem)
        return TextRows(file, columns, lambda wanted: _parsed(file, form, wanted))

    def dataset_format(self, form: PartFormat, columns: pa.Schema) -> ds.FileFormat | None:
        """Return None: Arrow has none that reads all types that are written."""
        del form, columns
        return None


class JsonWriter:
    """See `PartWriter`.

    Args:
        file: new and empty.
        form: how rows are written.
    """

    def __init__(self, file: BinaryIO, form: PartFormat) -> None:
        self._sink = TextSink(file, form.compression)
        self._is_empty = True

    def write(self, rows: pa.RecordBatch) -> None:
        """Write one row group.

        Raises:
            ValueUnfit: a number is not finite, which JSON cannot say.
        """
        # polars would write null.
        for name in odd_columns(rows, _not_finite):
            raise ValueUnfit(
                column=name,
                value="NaN or an infinite number",
                format="json",
                rule=f"{name} is null or {name} between -1.7e308 and 1.7e308",
            )
        text = io.BytesIO()
        spelled(rows).write_ndjson(text)
        self._sink.write(text.getbuffer())
        self._is_empty = False

    def close(self) -> None:
        """Write what the compression holds back; of no rows an empty line, which readers skip."""
        if self._is_empty:
            # Arrow refuses a file without any byte.
            self._sink.write(b"\n")
        self._sink.close()


def _not_finite(values: pl.Expr, kind: Any) -> pl.Expr | None:
    return values.is_finite().not_() if isinstance(kind, pl.Float32 | pl.Float64) else None


def _parsed(placed: PlacedFile, form: PartFormat, wanted: pa.Schema) -> Iterator[pa.RecordBatch]:
    told = pa.schema([pa.field(field.name, read_as(field.type)) for field in wanted])
    full = pa.schema([pa.field(field.name, as_spelled(field.type)) for field in wanted])
    if not _has_rows(placed, form):
        return
    with opened_text(placed, form.compression) as file:
        reader = json_reader.open_json(
            file,
            read_options=json_reader.ReadOptions(use_threads=False, block_size=BLOCK_BYTES),
            parse_options=json_reader.ParseOptions(
                explicit_schema=told, unexpected_field_behavior="ignore"
            ),
        )
        for batch in reader:
            if batch.num_rows:
                yield batch.select(wanted.names).cast(full).cast(wanted)


def _has_rows(placed: PlacedFile, form: PartFormat) -> bool:
    """Return whether there is more than the empty line of a file without rows."""
    with opened_text(placed, form.compression) as file:
        return bool(file.read(2).strip())


def _refusal(kind: pa.DataType) -> str | None:
    if pa.types.is_map(kind):
        return "JSON has no map; make it a list of structs, or a struct"
    if pa.types.is_time(kind):
        return "readers of JSON know no time without a day"
    return None


KIND: PartKind = JsonParts()
