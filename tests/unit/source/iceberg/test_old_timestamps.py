"""INT96 timestamps of every year, and the clocks that migrated tables have in ORC."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    ListType,
    NestedField,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzType,
)

from iceberg_writer import DATA, Entry
from small_iceberg import SmallIceberg
from tidegate import read_changes
from tidegate.errors import SchemaIncompatible

if TYPE_CHECKING:
    from pathlib import Path

    from pyiceberg.types import PrimitiveType

YEARS = (1, 1600, 1970, 2026, 2300, 9999)
CLOCKS = [datetime(year, 12, 31, 23, 59, 59, 999_999) for year in YEARS]  # noqa: DTZ001
MOMENTS = [each.replace(tzinfo=UTC) for each in CLOCKS]
ROWS = [{"at": each, "nested": {"all": [each]}} for each in CLOCKS]


def _schema(kind: PrimitiveType) -> Schema:
    nested = StructType(NestedField(3, "all", ListType(4, kind, False)))
    return Schema(NestedField(1, "at", kind), NestedField(2, "nested", nested))


def _migrated(root: Path, kind: PrimitiveType, rows: pa.Table, file_format: str) -> SmallIceberg:
    """Make a table as `add_files` does, whose files have no field ids."""
    table = SmallIceberg(root, _schema(kind), version=3)
    place = root / f"migrated.{file_format}"
    if file_format == "orc":
        orc.write_table(rows, place)
    else:
        pq.write_table(rows, place, use_deprecated_int96_timestamps=file_format == "parquet")
    path = table.files.path(place.name)
    written = Entry(path, DATA, file_format, rows.num_rows, place.stat().st_size)
    table.add("append", written, {})
    return table


def _rows(table: SmallIceberg, **keys: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (
        read_changes(table.config(**keys), mode="snapshot").read_all().to_pylist()
    )
    return found


def test_int96_of_every_year_is_read_as_a_clock(tmp_path: Path) -> None:
    table = _migrated(tmp_path, TimestampType(), pa.Table.from_pylist(ROWS), "parquet")

    assert _rows(table) == ROWS
    later = _rows(table, read={"filter": "at > timestamp '2262-05-01 00:00:00'"})
    assert [row["at"] for row in later] == CLOCKS[4:]


def test_int96_of_every_year_is_read_as_a_moment(tmp_path: Path) -> None:
    table = _migrated(tmp_path, TimestamptzType(), pa.Table.from_pylist(ROWS), "parquet")

    assert [(row["at"], row["nested"]["all"]) for row in _rows(table)] == [
        (each, [each]) for each in MOMENTS
    ]


def test_int96_is_no_column_of_nanoseconds(tmp_path: Path) -> None:
    table = _migrated(tmp_path, TimestampNanoType(), pa.Table.from_pylist(ROWS[:1]), "parquet")

    with pytest.raises(SchemaIncompatible, match="'at'"):
        _rows(table)


@pytest.mark.parametrize("unit", ["us", "ns"])
def test_clock_of_parquet_is_no_moment(unit: str, tmp_path: Path) -> None:
    clocks = pa.table({"at": pa.array(CLOCKS[3:4], pa.timestamp(unit))})
    table = SmallIceberg(tmp_path, Schema(NestedField(1, "at", TimestamptzType())))
    place = tmp_path / "clock.parquet"
    pq.write_table(clocks, place)
    path = table.files.path(place.name)
    table.add("append", Entry(path, DATA, "parquet", 1, place.stat().st_size), {})

    with pytest.raises(SchemaIncompatible) as refused:
        _rows(table)

    assert (refused.value.values["path"], refused.value.values["column"]) == (path, "at")


def test_clock_of_orc_is_no_moment(tmp_path: Path) -> None:
    # Written by an engine without zones, it is a clock of the writer's zone, which no one names.
    clocks = pa.Table.from_pylist(ROWS[3:4])
    table = _migrated(tmp_path, TimestamptzType(), clocks, "orc")

    with pytest.raises(SchemaIncompatible) as refused:
        _rows(table)

    assert refused.value.values["path"].endswith("migrated.orc")
    assert refused.value.values["column"] == "at"


@pytest.mark.parametrize("kind", [TimestampType(), TimestamptzType()], ids=["clock", "moment"])
def test_time_of_orc_that_fits_is_read(kind: PrimitiveType, tmp_path: Path) -> None:
    of_utc = isinstance(kind, TimestamptzType)
    times = (MOMENTS if of_utc else CLOCKS)[2:4]
    rows = [{"at": each, "nested": {"all": [each]}} for each in times]
    table = _migrated(tmp_path, kind, pa.Table.from_pylist(rows), "orc")

    assert _rows(table) == rows
