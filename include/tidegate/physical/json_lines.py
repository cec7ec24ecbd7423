"""Read files of JSON objects, one after the other, with the types that the caller knows.

Decides nothing about columns: a value that is none of its column's type is an error with its row.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.json as arrow_json

from tidegate.physical.protocol import BATCH_ROWS, counted_rows
from tidegate.physical.streamed import InvalidRow, StreamedRows, between
from tidegate.physical.text_stream import BLOCK_BYTES, MOST_BYTES, TextStream, memory_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_ANY = "_"
_UNKNOWN = (
    "expected only the fields that the first rows of the files have, found another; declare all "
    "columns in `source.columns`"
)


@dataclass(frozen=True)
class JsonFile:
    """An open file, and how its text is read."""

    file: pa.NativeFile
    compression: str | None = None
    encoding: str = "utf-8"

    def stream(self) -> TextStream:
        """Return the text from its beginning; the file stays open."""
        return TextStream(self.file, self.compression, self.encoding)


class JsonRows(StreamedRows):
    """See `PhysicalRows`. A field that an object does not have is NULL.

    Args:
        source: the open file, closed with this.
        columns: the fields that objects have, with their types.
        complete: whether there may be no other field, at any depth; else others are left out.
    """

    def __init__(self, source: JsonFile, columns: pa.Schema, *, complete: bool = False) -> None:
        super().__init__(source)
        self._source = source
        self._columns = columns
        self._is_complete = complete

    @property
    def schema(self) -> pa.Schema:
        """The columns, as they were given."""
        return self._columns

    def batches(
        self, columns: Sequence[str], start: int, end: int, batch_rows: int = BATCH_ROWS
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Parse the file from its beginning.

        Raises:
            InvalidRow: a line or value does not fit.
        """
        wanted = pa.schema([self._columns.field(name) for name in columns])
        yield from between(self._parsed(wanted), start, end, batch_rows)

    def _parsed(self, wanted: pa.Schema) -> Iterator[pa.RecordBatch]:
        done = 0
        asked = _Asked(self._columns, complete=True) if self._is_complete else _Asked(wanted)
        for block in _blocks(self._source.stream()):
            try:
                for batch in asked.rows(block):
                    yield (
                        counted_rows(batch.num_rows)
                        if not wanted.names
                        else _typed(batch, wanted, done)
                    )
                    done += batch.num_rows
            except InvalidRow:
                raise
            except pa.ArrowInvalid as refused:
                raise _named(str(refused), block, asked, done) from refused


def _blocks(stream: TextStream) -> Iterator[bytes]:
    """Yield whole lines, as many as are parsed at a time.

    Raises:
        InvalidRow: a line is too long.
    """
    left = b""
    while content := left + stream.read(BLOCK_BYTES):
        cut = len(content) if stream.has_ended else content.rfind(b"\n") + 1
        if content[:cut].strip():
            yield content[:cut]
        left = content[cut:]
        if stream.has_ended:
            return
        if len(left) > MOST_BYTES:
            problem = f"expected objects of at most {MOST_BYTES >> 20} MiB, found a longer one"
            raise InvalidRow(None, None, problem)


@dataclass(frozen=True)
class _Asked:
    """Which fields of objects are parsed."""

    columns: pa.Schema
    complete: bool = False
    """Whether another field is an error."""

    def rows(self, block: bytes) -> list[pa.RecordBatch]:
        """Parse whole lines, with texts for times.

        Raises:
            pa.ArrowInvalid: one does not fit.
        """
        # Without any field, Arrow would not know how many rows there are.
        fields = self.columns if self.columns.names else pa.schema([(_ANY, pa.string())])
        table = parsed(block, as_parsed(fields), "error" if self.complete else "ignore")
        # Arrow does not check that texts are UTF-8.
        table.validate(full=True)
        return [*table.combine_chunks().to_batches()]

    def refuses(self, lines: Sequence[bytes]) -> bool:
        """Return whether some lines cannot be parsed."""
        try:
            self.rows(b"\n".join(lines))
        except pa.ArrowInvalid:
            return True
        return False


def _named(said: str, block: bytes, asked: _Asked, done: int) -> pa.ArrowInvalid:
    """Return the error with its row and column."""
    lines = [line for line in block.split(b"\n") if line.strip(b" \t\r\xef\xbb\xbf")]
    low, high = 0, len(lines)
    while high - low > 1:
        middle = (low + high) // 2
        if asked.refuses(lines[low:middle]):
            high = middle
        else:
            low = middle
    return InvalidRow(done + low + 1, *_blamed(lines[low], asked, said))


def parsed(
    text: bytes,
    columns: pa.Schema | None = None,
    others: Literal["infer", "ignore", "error"] = "infer",
) -> pa.Table:
    """Parse objects without a change of types.

    Args:
        text: the objects.
        columns: the types of fields.
        others: what becomes of other fields: Arrow finds their types, or they are left out, or an
            error.

    Raises:
        pa.ArrowInvalid: they cannot be parsed, or there is none.
    """
    parsing = arrow_json.ParseOptions(explicit_schema=columns, unexpected_field_behavior=others)
    reading = arrow_json.ReadOptions(use_threads=False, block_size=len(text) + 2)
    return arrow_json.read_json(memory_file(text + b"\n"), reading, parsing)


def as_parsed(columns: pa.Schema) -> pa.Schema:
    """Return the columns with texts for times: Arrow would pass over zones in them."""
    return pa.schema([column.with_type(_parsed_type(column.type)) for column in columns])


def _parsed_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_temporal(kind):
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_parsed_type(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_parsed_type(kind.value_type)))
    return kind


def _typed(batch: pa.RecordBatch, wanted: pa.Schema, done: int) -> pa.RecordBatch:
    """Turn texts into times.

    Args:
        batch: as parsed.
        wanted: its columns.
        done: how many rows stand before it.
    """
    columns = []
    for field in wanted:
        column = batch.column(field.name)
        try:
            columns.append(column if column.type == field.type else column.cast(field.type))
        except pa.ArrowInvalid as refused:
            index = _first_refused(column, field.type)
            problem = _said(column[index].as_py(), field.type)
            raise InvalidRow(done + index + 1, field.name, problem) from refused
    return pa.RecordBatch.from_arrays(columns, schema=wanted)


def _first_refused(column: pa.Array, kind: pa.DataType) -> int:
    """Return the position of the first value that has no such type, of which there is one."""
    low, high = 0, len(column)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            column.slice(low, middle - low).cast(kind)
            low = middle
        except pa.ArrowInvalid:
            high = middle
    return low


def _blamed(line: bytes, asked: _Asked, problem: str) -> tuple[str | None, str]:
    """Return the column of a line that cannot be parsed, and what is wrong with it."""
    try:
        values = json.loads(line)
    except ValueError as broken:
        shown = line[:80].decode(errors="backslashreplace")
        return None, f"expected a JSON object in one line, found {shown!r}: {broken}"
    if not isinstance(values, dict):
        return None, f"expected a JSON object, found {json.dumps(values)[:80]}"
    for field in asked.columns:
        if field.name in values and _Asked(pa.schema([field])).refuses([line]):
            return field.name, _said(values[field.name], field.type)
    unknown = _unknown(values, pa.struct(list(asked.columns)))
    return (unknown, _UNKNOWN) if unknown and asked.complete else (None, problem)


def _unknown(value: Any, kind: pa.DataType) -> str | None:
    """Return the path of a field that a type does not have; None if there is none."""
    if isinstance(value, list) and pa.types.is_list(kind):
        return next(filter(None, (_unknown(item, kind.value_type) for item in value)), None)
    if not isinstance(value, dict) or not pa.types.is_struct(kind):
        return None
    known = {field.name: field.type for field in kind}
    for name, content in value.items():
        if name not in known:
            return str(name)
        if (within := _unknown(content, known[name])) is not None:
            return f"{name}.{within}"
    return None


def _said(value: Any, kind: pa.DataType) -> str:
    return f"expected a value of type {kind}, found {json.dumps(value, ensure_ascii=False)[:80]}"
