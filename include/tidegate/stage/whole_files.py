"""Choose the source files that are published as they are, without decoding them.

A copy has to equal the result of reading and writing: the same rows in the same partition, with the
same bounds, in a file like those that this pipeline writes. A file for which the footer does not
prove that is decoded (PC-F13).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from tidegate.model.message import EventTimes
from tidegate.model.part_format import NO_COMPRESSION
from tidegate.model.partition_value import INTERVALS
from tidegate.physical import ParquetRows
from tidegate.stage.event_bounds import EventClock
from tidegate.stage.part_file import PartFileWriter
from tidegate.stage.partition_split import PartitionComputer, columns_of
from tidegate.stage.steady_clock import moments_are_steady, wall_clock_is_steady
from tidegate.stage.usual_sizes import has_usual_sizes, is_small
from tidegate.stage.whole_copy import WholePart

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.model.plan import Piece
    from tidegate.physical.parquet_footer import Layout
    from tidegate.physical.whole_file import WholeFile
    from tidegate.stage.sub_split import StageSpec

_CODECS = {NO_COMPRESSION: "UNCOMPRESSED"}
"""The names that Arrow has for codecs, where they differ."""


class WholeFileReader(Protocol):
    """The reading side of a source, for files that are not decoded."""

    def whole_file(self, piece: Piece) -> WholeFile | None:
        """Return a piece's file if all of its rows are read exactly as they are in the file."""
        ...


@dataclass(frozen=True)
class WholeFiles:
    """Chooses the files of one pipeline's sub-splits that are copied. Writes nothing.

    Args:
        reader: opens files.
        schema: the schema of the batches that reading returns.
        spec: how rows are staged; it must not have row rules.
    """

    reader: WholeFileReader
    schema: pa.Schema
    spec: StageSpec

    def chosen(self, pieces: Sequence[Piece]) -> tuple[list[WholePart], list[Piece]]:
        """Divide the pieces of a sub-split into those to copy and those to read.

        Small files are copied only if nothing else would share a part file with them: reading
        combines many files into one, and readers of the target should not pay for the difference
        forever.

        Raises:
            TidegateError: a file cannot be opened; the same error as when reading it.
        """
        whole: list[WholePart] = []
        rest: list[Piece] = []
        for piece in pieces:
            joins = len(pieces) > 1 and is_small(piece.size_bytes, self.spec.limits)
            part = None if joins else self.part(piece)
            if part is None:
                rest.append(piece)
            else:
                whole.append(part)
        return whole, rest

    def part(self, piece: Piece) -> WholePart | None:
        """Return a piece's file as a part file, whatever its size; None if it has to be read.

        Raises:
            TidegateError: the file cannot be opened; the same error as when reading it.
        """
        try:
            return self._part(piece)
        except (OSError, pa.ArrowException, UnicodeDecodeError):
            # Reading it raises the error that names the file and the problem.
            return None

    def _part(self, piece: Piece) -> WholePart | None:
        file = self.reader.whole_file(piece)
        if file is None or not self._is_as_written(file):
            return None
        # Created first: it rejects a missing column, as reading would.
        clock, ends = self._clock, self._ends(file)
        if ends is None or not self._is_steady(ends):
            return None
        # Values of times name intervals: an hour is distinct only together with its day.
        partitions = self._computer.split(ends).partitions
        event_times = clock.measure(ends) if clock else EventTimes()
        if len(partitions) > 1 or event_times.future or event_times.missing:
            return None
        if self.spec.only and partitions[0] not in self.spec.only:
            # Its rows are counted as read, and are not kept.
            return None
        return WholePart(file, partial(self.reader.whole_file, piece), partitions[0], event_times)

    def _is_as_written(self, file: WholeFile) -> bool:
        """Return whether a file is like those that this pipeline writes."""
        footer, codec = file.footer, self.spec.form.compression
        return (
            file.columns == self._computer.data_columns
            and footer.rows > 0
            and footer.layout == self._layout
            and footer.is_plain
            # The codec is also in the name of the part file.
            and footer.codecs == {_CODECS.get(codec, codec.upper())}
            and not footer.is_of_old_calendar
            and not footer.has_pandas_index
            and has_usual_sizes(footer, self.spec.limits)
        )

    def _ends(self, file: WholeFile) -> pa.RecordBatch | None:
        """Return two rows of the deciding columns: the smallest and the largest values.

        None if they are not known exactly, or a value may be NULL.
        """
        columns = []
        for field in self.schema:
            if field.name not in self._deciding:
                ends = pa.nulls(2, field.type)
            elif field.name in file.constants:
                ends = pa.repeat(file.constants[field.name], 2)
            else:
                ends = _between(file.footer.exact_bounds(field.name), field.type)
            if ends is None:
                return None
            columns.append(ends)
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _is_steady(self, ends: pa.RecordBatch) -> bool:
        """Return whether all times between two times map to values between their values.

        If clocks are put back, a day may occur twice, and if they are put forward, a later time
        without a zone may be an earlier instant.
        """
        spec = self.spec
        made = [field.column for field in spec.fields if field.transform in INTERVALS]
        return all(wall_clock_is_steady(ends.column(name), spec.timezone) for name in made) and (
            spec.event_time is None
            or moments_are_steady(ends.column(spec.event_time), spec.timezone)
        )

    @cached_property
    def _deciding(self) -> frozenset[str]:
        names = set(columns_of(self.spec.fields))
        return frozenset(names | ({self.spec.event_time} if self.spec.event_time else set()))

    @cached_property
    def _computer(self) -> PartitionComputer:
        spec = self.spec
        return PartitionComputer(
            self.schema, spec.fields, timezone=spec.timezone, default_name=spec.default_name
        )

    @cached_property
    def _clock(self) -> EventClock | None:
        spec = self.spec
        if spec.event_time is None or spec.counts_until is None:
            return None
        return EventClock(self.schema, spec.event_time, spec.timezone, spec.counts_until, spec.unit)

    @cached_property
    def _layout(self) -> Layout:
        """The layout of the files that are written here, taken from one without rows."""
        fields = [self.schema.field(name) for name in self._computer.data_columns]
        written = pa.BufferOutputStream()
        writer = PartFileWriter(written, pa.RecordBatch.from_pylist([], pa.schema(fields)))
        writer.close()
        with ParquetRows(pa.BufferReader(written.getvalue())) as file:
            return file.footer.layout


def _between(bounds: tuple[int, int] | None, kind: pa.DataType) -> pa.Array | None:
    """Return two stored numbers as values of a column; None if its numbers mean something else.

    Seconds are stored as milliseconds, and unsigned numbers like signed ones.
    """
    if bounds is None:
        return None
    numbers = pa.array(bounds, pa.int64())
    if pa.types.is_timestamp(kind) and kind.unit != "s":
        return numbers.view(kind)
    if pa.types.is_date32(kind):
        return numbers.cast(pa.int32()).view(kind)
    return numbers.cast(kind) if pa.types.is_signed_integer(kind) else None
