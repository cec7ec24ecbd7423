"""Columns of a folder outlive its files: no name, gap or rebuild takes published ones away."""

from __future__ import annotations

import datetime as dt
import os
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from small_lake import DAY_1, NOW, SmallLake, day, load, local, publish
from tidegate import read_committed
from tidegate.errors import SchemaIncompatible, SourceFileDamaged
from tidegate.model.run import Run

if TYPE_CHECKING:
    from pathlib import Path

    from tidegate.pipeline import Pipeline

HOUR = timedelta(hours=1)


class Landing:
    """A folder whose files are of one day, and the pipeline that reads it."""

    def __init__(self, place: Path) -> None:
        self.lake = SmallLake(place / "lake")
        self.root = self.lake.root / "landing"
        self.root.mkdir()
        self.lake.keys = {"commit": {"trigger": "process-time"}}
        self.put = 0

    def write(self, name: str, **columns: Any) -> None:
        """Write a file of one row, an hour after the last one."""
        self.put += 1
        path = self.root / f"{name}.parquet"
        arrays = {key: pa.array([value], kind) for key, (value, kind) in columns.items()}
        pq.write_table(pa.table({"id": [self.put], "at": [DAY_1], **arrays}), path)
        os.utime(path, ((NOW - 90 * HOUR + self.put * HOUR).timestamp(),) * 2)

    def pipeline(self, **source: Any) -> Pipeline:
        self.lake.source = {"kind": "files", "path": str(self.root), **source}
        return self.lake.pipeline()

    def rows(self, **source: Any) -> list[dict[str, Any]]:
        """Load and publish; the published rows without their time."""
        load(self.pipeline(**source))
        publish(self.pipeline(**source))
        table = read_committed(str(self.lake.target)).to_table()
        found = [
            {key: item for key, item in row.items() if key not in {"at", "dt"}}
            for row in table.to_pylist()
        ]
        return sorted(found, key=lambda row: row["id"])


@pytest.fixture
def landing(tmp_path: Path) -> Landing:
    return Landing(tmp_path)


def amount(value: float) -> dict[str, Any]:
    return {"amount": (value, pa.float64())}


def test_file_that_sorts_first_and_lacks_a_column_takes_it_from_no_other(landing: Landing) -> None:
    landing.write("b1", **amount(1.5))
    landing.rows()
    landing.write("a1")
    landing.write("c3", **amount(3.5))

    expected = [
        {"id": 1, "amount": 1.5},
        {"id": 2, "amount": None},
        {"id": 3, "amount": 3.5},
    ]
    assert landing.rows() == expected
    planned = landing.pipeline().rebuild([day(1)], Run("again", "cli"), NOW)
    landing.pipeline().finish_load(planned, NOW, local)
    assert landing.rows() == expected


def test_column_stays_when_the_files_that_brought_it_are_cleaned_away(landing: Landing) -> None:
    landing.write("1", **amount(1.5))
    landing.write("2")
    landing.rows()
    (landing.root / "1.parquet").unlink()
    landing.write("3", **amount(3.5))

    assert landing.rows(on_changed_file="ignore")[2] == {"id": 3, "amount": 3.5}


def test_column_that_a_later_file_brings_is_read(landing: Landing) -> None:
    landing.write("1")
    landing.rows()
    landing.write("2", **amount(2.5))

    assert landing.rows() == [{"id": 1, "amount": None}, {"id": 2, "amount": 2.5}]


@pytest.mark.parametrize("names", [("1", "2"), ("2", "1")])
def test_later_file_may_widen_a_type_whatever_it_is_called(
    names: tuple[str, str], landing: Landing
) -> None:
    landing.write(names[0], n=(1, pa.int32()))
    landing.rows()
    landing.write(names[1], n=(1 << 40, pa.int64()))
    assert [row["n"] for row in landing.rows()] == [1, 1 << 40]
    landing.write("0", n=(3, pa.int16()))

    assert [row["n"] for row in landing.rows()] == [1, 1 << 40, 3]


def test_file_with_another_type_is_the_one_that_is_named(landing: Landing) -> None:
    landing.write("b", n=(1, pa.int32()))
    landing.rows()
    landing.write("a", n=("one", pa.string()))

    with pytest.raises(SchemaIncompatible) as refused:
        load(landing.pipeline())

    assert refused.value.path.endswith("/a.parquet")
    (landing.root / "a.parquet").unlink()
    landing.write("c", n=(2, pa.int32()))
    assert [row["n"] for row in landing.rows()] == [1, 2]


def test_column_of_a_file_that_could_not_be_read_at_first_is_read_later(landing: Landing) -> None:
    landing.write("1")
    landing.rows()
    landing.write("2", **amount(2.5))
    path = landing.root / "2.parquet"
    whole, times = path.read_bytes(), (path.stat().st_mtime,) * 2
    path.write_bytes(whole[:-8] + b"damaged!")
    os.utime(path, times)
    with pytest.raises(SourceFileDamaged):
        load(landing.pipeline())
    # As after a `chmod`: the listing is the same.
    path.write_bytes(whole)
    os.utime(path, times)

    assert landing.rows()[1] == {"id": 2, "amount": 2.5}


def test_column_that_only_an_unreadable_file_has_is_no_missing_column(landing: Landing) -> None:
    landing.write("1", **amount(1.5))
    path = landing.root / "1.parquet"
    path.write_bytes(b"no parquet")

    with pytest.raises(SourceFileDamaged):
        load(landing.pipeline(read={"columns": ["id", "at", "amount"]}))


@pytest.mark.parametrize("names", [("1", "2"), ("2", "1")])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((None, pa.null()), ({"x": 1}, pa.struct([("x", pa.int32())]))),
        ((None, pa.null()), ([1], pa.list_(pa.int32()))),
        (
            ({"x": None}, pa.struct([("x", pa.null())])),
            ({"x": [1]}, pa.struct([("x", pa.list_(pa.int8()))])),
        ),
        (
            (dt.date(9999, 1, 1), pa.date32()),
            (dt.datetime.fromisoformat("2026-01-01"), pa.timestamp("ns")),
        ),
        (
            (dt.datetime.fromisoformat("2026-01-01"), pa.timestamp("ms")),
            (dt.datetime.fromisoformat("2026-01-01T00:00:00.000007"), pa.timestamp("us")),
        ),
        (
            ([["a"]], pa.list_(pa.list_(pa.string()))),
            ([["b", "c"]], pa.list_(pa.list_(pa.string_view(), 2))),
        ),
        (([1], pa.list_view(pa.int8())), ([2, 3], pa.list_(pa.int16()))),
        (([{"x": 1}], pa.large_list_view(pa.struct([("x", pa.int8())]))), (None, pa.null())),
    ],
)
def test_columns_of_two_types_are_published_and_rebuilt(
    landing: Landing, names: tuple[str, str], first: Any, second: Any
) -> None:
    landing.write(names[0], c=first)
    landing.rows()
    landing.write(names[1], c=second)
    published = landing.rows()
    planned = landing.pipeline().rebuild([day(1)], Run("again", "cli"), NOW)
    landing.pipeline().finish_load(planned, NOW, local)

    assert landing.rows() == published
    plain = [row["c"] for row in published]
    expected = [first[0], second[0]]
    if isinstance(first[0], dt.date) and not isinstance(first[0], dt.datetime):
        expected[0] = dt.datetime.fromisoformat("9999-01-01")
    assert plain == expected


def test_column_is_kept_beside_a_file_that_nobody_can_or_wants_to_read(landing: Landing) -> None:
    keys = {
        "partition_by": {"region": "string"},
        "read": {"filter": "region = 'eu'"},
        "on_changed_file": "ignore",
    }
    for region in ("eu", "us"):
        (landing.root / f"region={region}").mkdir()
    (landing.root / "region=us" / "damaged.parquet").write_bytes(b"no parquet")
    landing.write("region=eu/1", **amount(1.5))
    landing.rows(**keys)
    (landing.root / "region=eu" / "1.parquet").unlink()
    landing.write("region=eu/2")
    landing.rows(**keys)
    landing.write("region=eu/3", **amount(3.5))

    amounts = [row["amount"] for row in landing.rows(**keys)]

    assert amounts == [1.5, None, 3.5]
    parts = [pq.ParquetFile(path).schema_arrow for path in landing.lake.target.rglob("*.parquet")]
    assert all("amount" in schema.names for schema in parts)


def test_folder_that_is_read_whole_and_was_empty_keeps_its_columns(landing: Landing) -> None:
    keys = {"read": {"mode": "snapshot"}, "on_changed_file": "ignore"}
    landing.write("1", **amount(1.5))
    landing.rows(**keys)
    (landing.root / "1.parquet").unlink()
    landing.rows(**keys)
    landing.write("2")

    assert landing.rows(**keys) == [{"id": 2, "amount": None}]


def test_event_time_of_directories_wins_over_that_of_files_in_a_rebuild(landing: Landing) -> None:
    ids = {}
    for number in (1, 2):
        folder = f"at=2026-02-0{number}"
        (landing.root / folder).mkdir()
        landing.write(f"{folder}/part")
        ids[f"dt=2026-02-0{number}"] = [landing.put]
    landing.rows(partition_by={"at": "date"})
    pipeline = landing.pipeline(partition_by={"at": "date"})

    planned = pipeline.rebuild((day(2),), Run("again", "cli"), NOW)
    pipeline.finish_load(planned, NOW, local)
    publish(pipeline)

    assert landing.lake.ids() == ids
