"""Which files are copied: each condition that forbids it, by a file that breaks that one alone.

Whatever is copied or read, rows, bounds and quarantine are those of reading.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parquet_bytes import with_inexact_largest, without_null_count
from small_lake import load, merged, publish
from tidegate import read_committed
from tidegate.errors import ListedFileChanged, ListedFileGone, SourceFileDamaged
from tidegate.execute.local import LocalExecutor
from tidegate.model.message import EventTimes
from tidegate.model.partition import Partition
from tidegate.model.run import Run
from tidegate.pipeline.state.plan_files import read_splits
from tidegate.storage import LocalStorage, OsCalls
from whole_copies import NOW, CountingStorage, Meanwhile, Twice, messages

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
BY_DAY = {"dt": "day(at)"}
PROCESS_TIME = {"trigger": "process-time"}


def orders(*hours: float | None, **columns: Any) -> pa.Table:
    """Rows at some hours from noon on; NULL where there is none."""
    moments = [None if hour is None else NOON + hour * HOUR for hour in hours]
    usual = {
        "id": pa.array(range(len(hours)), pa.int64()),
        "at": pa.array(moments, pa.timestamp("us", "UTC")),
        "amount": pa.array([hour or 0.5 for hour in hours], pa.float64()),
    }
    return pa.table(usual | columns)


def microseconds(moment: datetime) -> int:
    """Count as the file does."""
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def noted(table: pa.Table, **notes: str) -> pa.Table:
    """Give a table notes of its writer."""
    return table.replace_schema_metadata(notes)


class Died(BaseException):
    """The process is gone: nobody cleans up."""


@dataclass(frozen=True)
class DyingCalls(OsCalls):
    """System calls of a process that dies, once, behind the first bytes of a copy."""

    lives: list[int] = field(default_factory=lambda: [1], compare=False)

    def copy_range(self, source: int, target: int, count: int) -> int:
        if not self.lives:
            return super().copy_range(source, target, count)
        self.lives.pop()
        super().copy_range(source, target, 1000)
        raise Died


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('ledger')}/ledger.db"


@pytest.fixture
def twice(tmp_path: Path, ledger: str) -> Twice:
    (tmp_path / "raw").mkdir()
    keys = {
        "source": {"kind": "files", "path": str(tmp_path / "raw")},
        "event_time": "at",
        "target": {"partition_by": BY_DAY},
    }
    return Twice(tmp_path, keys, ledger)


@dataclass(frozen=True)
class Folder:
    """The folder of raw files."""

    root: Path

    def put(self, table: pa.Table, name: str = "a.parquet", **options: Any) -> Path:
        """Write a file as this project does, but for some options."""
        path = self.root / "raw" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, path, **{"compression": "zstd", **options})
        return path


@pytest.fixture
def raw(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


# What is copied: the rows are always compared with those of the long way


def test_file_of_one_day_is_copied_byte_by_byte_and_is_no_link(twice: Twice, raw: Folder) -> None:
    file = raw.put(orders(0, 1, 2))

    storage = CountingStorage()

    twice.staged(storage)

    assert storage.copied == [str(file)]
    (copy,) = twice.root.rglob("staged/**/*.zstd.parquet")
    assert copy.read_bytes() == file.read_bytes()
    assert file.stat().st_nlink == 1


def test_copied_file_is_told_as_if_it_had_been_read(twice: Twice, raw: Folder) -> None:
    raw.put(orders(0, 1, 2))

    staged, _, _ = twice.both()

    bounds = EventTimes(NOON, NOON + 2 * HOUR)
    assert staged.said == {"dt=2026-03-01": (3, bounds)}
    assert staged.read == (3, 3, bounds)


COPIED: dict[str, tuple[pa.Table, dict[str, Any]]] = {
    "no partitions": (orders(0, 1, 100), {"target": {"partition_by": None}}),
    "no event time": (orders(0, 1), {"event_time": None, "commit": PROCESS_TIME}),
    "hours": (orders(0, 0.5, 0.9), {"target": {"partition_by": {"h": "hour(at)"}}}),
    "a month": (orders(0, 24, 48), {"target": {"partition_by": {"dt": None, "m": "month(at)"}}}),
    "day and hour": (
        orders(0, 0.5),
        {"target": {"partition_by": {"dt": "day(at)", "h": "hour(at)"}}},
    ),
    "another zone": (orders(0, 1, 2), {"timezone": "Asia/Tokyo"}),
    "nanoseconds": (
        orders(at=pa.array([1, 2], pa.timestamp("ns", "UTC")), id=[1, 2], amount=[1.0, 2.0]),
        {},
    ),
    "milliseconds": (
        orders(at=pa.array([1, 2], pa.timestamp("ms", "UTC")), id=[1, 2], amount=[1.0, 2.0]),
        {},
    ),
    "seconds, stored as milliseconds": (
        orders(at=pa.array([1, 2], pa.timestamp("s", "UTC")), id=[1, 2], amount=[1.0, 2.0]),
        {},
    ),
    "wall clock": (
        orders(at=pa.array([1, 2], pa.timestamp("us")), id=[1, 2], amount=[1.0, 2.0]),
        {"timezone": "America/New_York"},
    ),
    "dates": (
        orders(at=pa.array([date(2026, 3, 1)] * 2), id=[1, 2], amount=[1.0, 2.0]),
        {"timezone": "America/New_York"},
    ),
    "whole numbers": (
        orders(0, 1, n=pa.array([1_770_000_000, 1_770_000_001], pa.int64())),
        {"event_time": {"column": "n", "unit": "s"}},
    ),
    "NULL in another column": (orders(0, 1, amount=pa.array([None, 1.0])), {}),
    "nested columns": (
        orders(
            0,
            1,
            tags=pa.array([["x"], None]),
            place=pa.array([{"lat": 1.5, "name": "y"}, None]),
            more=pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
            price=pa.array([Decimal("1.20"), None], pa.decimal128(9, 2)),
        ),
        {},
    ),
    "texts that Arrow calls large": (
        orders(0, 1, note=pa.array(["x", "y"], pa.large_string())),
        {},
    ),
    "all rows of a snapshot": (orders(0, 1), {"source": {"read": {"mode": "snapshot"}}}),
    "all columns asked for": (
        orders(0, 1),
        {"source": {"read": {"columns": ["id", "at", "amount"]}}},
    ),
    "a newer Spark": (noted(orders(0, 1), **{"org.apache.spark.version": "3.5.1"}), {}),
}


@pytest.mark.parametrize("case", COPIED)
def test_file_is_copied(case: str, twice: Twice, raw: Folder) -> None:
    table, keys = COPIED[case]
    file = raw.put(table)

    assert twice.copied(**keys) == [str(file)]


def test_key_of_the_path_alone_is_known_of_every_row(twice: Twice, raw: Folder) -> None:
    names = ("eu", "us", "__DEFAULT_PARTITION__")
    files = [str(raw.put(orders(0, 1), f"region={name}/a.parquet")) for name in names]
    keys = {
        "source": {"partition_by": {"region": "string"}, "split": {"open_cost": 1 << 40}},
        "target": {"partition_by": {"dt": "day(at)", "region": "region"}},
    }

    staged, reading, copied = twice.both(**keys)

    assert staged == reading
    assert sorted(copied) == sorted(files)
    assert set(staged.said) == {f"dt=2026-03-01/region={name}" for name in names}


def test_column_of_the_path_that_is_no_key_of_the_target_is_written(
    twice: Twice, raw: Folder
) -> None:
    raw.put(orders(0, 1), "region=eu/a.parquet")

    assert twice.copied(source={"partition_by": {"region": "string"}}) == []


# What is not


FORBIDDEN: dict[str, tuple[pa.Table, dict[str, Any], dict[str, Any]]] = {
    # What it holds
    "rows of two days": (orders(0, 12), {}, {}),
    "NULL as a time": (orders(0, None), {}, {}),
    "a second key with two values": (
        orders(0, 1, other=pa.array([NOON, NOON + DAY])),
        {},
        {"target": {"partition_by": {"dt": "day(at)", "other_day": "day(other)"}}},
    ),
    "NULL in a second key": (
        orders(0, 1, other=pa.array([NOON, None], pa.timestamp("us", "UTC"))),
        {},
        {"target": {"partition_by": {"dt": "day(at)", "other_day": "day(other)"}}},
    ),
    "times in the future": (orders(0, 24 * 200), {}, {"target": {"partition_by": None}}),
    "nothing but the future": (orders(24 * 200), {}, {}),
    "no rows": (orders(), {}, {}),
    # What is known of it
    "no bounds": (orders(0, 1), {"write_statistics": False}, {}),
    "no bounds of the key": (orders(0, 1), {"write_statistics": ["id"]}, {}),
    "numbers without a sign": (
        orders(0, 1, n=pa.array([1, 2], pa.uint64())),
        {},
        {"event_time": {"column": "n", "unit": "s"}},
    ),
    # What it looks like
    "a column that is required": (
        orders(0, 1).cast(
            pa.schema(
                [
                    pa.field("id", pa.int64(), nullable=False),
                    ("at", pa.timestamp("us", "UTC")),
                    ("amount", pa.float64()),
                ]
            )
        ),
        {},
        {},
    ),
    "a required field inside": (
        orders(
            0,
            1,
            place=pa.array(
                [{"lat": 1.5}, None], pa.struct([pa.field("lat", pa.float64(), nullable=False)])
            ),
        ),
        {},
        {},
    ),
    "elements of another name": (
        orders(0, 1, tags=pa.array([["x"], None])),
        {"use_compliant_nested_type": False},
        {},
    ),
    "INT96": (orders(0, 1), {"use_deprecated_int96_timestamps": True}, {}),
    "INT96 beside a key": (
        orders(0, 1, d=pa.array([date(2026, 3, 1)] * 2)),
        {"use_deprecated_int96_timestamps": True},
        {
            "event_time": None,
            "commit": PROCESS_TIME,
            "target": {"partition_by": {"dt": "day(d)"}},
        },
    ),
    "another way to store decimals": (
        orders(0, 1, price=pa.array([Decimal("1.20"), None], pa.decimal128(9, 2))),
        {"store_decimal_as_integer": True},
        {},
    ),
    "a dictionary": (orders(0, 1, note=pa.array(["x", "y"]).dictionary_encode()), {}, {}),
    "views": (orders(0, 1, note=pa.array(["x", "y"], pa.string_view())), {}, {}),
    "list views": (orders(0, 1, tags=pa.array([["x"], None], pa.list_view(pa.string()))), {}, {}),
    "a partition column inside": (
        orders(0, 1, region=pa.array(["eu", "eu"])),
        {},
        {"target": {"partition_by": {"dt": "day(at)", "region": "region"}}},
    ),
    # How it is written
    "another codec": (orders(0, 1), {"compression": "snappy"}, {}),
    "another codec of one column": (
        orders(0, 1),
        {"compression": {"id": "zstd", "at": "zstd", "amount": "gzip"}},
        {},
    ),
    "no codec": (orders(0, 1), {"compression": "none"}, {}),
    "a file larger than configured": (
        orders(*(n / 3600 for n in range(2000))),
        {"row_group_size": 500},
        {"target": {"rolling": {"file_size": 2000}}},
    ),
    "tiny row groups": (orders(*(n / 3600 for n in range(200))), {"row_group_size": 50}, {}),
    # Who wrote it
    "an old calendar": (noted(orders(0, 1), **{"org.apache.spark.legacyDateTime": ""}), {}, {}),
    "an old calendar of INT96": (
        noted(orders(0, 1), **{"org.apache.spark.legacyINT96": ""}),
        {},
        {},
    ),
    "an old Spark": (noted(orders(0, 1), **{"org.apache.spark.version": "2.4.8"}), {}, {}),
    "Hive with its calendar": (noted(orders(0, 1), **{"writer.date.proleptic": "false"}), {}, {}),
    "an index of pandas": (
        noted(orders(0, 1), pandas=json.dumps({"index_columns": ["id"], "columns": []})),
        {},
        {},
    ),
    # What the pipeline file says
    "a filter that all rows pass": (
        orders(0, 1),
        {},
        {"source": {"read": {"filter": "id >= 0"}}},
    ),
    "rule that puts rows aside": (
        orders(0, 1),
        {},
        {"rows": [{"name": "some", "where": "id > 0", "on_failure": "quarantine"}]},
    ),
    "rule that holds": (
        orders(0, 1),
        {},
        {"rows": [{"name": "some", "where": "id > 0", "on_failure": "hold"}]},
    ),
    "rule that warns": (
        orders(0, 1),
        {},
        {"rows": [{"name": "some", "where": "id > 0", "on_failure": "warn"}]},
    ),
    "some of the columns": (orders(0, 1), {}, {"source": {"read": {"columns": ["id", "at"]}}}),
    "columns in another order": (
        orders(0, 1),
        {},
        {"source": {"read": {"columns": ["at", "id", "amount"]}}},
    ),
    "a limit": (orders(0, 1), {}, {"source": {"read": {"mode": "snapshot", "limit": 5}}}),
    "the switch": (orders(0, 1), {}, {"target": {"copy_whole_files": "never"}}),
    "an order": (orders(0, 1), {}, {"target": {"sort_by": ["id"]}}),
    "rows brought together": (orders(0, 1), {}, {"target": {"shuffle_by_partition": True}}),
}


@pytest.mark.parametrize("case", FORBIDDEN)
def test_file_is_read_because_of(case: str, twice: Twice, raw: Folder) -> None:
    table, options, keys = FORBIDDEN[case]
    raw.put(table, **options)

    assert twice.copied(**keys) == []


def test_file_whose_bounds_are_no_values_is_read(twice: Twice, raw: Folder) -> None:
    file = raw.put(orders(0, 1, 2))
    file.write_bytes(with_inexact_largest(file.read_bytes(), microseconds(NOON)))

    assert twice.copied() == []


def test_file_that_does_not_count_its_nulls_is_read(twice: Twice, raw: Folder) -> None:
    file = raw.put(orders(0, 1, 2))
    file.write_bytes(without_null_count(file.read_bytes(), microseconds(NOON + 2 * HOUR)))

    assert twice.copied() == []


def test_files_that_differ_in_their_columns_are_read_but_for_the_complete_ones(
    twice: Twice, raw: Folder
) -> None:
    raw.put(orders(0, 1), "a.parquet")
    whole = raw.put(orders(0, 1, more=pa.array([1, 2])), "b.parquet")
    raw.put(orders(0, 1, more=pa.array([1, 2], pa.int32())), "c.parquet")
    raw.put(orders(0, 1, more=pa.array([1, 2])).select(["at", "id", "amount", "more"]), "d.parquet")
    one_by_one = {"source": {"split": {"open_cost": 1 << 40}}}

    assert twice.copied(**one_by_one) == [str(whole)]


def test_small_files_that_stand_together_are_read(twice: Twice, raw: Folder) -> None:
    for name in ("a.parquet", "b.parquet"):
        raw.put(orders(0, 1), name)

    assert twice.copied() == []
    # One of each way.
    assert len(list(twice.root.rglob("staged/**/*.zstd.parquet"))) == 2


def test_files_that_are_not_small_are_copied_beside_those_that_are_read(
    twice: Twice, raw: Folder
) -> None:
    files = [raw.put(orders(0, 1), "a.parquet"), raw.put(orders(3, 4), "c.parquet")]
    raw.put(orders(-24, 0), "b.parquet")
    keys = {"target": {"rolling": {"file_size": files[0].stat().st_size * 4}}}

    assert twice.copied(**keys) == [str(path) for path in files]


@pytest.mark.parametrize(
    ("timezone", "first", "last"),
    [
        # One minute of the next day, then the last hour of this day again.
        ("America/St_Johns", datetime(2010, 11, 7, 2, tzinfo=UTC), timedelta(hours=1)),
        ("America/New_York", datetime(2026, 3, 8, 6, 30, tzinfo=UTC), timedelta(hours=1)),
    ],
    ids=["a day that ends twice", "clocks put forward"],
)
def test_file_of_a_day_on_which_the_clocks_are_changed_is_read(
    timezone: str, first: datetime, last: timedelta, twice: Twice, raw: Folder
) -> None:
    moments = [first, first + last / 2 + timedelta(seconds=30), first + last]
    at = pa.array(moments, pa.timestamp("us", "UTC"))
    raw.put(pa.table({"id": [1, 2, 3], "at": at, "amount": [1.0, 2.0, 3.0]}))

    assert twice.copied(timezone=timezone) == []


def test_wall_clock_that_was_skipped_is_read(twice: Twice, raw: Folder) -> None:
    # 02:50 did not happen, and is 03:50; 03:10 is an earlier moment.
    at = [datetime(2026, 3, 8, 1), datetime(2026, 3, 8, 2, 50), datetime(2026, 3, 8, 3, 10)]  # noqa: DTZ001
    raw.put(pa.table({"id": [1, 2, 3], "at": pa.array(at, pa.timestamp("us"))}))

    staged, _, copied = twice.both(timezone="America/New_York")

    assert copied == []
    assert staged.read[2].largest == datetime(2026, 3, 8, 7, 50, tzinfo=UTC)


def test_file_of_one_partition_is_copied_beside_rows_to_assemble(twice: Twice, raw: Folder) -> None:
    days = range(0, 24 * 70, 24)
    for name in ("a.parquet", "b.parquet"):
        raw.put(orders(*days), name)
    of_one_day = raw.put(orders(0, 1), "c.parquet")
    one_by_one = {"split": {"open_cost": 1 << 40}}

    assert twice.copied(source=one_by_one) == [str(of_one_day)]


@pytest.mark.on_disk
def test_partition_that_is_rebuilt_is_copied_and_another_is_not(twice: Twice, raw: Folder) -> None:
    storage = CountingStorage()
    pipeline = twice.pipeline(storage, source={"split": {"open_cost": 1 << 40}})
    first, _ = raw.put(orders(0, 1), "a.parquet"), raw.put(orders(24, 25), "b.parquet")
    load(pipeline)
    storage.copied.clear()

    (planned,) = pipeline.rebuild([Partition((("dt", "2026-03-01"),))], Run("b", "cli"), NOW)
    pipeline.stage(planned, LocalExecutor(2))

    assert storage.copied == [str(first)]


# Large files, which are cut where they are read


def parts_of(twice: Twice, **keys: Any) -> list[int]:
    """How many pieces of each file a plan has."""
    pipeline = twice.pipeline(**merged({"source": {"split": {"max_rows": 10}}}, keys))
    (planned,) = pipeline.plan(Run("run", "cli"), NOW)
    splits = read_splits(pipeline.storage, planned.uri)
    pieces = [piece for split in splits for sub in split.sub_splits for piece in sub.pieces]
    return sorted(Counter(piece.path for piece in pieces).values())


def test_large_file_is_cut_only_where_it_is_read(twice: Twice, raw: Folder) -> None:
    file = raw.put(orders(*(n / 3600 for n in range(100))))
    raw.put(orders(*(n / 2 for n in range(100))), "b.parquet")

    assert parts_of(twice) == [1, 10]
    assert parts_of(twice, target={"copy_whole_files": "never"}) == [10, 10]
    assert twice.copied(source={"split": {"max_rows": 10}}) == [str(file)]


# What goes wrong


def test_file_that_is_replaced_before_it_is_copied_is_named(twice: Twice, raw: Folder) -> None:
    raw.put(orders(0, 1))

    with pytest.raises(ListedFileChanged, match=r"a\.parquet"):
        twice.staged(Meanwhile(happens=lambda: raw.put(orders(5, 6, 7))))


def test_file_that_is_deleted_before_it_is_copied_is_named(twice: Twice, raw: Folder) -> None:
    file = raw.put(orders(0, 1))

    with pytest.raises(ListedFileGone, match=r"a\.parquet"):
        twice.staged(Meanwhile(happens=file.unlink))


def test_file_that_is_replaced_by_one_of_its_length_and_time_is_named(
    twice: Twice, raw: Folder
) -> None:
    file = raw.put(orders(0, 1))
    content, written = file.read_bytes(), file.stat().st_mtime_ns

    def replace() -> None:
        file.write_bytes(with_inexact_largest(content, microseconds(NOON)))
        os.utime(file, ns=(written, written))

    with pytest.raises(SourceFileDamaged, match=r"a\.parquet.*other content"):
        twice.staged(Meanwhile(happens=replace))


def test_copy_that_lost_its_end_is_no_part_file(twice: Twice, raw: Folder) -> None:
    raw.put(orders(0, 1))

    with pytest.raises(SourceFileDamaged, match=r"a\.parquet.*footer"):
        twice.staged(Meanwhile(behind=lambda target: os.truncate(target, 100)))

    assert list(twice.root.rglob("staged/**/*.parquet")) == []


@pytest.mark.on_disk
def test_task_that_dies_in_a_copy_is_done_again(twice: Twice, raw: Folder) -> None:
    file = raw.put(orders(*(n / 3600 for n in range(2000))))
    pipeline = twice.pipeline(LocalStorage(DyingCalls()))
    (planned,) = pipeline.plan(Run("run", "cli"), NOW)

    with LocalExecutor(1) as executor:
        with pytest.raises(Died):
            pipeline.stage(planned, executor)
        (half,) = twice.root.rglob("staged/**/*.parquet")
        assert half.stat().st_size == 1000
        pipeline.stage(planned, executor)

    ((_, message),) = messages(pipeline, planned.uri)
    (part,) = message.staged.parts
    assert Path(f"{planned.uri}/{part.staged}").read_bytes() == file.read_bytes()
    assert (part.staged.split("/")[2], part.name) != (half.parent.parent.name, "")
    assert part.name == half.name


def test_copy_is_published_like_what_was_read(twice: Twice, raw: Folder) -> None:
    file, _ = raw.put(orders(0, 1)), raw.put(orders(48), "b.parquet")
    pipeline = twice.pipeline(source={"split": {"open_cost": 1 << 40}})

    load(pipeline)
    publish(pipeline)

    (part,) = (twice.root / pipeline.config.name).rglob("*.parquet")
    assert part.read_bytes() == file.read_bytes()
    assert read_committed(pipeline.config.target.path).count_rows() == 2
