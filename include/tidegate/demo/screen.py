"""Show the days as they progress, and the results. Decides nothing."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from rich.live import Live
from rich.table import Table
from rich.text import Text

from tidegate.demo import plot
from tidegate.demo.flights import NEW_YORK
from tidegate.model.wire import parse_instant_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import date
    from typing import Protocol

    from rich.console import Console

    from tidegate.demo.proof import DayProof
    from tidegate.model.ledger_rows import RevisionEntry
    from tidegate.model.report import PipelineReport

    class Board(Protocol):
        """Shows the progress of the days."""

        def show(self, report: PipelineReport | None) -> None:
            """Show the current state of the ledger."""


_STYLES = {
    "committed": "green",
    "pending": "yellow",
    "late": "cyan",
    "changed": "cyan",
    "held": "bold red",
    "not loaded yet": "dim",
}


@contextlib.contextmanager
def board(console: Console) -> Iterator[Board]:
    """Show the days: on a terminal as one table that is updated, else as a line per change."""
    if not console.is_terminal:
        yield _Lines(console)
        return
    with Live(day_table(None), console=console, refresh_per_second=4) as live:
        yield _Live(live)


def day_table(
    report: PipelineReport | None, revisions: Mapping[date, RevisionEntry] | None = None
) -> Table:
    """Return one line per day; with revisions also the source snapshots in them."""
    table = Table("partition", "state", "rows", "revision", "why not yet")
    table.columns[2].justify = table.columns[3].justify = "right"
    table.columns[4].overflow = "fold"
    if revisions is not None:
        table.add_column("source snapshots, to (New York time)", overflow="fold")
    for day in plot.days(report):
        cells = [Text(day.path), *_cells(day)]
        if revisions is not None:
            cells.append(Text(_snapshots(revisions.get(day.date))))
        table.add_row(*cells)
    return table


def proof_table(proofs: Sequence[DayProof]) -> Table:
    """Return the check of each day."""
    table = Table("day", "in the package", "in the raw table", "published", "every row once")
    for column in table.columns[1:4]:
        column.justify = "right"
    for item in proofs:
        answer = "yes" if item.published else "not published"
        if not item.is_exact:
            answer = f"NO: {item.missing} missing, {item.surplus} too many"
        table.add_row(
            item.day.isoformat(),
            f"{item.in_package:,}",
            f"{item.in_raw:,}",
            f"{item.published:,}" if item.published else "–",
            Text(answer, style="green" if item.is_exact and item.published else ""),
        )
    return table


class _Live:
    def __init__(self, live: Live) -> None:
        self._live = live

    def show(self, report: PipelineReport | None) -> None:
        self._live.update(day_table(report))


class _Lines:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._shown: dict[str, str] = {}

    def show(self, report: PipelineReport | None) -> None:
        for day in plot.days(report):
            line = "  ".join(cell.plain for cell in _cells(day)).rstrip()
            if self._shown.get(day.path) != line and day.report is not None:
                self._shown[day.path] = line
                self._console.print(f"{day.path}  {line}", highlight=False, soft_wrap=True)


def _cells(day: plot.Day) -> list[Text]:
    if day.report is None:
        return [Text("not loaded yet", _STYLES["not loaded yet"]), Text(""), Text(""), Text("")]
    state, why = day.report.state, day.report.why
    rows = state.rows or day.report.rows_pending
    reason = f"{why.reason.value}: {why.detail}" if why and why.reason else ""
    return [
        Text(day.report.name, _STYLES.get(day.report.name, "")),
        Text(f"{rows:,}"),
        Text(str(state.revision or "–")),
        Text(reason),
    ]


def _snapshots(revision: RevisionEntry | None) -> str:
    if revision is None:
        return ""
    return "\n".join(
        f"{item['to']} {_local(item['to_time'])}" for item in revision.source_range.values()
    )


def _local(moment: str) -> str:
    return f"{parse_instant_text(moment).astimezone(NEW_YORK):%d %b %H:%M}"
