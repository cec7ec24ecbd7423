"""The instants of an Iceberg table: its snapshots, along the lineage of the head."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.model.plan import Pin
from tidegate.source.iceberg.columns.selection import pinned_selection
from tidegate.source.iceberg.reading.reader import IcebergReader
from tidegate.source.iceberg.timeline.continuing import begin_again, describe_checkpoint, go_on
from tidegate.source.iceberg.timeline.history import History, operation
from tidegate.source.iceberg.timeline.refs import end_of, select_head
from tidegate.source.iceberg.timeline.starts import as_of, first_checkpoint
from tidegate.source.reading import pinned_columns
from tidegate.source.timeline import Following, InstantReport

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from pyiceberg.schema import Schema
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot

    from tidegate.model.instant import DataInterval, Instant
    from tidegate.model.report import CheckpointState
    from tidegate.source.iceberg.access import TableAccess


class SnapshotTimeline:
    """The `Timeline` of one table; only `pin` asks for newer metadata (ICE-2.2)."""

    def __init__(self, access: TableAccess, extra_columns: Sequence[str]) -> None:
        """Prepare.

        Args:
            access: to the table.
            extra_columns: columns that a filter needs besides `read.columns`, read at the end.
        """
        self._access = access
        self._extra_columns = tuple(extra_columns)

    def pin(
        self,
        now: datetime,
        expected_identity: str | None = None,
        until: datetime | None = None,
        after: Instant | None = None,
    ) -> Pin:
        """Load the newest metadata and pin its head; commits have times of their own."""
        del now, until, after
        table = self._access.newest(expected_identity)
        found = select_head(table.metadata, self._access.config, self._access.name)
        head = found.head
        if self._access.config.end is not None:
            history = History(self._access.name, table.metadata, head, self._access.time_key)
            last = end_of(history, self._access.config.end)
            head = last.snapshot_id if last else None
        ref = {"ref": found.ref, "ref_head": found.head}
        return self._pinned(table, head, ref, own_schema=found.own_schema)

    def at(self, pin: Pin, instant: Instant) -> Pin:
        """Pin an earlier or other retained snapshot of the same metadata."""
        table = self._access.table(pin)
        head = self._access.history(pin).snapshot(instant.id)
        # Batch reads take the snapshot's own schema, incremental ones the table's (ICE-2.9).
        own_schema = (
            self._access.config.read.read_schema is None
            and self._access.config.read.mode == "snapshot"
        )
        ref = {key: pin.details[key] for key in ("ref", "ref_head")}
        return self._pinned(table, head.snapshot_id, ref, own_schema=own_schema)

    def whole_at(self, pin: Pin, checkpoint: Instant) -> Pin:
        """Pin the checkpoint's snapshot.

        Raises:
            SnapshotNotFound: it was expired.
        """
        return self.at(pin, checkpoint)

    def named(self, pin: Pin, text: str) -> Instant | None:
        """Find a snapshot by id or tag."""
        history = self._access.history(pin)
        found = history.named(text)
        return history.instant(found) if found is not None else None

    def as_of(self, pin: Pin, moment: datetime) -> Instant | None:
        """Return the last ancestor of the head at or before a time.

        Raises:
            HistoryTruncated: the time is before all that the table still keeps (ICE-2.14).
        """
        return as_of(self._access.history(pin), moment, self._access.config)

    def first_checkpoint(self, pin: Pin) -> Instant | None:
        """See `tidegate.source.iceberg.timeline.starts`."""
        return first_checkpoint(self._access.history(pin), self._access.config)

    def instants(self, pin: Pin, after: Instant | None) -> tuple[Instant, ...]:
        """List the snapshots after a checkpoint, which is classified first (ICE-2.17).

        Raises:
            CursorOffLineage, HistoryTruncated, CursorExpired: see `go_on`.
            InstantTimeMissing: `source.instant_time` names a property that a snapshot lacks.
        """
        return self.following(pin, after).instants

    def following(self, pin: Pin, after: Instant | None) -> Following:
        """See `tidegate.source.iceberg.timeline.continuing`."""
        history = self._access.history(pin)
        if after is not None and self._lies_past_end(pin, after):
            return Following((), after)
        found = go_on(history, after, self._access.config)
        ends = tuple(history.instant(snapshot) for snapshot in found.snapshots)
        return Following(ends, found.start, found.kind, joins_on=not found.notes)

    def restarting(self, pin: Pin) -> Following:
        """See `tidegate.source.iceberg.timeline.continuing`."""
        history = self._access.history(pin)
        found = begin_again(history, self._access.config)
        ends = tuple(history.instant(snapshot) for snapshot in found.snapshots)
        return Following(ends, found.start, found.kind)

    def checkpoint_state(self, pin: Pin, checkpoint: Instant) -> CheckpointState:
        """See `tidegate.source.iceberg.timeline.continuing`."""
        return describe_checkpoint(self._access.history(pin), checkpoint, self._access.config)

    def retained(self, pin: Pin) -> tuple[Instant, ...]:
        """List the retained ancestors of the head, and the head."""
        return self._ancestors(pin, pin.head) if pin.head is not None else ()

    def history(
        self,
        pin: Pin,
        before: Instant,
        interval: DataInterval,  # noqa: ARG002 (a snapshot's time may lie before its parent's)
    ) -> tuple[Instant, ...]:
        """List the retained ancestors up to and including an instant; none off its lineage."""
        return self._ancestors(pin, before)

    def describe(self, pin: Pin, instants: Sequence[Instant]) -> list[InstantReport]:
        """Return the changes of commits from snapshot summaries.

        Raises:
            SnapshotNotFound: a commit was expired.
        """
        history = self._access.history(pin)
        return [_report(instant, history.snapshot(instant.id)) for instant in instants]

    def _ancestors(self, pin: Pin, before: Instant) -> tuple[Instant, ...]:
        history = self._access.history(pin)
        if not history.cursor(before).state.joins_on:
            return ()
        return tuple(history.instant(snapshot) for snapshot in history.up_to(before))

    def _lies_past_end(self, pin: Pin, after: Instant) -> bool:
        """Return whether `source.end` was set to a snapshot before the checkpoint."""
        behind, end = pin.details["ref_head"], pin.head
        if self._access.config.end is None or behind is None:
            return False
        whole = History(
            self._access.name, self._access.table(pin).metadata, behind, self._access.time_key
        )
        later = {str(snapshot.snapshot_id) for snapshot in whole.after(end)}
        return after.id in later

    def _pinned(
        self,
        table: Table,
        head: int | None,
        ref: Mapping[str, str | int | None],
        *,
        own_schema: bool = False,
    ) -> Pin:
        metadata = table.metadata
        history = History(self._access.name, metadata, head, self._access.time_key)
        wanted = self._access.config.read.read_schema
        own_schema = wanted == "snapshot" or (own_schema and wanted is None)
        whole = _schema_of(metadata, history.head) if own_schema else metadata.schema()
        details = {
            "metadata": table.metadata_location,
            **ref,
            **pinned_selection(
                metadata, whole, self._access.config, self._extra_columns, self._access.name
            ),
            "format_version": metadata.format_version,
        }
        pin = Pin(
            str(metadata.table_uuid),
            history.instant(history.head) if history.head else None,
            (),
            details,
        )
        reader = IcebergReader(pin, table.io, self._access.name, self._access.config)
        columns = pinned_columns(reader.schema)
        return Pin(pin.identity, pin.head, columns, details)


def _schema_of(metadata: TableMetadata, snapshot: Snapshot | None) -> Schema:
    if snapshot is None or snapshot.schema_id is None:
        return metadata.schema()
    return metadata.schema_by_id(snapshot.schema_id) or metadata.schema()


def _report(instant: Instant, snapshot: Snapshot) -> InstantReport:
    summary = snapshot.summary.additional_properties if snapshot.summary else {}

    def count(key: str) -> int | None:
        text = summary.get(key)
        return int(text) if text is not None else None

    return InstantReport(
        instant=instant,
        operation=operation(snapshot) or "unknown",
        files_added=count("added-data-files"),
        files_removed=count("deleted-data-files"),
        rows_added=count("added-records"),
        rows_removed=count("deleted-records"),
        summary=dict(summary),
    )
