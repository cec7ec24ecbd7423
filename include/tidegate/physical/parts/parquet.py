"""Part files in Parquet."""

from __future__ import annotations

import itertools
from functools import cached_property
from typing import TYPE_CHECKING, Any, BinaryIO, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.physical.arrays import integer_column
from tidegate.physical.protocol import BATCH_ROWS, counted_rows
from tidegate.storage import is_object

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow.dataset as ds

    from tidegate.model.part_format import PartFormat
    from tidegate.model.sort_key import SortKey
    from tidegate.physical.parts.protocol import PartKind, Unfit
    from tidegate.storage import PlacedFile

_LEVELS = {"gzip": 6}
"""Arrow's own takes many times as long for a few percent."""
_PAGE_ROWS = 1 << 20
_STEP_ROWS = 1 << 15
_SAMPLE_ROWS = 1_024
# A sample with more distinct values than this may still mean a good dictionary …
_DICTIONARY_SHARE = 0.4
# … if all rows have no more than this share, and the dictionary does not outgrow its page.
_DIFFERENT_SHARE = 0.1
_DICTIONARY_BYTES = 1 << 20


class ParquetParts:
    """See `PartKind`."""

    def unfit(self, schema: pa.Schema, form: PartFormat) -> Iterator[Unfit]:
        """Yield nothing: what Parquet lacks fails with the library's own words, as ever."""
        del schema, form
        return iter(())

    def writer(self, file: BinaryIO, first: pa.RecordBatch, form: PartFormat) -> ParquetWriter:
        """Begin a file; the first row group decides which columns get a dictionary."""
        return ParquetWriter(file, first, form.compression, form.sorted_by or ())

    def rows(
        self, file: PlacedFile, form: PartFormat, columns: pa.Schema | None
    ) -> ParquetPartRows:
        """Open a file, which knows its columns best."""
        del form, columns
        return ParquetPartRows(file)

    def dataset_format(self, form: PartFormat, columns: pa.Schema) -> ds.FileFormat:
        """Return Arrow's own."""
        # It imports pandas, which a task does not need.
        import pyarrow.dataset as ds

        del form, columns
        return ds.ParquetFileFormat()


class ParquetWriter:
    """See `PartWriter`: fixed encodings, and nothing that depends on time or process.

    Args:
        file: new and empty.
        first: the first row group, which decides which columns get a dictionary.
        compression: the codec.
        sorted_by: the order of the rows, which the file tells its readers.
    """

    def __init__(
        self,
        file: BinaryIO,
        first: pa.RecordBatch,
        compression: str,
        sorted_by: Sequence[SortKey] = (),
    ) -> None:
        self._writer = pq.ParquetWriter(
            file,
            first.schema,
            compression=compression,
            compression_level=_LEVELS.get(compression),
            # Fewer, larger pages and steps: 10 % less CPU; a page still ends at 1 MiB.
            max_rows_per_page=_PAGE_ROWS,
            write_batch_size=_STEP_ROWS,
            use_dictionary=dictionary_columns(first),
            sorting_columns=sorting_columns(first.schema, sorted_by),
        )

    def write(self, rows: pa.RecordBatch) -> None:
        """Write one row group."""
        table = pa.Table.from_batches([rows])
        self._writer.write_table(table, row_group_size=rows.num_rows)

    def close(self) -> None:
        """Write the footer."""
        self._writer.close()


class ParquetPartRows:
    """See `PartRows`."""

    _LEAST_VALUE_BYTES = 8
    """The least memory that a value needs, however well the file packs it."""

    def __init__(self, file: PlacedFile) -> None:
        opened = file.open()
        try:
            # Ranges of a store that are near one another are fetched at once.
            self._file = pq.ParquetFile(opened, pre_buffer=is_object(file.path))
        except BaseException:
            opened.close()
            raise
        self._opened = opened

    @property
    def schema(self) -> pa.Schema:
        """The columns of the file."""
        return self._file.schema_arrow

    @property
    def rows(self) -> int:
        """All rows, from the footer."""
        return int(self._file.metadata.num_rows)

    @cached_property
    def column_bytes(self) -> Mapping[str, int]:
        """The uncompressed bytes of the column chunks, from the footer."""
        metadata = self._file.metadata
        weights: dict[str, int] = {}
        # A name may have dots itself, so that the paths of the leaves do not tell their columns.
        columns = metadata.schema.to_arrow_schema()
        names = [column.name for column in columns for _ in range(_leaves(column.type))]
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            for position, name in enumerate(names):
                chunk = group.column(position)
                least = chunk.num_values * self._LEAST_VALUE_BYTES
                weights[name] = weights.get(name, 0) + max(chunk.total_uncompressed_size, least)
        return weights

    def batches(
        self, columns: Sequence[str], batch_rows: int = BATCH_ROWS
    ) -> Iterator[pa.RecordBatch]:
        """Decode all rows in their order."""
        if not columns:
            for start in range(0, self.rows, batch_rows):
                yield counted_rows(min(batch_rows, self.rows - start))
            return
        read: Any = self._file.iter_batches(batch_rows, columns=list(columns), use_threads=False)
        for batch in read:
            yield batch.select(list(columns))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the file."""
        self._file.close()
        self._opened.close()


def sorting_columns(
    schema: pa.Schema, sorted_by: Sequence[SortKey]
) -> Sequence[pq.SortingColumn] | None:
    """Return the order of rows as the metadata of a file tells it; None if there is none to tell.

    Not of floats with the largest first, and what follows: here, NaN comes after all numbers, while
    readers may expect it before them.
    """
    told = itertools.takewhile(
        lambda key: not (key.descending and pa.types.is_floating(schema.field(key.column).type)),
        sorted_by,
    )
    directions = [(key.column, "descending" if key.descending else "ascending") for key in told]
    return pq.SortingColumn.from_ordering(schema, directions) if directions else None


def dictionary_columns(rows: pa.RecordBatch) -> list[str]:
    """Return the columns whose values repeat enough for a dictionary, judged by a sample.

    A dictionary of unique values costs a hash table, is abandoned when it has grown too large, and
    the values are then written plain: three times the work for the same bytes.
    """
    spread = np.arange(0, rows.num_rows, max(1, rows.num_rows // _SAMPLE_ROWS), dtype=np.int64)
    sample = rows.take(integer_column(spread))
    return [
        field.name
        for field, column in zip(sample.schema, sample.columns, strict=True)
        if not pa.types.is_nested(field.type) and _repeats(column, rows.num_rows)
    ]


def _repeats(sample: pa.Array, rows: int) -> bool:
    if pa.types.is_dictionary(sample.type):
        return True
    try:
        different = len(sample.unique())
    except pa.ArrowNotImplementedError:
        # Values of types that Arrow cannot count are rare and written plain.
        return False
    if different <= len(sample) * _DICTIONARY_SHARE:
        return True
    # Of n rows that each have one of d values, about n²/2d repeat the value of an earlier row.
    repeated = len(sample) - different
    values = len(sample) ** 2 / (2 * repeated) if repeated else rows
    is_small = values * sample.nbytes <= len(sample) * _DICTIONARY_BYTES
    return is_small and values <= rows * _DIFFERENT_SHARE


def _leaves(kind: pa.DataType) -> int:
    """Return how many columns a Parquet file has for a type."""
    return sum(_leaves(kind.field(at).type) for at in range(kind.num_fields)) or 1


KIND: PartKind = ParquetParts()
