"""Part files in ORC: stripes end with row groups, so that their boundaries depend on rows alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, BinaryIO

import polars as pl
import pyarrow as pa
import pyarrow.orc as orc

from tidegate.errors import ValueUnfit
from tidegate.model.part_format import NO_COMPRESSION
from tidegate.physical.old_dates import FIRST_DAY
from tidegate.physical.orc import OrcRows
from tidegate.physical.parts.odd_values import odd_columns
from tidegate.physical.parts.physical_rows import PhysicalPartRows
from tidegate.physical.parts.types import is_odd, stored_schema, unfit

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow.dataset as ds

    from tidegate.model.part_format import PartFormat
    from tidegate.physical.parts.protocol import PartKind, Unfit
    from tidegate.storage import PlacedFile

_PER_SECOND = {"ms": 10**3, "us": 10**6, "ns": 10**9}
_LEAST_SECOND = -9_223_286_400
"""1677-09-22: the first day of which every nanosecond since 1970 is a 64-bit integer."""
_FIRST_BEYOND = 9_223_286_400
"""2262-04-11: the first day of which some are not."""
_LEAST_BATCH_ROWS = 1 << 16
"""The library copies rows in batches of a fixed size, whose memory it takes at once."""


class OrcParts:
    """See `PartKind`."""

    def unfit(self, schema: pa.Schema, form: PartFormat) -> Iterator[Unfit]:
        """Yield columns whose type ORC does not have."""
        del form
        return unfit(schema, _refusal)

    def writer(self, file: BinaryIO, first: pa.RecordBatch, form: PartFormat) -> OrcWriter:
        """Begin a file."""
        return OrcWriter(file, first, form.compression, is_read_back=bool(form.is_read_back))

    def rows(
        self, file: PlacedFile, form: PartFormat, columns: pa.Schema | None
    ) -> PhysicalPartRows:
        """Open a file; ORC knows fewer types than Arrow, such as times in nanoseconds only."""
        del form
        return PhysicalPartRows(OrcRows, file, columns)

    def dataset_format(self, form: PartFormat, columns: pa.Schema) -> ds.FileFormat:
        """Return Arrow's own."""
        # It imports pandas, which a task does not need.
        import pyarrow.dataset as ds

        del form, columns
        return ds.OrcFileFormat()


class OrcWriter:
    """See `PartWriter`.

    Args:
        file: new and empty.
        first: the first row group.
        compression: the codec.
        is_read_back: whether the library has to read the file later.
    """

    def __init__(
        self, file: BinaryIO, first: pa.RecordBatch, compression: str, *, is_read_back: bool
    ) -> None:
        self._is_read_back = is_read_back
        self._is_empty = True
        self._schema = stored_schema(first.schema)
        self._writer = orc.ORCWriter(
            file,
            compression="uncompressed" if compression == NO_COMPRESSION else compression,
            batch_size=max(_LEAST_BATCH_ROWS, first.num_rows),
            # A stripe ends after every batch that fills a buffer, whatever the library guesses.
            stripe_size=1,
        )

    def write(self, rows: pa.RecordBatch) -> None:
        """Write one row group, mostly as a stripe.

        Raises:
            ValueUnfit: other readers could not read a time that the library would write; or itself,
                if it has to.
        """
        for name in odd_columns(rows, _before_the_epoch):
            raise ValueUnfit(
                column=name,
                value="a time before 1970 that is no whole second",
                format="orc",
                rule=f"{name} is null or {name} >= '1970-01-01'",
            )
        for name in odd_columns(rows, _before_the_calendar):
            raise ValueUnfit(
                column=name,
                value=f"a day before {FIRST_DAY}",
                format="orc",
                rule=f"{name} is null or {name} >= '{FIRST_DAY}'",
            )
        for name in odd_columns(rows, _beyond_nanoseconds) if self._is_read_back else ():
            least, most = "1677-09-22", "2262-04-11"
            raise ValueUnfit(
                column=name,
                value=f"a time that is not from {least} to {most}",
                format="orc",
                rule=f"{name} is null or ({name} >= '{least}' and {name} < '{most}')",
            )
        # A copy that begins where its buffers begin: the library writes other values of the structs
        # of a slice.
        whole = pa.concat_batches([rows, rows.slice(0, 0)]).cast(self._schema)
        self._writer.write(pa.Table.from_batches([whole]))
        self._is_empty = False

    def close(self) -> None:
        """Write the tail; the library writes none before it has seen rows."""
        if self._is_empty:
            self._writer.write(self._schema.empty_table())
        self._writer.close()


def _before_the_epoch(values: pl.Expr, kind: Any) -> pl.Expr | None:
    """Return where the library would write negative fractions, on which Java's reader fails."""
    if not isinstance(kind, pl.Datetime):
        return None
    count, second = values.to_physical(), _PER_SECOND[kind.time_unit]
    return (count < 0) & (count % second != 0)


def _before_the_calendar(values: pl.Expr, kind: Any) -> pl.Expr | None:
    """Return where Java's readers would find another day than was written.

    They take earlier days for ones of the Julian calendar, which the library does not write.
    """
    return values < FIRST_DAY if isinstance(kind, pl.Date | pl.Datetime) else None


def _beyond_nanoseconds(values: pl.Expr, kind: Any) -> pl.Expr | None:
    """Return where Arrow's reader fails, which has all times of ORC in nanoseconds."""
    if not isinstance(kind, pl.Datetime) or kind.time_unit == "ns":
        return None
    count, second = values.to_physical(), _PER_SECOND[kind.time_unit]
    return (count < _LEAST_SECOND * second) | (count >= _FIRST_BEYOND * second)


def _refusal(kind: pa.DataType) -> str | None:
    if is_odd(kind) or pa.types.is_time(kind) or pa.types.is_null(kind):
        return "ORC has no such type"
    if pa.types.is_unsigned_integer(kind):
        return "ORC has signed integers only"
    return None


KIND: PartKind = OrcParts()
