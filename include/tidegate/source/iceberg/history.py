"""The lineage of a head: ancestors, times, and how a checkpoint joins on to them. Opens no file."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tidegate.errors import (
    CursorExpired,
    CursorOffLineage,
    HistoryTruncated,
    InstantNotFound,
    InstantTimeMissing,
    SnapshotNotFound,
)
from tidegate.model.instant import Instant

if TYPE_CHECKING:
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot


class History:
    """The retained ancestors of one snapshot, oldest first, by parents and not by log (ICE-2.8)."""

    def __init__(
        self, source: str, metadata: TableMetadata, head: int | None, time_key: str | None
    ) -> None:
        """Walk the parents of the head.

        Args:
            source: the table, for errors.
            metadata: as pinned.
            head: snapshot to start from; None for a table without snapshots.
            time_key: summary property that holds a snapshot's time; None: its commit time.

        Raises:
            SnapshotNotFound: the head is not in the metadata.
        """
        self.source = source
        self._time_key = time_key
        self._snapshots = {snapshot.snapshot_id: snapshot for snapshot in metadata.snapshots}
        if head is not None and head not in self._snapshots:
            raise SnapshotNotFound(source=source, snapshot=str(head))
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
        """Whether the oldest ancestor names no parent; expirers may erase the name (ICE-2.16)."""
        return self.oldest is None or self.oldest.parent_snapshot_id is None

    @property
    def may_be_truncated(self) -> bool:
        """Whether the oldest sequence number hints at erased parents; a hint only (ICE-2.16)."""
        return self.oldest is not None and (self.oldest.sequence_number or 0) > 1

    def time(self, snapshot: Snapshot) -> datetime:
        """Give a snapshot's time.

        A `replace` changes no rows and is made by maintenance jobs that know nothing of the
        property, so without one it takes its parent's time.

        Raises:
            InstantTimeMissing: the property is absent, no ISO time, or a time without a zone.
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
        """Give a snapshot as an instant."""
        return Instant(str(snapshot.snapshot_id), self.time(snapshot))

    def find(self, text: str) -> Snapshot:
        """Find a retained snapshot by id, or the last ancestor at or before an ISO time.

        Raises:
            SnapshotNotFound: no retained snapshot has the id.
            InstantNotFound: the text is neither, or all ancestors are later.
        """
        if text.isdecimal():
            return self.snapshot(text)
        moment = aware_time(text)
        earlier = [
            snapshot for snapshot in self.ancestors if moment and self.time(snapshot) <= moment
        ]
        if not earlier:
            raise InstantNotFound(source=self.source, instant=text)
        return earlier[-1]

    def snapshot(self, name: str) -> Snapshot:
        """Give the retained snapshot with an id.

        Raises:
            SnapshotNotFound: it is not in the metadata.
        """
        found = self._snapshots.get(int(name)) if name.isdecimal() else None
        if found is None:
            raise SnapshotNotFound(source=self.source, snapshot=name)
        return found

    def position(self, snapshot_id: int) -> int | None:
        """Give a snapshot's place among the ancestors, None if it is none."""
        for index, snapshot in enumerate(self.ancestors):
            if snapshot.snapshot_id == snapshot_id:
                return index
        return None

    def after(self, checkpoint: Instant | None) -> tuple[Snapshot, ...]:
        """List the ancestors after a checkpoint, which is classified first (ICE-2.17, all `fail`).

        Raises:
            CursorOffLineage: the table was rolled back, or its branch replaced.
            HistoryTruncated: a snapshot between the checkpoint and the head was expired.
            CursorExpired: the checkpoint was expired, and no ancestor names it as its parent.
        """
        if checkpoint is None:
            return self.ancestors
        cursor = int(self._id(checkpoint))
        index = self.position(cursor)
        if index is not None:
            return self.ancestors[index + 1 :]
        if cursor in self._snapshots:
            raise self._left_lineage(checkpoint, cursor)
        for index, snapshot in enumerate(self.ancestors):
            if snapshot.parent_snapshot_id == cursor:
                return self.ancestors[index:]
        raise CursorExpired(
            source=self.source,
            checkpoint=checkpoint.id,
            oldest_kept=_name(self.oldest),
            head=_name(self.head),
        )

    def up_to(self, instant: Instant) -> tuple[Snapshot, ...]:
        """List the ancestors up to and including an instant; none if only its child is retained."""
        later = len(self.after(instant))
        return self.ancestors[: len(self.ancestors) - later]

    def _id(self, checkpoint: Instant) -> str:
        if not checkpoint.id.isdecimal():
            raise SnapshotNotFound(source=self.source, snapshot=checkpoint.id)
        return checkpoint.id

    def _left_lineage(
        self, checkpoint: Instant, cursor: int
    ) -> CursorOffLineage | HistoryTruncated:
        known = {snapshot.snapshot_id for snapshot in self.ancestors}
        common = next(
            (step.snapshot_id for step in self._walk(cursor) if step.snapshot_id in known), None
        )
        if common is None and self.ancestors:
            return HistoryTruncated(
                source=self.source,
                start=checkpoint.id,
                oldest_kept=_name(self.oldest),
                head=_name(self.head),
            )
        return CursorOffLineage(
            source=self.source,
            checkpoint=checkpoint.id,
            head=_name(self.head),
            common_ancestor=str(common) if common is not None else "none",
        )


def operation(snapshot: Snapshot) -> str | None:
    """Name the operation of a snapshot as its summary says; v1 snapshots may have none."""
    return snapshot.summary.operation.value if snapshot.summary else None


def aware_time(text: str) -> datetime | None:
    """Read an ISO time that names its zone; None for any other text."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment.astimezone(UTC) if moment.tzinfo else None


def _name(snapshot: Snapshot | None) -> str:
    return str(snapshot.snapshot_id) if snapshot else "none"
