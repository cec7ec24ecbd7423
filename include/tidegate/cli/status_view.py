"""Show a pipeline: its progress, and each of its partitions. Pure: values → tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from tidegate.cli import wording

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.model.file_sizes import FileSizes
    from tidegate.model.ledger_rows import WindowState
    from tidegate.model.message import RunSummary
    from tidegate.model.report import PartitionReport, PipelineOverview, PipelineReport
    from tidegate.model.run import PublishOutcome


_STATES = ("committed", "late", "changed", "pending", "held")


def facts(rows: Sequence[tuple[str, str]]) -> Table:
    """Return a table of names and values."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, Text(value))
    return table


def pipeline_facts(report: PipelineReport, zone: str) -> Table:
    """Return the progress of a pipeline."""
    state = report.pipeline
    open_windows = [str(item.window.sequence) for item in report.windows if not item.sealed]
    sealed = len(report.windows) - len(open_windows)
    rows = [
        ("pipeline", state.name),
        ("target", state.target),
        ("checkpoint", _checkpoint(report, zone)),
        ("watermark", wording.moment(state.watermark, zone)),
        ("windows", f"{sealed} sealed" + "".join(f", window {name} open" for name in open_windows)),
    ]
    newest = _newest_summary(report.windows)
    if newest is not None:
        rows.append(("last load", summary_line(newest)))
    return facts(rows + [("note", note) for note in report.notes])


def raw_report(report: PipelineReport) -> dict[str, Any]:
    """Return a report for machines; each partition also as commands take it, `dt=2026-02-01`."""
    raw = report.to_json()
    named = [str(item.state.partition) for item in report.partitions]
    raw["partitions"] = [
        {"partition": name, **item} for name, item in zip(named, raw["partitions"], strict=True)
    ]
    return raw


def overview_table(overview: Sequence[PipelineOverview], never_loaded: Sequence[str]) -> Table:
    """List pipelines with their progress, and what waits in them."""
    missing = ("missing",) if any(item.partitions.get("missing") for item in overview) else ()
    states = (*_STATES, *missing)
    table = Table("pipeline", "checkpoint", "watermark", "last load", *states, "open window")
    for column in table.columns[4:]:
        column.justify = "right"
    for item in overview:
        checkpoint = item.pipeline.checkpoint
        table.add_row(
            Text(item.pipeline.name),
            wording.moment(checkpoint.time if checkpoint else None, "UTC"),
            wording.moment(item.pipeline.watermark, "UTC"),
            wording.moment(item.last_load, "UTC"),
            *(wording.count(item.partitions.get(state, 0)) for state in states),
            "" if item.open_window is None else str(item.open_window),
        )
    for name in never_loaded:
        table.add_row(Text(name), "never loaded")
    return table


def summary_line(summary: RunSummary) -> str:
    """Return one line about what a load did."""
    parts = [
        f"{wording.count(summary.rows_read)} read",
        f"{wording.count(summary.rows_kept)} kept",
        f"{wording.count(summary.rows_quarantined)} in quarantine",
        f"{wording.count(summary.rows_late)} late",
    ]
    if summary.rows_aside:
        parts[-1] += f" ({wording.all_aside(summary.rows_aside)})"
    if summary.rows_erased:
        parts.append(f"{wording.count(summary.rows_erased)} erased")
    if summary.rows_elsewhere:
        parts.append(f"{wording.count(summary.rows_elsewhere)} of other partitions")
    if summary.rows_carried_over:
        parts.append(f"{wording.count(summary.rows_carried_over)} carried over")
    if summary.rows_unpaired:
        parts.append(f"{wording.count(summary.rows_unpaired)} unpaired")
    if summary.deletes_ignored:
        parts.append(f"{wording.plural(summary.deletes_ignored, 'delete')} that hit nothing")
    if summary.damaged:
        spans = wording.plural(sum(summary.damaged.values()), "damaged span")
        logs = wording.plural(len(summary.damaged), "log file")
        parts.append(f"{spans} of {logs} skipped")
    if summary.rows_future:
        parts.append(f"{wording.count(summary.rows_future)} in the future")
    failed = [(name, rows) for name, rows in summary.rule_hits.items() if rows]
    parts += [wording.failing(name, rows) for name, rows in failed]
    files = (
        f"{wording.plural(summary.files_written, 'file')}, {wording.size(summary.bytes_written)}"
    )
    seconds = ", ".join(f"{stage} {spent:.1f} s" for stage, spent in summary.seconds.items())
    return f"rows: {', '.join(parts)}; {files}" + (f"; {seconds}" if seconds else "")


def _whole(*names: str) -> Table:
    """Return a table that cuts nothing off: it has paths and commands to be typed."""
    table = Table(*names)
    for column in table.columns:
        column.overflow = "fold"
    return table


def partition_table(partitions: Sequence[PartitionReport]) -> Table:
    """List partitions with their state and, if they are not published yet, the reason."""
    table = _whole(
        "partition", "state", "revision", "rows", "pending rows", "windows", "why not yet"
    )
    for column in table.columns[2:5]:
        column.justify = "right"
    has_aside = any(item.rows_aside for item in partitions)
    if has_aside:
        table.add_column("set aside", overflow="fold")
    for item in partitions:
        table.add_row(
            str(item.state.partition),
            wording.state(item.name),
            str(item.state.revision or "–"),
            wording.count(item.state.rows),
            wording.count(item.rows_pending) if item.rows_pending else "",
            ", ".join(map(str, item.windows)),
            _waits_for(item),
            *([wording.all_aside(item.rows_aside)] if has_aside else []),
        )
    return table


def file_table(sizes: Sequence[FileSizes]) -> Table:
    """List partitions with the number and the sizes of their files."""
    table = _whole("partition", "files", "size", "mean", "small files", "their size", "joined")
    for column in table.columns[1:]:
        column.justify = "right"
    for item in sizes:
        table.add_row(
            str(item.partition),
            wording.count(item.files),
            wording.size(item.bytes),
            wording.size(item.mean_bytes),
            wording.count(item.small_files) if item.small_files else "",
            wording.size(item.small_bytes) if item.small_files else "",
            f"{wording.count(item.files)} → {wording.count(item.files_after)}"
            if item.files_after < item.files
            else "",
        )
    return table


def file_total(sizes: Sequence[FileSizes]) -> str:
    """Return how many files there are, and how many there would be without small ones."""
    files, after = sum(it.files for it in sizes), sum(it.files_after for it in sizes)
    small = sum(it.small_files for it in sizes)
    said = (
        f"{wording.plural(files, 'file')} in {wording.plural(len(sizes), 'partition')}, "
        f"{wording.count(small)} of them small"
    )
    if after == files:
        return f"{said}; joining small ones would leave as many."
    partitions = sum(it.files_after < it.files for it in sizes)
    return (
        f"{said}; joining small ones would leave {wording.count(after)}, and write "
        f"{wording.size(sum(it.small_bytes for it in sizes if it.files_after < it.files))} again "
        f"in {wording.plural(partitions, 'partition')}."
    )


def _waits_for(item: PartitionReport) -> str:
    """Return why a partition is not published yet; one that may be waits to be asked."""
    said = wording.why(item.why)
    if (alarm := item.state.standing_alarm) is not None and not said:
        return alarm.why
    if item.passed_over:
        differs = "may differ from the source, see the note"
        return "; ".join(filter(None, (differs, said)))
    if item.commit_begun:
        return "; ".join(filter(None, ("commit begun: the next publish finishes it", said)))
    is_ready = item.why is not None and item.why.committable and item.state.pending == "pending"
    return said or ("complete: waits for the next publish" if is_ready else "")


def outcome_table(outcomes: Sequence[PublishOutcome]) -> Table:
    """List what a publish did, partition by partition."""
    table = _whole("partition", "state", "revision", "rows", "pending rows", "gate", "why not")
    for column in table.columns[2:5]:
        column.justify = "right"
    for item in outcomes:
        table.add_row(
            str(item.partition),
            wording.state(item.state),
            str(item.revision or "–"),
            wording.count(item.rows),
            wording.count(item.rows_pending) if item.rows_pending else "",
            _passed_by(item),
            "see below" if item.error else wording.why(item.why),
        )
    return table


def _passed_by(item: PublishOutcome) -> Text:
    """Return the gate's verdict, if it was asked, and who approved what it held."""
    verdict = [item.gate.value] if item.gate else []
    if item.approval is not None:
        comment = f": {item.approval.comment}" if item.approval.comment else ""
        decision = "approved" if item.approval.approved else "rejected"
        verdict.append(f"{decision} by {item.approval.by}{comment}")
    return Text(", ".join(verdict) or "–")


def _checkpoint(report: PipelineReport, zone: str) -> str:
    checkpoint = report.pipeline.checkpoint
    if checkpoint is None:
        return "–"
    return f"{checkpoint.id} of {wording.moment(checkpoint.time, zone)}"


def _newest_summary(windows: Sequence[WindowState]) -> RunSummary | None:
    sealed = [item for item in windows if item.sealed_at is not None]
    newest = max(sealed, key=lambda item: (item.sealed_at, item.window.sequence), default=None)
    return newest.summary if newest else None
