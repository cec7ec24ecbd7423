"""Compute the target partition of each row of a batch, column by column. Writes nothing."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidegate.errors import ColumnMissing, PartitionFieldInvalid
from tidegate.model.nearness import listed_with_nearest
from tidegate.model.partition import DEFAULT_NAME, Partition, PartitionField, Transform
from tidegate.model.partition_value import hour_is_of_day
from tidegate.physical.arrays import (
    FEW_CODES,
    Codes,
    Flags,
    Integers,
    dense_codes,
    distinct,
    integer_column,
    integers,
    missing,
)
from tidegate.stage.ticks import SECONDS_PER_DAY, wall_clock
from tidegate.stage.value_text import LONGEST_NAME, Texts, identity_writer, reserved, too_long
from tidegate.stage.zones import SECONDS_PER_HOUR

Encoder = Callable[[pa.Array], tuple[Codes, Texts]]
"""Column → for each row the position of its value's text in the texts."""

_HOURS_PER_DAY = 24


@dataclass(frozen=True)
class BatchSplit:
    """The rows of one batch by partition."""

    codes: Codes
    """int[n]: position in `partitions` of each row's partition."""
    partitions: tuple[Partition, ...]
    """The partitions of the batch, in the order of their codes."""

    def slices(self, batch: pa.RecordBatch) -> Iterator[tuple[Partition, pa.RecordBatch]]:
        """Yield each partition's rows of a batch, in order, in memory of their own.

        A slice of a sorted copy would be cheaper, but a rare partition's few rows would keep the
        whole copy alive until they are written.
        """
        if len(self.partitions) == 1:
            yield self.partitions[0], batch
            return
        runs = self._runs()
        if runs is not None:
            nothing = batch.slice(0, 0)
            for code, (start, count) in runs.items():
                # Concatenated with an empty batch it is copied, at an eighth of the cost of `take`.
                rows = pa.concat_batches([batch.slice(start, count), nothing])
                yield self.partitions[code], rows
            return
        order, counts = self._order()
        positions = integer_column(order)
        start = 0
        for partition, count in zip(self.partitions, counts, strict=True):
            yield partition, batch.take(positions.slice(start, count))
            start += count

    def _runs(self) -> dict[int, tuple[int, int]] | None:
        """Return the first row and the number of rows of each partition, if they are adjacent.

        In the order of their codes; None if rows of one partition are in several places.
        """
        changes = np.flatnonzero(np.diff(self.codes)) + 1
        if len(changes) + 1 != len(self.partitions):
            return None
        starts = np.concatenate(([0], changes))
        counts = np.diff(np.append(starts, len(self.codes)))
        codes = self.codes[starts].tolist()
        return dict(
            sorted(zip(codes, zip(starts.tolist(), counts.tolist(), strict=True), strict=True))
        )

    def _order(self) -> tuple[Integers, list[int]]:
        """Sort row positions by partition; also return the number of rows of each."""
        codes: npt.NDArray[np.integer[Any]] = self.codes
        if len(self.partitions) <= FEW_CODES:
            # NumPy uses radix sort for integers of up to 16 bits.
            codes = codes.astype(np.uint16)
        order = np.argsort(codes, kind="stable").astype(np.int64, copy=False)
        return order, np.bincount(self.codes, minlength=len(self.partitions)).tolist()

    def touched(self, rows: Flags) -> Iterator[tuple[Partition, int]]:
        """Yield the partitions that have at least one of the marked rows, with their number.

        Args:
            rows: bool[n].
        """
        codes, counts = np.unique(self.codes[rows], return_counts=True)
        for code, count in zip(codes, counts.tolist(), strict=True):
            yield self.partitions[code], count


class PartitionComputer:
    """The partitions that rows of one schema go to (PC-P01).

    Args:
        schema: the schema of the batches.
        fields: `target.partition_by`, in declared order; empty for an unpartitioned target.
        timezone: the pipeline's zone, for `day()`, `hour()`, `month()`.
        default_name: directory value of the default partition, which the text of no value may equal
            (PC-P07).

    Raises:
        ColumnMissing: a key names a column that the schema does not have.
        PartitionFieldInvalid: a column's type does not fit its key, or a key has the name of a
            column of the part files.
    """

    def __init__(
        self,
        schema: pa.Schema,
        fields: Sequence[PartitionField],
        *,
        timezone: str = "UTC",
        default_name: str = DEFAULT_NAME,
    ) -> None:
        for column in columns_of(fields):
            if column not in schema.names:
                known = listed_with_nearest(column, schema.names)
                raise ColumnMissing(source="target.partition_by", column=column, known=known)
        self.data_columns = data_columns(schema.names, fields)
        """Columns of the part files."""
        _check_names(fields, self.data_columns)
        self._names = tuple(field.name for field in fields)
        self._encoders = tuple(_encoder(field, schema, timezone, fields) for field in fields)
        self._fields = tuple(fields)
        self._schema = schema
        self._default_name = default_name
        self._known: dict[tuple[str | None, ...], Partition] = {}

    def split(self, batch: pa.RecordBatch) -> BatchSplit:
        """Return each row's partition.

        Raises:
            PartitionValueReserved: the text of a value is the name of the default partition.
        """
        codes, values = self.values(batch)
        return BatchSplit(codes, tuple(self._partition(item) for item in values))

    def values(self, batch: pa.RecordBatch) -> tuple[Codes, list[tuple[str | None, ...]]]:
        """Return each combination of key texts once, and the position of each row's combination."""
        codes: Codes = np.zeros(batch.num_rows, dtype=np.intp)
        values: list[tuple[str | None, ...]] = [()]
        for encoder in self._encoders:
            found, texts = encoder(batch)
            codes, pairs = dense_codes(codes * len(texts) + found, len(values) * len(texts))
            values = [(*values[pair // len(texts)], texts[pair % len(texts)]) for pair in pairs]
        return codes, values

    def _partition(self, values: tuple[str | None, ...]) -> Partition:
        if values not in self._known:
            if self._default_name in values:
                field = self._fields[values.index(self._default_name)]
                static = field.transform is Transform.STATIC
                kind = pa.string() if static else self._schema.field(field.column).type
                raise reserved(field, kind, self._default_name)
            named = tuple(zip(self._names, values, strict=True))
            self._known[values] = self._checked(Partition(named, self._default_name))
        return self._known[values]

    def _checked(self, found: Partition) -> Partition:
        for field, folder in zip(self._fields, found.path.split("/"), strict=False):
            if (size := len(folder.encode())) > LONGEST_NAME:
                raise too_long(field, str(dict(found.values)[field.name]), size)
        return found


def data_columns(names: Sequence[str], fields: Sequence[PartitionField]) -> tuple[str, ...]:
    """Return the columns of part files, without those of identity keys, which are in the path."""
    dropped = {
        field.name if field.transform is Transform.STATIC else field.column
        for field in fields
        if field.transform in {Transform.IDENTITY, Transform.STATIC}
    }
    return tuple(name for name in names if name not in dropped)


def columns_of(fields: Sequence[PartitionField]) -> tuple[str, ...]:
    """Return the columns of the source that keys are made from, each once."""
    return tuple(dict.fromkeys(column for field in fields for column in field.columns))


def _check_names(fields: Sequence[PartitionField], columns: Sequence[str]) -> None:
    # Spark does not tell upper from lower case.
    folded = {column.casefold(): column for column in columns}
    for field in fields:
        found = folded.get(field.name.casefold())
        if found is not None:
            problem = (
                f"the source has a column '{found}', too, and readers would find two columns "
                "of one name. Name the key otherwise, or leave that column out of "
                "`source.read.columns`"
            )
            raise PartitionFieldInvalid(key=field.name, column=field.column, problem=problem)


def _by_text(codes: Codes, texts: Texts) -> tuple[Codes, Texts]:
    """Merge values with the same text: NULL with empty text, days of one month."""
    positions: dict[str | None, int] = {}
    joined = np.array([positions.setdefault(text, len(positions)) for text in texts], dtype=np.intp)
    return (codes, texts) if len(positions) == len(texts) else (joined[codes], list(positions))


def _encoder(
    field: PartitionField, schema: pa.Schema, timezone: str, fields: Sequence[PartitionField]
) -> Callable[[pa.RecordBatch], tuple[Codes, Texts]]:
    """Return the function that numbers the values of a key in the rows of a batch."""
    if field.transform is Transform.STATIC:
        return lambda batch: (np.zeros(batch.num_rows, dtype=np.intp), [field.column])
    index, kind = schema.get_field_index(field.column), schema.field(field.column).type
    encode = (
        _identity_encoder(field, kind, timezone)
        if field.transform is Transform.IDENTITY
        else _time_encoder(field, kind, timezone, fields)
    )
    return lambda batch: encode(batch.column(index))


def _identity_encoder(field: PartitionField, kind: pa.DataType, timezone: str) -> Encoder:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    write = identity_writer(field, kind, timezone=timezone)

    def encode(column: pa.Array) -> tuple[Codes, Texts]:
        encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        texts = [*write(encoded.dictionary), None]
        codes = integers(encoded.indices).astype(np.intp, copy=False)
        absent = missing(encoded.indices)
        if absent is not None:
            codes = np.where(absent, len(texts) - 1, codes)
        return _by_text(codes, texts)

    return encode


def _time_encoder(
    field: PartitionField, kind: pa.DataType, timezone: str, fields: Sequence[PartitionField]
) -> Encoder:
    hourly = field.transform is Transform.HOUR
    if not (pa.types.is_timestamp(kind) or (pa.types.is_date(kind) and not hourly)):
        wanted = "a timestamp" if hourly else "a timestamp or a date"
        problem = f"{field.transform.value}() needs {wanted}, found {kind}"
        raise PartitionFieldInvalid(key=field.name, column=field.column, problem=problem)
    span = SECONDS_PER_HOUR if hourly else SECONDS_PER_DAY
    of_day = hour_is_of_day(field, fields)

    def encode(column: pa.Array) -> tuple[Codes, Texts]:
        ticks = wall_clock(column, timezone)
        units = ticks.floor(span)
        if of_day:
            units %= _HOURS_PER_DAY
        codes, different = distinct(units)
        texts: Texts = [_time_text(unit, field.transform, of_day=of_day) for unit in different]
        if ticks.missing is not None:
            codes = np.where(ticks.missing, len(texts), codes)
            texts.append(None)
        return _by_text(codes, texts)

    return encode


@functools.lru_cache(maxsize=1 << 14)
def _time_text(unit: int, transform: Transform, *, of_day: bool) -> str:
    """Return days or hours since 1970 in the format of `model.partition_value`."""
    if of_day:
        return f"{unit:02d}"
    if transform is Transform.HOUR:
        return str(np.datetime64(unit, "h"))
    if transform is Transform.MONTH:
        return str(np.datetime64(unit, "D").astype("datetime64[M]"))
    return str(np.datetime64(unit, "D"))
