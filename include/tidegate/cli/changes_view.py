"""Source commits and changed rows as tables. Pure: values → renderables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from tidegate.cli import wording

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tidegate.pipeline.upkeep.history import SourceInstant


def instant_table(entries: Sequence[SourceInstant], zone: str) -> Table:
    """Return a table of source commits: time, changes, and the window that took them in."""
    table = Table("instant", "time", "operation", "files", "rows", "taken in")
    for column in table.columns[3:5]:
        column.justify = "right"
    for entry in entries:
        report = entry.report
        table.add_row(
            report.instant.id,
            wording.moment(report.instant.time, zone),
            report.operation,
            difference(report.files_added, report.files_removed, report.files_changed),
            difference(report.rows_added, report.rows_removed),
            Text("not yet", "yellow") if entry.window is None else f"window {entry.window}",
        )
    return table


def row_table(names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return a table of rows, in which NULL differs from a text of that name."""
    table = Table(*names)
    for row in rows:
        cells = (row[name] for name in names)
        table.add_row(*(Text("NULL", "dim") if cell is None else Text(str(cell)) for cell in cells))
    return table


def difference(added: int | None, removed: int | None, changed: int | None = None) -> str:
    """Return the numbers of what was added, removed and changed; empty if they are not known."""
    parts = [f"+{wording.count(added)}"] if added is not None else []
    parts += [f"−{wording.count(removed)}"] if removed else []
    return " ".join(parts) + (f", {wording.count(changed)} changed" if changed else "")
