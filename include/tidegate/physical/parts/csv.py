"""Part files in CSV: RFC 4180, with a line feed after each row, and NULL unlike an empty text."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa
import pyarrow.csv as csv

from tidegate.model.part_format import CsvForm
from tidegate.physical.parts.protocol import Unfit
from tidegate.physical.parts.text_rows import TextRows
from tidegate.physical.parts.texts import (
    BLOCK_BYTES,
    TextSink,
    as_spelled,
    opened_text,
    spelled,
    text_unfit,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow.dataset as ds

    from tidegate.model.part_format import PartFormat
    from tidegate.physical.parts.protocol import PartKind
    from tidegate.storage import PlacedFile


class CsvParts:
    """See `PartKind`."""

    def unfit(self, schema: pa.Schema, form: PartFormat) -> Iterator[Unfit]:
        """Yield columns whose type has no cell in CSV."""
        yield from text_unfit(schema, _refusal)
        if len(schema) == 1 and not _csv(form).null_value:
            why = "as the only column its NULL would be an empty line; set `target.csv.null_value`"
            yield Unfit(schema.names[0], str(schema.types[0]), why)

    def writer(self, file: BinaryIO, first: pa.RecordBatch, form: PartFormat) -> CsvWriter:
        """Begin a file."""
        return CsvWriter(file, first.schema, form)

    def rows(self, file: PlacedFile, form: PartFormat, columns: pa.Schema | None) -> TextRows:
        """Open a file, whose columns have to be told."""
        if columns is None:
            problem = f"nothing tells the columns of {file.path}"
            raise pa.ArrowInvalid(problem)
        names = columns.names
        return TextRows(file, columns, lambda wanted: _parsed(file, form, names, wanted))

    def dataset_format(self, form: PartFormat, columns: pa.Schema) -> ds.FileFormat | None:
        """Return Arrow's own, with what the files do not say; it knows no names that end in zst."""
        if form.compression == "zstd":
            return None
        # It imports pandas, which a task does not need.
        import pyarrow.dataset as ds

        return ds.CsvFileFormat(**_options(form, columns.names, columns))


class CsvWriter:
    """See `PartWriter`.

    Args:
        file: new and empty.
        schema: the columns.
        form: how they are written.
    """

    def __init__(self, file: BinaryIO, schema: pa.Schema, form: PartFormat) -> None:
        self._form = _csv(form)
        self._sink = TextSink(file, form.compression)
        if self._form.header:
            self._write(pa.RecordBatch.from_pylist([], schema), header=True)

    def write(self, rows: pa.RecordBatch) -> None:
        """Write one row group."""
        self._write(rows, header=False)

    def close(self) -> None:
        """Write what the compression holds back."""
        self._sink.close()

    def _write(self, rows: pa.RecordBatch, *, header: bool) -> None:
        text = io.BytesIO()
        spelled(rows).write_csv(
            text,
            include_header=header,
            separator=self._form.delimiter,
            quote_char=self._form.quote,
            null_value=self._form.null_value,
            # An empty text is quoted anyway; another one may be spelled like NULL.
            quote_style="non_numeric" if self._form.null_value and not header else "necessary",
        )
        self._sink.write(text.getbuffer())


def _options(
    form: PartFormat, names: list[str], types: pa.Schema, chosen: Sequence[str] = ()
) -> dict[str, object]:
    """Return the options with which Arrow reads a file.

    Args:
        form: how the file was written.
        names: all columns of the file in its order.
        types: of the columns that are read.
        chosen: the columns to read; empty: all, or those that a dataset is asked for.
    """
    said = _csv(form)
    return {
        "read_options": csv.ReadOptions(
            use_threads=False,
            block_size=BLOCK_BYTES,
            column_names=names,
            skip_rows=int(said.header),
        ),
        "parse_options": csv.ParseOptions(
            delimiter=said.delimiter,
            quote_char=said.quote,
            newlines_in_values=True,
            ignore_empty_lines=False,
        ),
        "convert_options": csv.ConvertOptions(
            column_types=types,
            include_columns=chosen,
            null_values=[said.null_value],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    }


def _parsed(
    placed: PlacedFile, form: PartFormat, names: list[str], wanted: pa.Schema
) -> Iterator[pa.RecordBatch]:
    told = pa.schema([pa.field(field.name, as_spelled(field.type)) for field in wanted])
    if not _csv(form).header and not _has_text(placed, form):
        # Arrow refuses a file without any byte.
        return
    with opened_text(placed, form.compression) as file:
        reader = csv.open_csv(file, **_options(form, names, told, wanted.names))
        for batch in reader:
            if batch.num_rows:
                yield batch.select(wanted.names).cast(wanted)


def _has_text(placed: PlacedFile, form: PartFormat) -> bool:
    with opened_text(placed, form.compression) as file:
        return bool(file.read(1))


def _csv(form: PartFormat) -> CsvForm:
    return form.csv or CsvForm()


def _refusal(kind: pa.DataType) -> str | None:
    return "a cell of CSV has one value" if pa.types.is_nested(kind) else None


KIND: PartKind = CsvParts()
