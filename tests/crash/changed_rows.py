"""A scenario whose only window is a commit that rewrites a file, read as a changelog.

The commit is too large to be settled in memory, so sub-splits hand their rows to each other: two
spread what was removed and added, others gather and settle a bucket each, and the changes are
checked against the states before and after. Updates stay in their day, leave it, and leave the
filter that the replay has.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
from pyiceberg.catalog import load_catalog
from pyiceberg.io.pyarrow import _dataframe_to_data_files

from crash.scenario import DAY_1, Scenario

if TYPE_CHECKING:
    from pathlib import Path

    from pyiceberg.table import Table

SCHEMA = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("amount", pa.int64())])
# Id → day and amount.
BEFORE = {1: (1, 10), 2: (1, 20), 3: (1, 30), 4: (2, 40), 5: (2, 50), 6: (2, 60)}
AFTER = {1: (1, 11), 2: (1, 200), 3: (1, 30), 4: (1, 40), 6: (2, 60), 7: (2, 70)}
PUBLISHED = Counter(
    {
        ("UPDATE_BEFORE", 1): 1,
        ("UPDATE_AFTER", 1): 1,
        ("UPDATE_BEFORE", 4): 1,
        ("UPDATE_AFTER", 4): 1,
        ("DELETE", 5): 1,
        ("INSERT", 7): 1,
        # Its new amount does not pass the filter of the replay.
        ("DELETE", 2): 1,
    }
)
"""Kind and id of the rows at the end."""

PIPELINE = """
name: orders
source:
  kind: iceberg
  metadata: {metadata}
  start: latest_inclusive
  read:
    mode: changelog
    columns: [id, at, amount, _change_type]
    identifier_columns: [id]
    filter: "amount < {variant}"
    verify_changelog: true
  split: {{target_size: 2KiB, open_cost: 1B, max_rows: 6}}
event_time: at
target:
  path: {root}/published/orders
  partition_by: {{dt: day(at)}}
commit: {{trigger: process-time}}
"""


def make_source(folder: Path) -> tuple[str, tuple[datetime, ...]]:
    """Make the Iceberg table of two commits, of which the second replaces the file of the first.

    Its metadata file, and when the second commit was made.
    """
    folder.mkdir(parents=True)
    catalog = load_catalog(
        "lake", type="sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/wh"
    )
    catalog.create_namespace("raw")
    table = catalog.create_table("raw.orders", schema=SCHEMA)
    table.append(_rows(BEFORE))
    _rewrite(table, _rows(AFTER))
    made = datetime.fromtimestamp(table.history()[-1].timestamp_ms / 1000, UTC)
    return table.metadata_location, (made,)


def _rewrite(table: Table, rows: pa.Table) -> None:
    """Replace all files in one commit, as a copy-on-write engine does."""
    old = [task.file for task in table.scan().plan_files()]
    new = list(_dataframe_to_data_files(table.metadata, rows, table.io))
    with (
        table.transaction() as transaction,
        transaction.update_snapshot().overwrite() as overwriting,
    ):
        for file in old:
            overwriting.delete_data_file(file)
        for file in new:
            overwriting.append_data_file(file)


def _rows(content: dict[int, tuple[int, int]]) -> pa.Table:
    return pa.table(
        {
            "id": list(content),
            "at": [DAY_1 + timedelta(days=day - 1, minutes=id) for id, (day, _) in content.items()],
            "amount": [amount for _, amount in content.values()],
        },
        SCHEMA,
    )


CHANGES = Scenario(make_source, PIPELINE, ("1000", "100"), 1)
