"""Select the snapshot of a table: by ref, by id, or as of a time (ICE-2.7 to 2.10)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pyiceberg.table.refs import SnapshotRefType

from tidegate.errors import (
    EmptyTable,
    RefNotFound,
    SnapshotLogMissing,
    SnapshotNotFound,
    StartNotAncestor,
)
from tidegate.model.instant import aware_time

if TYPE_CHECKING:
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot

    from tidegate.config import IcebergSourceConfig
    from tidegate.source.iceberg.timeline.history import History

MAIN = "main"


@dataclass(frozen=True)
class SelectedHead:
    """The head of one run."""

    ref: str
    """What was selected: a branch or tag, `snapshot 5`, `as of 2026-…`."""
    head: int | None
    """None for a table without snapshots."""
    own_schema: bool
    """Whether the state is read in the snapshot's schema instead of the table's (ICE-2.9)."""


def select_head(metadata: TableMetadata, config: IcebergSourceConfig, source: str) -> SelectedHead:
    """Find the snapshot that the configuration names.

    Raises:
        RefNotFound: there is no such branch or tag; a tag is not a branch (ICE-2.10).
        SnapshotNotFound: the snapshot was expired, or never was.
        SnapshotLogMissing: the log does not reach back to the time (ICE-2.8).
        EmptyTable: a snapshot, tag or time is named, but the table has none (ICE-2.6).
    """
    if config.snapshot_id is not None:
        found = _known(metadata, config.snapshot_id, source)
        return SelectedHead(f"snapshot {found}", found, own_schema=True)
    if config.tag is not None:
        return SelectedHead(config.tag, _tagged(metadata, config.tag, source), own_schema=True)
    if config.as_of_timestamp is not None:
        found = _as_of(metadata, config.as_of_timestamp, source)
        return SelectedHead(f"as of {_time(config.as_of_timestamp)}", found, own_schema=True)
    branch = config.branch or MAIN
    return SelectedHead(branch, _branch_head(metadata, branch, source), own_schema=False)


def end_of(history: History, end: str) -> Snapshot | None:
    """Find the last snapshot that `source.end` allows; None if it is before all snapshots.

    Raises:
        EmptyTable: a snapshot or tag is named, but the table has none.
        SnapshotNotFound, RefNotFound: nothing has that name.
        StartNotAncestor: it is not on the head's lineage.
    """
    moment = aware_time(end)
    if moment is not None:
        before = [item for item in history.ancestors if history.time(item) <= moment]
        return before[-1] if before else None
    if not history.ancestors:
        raise EmptyTable(source=history.source)
    named = history.named(end)
    if named is None:
        raise RefNotFound(source=history.source, ref=end)
    if history.position(named.snapshot_id) is None:
        head = str(history.ancestors[-1].snapshot_id)
        raise StartNotAncestor(source=history.source, snapshot=end, head=head)
    return named


def _tagged(metadata: TableMetadata, tag: str, source: str) -> int:
    if not metadata.snapshots:
        raise EmptyTable(source=source)
    ref = metadata.refs.get(tag)
    if ref is None or ref.snapshot_ref_type != SnapshotRefType.TAG:
        raise RefNotFound(source=source, ref=tag)
    return _known(metadata, ref.snapshot_id, source)


def _branch_head(metadata: TableMetadata, branch: str, source: str) -> int | None:
    if branch == MAIN:
        # Metadata of format 1 may have no refs at all; the current snapshot is `main`.
        return metadata.current_snapshot_id
    ref = metadata.refs.get(branch)
    if ref is None or ref.snapshot_ref_type != SnapshotRefType.BRANCH:
        raise RefNotFound(source=source, ref=branch)
    return ref.snapshot_id


def _as_of(metadata: TableMetadata, timestamp_ms: int, source: str) -> int:
    if not metadata.snapshots:
        raise EmptyTable(source=source)
    log = metadata.snapshot_log
    before = [entry.snapshot_id for entry in log if entry.timestamp_ms <= timestamp_ms]
    if not before:
        first = f"the first at {_time(log[0].timestamp_ms)}" if log else "an empty log"
        raise SnapshotLogMissing(source=source, timestamp=_time(timestamp_ms), first=first)
    return _known(metadata, before[-1], source)


def _known(metadata: TableMetadata, snapshot_id: int, source: str) -> int:
    if not metadata.snapshots:
        raise EmptyTable(source=source)
    if metadata.snapshot_by_id(snapshot_id) is None:
        raise SnapshotNotFound.named(source, str(snapshot_id))
    return snapshot_id


def _time(timestamp_ms: int) -> str:
    return datetime.fromtimestamp(timestamp_ms / 1000, tz=UTC).isoformat(timespec="milliseconds")
