"""Infer the types of columns of text files from the rows at their beginning.

A type is only inferred where every value seen has it; everything else is text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.csv as arrow_csv

from tidegate.physical.csv import CsvFile, Header, convert_options, header_of, parse_options
from tidegate.physical.json_lines import JsonFile, as_parsed, parsed
from tidegate.physical.lost_digits import first_lost_text, has_large
from tidegate.physical.text_stream import MOST_BYTES, memory_file

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidegate.physical.text_stream import TextStream

_SAMPLE_BYTES = 256 << 10
_MICROSECONDS = "us"
_TIMES = (pa.date32(), pa.timestamp(_MICROSECONDS, "UTC"), pa.timestamp(_MICROSECONDS))


def csv_schema(source: CsvFile) -> pa.Schema:
    """Infer the columns of a CSV file with a header.

    Returns:
        The columns in the order of the file; of type null if no value was seen.

    Raises:
        pa.ArrowInvalid, OSError: its header cannot be read.
    """
    header = header_of(source)
    sample = _sample(source.stream())
    found = _inferred(sample, source, header)
    return pa.schema(list(zip(header.names, found, strict=True)))


def _sample(stream: TextStream) -> bytes:
    """Return the rows at the beginning of a file: all of a small one, else at least one.

    What may be the part of a row is cut off; a quote that is left open then is no mistake.
    """
    found = stream.read(_SAMPLE_BYTES)
    while not stream.has_ended and b"\n" not in found and len(found) <= MOST_BYTES:
        found += stream.read(_SAMPLE_BYTES)
    return found if stream.has_ended else found[: found.rfind(b"\n") + 1]


def _inferred(sample: bytes, source: CsvFile, header: Header) -> list[pa.DataType]:
    dialect, count = source.dialect, len(header.names)
    names = [str(index) for index in range(count)]
    reading = arrow_csv.ReadOptions(
        use_threads=False,
        block_size=len(sample) + 1,
        column_names=names,
        skip_rows_after_names=header.rows,
    )
    # Rows that do not fit are refused when they are read, with their numbers.
    parsing = parse_options(dialect, lambda _: "skip")
    if not count or not sample.strip():
        return [pa.null()] * count
    converting = convert_options(dialect)
    try:
        rows = arrow_csv.read_csv(memory_file(sample), reading, parsing, converting)
    except pa.ArrowInvalid:
        # What is wrong is told by the row that cannot be read.
        return [pa.string()] * count
    kinds = {field.name: _of_csv(field.type) for field in rows.schema}
    large = {name: pa.string() for name in names if has_large(rows[name])}
    if large:
        converting.include_columns, converting.column_types = [*large], large
        texts = arrow_csv.read_csv(memory_file(sample), reading, parsing, converting)
        # Long whole numbers with others beside them, such as identifiers.
        kinds |= {name: kind for name, kind in large.items() if first_lost_text(texts[name])}
    return [*kinds.values()]


def _of_csv(kind: pa.DataType) -> pa.DataType:
    types = pa.types
    if types.is_timestamp(kind):
        return pa.timestamp(_MICROSECONDS, "UTC" if kind.tz else None)
    plain = types.is_int64(kind) or types.is_float64(kind) or types.is_boolean(kind)
    return kind if plain or types.is_date32(kind) or types.is_null(kind) else pa.string()


def json_schema(source: JsonFile) -> pa.Schema:
    """Infer the columns of a file of JSON objects.

    Returns:
        The fields in the order in which they appear; of type null if no value was seen. A text that
        is a date or time in every object is one.

    Raises:
        pa.ArrowInvalid, OSError: it cannot be read.
    """
    sample = _sample(source.stream())
    if not sample.strip():
        return pa.schema([])
    guessed = parsed(sample, None).schema
    rows = parsed(sample, as_parsed(guessed))
    return pa.schema(
        [
            (field.name, _time_in(rows[field.name]) if pa.types.is_temporal(field.type) else kind)
            for field, kind in zip(guessed, as_parsed(guessed).types, strict=True)
        ]
    )


def _time_in(column: pa.ChunkedArray) -> pa.DataType:
    """Return as which times texts can be read: all as dates, or with a zone, or without."""
    return next((kind for kind in _TIMES if _can_be(column, kind)), pa.string())


def _can_be(column: pa.ChunkedArray, kind: pa.DataType) -> bool:
    try:
        column.cast(kind)
    except pa.ArrowInvalid:
        return False
    return True


def widened(schemas: Iterable[pa.Schema]) -> pa.Schema:
    """Return columns as which the samples of several files can be read.

    Whole numbers and others are numbers; what has nothing in common is text.

    Args:
        schemas: as inferred, in the order in which columns are added.
    """
    columns: dict[str, pa.DataType] = {}
    for schema in schemas:
        for field in schema:
            known = columns.get(field.name)
            columns[field.name] = field.type if known is None else _both(known, field.type)
    return pa.schema(list(columns.items()))


def _both(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    if {one, other} == {pa.int64(), pa.float64()}:
        return pa.float64()
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        return pa.struct(list(widened([pa.schema(list(one)), pa.schema(list(other))])))
    if pa.types.is_list(one) and pa.types.is_list(other):
        return pa.list_(_both(one.value_type, other.value_type))
    return pa.string()


def without_nulls(kind: pa.DataType) -> pa.DataType:
    """Return text in place of what had no value, at every depth."""
    if pa.types.is_null(kind):
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(without_nulls(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", without_nulls(kind.value_type)))
    return kind
