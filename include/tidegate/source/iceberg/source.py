"""One Iceberg table as a source of changes: its snapshots, the files of windows, their rows."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from tidegate.source.iceberg.access import TableAccess
from tidegate.source.iceberg.reading.pinned import IcebergReading
from tidegate.source.slicing import unnamed_rebuild

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.config import IcebergSourceConfig
    from tidegate.model.instant import Instant
    from tidegate.source.iceberg.slicing import ManifestHints, ManifestSlicing
    from tidegate.source.iceberg.snapshots import SnapshotTimeline
    from tidegate.source.slicing import Rebuilding


class TaggedCheckpoint:
    """The `Protection` of a checkpoint by a tag (ICE-2.23)."""

    def __init__(self, access: TableAccess) -> None:
        """Prepare."""
        self._access = access

    def protect(self, pipeline: str, checkpoint: Instant) -> None:
        """Move the pipeline's tag to the checkpoint."""
        self._access.patiently(self._tag, pipeline, checkpoint)

    def _tag(self, pipeline: str, checkpoint: Instant) -> None:
        from tidegate.source.iceberg.table.tagging import tag_checkpoint

        # Opened at each attempt: a tag is refused where another writer came between.
        tag_checkpoint(self._access.opener.open(), self._access.name, pipeline, checkpoint)


class IcebergSource:
    """The `Source` of one Iceberg table.

    A task only reads, and imports nothing of what plans.
    """

    kept = None
    """None: the table itself keeps its snapshots."""

    def __init__(
        self,
        config: IcebergSourceConfig,
        extra_columns: Sequence[str] = (),
        rebuilding: Rebuilding | None = unnamed_rebuild,
        *,
        retry_pause_seconds: float = 1.0,
    ) -> None:
        """Prepare, without opening anything yet.

        Args:
            config: the pipeline's `source`.
            extra_columns: columns that a filter needs besides `read.columns`, read at the end.
            rebuilding: returns the command that reads a time range again, for messages; None: no
                pipeline reads.
            retry_pause_seconds: pause before the second attempt; the third waits twice as long.
        """
        self._access = TableAccess(config, retry_pause_seconds)
        self._extra_columns = extra_columns
        self._rebuilding = rebuilding
        self.reading = IcebergReading(self._access)
        tags = config.protect_cursor == "tag"
        self.protection = TaggedCheckpoint(self._access) if tags else None

    @cached_property
    def timeline(self) -> SnapshotTimeline:
        """Its snapshots."""
        from tidegate.source.iceberg.snapshots import SnapshotTimeline

        return SnapshotTimeline(self._access, self._extra_columns)

    @cached_property
    def slicing(self) -> ManifestSlicing:
        """The files of its windows."""
        from tidegate.source.iceberg.slicing import ManifestSlicing

        return ManifestSlicing(self._access, self._rebuilding)

    @cached_property
    def hints(self) -> ManifestHints:
        """What its manifests tell of files."""
        from tidegate.source.iceberg.slicing import ManifestHints

        return ManifestHints(self._access)

    @property
    def name(self) -> str:
        """The table's name for people."""
        return self._access.name

    def places(self) -> tuple[str, ...]:
        """Return the folders of this machine that have the table's files."""
        return self._access.places()
