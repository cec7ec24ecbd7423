"""The lineage of a head: ancestors, times, and how a checkpoint relates to them. Opens no file."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pyiceberg.table.refs import SnapshotRefType

from tidegate.errors import InstantTimeMissing, SnapshotNotFound
from tidegate.model.instant import Instant, aware_time
from tidegate.source.iceberg.timeline.cursor import Cursor, CursorState

if TYPE_CHECKING:
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot


class History:
    """The retained ancestors of one snapshot, oldest first, by parents and not by log (ICE-2.8)."""

    def __init__(
        self, source: str, metadata: TableMetadata, head: int | None, time_key: str | None
    ) -> None:
        """Follow the parents of the head.

        Args:
            source: the table, for errors.
            metadata: as pinned.
            head: snapshot to start from; None for a table without snapshots.
            time_key: summary property that holds a snapshot's time; None: its commit time.

        Raises:
            SnapshotNotFound: the head is not in the metadata.
        """
        self.source = source
        self._format_version = metadata.format_version
        self._time_key = time_key
        self._snapshots = {snapshot.snapshot_id: snapshot for snapshot in metadata.snapshots}
        self._tags = {
            name: ref.snapshot_id
            for name, ref in metadata.refs.items()
            if ref.snapshot_ref_type == SnapshotRefType.TAG
        }
        if head is not None and head not in self._snapshots:
            raise SnapshotNotFound.named(source, str(head))
        self.ancestors = tuple(reversed(self._walk(head)))

    def _walk(self, start: int | None) -> list[Snapshot]:
        found = []
        while start in self._snapshots:
            found.append(self._snapshots[start])
            start = found[-1].parent_snapshot_id
        return found

    @property
    def head(self) -> Snapshot | None:
        """The snapshot that the walk began at."""
        return self.ancestors[-1] if self.ancestors else None

    @property
    def oldest(self) -> Snapshot | None:
        """The oldest retained ancestor."""
        return self.ancestors[0] if self.ancestors else None

    @property
    def is_whole(self) -> bool:
        """Whether the oldest ancestor names no parent; expiry may erase the name (ICE-2.16)."""
        return self.oldest is None or self.oldest.parent_snapshot_id is None

    @property
    def may_be_truncated(self) -> bool:
        """Whether the oldest sequence number hints at erased parents; a hint only (ICE-2.16)."""
        return self.oldest is not None and (self.oldest.sequence_number or 0) > 1

    @property
    def counts_commits(self) -> bool:
        """Whether snapshots have sequence numbers, which format 1 does not have."""
        return self._format_version > 1

    def time(self, snapshot: Snapshot) -> datetime:
        """Return a snapshot's time.

        A `replace` changes no rows and is written by maintenance jobs that do not know the
        property. Without the property, it has its parent's time.

        Raises:
            InstantTimeMissing: the property is missing, is not an ISO time, or has no zone.
        """
        if self._time_key is None:
            return datetime.fromtimestamp(snapshot.timestamp_ms / 1000, tz=UTC)
        text = None
        for step in self._walk(snapshot.snapshot_id):
            text = step.summary.get(self._time_key) if step.summary else None
            if text is not None or operation(step) != "replace":
                break
        moment = aware_time(text) if text else None
        if moment is None:
            raise InstantTimeMissing(
                source=self.source,
                instant=str(snapshot.snapshot_id),
                key=self._time_key,
                found=f"'{text}'" if text else "none",
            )
        return moment

    def instant(self, snapshot: Snapshot) -> Instant:
        """Return a snapshot as an instant."""
        number = _sequence_number(snapshot)
        return Instant(str(snapshot.snapshot_id), self.time(snapshot), number)

    def named(self, text: str) -> Snapshot | None:
        """Find a retained snapshot by id or tag; None for text that is neither.

        Raises:
            SnapshotNotFound: it is a number, and no retained snapshot has the id.
        """
        known = text.isdecimal() and int(text) in self._snapshots
        if text in self._tags and not known:
            return self.snapshot(str(self._tags[text]))
        return self.snapshot(text) if text.isdecimal() else None

    def before(self, snapshot: Snapshot) -> Instant | None:
        """Return the instant before one of the ancestors; None where history begins (ICE-2.13)."""
        parent = snapshot.parent_snapshot_id
        if parent is None:
            return None
        index = self.position(parent)
        if index is None:
            # It was expired and its own time is lost; its child's is the latest possible one.
            return Instant(str(parent), self.time(snapshot))
        return self.instant(self.ancestors[index])

    def snapshot(self, name: str) -> Snapshot:
        """Return the retained snapshot with an id.

        Raises:
            SnapshotNotFound: it is not in the metadata.
        """
        found = self._snapshots.get(int(name)) if name.isdecimal() else None
        if found is None:
            raise SnapshotNotFound.named(self.source, name)
        return found

    def position(self, snapshot_id: int) -> int | None:
        """Return a snapshot's index among the ancestors; None if it is not one."""
        for index, snapshot in enumerate(self.ancestors):
            if snapshot.snapshot_id == snapshot_id:
                return index
        return None

    def cursor(self, checkpoint: Instant) -> Cursor:
        """Classify a checkpoint against the head (ICE-2.17).

        Raises:
            SnapshotNotFound: it is not a snapshot id at all.
        """
        cursor = int(self._id(checkpoint))
        kept = self._snapshots.get(cursor)
        number = _sequence_number(kept) if kept else checkpoint.sequence_number
        oldest = _sequence_number(self.oldest) if self.oldest else None
        common = self._common_ancestor(cursor)
        return Cursor(
            state=self._state(cursor, common),
            snapshot=checkpoint.id,
            head=_name(self.head),
            common_ancestor=None if common is None else str(common),
            oldest_kept=_name(self.oldest),
            sequence_number=number,
            sequence_gap=None if number is None or oldest is None else oldest - number,
            format_version=self._format_version,
        )

    def after(self, checkpoint: Instant | None) -> tuple[Snapshot, ...]:
        """List the ancestors after a checkpoint, if the history continues from it.

        Raises:
            CursorOffLineage: the table was rolled back, or its branch replaced.
            HistoryTruncated: a snapshot between the checkpoint and the head was expired.
            CursorExpired: the checkpoint was expired, and no ancestor names it as its parent.
        """
        if checkpoint is None:
            return self.ancestors
        cursor = self.cursor(checkpoint)
        if not cursor.state.joins_on:
            raise cursor.refusal(self.source, with_kinds=False)
        snapshot_id = int(cursor.snapshot)
        if cursor.state is CursorState.CHILD_KEPT:
            return self.ancestors[self._child_position(snapshot_id) :]
        return self.ancestors[(self.position(snapshot_id) or 0) + 1 :]

    def after_common(self, cursor: Cursor) -> tuple[Snapshot, ...]:
        """List the ancestors after the point where a checkpoint's lineage leaves the head's."""
        if cursor.common_ancestor is None:
            return self.ancestors
        index = self.position(int(cursor.common_ancestor))
        return self.ancestors[(0 if index is None else index + 1) :]

    def up_to(self, instant: Instant) -> tuple[Snapshot, ...]:
        """List the ancestors up to and including an instant; none if only its child is retained."""
        later = len(self.after(instant))
        return self.ancestors[: len(self.ancestors) - later]

    def _id(self, checkpoint: Instant) -> str:
        if not checkpoint.id.isdecimal():
            raise SnapshotNotFound.named(self.source, checkpoint.id)
        return checkpoint.id

    def _state(self, cursor: int, common: int | None) -> CursorState:
        if self.head is not None and self.head.snapshot_id == cursor:
            return CursorState.CAUGHT_UP
        if self.position(cursor) is not None:
            return CursorState.IN_LINEAGE
        if cursor in self._snapshots:
            # A table without a head was rolled back to nothing, which cuts no history.
            cut = common is None and self.ancestors
            return CursorState.LINEAGE_CUT if cut else CursorState.OFF_LINEAGE
        kept = self._child_position(cursor) is not None
        return CursorState.CHILD_KEPT if kept else CursorState.EXPIRED

    def _common_ancestor(self, cursor: int) -> int | None:
        known = {snapshot.snapshot_id for snapshot in self.ancestors}
        return next(
            (step.snapshot_id for step in self._walk(cursor) if step.snapshot_id in known), None
        )

    def _child_position(self, snapshot_id: int) -> int | None:
        for index, snapshot in enumerate(self.ancestors):
            if snapshot.parent_snapshot_id == snapshot_id:
                return index
        return None


def operation(snapshot: Snapshot) -> str | None:
    """Return the operation of a snapshot from its summary; v1 snapshots may have none."""
    return snapshot.summary.operation.value if snapshot.summary else None


def _name(snapshot: Snapshot | None) -> str | None:
    return str(snapshot.snapshot_id) if snapshot else None


def _sequence_number(snapshot: Snapshot) -> int | None:
    """Return a snapshot's number; v1 tables have none (ICE-2.20)."""
    return snapshot.sequence_number or None
