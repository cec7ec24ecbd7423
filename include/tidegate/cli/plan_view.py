"""What a load would read, or what it changed, for people. Pure: values → renderables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.cli import wording
from tidegate.cli.status_view import facts, summary_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.table import Table

    from tidegate.model.partition import Partition
    from tidegate.model.plan import ScanPlan
    from tidegate.model.run import Announced, PlannedWindow


def announced_facts(planned: Sequence[PlannedWindow], announced: Announced, zone: str) -> Table:
    """Say what a load changed."""
    windows = ", ".join(map(str, announced.windows)) or "none"
    unchanged = [str(item.sequence) for item in planned if item.sealed]
    rows = [
        ("windows", windows),
        ("partitions touched", ", ".join(map(str, announced.partitions)) or "none"),
        ("watermark", wording.moment(announced.watermark, zone)),
        ("summary", summary_line(announced.summary)),
    ]
    if unchanged:
        rows.append(("unchanged", f"windows {', '.join(unchanged)}: already taken in, same plan"))
    return facts(rows)


def preview_facts(plan: ScanPlan, touched: Mapping[Partition, int], zone: str) -> Table:
    """Say what a load would read: source commits, files, bytes, rows, partitions (PC-C08)."""
    totals, end = plan.totals, plan.window.range.end_inclusive
    splits = f"{wording.count(totals.splits)} of {wording.plural(totals.sub_splits, 'sub-split')}"
    rows = [
        ("would load", f"{plan.window.range}, up to {wording.moment(end.time, zone)}"),
        ("source commits", wording.count(totals.instants)),
        ("files", f"{wording.count(totals.files)} with {wording.size(totals.bytes)}"),
        ("rows", wording.count(totals.rows)),
        ("splits", splits),
    ]
    for number, (partition, count) in enumerate(touched.items()):
        label = "" if number else "would touch"
        rows.append((label, f"{partition} with {wording.plural(count, 'row')}"))
    return facts(rows + [("note", note) for note in plan.notes])
