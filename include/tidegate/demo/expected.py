"""Compute the expected result by a separate query, independent of how the lake is made."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from datetime import date

from tidegate.demo.flights import FIRST_DAY, LAST_DAY, package_file


@dataclass(frozen=True)
class DayCount:
    """The flights planned for one day."""

    rows: int
    departed: int


def flights_per_day(first: date = FIRST_DAY, last: date = LAST_DAY) -> dict[date, DayCount]:
    """Count planned and departed flights per day in New York, from the package's table.

    Raises:
        EnvironmentIncomplete: the package is not installed.
    """
    import pyarrow.csv as pc

    with zipfile.ZipFile(package_file("flights.csv.zip")) as archive:
        wanted = pc.ConvertOptions(include_columns=["year", "month", "day", "dep_time"])
        table = pc.read_csv(archive.open("flights.csv"), convert_options=wanted)
    counted = table.group_by(["year", "month", "day"]).aggregate(
        [("year", "count"), ("dep_time", "count")]
    )
    days = {
        date(row["year"], row["month"], row["day"]): DayCount(
            rows=row["year_count"], departed=row["dep_time_count"]
        )
        for row in counted.to_pylist()
    }
    return {day: days[day] for day in sorted(days) if first <= day <= last}
