"""A scenario over a Hudi table whose changed partitions are read whole (HUDI-R9).

Three windows: the first reads everything; the second updates a row and adds a partition; the third
takes the only row that the filter lets through out of a partition, so that it is emptied. The
replay reads the second window with another filter.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from crash.scenario import Scenario
from golden_hudi import copied

if TYPE_CHECKING:
    from pathlib import Path

PUBLISHED = {("b", "2024-01-01"), ("c", "2024-01-03")}
"""Key and partition of the rows at the end."""

PIPELINE = """
name: orders
source:
  kind: hudi
  path: {metadata}
  read: {{mode: rebuild_partitions, filter: "{variant}"}}
  split: {{max_rows: 1}}
target:
  path: {root}/published/orders
  partition_by: {{day: p}}
commit: {{trigger: process-time}}
"""


def make_source(folder: Path) -> tuple[str, tuple[datetime, ...]]:
    """Unpack the table; its folder, and when each write was done."""
    folder.mkdir(parents=True)
    table = copied("v9_mor_part_plain", folder)
    names = sorted(path.name for path in (table / ".hoodie" / "timeline").glob("2*commit"))
    done = [name.partition(".")[0].partition("_")[2] for name in names]
    return str(table), tuple(
        datetime.strptime(f"{text}000+0000", "%Y%m%d%H%M%S%f%z").astimezone(UTC) for text in done
    )


PARTITIONS = Scenario(make_source, PIPELINE, ("NOT (k = 'a' AND p = '2024-01-02')", "k <> 'a'"), 2)
