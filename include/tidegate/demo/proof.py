"""Check the published table against the raw one and the package, without the pipeline's code.

Reads the raw table with pyiceberg and the published files with pyarrow, and compares row by row.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidegate.demo.expected import flights_per_day
from tidegate.demo.flights import NEW_YORK
from tidegate.demo.lake import TABLE, catalog_properties
from tidegate.demo.plot import partition_path

if TYPE_CHECKING:
    from datetime import date
    from pathlib import Path

    import pyarrow as pa

MARKER = "_SUCCESS"


@dataclass(frozen=True)
class DayProof:
    """One day, counted in three ways."""

    day: date
    in_package: int
    in_raw: int
    published: int
    """Rows of the files that the day's marker lists; 0 without a marker."""
    missing: int
    """Raw rows that are not published."""
    surplus: int
    """Published rows that are not raw, or are published once too often."""

    @property
    def is_exact(self) -> bool:
        """Whether a published day has every raw row once, or nothing is published."""
        whole = self.in_package == self.in_raw
        return whole and not self.surplus and (not self.published or not self.missing)


def prove(lake: Path, target: Path) -> list[DayProof]:
    """Compare each day of the demo."""
    package = flights_per_day()
    raw = _by_day(_raw_table(lake))
    found = []
    for day, counted in package.items():
        published = _rows(published_files(target / partition_path(day)))
        found.append(
            DayProof(
                day=day,
                in_package=counted.rows,
                in_raw=raw[day].total(),
                published=published.total(),
                missing=(raw[day] - published).total(),
                surplus=(published - raw[day]).total(),
            )
        )
    return found


def published_files(partition: Path) -> list[Path]:
    """Return the files that a partition's marker lists; none without a marker."""
    marker = partition / MARKER
    if not marker.exists():
        return []
    return [partition / item["name"] for item in json.loads(marker.read_text())["files"]]


def _raw_table(lake: Path) -> pa.Table:
    from pyiceberg.catalog import load_catalog

    catalog = load_catalog("demo", **catalog_properties(lake))
    try:
        return catalog.load_table(TABLE).scan().to_arrow()
    finally:
        catalog.close()


def _by_day(table: pa.Table) -> dict[date, Counter[tuple[Any, ...]]]:
    place = table.column_names.index("planned_departure")
    found: dict[date, Counter[tuple[Any, ...]]] = {}
    for row in _tuples(table):
        found.setdefault(row[place].astimezone(NEW_YORK).date(), Counter())[row] += 1
    return found


def _rows(files: list[Path]) -> Counter[tuple[Any, ...]]:
    import pyarrow.parquet as pq

    counted: Counter[tuple[Any, ...]] = Counter()
    for file in files:
        counted.update(_tuples(pq.ParquetFile(file).read()))
    return counted


def _tuples(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))
