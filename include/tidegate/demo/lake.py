"""Create the demo's lake: an Iceberg table with one commit for each six hours of new knowledge."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from tidegate.demo.flights import NEW_YORK, Flight, airline_name, read_flights
from tidegate.errors import LakeForeign

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pyarrow as pa
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table

CATALOG = "demo"
"""A SQL catalog keeps its tables under its name: the pipeline file has to use the same one."""
TABLE = "raw.flights"
KNOWN_AT = "known-at"
"""Summary property of each commit: the end of its six hours, which `source.instant_time` names."""
VARIABLE = "TIDEGATE_DEMO_LAKE"
"""Environment variable through which `pipelines/flights.yaml` finds the folder."""

COMMIT_EVERY = timedelta(hours=6)
LATE_CARRIER = "US"
LATE_DAY = date(2013, 2, 6)
LATE_COMMIT = datetime(2013, 2, 9, 6, tzinfo=NEW_YORK)
"""The first commit of the 9th: three days after those flights landed."""


@dataclass(frozen=True)
class SourceCommit:
    """The flights of one commit."""

    known_at: datetime
    flights: tuple[Flight, ...]


@dataclass(frozen=True)
class LakeReport:
    """The content of the lake."""

    root: str
    commits: int
    made_now: int
    """Commits of this call; 0: the lake was complete."""
    rows: int
    late_airline: str
    late_rows: int
    """Flights of `LATE_DAY` that are in the commit of `LATE_COMMIT`, on purpose."""


def build_lake(root: Path, progress: Callable[[int, int], None] | None = None) -> LakeReport:
    """Create the table `raw.flights` below a folder, or complete an unfinished one.

    Runs on: one process per folder. Called: again at any time. Failure: each commit is atomic in
    the catalog, so a killed call leaves the first commits and at most some files that no commit
    names; the next call continues with the missing commit.

    Args:
        root: folder of the lake; created if it does not exist.
        progress: called with the number of existing commits and of all commits.

    Raises:
        LakeForeign: the folder contains a table with other commits.
        EnvironmentIncomplete: the package with the flights is not installed.
    """
    commits = source_commits(read_flights())
    made = write_commits(root, commits, progress)
    return LakeReport(
        root=str(root.absolute()),
        commits=len(commits),
        made_now=made,
        rows=sum(len(commit.flights) for commit in commits),
        late_airline=airline_name(LATE_CARRIER),
        late_rows=sum(_is_held_back(flight) for commit in commits for flight in commit.flights),
    )


def write_commits(
    root: Path, commits: list[SourceCommit], progress: Callable[[int, int], None] | None = None
) -> int:
    """Append the commits that the table does not have yet; the part of `build_lake` on disk.

    Returns:
        The number of appended commits.

    Raises:
        LakeForeign: the folder contains a table with other commits.
    """
    from pyiceberg.catalog import load_catalog

    root = root.absolute()
    root.mkdir(parents=True, exist_ok=True)
    with closing(load_catalog(CATALOG, **catalog_properties(root))) as catalog:
        catalog.create_namespace_if_not_exists(TABLE.split(".")[0])
        table = catalog.create_table_if_not_exists(TABLE, schema=_schema())
        standing = _standing(table, commits, root)
        for number, commit in enumerate(commits[standing:], start=standing + 1):
            properties = {KNOWN_AT: commit.known_at.isoformat()}
            table.append(_arrow(commit, table.schema()), snapshot_properties=properties)
            if progress:
                progress(number, len(commits))
    return len(commits) - standing


def catalog_properties(root: Path) -> dict[str, str]:
    """Return pyiceberg's properties of the lake's catalog, the same as in the pipeline file."""
    return {
        "type": "sql",
        "uri": f"sqlite:///{root}/catalog.db",
        "warehouse": f"file://{root}/warehouse",
    }


def source_commits(flights: list[Flight]) -> list[SourceCommit]:
    """Arrange flights in the order in which they became known, one commit for each six hours.

    The flights of one airline and day are held back until the commit of `LATE_COMMIT`: an
    intentionally late report.
    """
    known: dict[datetime, list[Flight]] = {}
    for flight in flights:
        moment = LATE_COMMIT if _is_held_back(flight) else end_of_six_hours(flight.known_at)
        known.setdefault(moment, []).append(flight)
    return [
        SourceCommit(moment, tuple(sorted(known[moment], key=_order))) for moment in sorted(known)
    ]


def end_of_six_hours(moment: datetime) -> datetime:
    """Return the next 0, 6, 12 or 18 o'clock in New York; the moment itself if it is one."""
    local = moment.astimezone(NEW_YORK)
    midnight = local.replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight - (midnight - local) // COMMIT_EVERY * COMMIT_EVERY


def _is_held_back(flight: Flight) -> bool:
    day = flight.planned_departure.astimezone(NEW_YORK).date()
    return flight.carrier == LATE_CARRIER and day == LATE_DAY


def _order(flight: Flight) -> tuple[datetime, datetime, str, int, str]:
    return flight.known_at, flight.planned_departure, flight.carrier, flight.flight, flight.origin


def _standing(table: Table, commits: list[SourceCommit], root: Path) -> int:
    """Count the commits that the table has, which must equal the first ones of ours."""
    snapshots = sorted(table.metadata.snapshots, key=lambda one: one.sequence_number or 0)
    found = [
        f"{one.summary[KNOWN_AT]} with {one.summary['added-records']} rows" if one.summary else "?"
        for one in snapshots
    ]
    ours = [f"{one.known_at.isoformat()} with {len(one.flights)} rows" for one in commits]
    for number, commit in enumerate(found):
        if number >= len(ours) or commit != ours[number]:
            expected = ours[number] if number < len(ours) else "nothing more"
            raise LakeForeign(
                root=str(root), expected=f"{expected} as commit {number + 1}", found=commit
            )
    return len(found)


def _schema() -> Schema:
    from pyiceberg.schema import Schema
    from pyiceberg.types import IntegerType, NestedField, StringType, TimestamptzType

    columns = (
        ("planned_departure", TimestamptzType(), "when it was to leave the gate"),
        ("departed_at", TimestamptzType(), "when it left the gate; NULL: cancelled"),
        ("landed_at", TimestamptzType(), "when it reached a gate at its destination; NULL: never"),
        ("carrier", StringType(), "airline, two letters"),
        ("flight", IntegerType(), "flight number"),
        ("tailnum", StringType(), "aircraft; often unknown for cancelled flights"),
        ("origin", StringType(), "EWR, JFK or LGA"),
        ("dest", StringType(), "destination airport"),
        ("distance_miles", IntegerType(), "between the two airports"),
        ("air_minutes", IntegerType(), "time in the air; NULL: cancelled or diverted"),
        ("departure_delay_minutes", IntegerType(), "negative: early"),
        ("arrival_delay_minutes", IntegerType(), "negative: early; NULL: cancelled or diverted"),
    )
    return Schema(
        *(
            NestedField(number, name, kind, required=False, doc=doc)
            for number, (name, kind, doc) in enumerate(columns, start=1)
        )
    )


def _arrow(commit: SourceCommit, schema: Schema) -> pa.Table:
    import pyarrow as pa

    rows = [
        {
            name: value.astimezone(UTC) if isinstance(value, datetime) else value
            for name, value in asdict(flight).items()
        }
        for flight in commit.flights
    ]
    return pa.Table.from_pylist(rows, schema=schema.as_arrow())
