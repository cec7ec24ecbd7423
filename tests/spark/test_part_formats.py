"""Spark finds the same rows in part files of each format, by its own reader and by ours."""

from __future__ import annotations

import functools
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tidegate.execute.frames import spark_frame
from tidegate.gate.content import GateInput, read_footers
from tidegate.gate.frame import in_spark
from tidegate.model.part_format import KINDS, CsvForm, PartFormat
from tidegate.model.partition import Partition
from tidegate.physical.parts import PartFiles, begin_part
from tidegate.target.schema import unified

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

MOMENT = datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=UTC)
FLAT = pa.RecordBatch.from_pydict(
    {
        "id": pa.array([1, -(2**63), None], pa.int64()),
        "small": pa.array([1, -128, None], pa.int8()),
        "text": ['a "quoted", \\ é', "a\nb", None],
        "price": pa.array([Decimal("12345678901234567890.10"), None, Decimal("-0.01")]),
        "day": pa.array([date(2026, 1, 31), date(1900, 1, 1), None]),
        "at": pa.array([MOMENT, None, MOMENT], pa.timestamp("us", "UTC")),
        "local": pa.array([MOMENT.replace(tzinfo=None), None, None], pa.timestamp("us")),
        "flag": [True, False, None],
        "real": [0.1, -1e300, None],
    }
)
NESTED = FLAT.append_column("items", pa.array([[1, None], [], None])).append_column(
    "record", pa.array([{"a": 1, "at": MOMENT}, None, {"a": None, "at": None}])
)
TYPES = (
    "id BIGINT, small TINYINT, text STRING, price DECIMAL(22, 2), day DATE, at TIMESTAMP, "
    "local TIMESTAMP_NTZ, flag BOOLEAN, real DOUBLE"
)
NESTED_TYPES = f"{TYPES}, items ARRAY<BIGINT>, record STRUCT<a: BIGINT, at: TIMESTAMP>"


def written(folder: Path, rows: pa.RecordBatch, form: PartFormat) -> str:
    path = folder / f"part{form.extension}"
    with path.open("wb") as file:
        writer = begin_part(file, rows, form)
        writer.write(rows)
        writer.close()
    return str(path)


def plain(frame: DataFrame) -> list[dict[str, Any]]:
    # Spark's own text of everything, so that no zone of this process takes part.
    texts = frame.selectExpr(*(f"CAST(`{name}` AS STRING) AS `{name}`" for name in frame.columns))
    return [row.asDict() for row in texts.collect()]


def by_our_reader(
    spark: SparkSession, path: str, form: PartFormat, columns: pa.Schema
) -> list[dict[str, Any]]:
    content = GateInput(Partition(()), (path,), unified, tuple, PartFiles(form, {path: columns}))
    frames = functools.partial(spark_frame, spark)
    return plain(in_spark(frames, read_footers(content), columns.names, content.parts))


def test_orc_csv_and_json_are_read_by_spark_as_by_us(spark: SparkSession, tmp_path: Path) -> None:
    csv = PartFormat("csv", "gzip", CsvForm(null_value="\\N"))
    orc, json = PartFormat("orc"), PartFormat("json", "gzip")
    expected = plain(spark.createDataFrame(pa.Table.from_batches([NESTED])))
    flat = [{name: row[name] for name in FLAT.schema.names} for row in expected]
    csv_path, json_path = written(tmp_path, FLAT, csv), written(tmp_path, NESTED, json)
    orc_path = written(tmp_path, NESTED, orc)

    options = {"header": "true", "nullValue": "\\N", "escape": '"', "multiLine": "true"}
    own_csv = plain(spark.read.schema(TYPES).options(**options).csv(csv_path))
    own_json = plain(spark.read.schema(NESTED_TYPES).json(json_path))

    assert own_csv == flat
    assert own_json == expected
    assert plain(spark.read.orc(orc_path)) == expected
    assert by_our_reader(spark, csv_path, csv, FLAT.schema) == flat
    assert by_our_reader(spark, json_path, json, NESTED.schema) == expected
    assert by_our_reader(spark, orc_path, orc, NESTED.schema) == expected


@pytest.mark.parametrize(
    ("null_value", "texts"),
    [("NULL", [None, None, ""]), ("\\N", [None, "NULL", ""])],
    ids=["that a text is", "that no text is"],
)
def test_text_that_is_spelled_like_null_is_null_for_spark(
    spark: SparkSession, tmp_path: Path, null_value: str, texts: list[str | None]
) -> None:
    form = PartFormat("csv", "none", CsvForm(null_value=null_value))
    rows = pa.RecordBatch.from_pydict({"text": [None, "NULL", ""]})
    options = {"header": "true", "nullValue": null_value, "escape": '"', "multiLine": "true"}

    found = spark.read.options(**options).csv(written(tmp_path, rows, form))

    assert [row["text"] for row in found.collect()] == texts


def test_avro_is_read_in_tasks_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    form = PartFormat("avro", KINDS["avro"].default_compression)
    path = written(tmp_path, NESTED, form)
    expected = plain(spark.createDataFrame(pa.Table.from_batches([NESTED])))

    assert by_our_reader(spark, path, form, NESTED.schema) == expected
