"""Readers that know nothing of Tidegate find the same rows in a part file of each format."""

from __future__ import annotations

import csv
import gzip
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import duckdb
import fastavro
import polars as pl
import pyarrow as pa
import pyarrow.orc as orc
import pytest

from tidegate.model.part_format import KINDS, CsvForm, PartFormat
from tidegate.physical.parts import begin_part, open_part

if TYPE_CHECKING:
    from pathlib import Path

MOMENT = datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=UTC)
FLAT = pa.RecordBatch.from_pydict(
    {
        "id": pa.array([1, -(2**63), None], pa.int64()),
        "text": ['a "quoted", é', "", None],
        "two_lines": ["a\nb", "x", None],
        "price": pa.array([Decimal("12345678901234567890.10"), None, Decimal("-0.01")]),
        "tiny": pa.array([Decimal("0.00000001"), None, Decimal("-0.00000001")]),
        "day": pa.array([date(2026, 1, 31), date(1, 1, 1), None]),
        "at": pa.array([MOMENT, None, MOMENT], pa.timestamp("us", "Europe/Berlin")),
        "local": pa.array([MOMENT.replace(tzinfo=None), None, None], pa.timestamp("us")),
        "flag": [True, False, None],
        "real": [0.1, -1e300, None],
    }
)
NESTED = FLAT.append_column("items", pa.array([[1, None], [], None])).append_column(
    "record", pa.array([{"a": 1, "at": MOMENT.replace(tzinfo=None)}, None, {"a": None, "at": None}])
)
MAPPED = NESTED.append_column(
    "pairs", pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int32()))
).append_column("bytes", pa.array([b"\x00\xff", b"", None]))


def written(folder: Path, rows: pa.RecordBatch, form: PartFormat) -> Path:
    path = folder / f"part{form.extension}"
    with path.open("wb") as file:
        writer = begin_part(file, rows, form)
        # Twice, so that there is more than one row group.
        writer.write(rows)
        writer.write(rows)
        writer.close()
    return path


def twice(rows: pa.RecordBatch) -> list[dict[str, Any]]:
    return [*rows.to_pylist(), *rows.to_pylist()]


def test_csv_is_read_by_duckdb_with_the_types_of_the_columns(tmp_path: Path) -> None:
    path = written(tmp_path, FLAT, PartFormat("csv", "gzip", CsvForm()))
    types = {
        "id": "BIGINT",
        "price": "DECIMAL(38,2)",
        "tiny": "DECIMAL(9,8)",
        "day": "DATE",
        # The zone of a TIMESTAMPTZ needs an extension.
        "at": "TIMESTAMP",
        "local": "TIMESTAMP",
        "flag": "BOOLEAN",
        "real": "DOUBLE",
    }

    with duckdb.connect() as database:
        found = database.execute(
            "SELECT * FROM read_csv(?, header = true, types = ?, allow_quoted_nulls = false)",
            [str(path), types],
        ).fetchall()

    plain = FLAT.schema.set(6, pa.field("at", pa.timestamp("us")))
    assert found == [tuple(row.values()) for row in twice(FLAT.cast(plain))]


SPELLED_LIKE_NULL = pa.RecordBatch.from_pydict({"id": [1, 2, 3], "text": [None, "NULL", ""]})


@pytest.mark.parametrize("null_value", ["", "NULL", "\\N"])
def test_text_that_is_spelled_like_null_stays_one_for_readers_that_are_told(
    tmp_path: Path, null_value: str
) -> None:
    form = PartFormat("csv", "none", CsvForm(null_value=null_value))
    path = written(tmp_path, SPELLED_LIKE_NULL, form)
    asked = "SELECT text FROM read_csv(?, header = true, nullstr = ?, allow_quoted_nulls = {})"
    texts = SPELLED_LIKE_NULL["text"].to_pylist() * 2

    with duckdb.connect() as database, open_part(str(path), form, SPELLED_LIKE_NULL.schema) as own:
        told, untold = (
            [
                row[0]
                for row in database.execute(asked.format(word), [str(path), null_value]).fetchall()
            ]
            for word in ("false", "true")
        )
        found = [text for rows in own.batches(["text"]) for text in rows["text"].to_pylist()]
    of_polars = pl.read_csv(path, null_values=null_value or None)["text"].to_list()

    assert found == told == texts
    # Only what no text is tells the two apart for others.
    spoilt = [None if text == null_value else text for text in texts]
    assert untold == spoilt
    assert of_polars == (spoilt if null_value else texts)


def test_csv_is_rfc_4180_with_iso_times_and_plain_decimals(tmp_path: Path) -> None:
    path = written(tmp_path, FLAT, PartFormat("csv", "none", CsvForm()))

    with path.open(newline="") as file:
        header, first, second, third, *again = csv.reader(file, strict=True)

    assert header == FLAT.schema.names
    assert first == [
        *("1", 'a "quoted", é', "a\nb", "12345678901234567890.10", "0.00000001", "2026-01-31"),
        *("2026-01-31T12:00:00.123456Z", "2026-01-31T12:00:00.123456", "true", "0.1"),
    ]
    assert [second[5], third[4]] == ["0001-01-01", "-0.00000001"]
    assert again == [first, second, third]


def test_json_lines_are_read_by_the_standard_library_and_duckdb(tmp_path: Path) -> None:
    path = written(tmp_path, NESTED, PartFormat("json", "gzip"))

    with gzip.open(path, "rt") as file:
        first, second, *_ = [json.loads(line) for line in file]
    with duckdb.connect() as database:
        found = database.execute(
            "SELECT id, text, price::DECIMAL(38, 2), day::DATE, items, record.at::TIMESTAMP"
            " FROM read_json(?, format = 'newline_delimited')",
            [str(path)],
        ).fetchall()

    assert list(first) == NESTED.schema.names
    assert (first["price"], first["at"]) == (
        "12345678901234567890.10",
        "2026-01-31T12:00:00.123456Z",
    )
    assert first["record"] == {"a": 1, "at": "2026-01-31T12:00:00.123456"}
    assert (second["items"], second["record"], second["id"]) == ([], None, -(2**63))
    assert found == [
        (
            row["id"],
            row["text"],
            row["price"],
            row["day"],
            row["items"],
            row["record"] and row["record"]["at"],
        )
        for row in twice(NESTED)
    ]


@pytest.mark.parametrize("compression", KINDS["orc"].extensions)
def test_orc_is_read_by_arrow(tmp_path: Path, compression: str) -> None:
    # Earlier days are refused.
    days = pa.array([date(2026, 1, 31), date(1582, 10, 15), None])
    rows = MAPPED.set_column(MAPPED.schema.get_field_index("day"), "day", days)
    path = written(tmp_path, rows, PartFormat("orc", compression))

    found = orc.read_table(path)

    for name in rows.schema.names:
        same = found.column(name).cast(rows.schema.field(name).type)
        assert same.to_pylist() == [row[name] for row in twice(rows)]


@pytest.mark.parametrize("compression", ["deflate", "none"])
def test_avro_is_read_by_fastavro(tmp_path: Path, compression: str) -> None:
    path = written(tmp_path, MAPPED, PartFormat("avro", compression))

    with path.open("rb") as file:
        found = list(fastavro.reader(file))

    pairs = [row["pairs"] and dict(row["pairs"]) for row in twice(MAPPED)]
    assert found == [
        {**row, "pairs": {} if row["pairs"] == [] else pair}
        for row, pair in zip(twice(MAPPED), pairs, strict=True)
    ]


@pytest.mark.parametrize("compression", ["deflate", "snappy"])
def test_avro_is_read_by_polars(tmp_path: Path, compression: str) -> None:
    plain = FLAT.select(["id", "text", "day", "flag", "real"])
    path = written(tmp_path, plain, PartFormat("avro", compression))

    assert pl.read_avro(path).to_dicts() == twice(plain)
