"""Open part files as a Spark frame, for checks of partitions that are too large for one process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


class RowsReader(Protocol):
    """Reads part files of any format in a task; can be pickled."""

    @property
    def types(self) -> str:
        """The columns with their types, as SQL."""
        ...

    def __call__(self, path: str) -> Iterator[pa.RecordBatch]:
        """Read one file."""
        ...


def spark_frame(
    session: SparkSession,
    files: Sequence[str],
    columns: Sequence[str] | None = None,
    read: RowsReader | None = None,
) -> DataFrame:
    """Read part files into one frame.

    Args:
        session: to read with.
        files: paths of part files, whose directories add no columns; if there are none, the frame
            has no rows.
        columns: the only ones to read, in this order; None: all.
        read: reads one file, in a task of Spark; None: Spark reads the files as Parquet.
    """
    if not files:
        return session.range(0).select()
    if read is not None:
        return _read_in_tasks(session, files, read)
    # A column that was added later is missing in older files, and NULL there.
    frame = session.read.option("mergeSchema", "true").parquet(*files)
    if columns is None:
        return frame
    # Quoted, because a dot in a bare name means a field of a struct.
    return frame.select(*("`" + name.replace("`", "``") + "`" for name in columns))


def _read_in_tasks(session: SparkSession, files: Sequence[str], read: RowsReader) -> DataFrame:
    """Read each file with a reader of ours, as Spark asks for its rows."""

    def rows_of(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for path in batch.column("path").to_pylist():
                yield from read(path)

    paths = session.createDataFrame([(path,) for path in files], "path STRING")
    return paths.repartition(len(files)).mapInArrow(rows_of, read.types)
