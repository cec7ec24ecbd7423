"""Errors of an Iceberg table whose history does not continue from a start or a checkpoint."""

from tidegate.errors.sources.every_kind import PointNotFound
from tidegate.errors.sources.iceberg.table import IcebergSourceError
from tidegate.errors.values import ConfigInvalid


class AmbiguousStart(ConfigInvalid, IcebergSourceError):
    """A start names an instant without saying whether it is included (ICE-2.12)."""


class StartNotAncestor(IcebergSourceError, PointNotFound):
    """A configured start or end is not on the lineage of the head (ICE-2.15)."""

    source: str
    snapshot: str
    head: str
    template = (
        "{source}: snapshot {snapshot} is not an ancestor of the head {head}. Choose one from "
        "`tidegate instants PIPELINE`."
    )


class HistoryTruncated(IcebergSourceError):
    """Snapshots between the start and the head were expired (ICE-2.14, 2.17)."""

    source: str
    start: str
    oldest_kept: str
    head: str
    remedy: str
    """The settings that lead on from here, as a sentence."""
    template = (
        "{source}: expected unbroken history from {start} to {head}, found it cut before "
        "{oldest_kept}. "
        "{remedy} Let the table keep more snapshots."
    )


class CursorOffLineage(IcebergSourceError):
    """The checkpoint is not an ancestor of the head.

    The table was rolled back or a branch replaced (ICE-2.17).
    """

    source: str
    checkpoint: str
    head: str
    common_ancestor: str
    oldest_kept: str
    remedy: str
    template = (
        "{source}: checkpoint {checkpoint} is not an ancestor of the head {head} (common "
        "ancestor: {common_ancestor}, oldest kept: {oldest_kept}): the table was rolled back, or "
        "its branch replaced. {remedy}"
    )


class CursorExpired(IcebergSourceError):
    """The checkpoint's snapshot was expired, and no retained snapshot follows it (ICE-2.17)."""

    source: str
    checkpoint: str
    oldest_kept: str
    head: str
    gap: str
    """What the sequence numbers tell about the commits in between (ICE-2.20)."""
    remedy: str
    template = (
        "{source}: cannot read all changes after the checkpoint {checkpoint}: it was expired; "
        "oldest kept is {oldest_kept}, head {head}; {gap}. {remedy} Let the table keep more "
        "snapshots."
    )
