"""Scenarios whose revisions replace rows: upserts that are merged by key, and overwriting.

`UPSERTS`: rows of two days are written, then changed, moved to the other day, deleted and added, in
three commits that are read as a changelog. The replay of the second window leaves out a row, so
that its partitions are made anew from the changes of all windows.

`OVERWRITES`: the appends of the usual scenario, of which each window replaces the days that it has
rows of.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
from pyiceberg.catalog import load_catalog
from pyiceberg.expressions import In

from crash.scenario import APPENDS, DAY_1, Scenario

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("amount", pa.int64())])
# Id → day and amount; None: deleted.
COMMITS: tuple[dict[int, tuple[int, int] | None], ...] = (
    {1: (1, 10), 2: (1, 20), 3: (1, 30), 4: (2, 40), 5: (2, 50)},
    {1: (1, 11), 2: (2, 21), 6: (1, 600)},
    {5: None, 3: (1, 31), 7: (2, 70)},
)
UPSERTED = {1: (1, 11), 2: (2, 21), 3: (1, 31), 4: (2, 40), 7: (2, 70)}
"""The rows at the end: the sixth does not pass the filter of the replay."""

PIPELINE = """
name: orders
source:
  kind: iceberg
  metadata: {metadata}
  read: {{mode: changelog, filter: "amount < {variant}"}}
  split: {{target_size: 2KiB, open_cost: 1B, max_rows: 6}}
event_time: at
target:
  path: {root}/published/orders
  partition_by: {{dt: day(at)}}
  write: upsert
  keys: [id]
commit: {{trigger: process-time}}
"""


def make_source(folder: Path) -> tuple[str, tuple[datetime, ...]]:
    """Make the Iceberg table; its metadata file, and when each commit was made."""
    folder.mkdir(parents=True)
    catalog = load_catalog(
        "lake", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/wh"
    )
    catalog.create_namespace("raw")
    table = catalog.create_table("raw.orders", schema=SCHEMA)
    for content in COMMITS:
        rows = {id: said for id, said in content.items() if said is not None}
        batch = pa.table(
            {
                "id": list(rows),
                "at": [DAY_1 + timedelta(days=day - 1) for day, _ in rows.values()],
                "amount": [amount for _, amount in rows.values()],
            },
            SCHEMA,
        )
        if table.current_snapshot() is None:
            table.append(batch)
        else:
            table.overwrite(batch, overwrite_filter=In("id", content))
    times = [datetime.fromtimestamp(item.timestamp_ms / 1000, UTC) for item in table.history()]
    # An overwrite deletes and appends: two snapshots, read as two commits of one window.
    return table.metadata_location, (times[0], *times[1::2])


UPSERTS = Scenario(make_source, PIPELINE, ("1000", "100"), 2)
OVERWRITES = replace(
    APPENDS,
    file=APPENDS.file.replace("{{dt: day(at)}}", "{{dt: day(at)}}\n  write: overwrite"),
)
