"""Dates before 1582-10-15 in ORC files of Spark are those that Spark itself finds there."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.orc as orc
import pytest

from golden_iceberg import read
from tidegate.config import read_source
from tidegate.model.instant import InstantRange
from tidegate.source.files import FilesSource
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

EDGES = [
    *(date(year, month, 1) for year in range(1, 1600, 33) for month in (1, 2, 3)),
    *(date(century, 3, 1) - timedelta(days=days) for century in range(100, 1700, 100)
      for days in range(-2, 3)),
    *(date(1582, 10, 15) + timedelta(days=days) for days in (-13, -12, -11, 0, 1)),
    date(1, 1, 1), date(1969, 12, 31), date(2026, 2, 1), date(9999, 12, 31),
]  # fmt: skip
ROWS = [
    {
        "id": id,
        "day": None if id % 7 == 3 else day,
        "days": None if id % 5 == 1 else [day, None, day],
        "record": None if id % 5 == 2 else {"day": day, "id": id},
        "by_day": None if id % 5 == 3 else {day: day},
    }
    for id, day in enumerate(EDGES)
]
TYPES = (
    "id BIGINT, day DATE, days ARRAY<DATE>, record STRUCT<day: DATE, id: BIGINT>, "
    "by_day MAP<DATE, DATE>"
)


def found(place: Path) -> list[dict[str, Any]]:
    config = read_source({"kind": "files", "path": str(place / "landing"), "format": "orc"})
    source = FilesSource(config, LocalStorage(), str(place / "listings"))
    pin = source.timeline.pin(datetime(2026, 11, 21, tzinfo=UTC))
    assert pin.head
    rows = read(source, pin, source.slicing.units(pin, InstantRange(None, pin.head)))
    return sorted(rows.to_pylist(), key=lambda row: row["id"])


def test_old_dates_of_spark_keep_year_month_and_day(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.createDataFrame(ROWS, TYPES).coalesce(1)
    frame.write.orc(str(tmp_path / "landing"))
    texts = spark.read.orc(str(tmp_path / "landing")).selectExpr("id", "CAST(day AS STRING)")

    rows = found(tmp_path)

    assert [row | {"by_day": row["by_day"] and dict(row["by_day"])} for row in rows] == ROWS
    assert {row["id"]: str(row["day"] or "") for row in rows} == {
        row.id: row.day or "" for row in texts.collect()
    }


def test_old_dates_of_arrow_stay_what_arrow_wrote(tmp_path: Path) -> None:
    (tmp_path / "landing").mkdir()
    rows = [{"id": row["id"], "day": row["day"]} for row in ROWS]
    orc.write_table(pa.Table.from_pylist(rows), str(tmp_path / "landing" / "a.orc"))

    assert found(tmp_path) == rows
