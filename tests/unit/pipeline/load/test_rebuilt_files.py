"""Files that a rebuild need not read: never one with a row of its partitions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tidegate.config import PipelineConfig
from tidegate.model.file_slice import FileSlice
from tidegate.model.partition import DEFAULT_NAME, Partition
from tidegate.model.plan import Piece
from tidegate.model.time_bounds import TimeBounds
from tidegate.pipeline.load.rebuilt_files import RebuiltTimes
from tidegate.source.slicing import Units

ZONES = ("UTC", "Europe/Berlin", "Pacific/Apia", "Australia/Lord_Howe", "America/Sao_Paulo")
FORMATS = {"day": "%Y-%m-%d", "hour": "%Y-%m-%dT%H", "month": "%Y-%m"}


def config(key: str = "day(at)", zone: str = "UTC") -> PipelineConfig:
    return PipelineConfig.from_resolved(
        {
            "name": "p",
            "timezone": zone,
            "source": {"kind": "files", "path": "/in"},
            "event_time": "at",
            "target": {"path": "/out", "partition_by": {"dt": key, "region": "region"}},
        }
    )


def partition(value: str) -> Partition:
    return Partition.parse(f"dt={value}/region=eu", ("dt", "region"), DEFAULT_NAME)


def units(*days: tuple[int, int] | None) -> Units:
    """Make a file for each span of days of February, or for one without bounds."""

    def times(span: tuple[int, int]) -> TimeBounds:
        return TimeBounds(*(datetime(2026, 2, day, 12, tzinfo=UTC) for day in span))

    pieces = [
        Piece(FileSlice(f"{number}.parquet"), 1, 1, event_times=times(span) if span else None)
        for number, span in enumerate(days)
    ]
    return Units(tuple(pieces), notes=("a note",))


# Berlin's clocks were set back at 01:00 UTC, Apia skipped the whole of 2011-12-30, and St. John's
# went from 00:01 to 01:01 at 03:31 UTC, so that its hour 01 began where it would not have.
@example("America/St_Johns", "hour", datetime(2010, 3, 14, 3, 45, tzinfo=UTC), 0, 0)
@example("Europe/Berlin", "hour", datetime(2026, 10, 25, 1, 30, tzinfo=UTC), 0, 0)
@example("Europe/Berlin", "hour", datetime(2026, 10, 25, 0, 30, tzinfo=UTC), 0, 0)
@example("Pacific/Apia", "day", datetime(2011, 12, 30, 9, 59, tzinfo=UTC), 0, 0)
@given(
    st.sampled_from(ZONES),
    st.sampled_from(sorted(FORMATS)),
    st.datetimes(datetime(1990, 1, 1), datetime(2040, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
    st.integers(0, 10_000_000),
    st.integers(0, 10_000_000),
)
def test_file_with_a_row_of_a_partition_is_kept(
    zone: str, unit: str, at: datetime, before: int, after: int
) -> None:
    named = partition(at.astimezone(ZoneInfo(zone)).strftime(FORMATS[unit]))
    times = RebuiltTimes.of(config(f"{unit}(at)", zone), [named])

    assert times is not None
    assert times.may_have(TimeBounds(at - timedelta(seconds=before), at + timedelta(seconds=after)))


def test_rows_of_null_beside_a_day_are_in_any_file() -> None:
    assert RebuiltTimes.of(config(), [partition("2026-02-01"), partition(DEFAULT_NAME)]) is None


def test_other_files_are_left_out_and_counted() -> None:
    found = units((1, 1), (1, 3), (2, 2), (3, 9), None)

    times = RebuiltTimes.of(config(), [partition("2026-02-02")])
    assert times is not None
    kept = times.within(found)

    assert [piece.path for piece in kept] == ["1.parquet", "2.parquet", "4.parquet"]
    assert kept.notes == (
        "a note",
        "the event times of the rebuilt partitions ruled out 2 files",
    )


def test_nothing_is_left_out_where_all_files_may_have_rows() -> None:
    found = units((1, 3), (2, 2))

    times = RebuiltTimes.of(config(), [partition("2026-02-02"), partition("2026-02-03")])

    assert times is not None
    assert times.within(found) is found


@pytest.mark.parametrize(
    ("key", "value"),
    [
        pytest.param("day(at)", DEFAULT_NAME, id="rows without an event time"),
        pytest.param("day(made)", "2026-02-02", id="partitions of another column"),
        pytest.param("kind", "2026-02-02", id="partitions of no time"),
    ],
)
def test_event_times_do_not_tell_every_row(key: str, value: str) -> None:
    assert RebuiltTimes.of(config(key), [partition(value)]) is None


def test_load_without_partitions_reads_everything() -> None:
    assert RebuiltTimes.of(config(), []) is None
