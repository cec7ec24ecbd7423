"""Pipeline files for the Airflow tests, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

ORDERS = """
name: orders
schedule: "@hourly"
timezone: Europe/Berlin
source: {kind: iceberg, catalog: {name: lake, type: in-memory}, table: raw.orders}
event_time: {column: ordered_at, lateness: 5m}
target:
  path: PLACE/orders
  partition_by: {dt: day(ordered_at), hr: hour(ordered_at), region: region}
gate: {suite: suite.json, approval: {timeout: 3h}}
dag: {owner: sales, tags: [shop]}
"""

FLIGHTS = """
name: flights
timezone: America/New_York
dag: {schedule: "@daily", start_date: 2013-02-05, end_date: 2013-02-12}
source: {kind: iceberg, catalog: {name: lake, type: in-memory}, table: raw.flights}
event_time: planned_departure
target: {path: PLACE/flights, partition_by: {dt: day(planned_departure)}}
"""

WHOLE = """
name: whole
dag: {schedule: null}
source: {kind: iceberg, catalog: {name: lake, type: in-memory}, table: raw.whole}
target: {path: PLACE/whole}
"""


def write_pipelines(folder: Path, **texts: str) -> Path:
    """Write pipeline files whose targets stand beside them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text.replace("PLACE", str(folder)))
    return folder
