"""Make the frames that expectations run on, so that both engines agree."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from tidegate.gate.content import reader
from tidegate.gate.suite import Sees

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tidegate.gate.content import Footers, UnifiedRows
    from tidegate.physical.parts import PartFiles


class SparkFrame(Protocol):
    """Opens files as a Spark frame of some columns, NULL in files without the column."""

    def __call__(
        self, files: list[str], columns: list[str], read: SparkRows | None = None, /
    ) -> Any:
        """Open files; without any, the frame has no rows.

        Args:
            files: paths.
            columns: names of the columns, in this order.
            read: reads a file in a task. None: Spark reads them itself.
        """
        ...


@dataclass(frozen=True, eq=False)
class SparkRows:
    """Reads files with types that Spark knows; can be sent to its tasks."""

    rows: UnifiedRows
    types: str
    """Of the columns, as SQL."""

    @property
    def schema(self) -> pa.Schema:
        """The columns, with types that Spark takes from Arrow."""
        return pa.schema([pa.field(item.name, _spark_type(item.type)) for item in self.rows.schema])

    def __call__(self, path: str) -> Iterator[pa.RecordBatch]:
        """Read a file."""
        schema = self.schema
        for batch in self.rows(path):
            # Spark counts microseconds, and truncates, too, when it reads what has more digits.
            columns = [
                column.cast(field.type, safe=False)
                for column, field in zip(batch.columns, schema, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


_SQL_TYPES = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.uint8(): "SMALLINT",
    pa.uint16(): "INT",
    pa.uint32(): "BIGINT",
    pa.uint64(): "DECIMAL(20, 0)",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.date32(): "DATE",
    pa.binary(): "BINARY",
    pa.large_binary(): "BINARY",
}
"""The Spark types of Arrow types in Parquet files; others are read as text."""

_ARROW_TYPES = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.null(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.large_string(): pa.string(),
}
"""The Arrow types of the same Spark types, where Spark does not take the type itself."""


def to_pandas(table: pa.Table) -> Any:
    """Make a pandas frame in which only NULL is missing, and values are unchanged.

    Integers and booleans get pandas' nullable types: the plain ones would turn a column with a
    NULL into floats (and lose digits above 2**53) or objects.
    """
    import pandas as pd

    nullable = {
        pa.int8(): pd.Int8Dtype(),
        pa.int16(): pd.Int16Dtype(),
        pa.int32(): pd.Int32Dtype(),
        pa.int64(): pd.Int64Dtype(),
        pa.uint8(): pd.UInt8Dtype(),
        pa.uint16(): pd.UInt16Dtype(),
        pa.uint32(): pd.UInt32Dtype(),
        pa.uint64(): pd.UInt64Dtype(),
        pa.bool_(): pd.BooleanDtype(),
    }
    frame = table.to_pandas(types_mapper=nullable.get)
    # Without columns, only the index has the number of rows.
    return frame if table.num_columns else pd.DataFrame(index=range(table.num_rows))


def seen(rows: pa.Table, form: Sees) -> Any:
    """Make the pandas frame that expectations see.

    pandas has no decimals but Python objects, with which statistics take a hundred times as long
    and fail at NULL, and of which none equals the bound 0.01 of a suite. So expectations see
    floats, as Spark compares them; objects are left where digits of one of them would be lost,
    which statistics do not notice, and where types, texts such as 0.10 or exact sums are checked.
    """
    decimals = {
        number: rows.column(number)
        for number, field in enumerate(rows.schema)
        if pa.types.is_decimal(field.type) and form is not Sees.TYPES
    }
    # By way of text, here and back, because Arrow's own cast makes 0.30000000000000004 of 0.3, and
    # 1.100000000000000088 of 1.1.
    floats = {
        number: column.cast(pa.string()).cast(pa.float64()) for number, column in decimals.items()
    }
    # All or none, because a check may compare two columns.
    if form in {Sees.NUMBERS, Sees.FLOATS} or all(
        _has_all_digits(floats[number], column) for number, column in decimals.items()
    ):
        for number, column in floats.items():
            rows = rows.set_column(number, rows.schema.names[number], column)
    return to_pandas(_without_nullable(rows) if form is Sees.FLOATS else rows)


def _without_nullable(rows: pa.Table) -> pa.Table:
    """Return whole numbers as floats where one is NULL, on whose NA in pandas the library fails."""
    for number, field in enumerate(rows.schema):
        column = rows.column(number)
        if pa.types.is_integer(field.type) and (column.null_count or not len(column)):
            rows = rows.set_column(number, field.name, column.cast(pa.float64(), safe=False))
    return rows


def _has_all_digits(floats: pa.ChunkedArray, decimals: pa.ChunkedArray) -> bool:
    try:
        return bool(floats.cast(pa.string()).cast(decimals.type).equals(decimals))
    except pa.ArrowInvalid:
        # The float next to the largest values is beyond their type.
        return False


def in_spark(
    spark_frame: SparkFrame,
    footers: Footers,
    columns: Sequence[str],
    parts: PartFiles | None = None,
) -> Any:
    """Read columns of all files as one Spark frame, each with the type that all files share.

    Spark reads files together only if they agree on the types of their columns. Such files are read
    together, and the frames are joined by a union, which widens types as the target does. Without
    files, the frame has the columns but no rows.
    """
    stored = [name for name in columns if name in footers.schema.names]
    if not footers.own:
        typed = ((name, _sql_type(footers.schema.field(name).type)) for name in stored)
        nulls = (f"CAST(NULL AS {kind}) AS {_quoted(name)}" for name, kind in typed)
        return spark_frame([], []).selectExpr(*nulls)
    if parts is not None and not parts.form.kind.is_read_by_spark:
        rows = reader(parts, footers, stored)
        types = ", ".join(f"{_quoted(item.name)} {_sql_type(item.type)}" for item in rows.schema)
        return spark_frame(list(footers.own), stored, SparkRows(rows, types))
    frames = []
    for files in _agreeing(footers, stored):
        names = {name for path in files for name in footers.own[path].names}
        frames.append(spark_frame(files, [name for name in stored if name in names]))
    if len(frames) == 1:
        return frames[0]
    whole = functools.reduce(
        lambda one, other: one.unionByName(other, allowMissingColumns=True), frames
    )
    return whole.select(*map(_quoted, stored))


def with_constants(frame: Any, constants: Mapping[str, str | None]) -> Any:
    """Add the partition's values to a Spark frame, as SQL: this package imports no pyspark."""
    return frame.selectExpr("*", *(f"{_literal(text)} AS {_quoted(name)}"
                                   for name, text in constants.items()))  # fmt: skip


def _literal(text: str | None) -> str:
    if text is None:
        return "CAST(NULL AS STRING)"
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _quoted(name: str) -> str:
    doubled = name.replace("`", "``")
    return f"`{doubled}`"


def _sql_type(kind: pa.DataType) -> str:
    if pa.types.is_dictionary(kind):
        return _sql_type(kind.value_type)
    if pa.types.is_nested(kind):
        return _nested_sql_type(kind)
    if pa.types.is_timestamp(kind):
        return "TIMESTAMP" if kind.tz else "TIMESTAMP_NTZ"
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    text = "BINARY" if pa.types.is_fixed_size_binary(kind) else "STRING"
    return _SQL_TYPES.get(kind, text)


def _spark_type(kind: pa.DataType) -> pa.DataType:
    """Return the Arrow type of what `_sql_type` names."""
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz and "UTC")
    if pa.types.is_nested(kind):
        return _spark_nested(kind)
    if pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    return pa.string() if pa.types.is_time(kind) else _ARROW_TYPES.get(kind, kind)


def _spark_nested(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_spark_type(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_spark_type(kind.key_type), _spark_type(kind.item_type))
    return pa.list_(_spark_type(kind.value_type))


def _nested_sql_type(kind: pa.DataType) -> str:
    if pa.types.is_struct(kind):
        inner = (f"{_quoted(field.name)}: {_sql_type(field.type)}" for field in kind)
        return f"STRUCT<{', '.join(inner)}>"
    if pa.types.is_map(kind):
        return f"MAP<{_sql_type(kind.key_type)}, {_sql_type(kind.item_type)}>"
    return f"ARRAY<{_sql_type(kind.value_type)}>"


def _agreeing(footers: Footers, columns: Sequence[str]) -> list[list[str]]:
    """Group files whose columns have the same types; a missing column matches any type."""
    groups: list[tuple[dict[tuple[str, ...], pa.DataType], list[str]]] = []
    for path, own in footers.own.items():
        found = dict(
            leaf
            for name in columns
            if name in own.names
            for leaf in _leaves((name,), own.field(name).type)
        )
        for known, files in groups:
            if all(known.get(leaf, kind) == kind for leaf, kind in found.items()):
                known.update(found)
                files.append(path)
                break
        else:
            groups.append((found, [path]))
    return [files for _, files in groups]


def _leaves(
    place: tuple[str, ...], kind: pa.DataType
) -> Iterator[tuple[tuple[str, ...], pa.DataType]]:
    """Return the types of a column's innermost values; Spark itself joins fields of structs."""
    if pa.types.is_dictionary(kind):
        yield from _leaves(place, kind.value_type)
    elif pa.types.is_nested(kind):
        for number in range(kind.num_fields):
            field = kind.field(number)
            name = field.name if pa.types.is_struct(kind) else str(number)
            yield from _leaves((*place, name), field.type)
    else:
        yield place, kind
