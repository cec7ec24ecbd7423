"""Read files of JSON objects, one after the other, with the types that the caller knows.

Decides nothing about columns: a value that is none of its column's type is an error with its row.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.json as arrow_json

from tidegate.physical.lost_digits import LOST_DIGITS, first_lost_in_objects, has_large
from tidegate.physical.protocol import BATCH_ROWS, counted_rows
from tidegate.physical.streamed import InvalidRow, StreamedRows, between
from tidegate.physical.text_stream import BLOCK_BYTES, MOST_BYTES, TextStream, memory_file
from tidegate.physical.zone_hint import zone_hint

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_ANY = "_"


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
        columns: the fields that objects may have, with their types.
        inferred: whether they only seem to have these types by the first rows: a whole number of
            which a double loses digits is an error then.
    """

    def __init__(self, source: JsonFile, columns: pa.Schema, *, inferred: bool = False) -> None:
        super().__init__(source)
        self._source = source
        self._columns = columns
        self._is_inferred = inferred

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
        for block in _blocks(self._source.stream()):
            try:
                batches = _rows_of(block, wanted)
                if self._is_inferred:
                    _check_digits(block, batches, wanted, done)
                for batch in batches:
                    yield (
                        counted_rows(batch.num_rows)
                        if not wanted.names
                        else _typed(batch, wanted, done)
                    )
                    done += batch.num_rows
            except InvalidRow:
                raise
            except pa.ArrowInvalid as refused:
                raise _named(str(refused), block, wanted, done) from refused


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


def _rows_of(block: bytes, wanted: pa.Schema) -> list[pa.RecordBatch]:
    """Parse whole lines, with texts for times."""
    # Without any field, Arrow would not know how many rows there are.
    asked = as_parsed(wanted) if wanted.names else pa.schema([(_ANY, pa.string())])
    table = parsed(block, asked)
    # Arrow does not check that texts are UTF-8.
    table.validate(full=True)
    return [*table.combine_chunks().to_batches()]


def _named(said: str, block: bytes, wanted: pa.Schema, done: int) -> pa.ArrowInvalid:
    """Return the error with its row and column."""
    lines = [line for line in block.split(b"\n") if line.strip(b" \t\r\xef\xbb\xbf")]
    low, high = 0, len(lines)
    while high - low > 1:
        middle = (low + high) // 2
        if _refused(lines[low:middle], wanted) is None:
            low = middle
        else:
            high = middle
    return InvalidRow(done + low + 1, *_blamed(lines[low], wanted, said))


def parsed(text: bytes, columns: pa.Schema | None) -> pa.Table:
    """Parse objects without a change of types; without columns, as Arrow finds them.

    Raises:
        pa.ArrowInvalid: they cannot be parsed, or there is none.
    """
    parsing = arrow_json.ParseOptions(
        explicit_schema=columns,
        unexpected_field_behavior="ignore" if columns is not None else "infer",
    )
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


def _check_digits(
    block: bytes, batches: Sequence[pa.RecordBatch], wanted: pa.Schema, done: int
) -> None:
    """Refuse whole numbers that a double would turn into others.

    Raises:
        InvalidRow: there is one.
    """
    large = [
        field for field in wanted if any(has_large(batch.column(field.name)) for batch in batches)
    ]
    if large and (lost := first_lost_in_objects(block, large)):
        index, column, number = lost
        problem = LOST_DIGITS.format(number, "a `decimal(P,S)`")
        raise InvalidRow(done + index + 1, column, problem)


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


def _refused(lines: Sequence[bytes], wanted: pa.Schema) -> str | None:
    """Return why some lines cannot be parsed; None if they can."""
    try:
        _rows_of(b"\n".join(lines), wanted)
    except pa.ArrowInvalid as refused:
        return str(refused)
    return None


def _blamed(line: bytes, columns: pa.Schema, problem: str) -> tuple[str | None, str]:
    """Return the column of a line that cannot be parsed, and what is wrong with it."""
    try:
        values = json.loads(line)
    except ValueError as broken:
        shown = line[:80].decode(errors="backslashreplace")
        return None, f"expected a JSON object in one line, found {shown!r}: {broken}"
    if not isinstance(values, dict):
        return None, f"expected a JSON object, found {json.dumps(values)[:80]}"
    for field in columns:
        if _refused([line], pa.schema([field])) is not None and field.name in values:
            return field.name, _said(values[field.name], field.type)
    return None, problem


def _said(value: Any, kind: pa.DataType) -> str:
    found = json.dumps(value, ensure_ascii=False)[:80]
    return f"expected a value of type {kind}, found {found}{zone_hint(value, kind)}"
