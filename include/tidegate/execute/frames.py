"""Open part files as a Spark frame, for checks of partitions that are too large for one process."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession


def spark_frame(
    session: SparkSession, files: Sequence[str], columns: Sequence[str] | None = None
) -> DataFrame:
    """Read part files into one frame.

    Args:
        session: to read with.
        files: paths of part files, whose directories add no columns; if there are none, the frame
            has no rows.
        columns: the only ones to read, in this order; None: all.
    """
    if not files:
        return session.range(0).select()
    # A column that was added later is missing in older files, and NULL there.
    frame = session.read.option("mergeSchema", "true").parquet(*files)
    if columns is None:
        return frame
    # Quoted, because a dot in a bare name means a field of a struct.
    return frame.select(*("`" + name.replace("`", "``") + "`" for name in columns))
