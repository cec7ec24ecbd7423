"""The lake: order of commits, the late report, and that it can be made again at any time."""

from __future__ import annotations

import shutil
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.catalog import load_catalog

from tidegate.demo.expected import flights_per_day
from tidegate.demo.flights import NEW_YORK, Flight, read_flights
from tidegate.demo.lake import (
    CATALOG,
    COMMIT_EVERY,
    KNOWN_AT,
    LATE_CARRIER,
    LATE_COMMIT,
    LATE_DAY,
    TABLE,
    SourceCommit,
    build_lake,
    catalog_properties,
    end_of_six_hours,
    source_commits,
    write_commits,
)
from tidegate.errors import LakeForeign

if TYPE_CHECKING:
    from pathlib import Path

LATENESS = timedelta(hours=6)
BLIZZARD = (date(2013, 2, 8), date(2013, 2, 9))


class Stopped(Exception):
    """Stands for a kill between two commits."""


@pytest.fixture(scope="module")
def commits() -> list[SourceCommit]:
    return source_commits(read_flights())


def day_of(flight: Flight) -> date:
    return flight.planned_departure.astimezone(NEW_YORK).date()


def midnight_after(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=NEW_YORK) + timedelta(days=1)


def stored(root: Path) -> list[tuple[str, list[dict[str, Any]]]]:
    """Give each commit of the table with its rows, in a fixed order within the commit."""
    catalog = load_catalog(CATALOG, **catalog_properties(root))
    try:
        table = catalog.load_table(TABLE)
        found = []
        before: Counter[str] = Counter()
        for entry in table.history():
            snapshot = table.snapshot_by_id(entry.snapshot_id)
            assert snapshot is not None
            assert snapshot.summary is not None
            rows = table.scan(snapshot_id=entry.snapshot_id).to_arrow().to_pylist()
            texts = Counter(str(sorted(row.items())) for row in rows)
            found.append((snapshot.summary[KNOWN_AT], sorted((texts - before).elements())))
            before = texts
        return found
    finally:
        catalog.close()


def test_expected_days_are_the_blizzards_and_ordinary_ones() -> None:
    days = flights_per_day()

    assert list(days) == [date(2013, 2, day) for day in range(5, 13)]
    departed = {day: count.departed / count.rows for day, count in days.items()}
    assert [round(departed[day], 2) for day in BLIZZARD] == [0.49, 0.43]
    assert all(share > 0.91 for day, share in departed.items() if day not in BLIZZARD)


def test_source_commits_hold_every_flight_once(commits: list[SourceCommit]) -> None:
    flights = [flight for commit in commits for flight in commit.flights]
    rows = Counter(map(day_of, flights))
    departed = Counter(day_of(one) for one in flights if one.departed_at is not None)

    assert len(set(flights)) == len(flights)
    assert {day: (rows[day], departed[day]) for day in rows} == {
        day: (count.rows, count.departed) for day, count in flights_per_day().items()
    }


def test_source_commits_follow_what_became_known(commits: list[SourceCommit]) -> None:
    assert [one.known_at for one in commits] == sorted({one.known_at for one in commits})
    for commit in commits:
        for flight in commit.flights:
            if flight.carrier == LATE_CARRIER and day_of(flight) == LATE_DAY:
                assert commit.known_at == LATE_COMMIT
            else:
                assert commit.known_at - COMMIT_EVERY < flight.known_at <= commit.known_at


def test_source_commits_late_report_is_one_airlines_day(commits: list[SourceCommit]) -> None:
    late = [
        one
        for commit in commits
        for one in commit.flights
        if one.known_at < commit.known_at - COMMIT_EVERY
    ]

    assert {(one.carrier, day_of(one)) for one in late} == {(LATE_CARRIER, LATE_DAY)}
    assert len(late) == 62
    assert LATE_COMMIT in [one.known_at for one in commits]


@given(moment=st.datetimes(datetime(2013, 2, 1), datetime(2013, 2, 28), timezones=st.just(UTC)))  # noqa: DTZ001
def test_end_of_six_hours_is_the_next_quarter_of_the_day_in_new_york(moment: datetime) -> None:
    end = end_of_six_hours(moment)

    assert timedelta(0) <= end - moment < COMMIT_EVERY
    assert (end.hour % 6, end.minute, end.second, end.microsecond) == (0, 0, 0, 0)
    assert end.tzinfo is NEW_YORK


@pytest.mark.parametrize(
    ("hour", "minute", "end"), [(6, 0, 6), (6, 1, 12), (0, 0, 0), (17, 59, 18)]
)
def test_end_of_six_hours_at_and_beside_the_boundary(hour: int, minute: int, end: int) -> None:
    moment = datetime(2013, 2, 5, hour, minute, tzinfo=NEW_YORK)

    assert end_of_six_hours(moment) == datetime(2013, 2, 5, end, tzinfo=NEW_YORK)


def test_daily_loads_end_as_the_demo_promises(commits: list[SourceCommit]) -> None:
    """Walk through the days with nothing but the rules: windows, watermark, revisions."""
    revisions: Counter[date] = Counter()
    rows: Counter[date] = Counter()
    seen: set[date] = set()
    pending: set[date] = set()
    watermark: datetime | None = None
    taken = 0
    for day in (date(2013, 2, number) for number in range(5, 13)):
        while taken < len(commits) and commits[taken].known_at < midnight_after(day):
            touched = Counter(map(day_of, commits[taken].flights))
            rows += touched
            pending |= set(touched)
            seen |= set(touched)
            newest = max(one.planned_departure for one in commits[taken].flights) - LATENESS
            watermark = max(watermark or newest, newest)
            taken += 1
        assert watermark is not None
        for due in sorted(pending):
            if watermark > midnight_after(due):
                revisions[due] += 1
                pending.discard(due)

    days = flights_per_day()
    assert revisions == {day: 2 if day == LATE_DAY else 1 for day in days if day.day < 12}
    assert all(rows[day] == days[day].rows for day in days if day.day < 12)
    assert pending == {date(2013, 2, 12)}
    assert watermark == datetime(2013, 2, 12, 11, tzinfo=NEW_YORK)


def test_build_lake_whole_week_says_what_stands(tmp_path: Path) -> None:
    steps: list[tuple[int, int]] = []

    report = build_lake(tmp_path / "lake", lambda done, all_: steps.append((done, all_)))
    again = build_lake(tmp_path / "lake")

    total = sum(count.rows for count in flights_per_day().values())
    assert (report.rows, report.late_rows, report.late_airline) == (total, 62, "US Airways Inc.")
    assert steps == [(number, report.commits) for number in range(1, report.commits + 1)]
    assert (report.made_now, again.made_now) == (report.commits, 0)


def few(commits: list[SourceCommit]) -> list[SourceCommit]:
    return [SourceCommit(one.known_at, one.flights[:5]) for one in commits[:4]]


def test_write_commits_types_and_values_survive(
    tmp_path: Path, commits: list[SourceCommit]
) -> None:
    flight = commits[0].flights[0]
    write_commits(tmp_path, [SourceCommit(commits[0].known_at, (flight,))])

    catalog = load_catalog(CATALOG, **catalog_properties(tmp_path))
    try:
        row = catalog.load_table(TABLE).scan().to_arrow().to_pylist()[0]
    finally:
        catalog.close()

    assert row == {name: getattr(flight, name) for name in row}
    assert set(row) == set(Flight.__dataclass_fields__)


@pytest.mark.parametrize("stopped_after", [1, 2, 3])
def test_write_commits_stopped_half_way_goes_on_to_the_same_lake(
    tmp_path: Path, commits: list[SourceCommit], stopped_after: int
) -> None:
    def stop(done: int, total: int) -> None:
        if done == stopped_after:
            raise Stopped

    with pytest.raises(Stopped):
        write_commits(tmp_path / "stopped", few(commits), stop)
    rest = write_commits(tmp_path / "stopped", few(commits))
    write_commits(tmp_path / "clean", few(commits))

    assert rest == 4 - stopped_after
    assert stored(tmp_path / "stopped") == stored(tmp_path / "clean")
    assert [moment for moment, _ in stored(tmp_path / "clean")] == [
        one.known_at.isoformat() for one in few(commits)
    ]


@pytest.mark.follows("LakeForeign")
def test_write_commits_folder_with_another_lake_is_refused_untouched(
    tmp_path: Path, commits: list[SourceCommit]
) -> None:
    other = [SourceCommit(one.known_at, one.flights[:3]) for one in commits[:2]]
    write_commits(tmp_path, other)
    before = stored(tmp_path)

    with pytest.raises(LakeForeign, match="Remove that folder") as differs:
        write_commits(tmp_path, few(commits))
    with pytest.raises(LakeForeign, match="nothing more as commit 2"):
        write_commits(tmp_path, other[:1])

    assert differs.value.found.endswith("with 3 rows")
    assert stored(tmp_path) == before
    # What the message says to do.
    shutil.rmtree(tmp_path)
    write_commits(tmp_path, few(commits))
    assert stored(tmp_path) != before
