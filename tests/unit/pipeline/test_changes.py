"""Bounds of changes mean the same in every form, and what they name wrongly is told."""

from __future__ import annotations

import json
import os
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden_iceberg import answers, golden
from small_lake import SmallLake, known
from tidegate import LoadedPipeline, load_pipeline, read_changes
from tidegate.errors import (
    BoundsReversed,
    ConfigInvalid,
    HistoryTruncated,
    InstantNotFound,
    SnapshotNotFound,
)
from tidegate.pipeline import open_pipeline

if TYPE_CHECKING:
    from pathlib import Path

FIRST = datetime(2026, 2, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
SCHEMA = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC"))])


def ids(table: pa.Table) -> list[int]:
    return sorted(table.column("id").to_pylist())


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> SmallLake:
    """A table whose commits were known at noon of five days, with one row each."""
    lake = SmallLake(tmp_path_factory.mktemp("lake"))
    for number in range(1, 6):
        assert lake.commit({number: 1}) == [number]
    return lake


@given(
    start=st.one_of(st.none(), st.integers(-30, 150)),
    end=st.one_of(st.none(), st.integers(-30, 150)),
    zone=st.sampled_from(["UTC", "America/New_York", "Asia/Kolkata"]),
    names_zone=st.booleans(),
)
def test_times_select_the_commits_after_the_start_up_to_the_end(
    lake: SmallLake, start: int | None, end: int | None, zone: str, *, names_zone: bool
) -> None:
    def text(hours: int | None) -> str | None:
        if hours is None:
            return None
        local = (known(0) + hours * HOUR).astimezone(ZoneInfo(zone))
        return (local if names_zone else local.replace(tzinfo=None)).isoformat()

    wanted = [
        number
        for number in range(1, 6)
        if (start is None or known(number - 0.5) > known(0) + start * HOUR)
        and (end is None or known(number - 0.5) <= known(0) + end * HOUR)
    ]
    bounds = {"start_exclusive": text(start), "end_inclusive": text(end), "timezone": zone}

    if wanted or start is None or end is None or end >= start:
        assert ids(read_changes(lake.source, **bounds).read_all()) == wanted


@pytest.mark.parametrize(
    "start", ["2026-02-03", date(2026, 2, 3), datetime(2026, 2, 3, tzinfo=UTC)]
)
def test_day_of_a_table_is_a_bound_in_every_form(start: date | str, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, days=4)

    found = read_changes({"kind": "files", "path": str(folder)}, start_exclusive=start).read_all()

    assert ids(found) == [3, 4]


def test_tag_and_snapshot_id_are_bounds() -> None:
    case = golden("branches_v2")
    tagged = answers("branches_v2")["refs"]["first_tag"]["snapshot-id"]

    by_tag, by_id = (
        read_changes(case.config(), end_inclusive=bound).read_all()
        for bound in ("first_tag", tagged)
    )

    assert by_tag.num_rows > 0
    assert by_tag == by_id


def test_time_before_expired_history_is_refused_until_the_pipeline_accepts_the_gap() -> None:
    case = golden("expired_head_v2")

    with pytest.raises(HistoryTruncated, match="on_truncated_history: oldest"):
        read_changes(case.config(), start_exclusive="2001-01-01")

    accepted = read_changes(
        case.config(on_truncated_history="oldest"), start_exclusive="2001-01-01"
    ).read_all()
    assert accepted == read_changes(case.config()).read_all()


@pytest.mark.parametrize(
    ("bound", "error"), [("yesterday", InstantNotFound), (42, SnapshotNotFound)]
)
def test_bound_that_names_nothing_is_refused(
    lake: SmallLake, bound: str | int, error: type[Exception]
) -> None:
    with pytest.raises(error):
        read_changes(lake.source, start_exclusive=bound)


@pytest.mark.follows("BoundsReversed")
def test_bounds_in_the_wrong_order_are_refused_and_exchanged_give_the_rows(
    lake: SmallLake,
) -> None:
    early, late = known(1.6).isoformat(), known(3.6).isoformat()

    with pytest.raises(BoundsReversed, match="Exchange the bounds"):
        read_changes(lake.source, start_exclusive=late, end_inclusive=early)

    found = read_changes(lake.source, start_exclusive=early, end_inclusive=late).read_all()
    assert ids(found) == [3, 4]


@pytest.mark.follows("BoundsReversed")
@pytest.mark.parametrize("mode", ["append", "snapshot_diff"])
@pytest.mark.parametrize("end", ["earliest", "2001-01-01"])
def test_end_before_every_instant_does_not_follow_a_start(
    lake: SmallLake, end: str, mode: str
) -> None:
    with pytest.raises(BoundsReversed, match=f"found {end}"):
        read_changes(lake.source, start_exclusive="latest", end_inclusive=end, mode=mode)

    assert (
        ids(read_changes(lake.source, start_exclusive="2000-01-01", end_inclusive=end).read_all())
        == []
    )


def folder_of(root: Path, days: int) -> Path:
    """Make a folder of files with one row each, which arrived at noon of each day of February."""
    folder = root / "drop"
    folder.mkdir()
    for number in range(1, days + 1):
        at = FIRST + timedelta(days=number - 1)
        file = folder / f"{number}.parquet"
        pq.write_table(pa.table({"id": [number], "at": [at]}, SCHEMA), file)
        os.utime(file, (at.timestamp(), at.timestamp()))
    return folder


@given(start=st.integers(-20, 120), end=st.integers(-20, 120))
def test_times_select_the_files_that_arrived_between_them(
    start: int, end: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = folder_of(tmp_path_factory.mktemp("files"), days=4)
    begin, stop = FIRST + start * HOUR, FIRST + end * HOUR
    wanted = [it for it in range(1, 5) if begin < FIRST + timedelta(days=it - 1) <= stop]

    if start <= end:
        found = read_changes(
            {"kind": "files", "path": str(folder)}, start_exclusive=begin, end_inclusive=stop
        )
        assert ids(found.read_all()) == wanted


def test_listings_of_a_pipeline_are_bounds_and_its_zone_is_that_of_times(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, days=2)
    keys: dict[str, Any] = {
        "name": "orders",
        "timezone": "America/New_York",
        "source": {"kind": "files", "path": str(folder)},
        "event_time": "at",
        "target": {"path": f"{tmp_path}/published", "partition_by": {"dt": "day(at)"}},
        "execute": {"engine": "local"},
    }
    file = tmp_path / "orders.yaml"
    file.write_text(json.dumps(keys))
    pipeline = LoadedPipeline(open_pipeline(file, ledger=f"sqlite:///{tmp_path}/ledger.db"))
    pipeline.load()
    pq.write_table(
        pa.table({"id": [9], "at": [FIRST]}, SCHEMA),
        folder / "9.parquet",
    )
    before = sorted(str(path) for path in (tmp_path / "published").parent.rglob("*"))

    assert ids(pipeline.changes("1").read_all()) == [9]
    # In New York, noon of UTC is seven in the morning.
    assert ids(pipeline.changes("2026-02-01T07:00", "2026-02-02T07:00").read_all()) == [2]
    assert ids(pipeline.changes("2026-02-01T06:59", "2026-02-02T06:59").read_all()) == [1]
    assert ids(pipeline.changes(limit=1).read_all()) == [1]
    assert sorted(str(path) for path in (tmp_path / "published").parent.rglob("*")) == before


@pytest.mark.parametrize("found", [None, 3, ["kind", "files"]])
def test_what_is_no_source_section_is_refused(found: Any) -> None:
    with pytest.raises(ConfigInvalid, match="expected a `source` section") as refused:
        read_changes(found)

    assert f"found {found!r}" in str(refused.value)


def test_pipeline_in_place_of_a_source_is_refused_with_what_reads_it(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEGATE_LEDGER", f"sqlite:///{lake.root}/ledger.db")
    path = lake.file()

    for source in (path, str(path)):
        with pytest.raises(ConfigInvalid, match=r"`load_pipeline\(\.\.\.\)\.changes\(\)`"):
            read_changes(source)

    assert ids(load_pipeline(path).changes().read_all()) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("found", ["changelog", 3])
def test_what_is_no_read_section_is_refused(lake: SmallLake, found: Any) -> None:
    with pytest.raises(ConfigInvalid, match=rf"`source\.read`: expected .*found {found!r}"):
        read_changes({**lake.source, "read": found}, mode="append")


@pytest.mark.parametrize("limit", [0, -1])
def test_limit_of_no_rows_is_refused(lake: SmallLake, limit: int) -> None:
    with pytest.raises(ConfigInvalid, match=rf"`limit`: expected at least 1 row.*found {limit}"):
        read_changes(lake.source, limit=limit)


def test_zone_that_does_not_exist_is_refused_with_the_nearest(lake: SmallLake) -> None:
    with pytest.raises(ConfigInvalid, match=r"`timezone`: .*did you mean 'Europe/Berlin'"):
        read_changes(lake.source, start_exclusive="2026-02-01", timezone="Europe/Berln")
