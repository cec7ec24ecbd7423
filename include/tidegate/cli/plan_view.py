"""What a load would read, or what it changed, for people. Pure: values → renderables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.cli import wording
from tidegate.cli.status_view import facts, summary_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from tidegate.model.run import Announced, PlannedWindow, Preview


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


def preview_facts(preview: Preview, zone: str) -> Table:
    """Say what a load would read: source commits, files, bytes, rows, partitions (PC-C08)."""
    plan = preview.plan
    if plan is None:
        return facts([("would load", f"nothing: {preview.look.detail}")])
    totals = plan.totals
    end = plan.window.range.end_inclusive
    rows = [
        ("would load", f"{plan.window.range} to {wording.moment(end.time, zone)}"),
        ("source commits", wording.count(totals.instants)),
        ("files", f"{wording.count(totals.files)}, {wording.size(totals.bytes)}"),
        ("rows", wording.count(totals.rows)),
        (
            "splits",
            f"{wording.count(totals.splits)} of {wording.plural(totals.sub_splits, 'sub-split')}",
        ),
        ("plan", plan.digest),
    ]
    return facts(rows + [("note", note) for note in plan.notes])
