"""Errors of an Iceberg table itself: identity, refs, columns, features."""

from __future__ import annotations

from tidegate.errors.base import TerminalError
from tidegate.errors.sources.every_kind import PointNotFound, StateGone


class IcebergSourceError(TerminalError):
    """The base of all errors of the Iceberg source (ICE-2.24)."""


class EmptyTable(IcebergSourceError):
    """A start point was asked for in a table without snapshots (ICE-2.6)."""

    source: str
    template = (
        "{source}: the table has no snapshot, but the pipeline file names one. Remove "
        "`snapshot_id`, `tag`, `as_of_timestamp` and `end` from `source`, and use `start: full`."
    )


class TableIdentityChanged(IcebergSourceError):
    """The table was dropped and created again (ICE-2.3)."""

    source: str
    expected: str
    found: str
    template = (
        "{source}: expected the table with uuid {expected}, found {found}: it was dropped and "
        "created again. Start a new pipeline, with a new name and a new target, for the new table; "
        "or delete what was published of the old one with `tidegate reset PIPELINE --drop-target`."
    )


class RefNotFound(IcebergSourceError):
    """A branch or tag does not exist (ICE-2.10)."""

    source: str
    ref: str
    template = "{source}: no branch or tag '{ref}'. Correct `source` in the pipeline file."


class SnapshotNotFound(IcebergSourceError, StateGone):
    """A snapshot that a window reads, or a file or command names, does not exist (ICE-2.15)."""

    source: str
    snapshot: str
    template = "{source}: snapshot {snapshot}{reader} is not in the table's metadata. {remedy}"

    @classmethod
    def named(cls, source: str, snapshot: str) -> SnapshotNotFound:
        """Return the error of a pipeline file or command that names it."""
        remedy = "Name one that `tidegate instants PIPELINE` lists."
        return cls(source=source, snapshot=snapshot, reader="", remedy=remedy)


class SnapshotLogMissing(IcebergSourceError, PointNotFound):
    """The snapshot log does not reach back to a time (ICE-2.8)."""

    source: str
    timestamp: str
    first: str
    template = (
        "{source}: as of {timestamp}: expected an entry of the snapshot log at or before that "
        "time, found {first}. "
        "Choose a later time, or name a snapshot by `source.snapshot_id`; "
        "`tidegate instants PIPELINE` lists them."
    )


class InstantTimeMissing(TerminalError):
    """The summary property that `source.instant_time` names is missing, or is not a time."""

    source: str
    instant: str
    key: str
    found: str
    template = (
        "{source}: instant {instant}: expected an ISO time in the summary property '{key}', "
        "found {found}. "
        "Let the writer set it, or remove `source.instant_time`."
    )


class AmbiguousColumn(TerminalError):
    """A name in the pipeline file fits several columns (ICE-3.22, 6.17)."""

    source: str
    column: str
    found: str
    template = (
        "{source}: expected one column '{column}', found {found}. Spell the columns exactly as in "
        "the table, with `source.case_sensitive: true`, or rename one in the source."
    )


class UnsupportedFeature(IcebergSourceError):
    """The table uses a feature that cannot be read exactly, and is therefore refused (ICE-1.3)."""

    source: str
    feature: str
    template = "{source}: {feature} cannot be read by this version of Tidegate. Nothing was read."


class MissingFieldIds(IcebergSourceError):
    """A data file has neither field ids nor a name mapping (ICE-6.14)."""

    path: str
    template = (
        "{path}: neither field ids nor a name mapping. Set `schema.name-mapping.default` on the "
        "table."
    )


class InvalidNameMapping(IcebergSourceError):
    """The table's name mapping does not follow the Iceberg specification (ICE-6.14)."""

    source: str
    problem: str
    template = (
        "{source}: `schema.name-mapping.default` cannot be parsed: {problem}. Correct that table "
        "property."
    )
