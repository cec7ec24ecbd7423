"""What a source can refuse or find broken."""

from __future__ import annotations

from tidegate.errors.base import TerminalError, TransientError
from tidegate.errors.values import ConfigInvalid


class SourceNotFound(TerminalError):
    """There is no table where the pipeline file points."""

    source: str
    problem: str
    template = "{source}: no table found: {problem}. Correct `source` in the pipeline file."


class SourceUnreachable(TransientError):
    """A catalog or store did not answer."""

    source: str
    problem: str
    template = (
        "{source}: cannot be reached: {problem}. Check the service and the connection; the run is "
        "retried."
    )


class SourceReadTwice(TerminalError):
    """A link in a directory leads to files that are read there already, or for ever on (PC-R01)."""

    source: str
    path: str
    place: str
    template = (
        "{source}: {path} is a link to {place}, of which files are read already. Remove the link, "
        "or set `source.on_bad_path: skip`."
    )


class SourceFileGone(TerminalError):
    """A file that the source's metadata or a plan names is not there."""

    path: str
    template = (
        "{path}: expected, as the source's metadata or the plan of a window names it; not found. "
        "Restore it if the source still names it. If the source deleted it, let it keep files for "
        "longer than a window takes. Read the partitions of a window that was announced before "
        "with `tidegate rebuild PIPELINE PARTITION`; for a window that is still open, start a new "
        "pipeline with a new name and a new target."
    )


class ListedFileGone(SourceFileGone):
    """A file of a folder is not there any more that a listing names."""

    template = (
        "{path}: expected, as it was listed; not found. Restore it as it was, its modification "
        "time too, and run again. If the source deleted it, set `source.on_changed_file: ignore` "
        "and load with `tidegate load PIPELINE`, which takes the folder as it stands. Read the "
        "partitions of its rows without it afterwards with `tidegate rebuild PIPELINE PARTITION`. "
        "If the load stops at the same file, its window was planned before: start a new pipeline "
        "with a new name and a new target."
    )


class SourceFileDamaged(TerminalError):
    """A file of the source cannot be read as what it should be."""

    path: str
    problem: str
    template = (
        "{path}: cannot be read: {problem}. Restore the file in the source, then run the window "
        "again."
    )


class ListedFileChanged(SourceFileDamaged):
    """A file of a folder was written since it was listed; nothing says that it is damaged."""

    template = (
        "{path}: expected, as it was listed, {problem}. Restore it as it was, its modification "
        "time too, and run again. If the source wrote it anew, set `source.on_changed_file: "
        "ignore` and load with `tidegate load PIPELINE`, which takes the folder as it stands. Read "
        "the partitions of its rows afterwards, of those that it had and of those that it has now, "
        "with `tidegate rebuild PIPELINE PARTITION`. If the load stops at the same file, its "
        "window was planned before: start a new pipeline with a new name and a new target."
    )


class ColumnUnreadable(TerminalError):
    """A column has a value that no Arrow array of its type can hold (ICE-6.18)."""

    path: str
    column: str
    problem: str
    template = (
        "{path}: column '{column}' cannot be read: {problem}. Leave the column out of "
        "`source.read.columns`, or rewrite the file in Parquet."
    )


class FileCameBack(TerminalError):
    """A file was gone when the directory was last taken in, and stands again (PC-R07)."""

    source: str
    path: str
    template = (
        "{source}: {path} was gone at the checkpoint and stands again: to read whole what stood "
        "at the checkpoint would leave its rows out. Run `tidegate load PIPELINE` first, then "
        "the command again."
    )


class SourceRewritten(TerminalError):
    """A file that was already taken in changed or vanished (design §2, PC-R07)."""

    source: str
    path: str
    expected: str
    found: str
    template = (
        "{source}: {path} was taken in as {expected}, found {found}. "
        "Restore it as it was, its modification time too, and run again; or set "
        "`source.on_changed_file: ignore` and load with `tidegate load PIPELINE`: what the file "
        "brought stays, and is not read again when the file comes back. Rebuild the partitions of "
        "its rows afterwards, of those that it had and of those that it has now, with `tidegate "
        "rebuild PIPELINE PARTITION`, to publish what stands in it now."
    )


class HistoryChanged(TerminalError):
    """A file that came before the first window is wanted, and is not as it was then (PC-R07)."""

    source: str
    path: str
    interval: str
    expected: str
    found: str
    template = (
        "{source}: {path} came in the interval {interval}, as {expected}, found {found}. Nothing "
        "was taken. Restore it as it was, its modification time too, and run again. If that is not "
        "possible, backfill other intervals, in which it did not come."
    )


class SourceEmptied(TerminalError):
    """A directory that is read whole has no file any more (PC-R07)."""

    source: str
    files: int
    template = (
        "{source}: had {files} files when it was last read, and has none now: a volume that is not "
        "mounted looks like this. Mount it and run again. If the source deleted its files, set "
        "`source.on_changed_file: ignore` and load with `tidegate load PIPELINE`, which leaves the "
        "target without rows."
    )


class SchemaIncompatible(TerminalError):
    """A column cannot be read as the type that the pipeline writes."""

    path: str
    column: str
    expected: str
    found: str
    template = (
        "{path}: column '{column}': expected {expected}, found {found}. "
        "Change the column in the source, name another one in the pipeline file, or start a new "
        "pipeline for the new type."
    )


class ColumnMissing(TerminalError):
    """A column that the pipeline names does not exist in the source."""

    source: str
    column: str
    known: str
    template = (
        "{source}: no column '{column}'; found: {known}. Correct the name in the pipeline file."
    )


class AmbiguousColumn(TerminalError):
    """A name in the pipeline file fits several columns (ICE-3.22, 6.17)."""

    source: str
    column: str
    found: str
    template = (
        "{source}: expected one column '{column}', found {found}. Name the columns that are meant "
        "as they are spelled, with `source.case_sensitive: true`, or rename one in the source."
    )


class InstantNotFound(TerminalError):
    """A bound names an instant that the source does not have."""

    source: str
    instant: str
    template = "{source}: no instant '{instant}'. List them with `tidegate instants PIPELINE`."


class InstantTimeMissing(TerminalError):
    """The summary property that `source.instant_time` names is absent, or is no time."""

    source: str
    instant: str
    key: str
    found: str
    template = (
        "{source}: instant {instant}: expected an ISO time in the summary property '{key}', "
        "found {found}. "
        "Let the writer set it, or remove `source.instant_time`."
    )


class IcebergSourceError(TerminalError):
    """Base of what the Iceberg source refuses (ICE-2.24)."""


class EmptyTable(IcebergSourceError):
    """A start point was asked for in a table without snapshots (ICE-2.6)."""

    source: str
    template = (
        "{source}: the table has no snapshot, but the pipeline file names one. Take `snapshot_id`, "
        "`tag`, `as_of_timestamp` and `end` out of `source`, and use `start: full`."
    )


class TableIdentityChanged(IcebergSourceError):
    """The table was dropped and made again (ICE-2.3)."""

    source: str
    expected: str
    found: str
    template = (
        "{source}: expected the table with uuid {expected}, found {found}: it was dropped and "
        "made again. "
        "Start a new pipeline name for the new table."
    )


class RefNotFound(IcebergSourceError):
    """A branch or tag does not exist (ICE-2.10)."""

    source: str
    ref: str
    template = "{source}: no branch or tag '{ref}'. Correct `source` in the pipeline file."


class SnapshotNotFound(IcebergSourceError):
    """A snapshot that a window reads, or a file or command names, is not there (ICE-2.15)."""

    source: str
    snapshot: str
    reader: str
    """Which window reads it, as a relative clause between commas; empty where none does."""
    remedy: str
    template = "{source}: snapshot {snapshot}{reader} is not in the table's metadata. {remedy}"

    @classmethod
    def named(cls, source: str, snapshot: str) -> SnapshotNotFound:
        """Return the error of a pipeline file or command that names it."""
        remedy = "Name one that `tidegate instants PIPELINE` lists."
        return cls(source=source, snapshot=snapshot, reader="", remedy=remedy)


class AmbiguousStart(ConfigInvalid, IcebergSourceError):
    """A start names an instant without saying whether it is included (ICE-2.12)."""


class StartNotAncestor(IcebergSourceError):
    """A configured start or end is not on the lineage of the head (ICE-2.15)."""

    source: str
    snapshot: str
    head: str
    template = (
        "{source}: snapshot {snapshot} is no ancestor of the head {head}. Choose one from "
        "`tidegate instants PIPELINE`."
    )


class SnapshotLogMissing(IcebergSourceError):
    """The snapshot log does not say what the table was at a time (ICE-2.8)."""

    source: str
    timestamp: str
    first: str
    template = (
        "{source}: as of {timestamp}: expected an entry of the snapshot log at or before that "
        "time, found {first}. "
        "Choose a later time, or name a snapshot by `source.snapshot_id`; "
        "`tidegate instants PIPELINE` lists them."
    )


class HistoryTruncated(IcebergSourceError):
    """Snapshots between the start and the head were expired (ICE-2.14, 2.17)."""

    source: str
    start: str
    oldest_kept: str
    head: str
    remedy: str
    """The settings that go on from here, as a sentence."""
    template = (
        "{source}: expected unbroken history from {start} to {head}, found it cut before "
        "{oldest_kept}. "
        "{remedy} Let the table keep more snapshots."
    )


class CursorOffLineage(IcebergSourceError):
    """The checkpoint is no ancestor of the head.

    The table was rolled back or a branch replaced (ICE-2.17).
    """

    source: str
    checkpoint: str
    head: str
    common_ancestor: str
    oldest_kept: str
    remedy: str
    template = (
        "{source}: checkpoint {checkpoint} is no ancestor of the head {head} (common ancestor: "
        "{common_ancestor}, oldest kept: {oldest_kept}): the table was rolled back, or its branch "
        "replaced. {remedy}"
    )


class CursorExpired(IcebergSourceError):
    """The checkpoint's snapshot was expired and nothing retained joins on to it (ICE-2.17)."""

    source: str
    checkpoint: str
    oldest_kept: str
    head: str
    gap: str
    """What the sequence numbers say of the commits between (ICE-2.20)."""
    remedy: str
    template = (
        "{source}: cannot read all changes after the checkpoint {checkpoint}: it was expired; "
        "oldest kept is {oldest_kept}, head {head}; {gap}. {remedy} Let the table keep more "
        "snapshots."
    )


class ChangelogParentMissing(IcebergSourceError):
    """The state before a commit is not retained, so what it changed cannot be told (ICE-3.12)."""

    source: str
    snapshot: str
    parent: str
    problem: str
    template = (
        "{source}: the changes of snapshot {snapshot} need the state before it, snapshot {parent}: "
        "{problem}. Start with `source.start: full`, or after a commit whose state is retained: "
        "`source.start: {{after: {snapshot}}}`."
    )


class LineageUnavailable(IcebergSourceError):
    """Row lineage does not say which rows were written since the checkpoint (ICE-8.5)."""

    source: str
    problem: str
    template = (
        "{source}: lineage upserts cannot be read: {problem}. Use `source.read.mode: changelog` "
        "or `snapshot_diff`."
    )


class ChangelogInconsistent(IcebergSourceError):
    """The changes that were read do not turn the state before into the state after (ICE-3.17)."""

    source: str
    snapshot: str
    rows: int
    template = (
        "{source}: snapshot {snapshot}: expected its changes to turn the state before into the "
        "state after, found a difference of {rows:+d} rows, or other rows. Nothing was taken in. "
        "Keep the table's metadata files and report them; `source.read.mode: snapshot_diff` "
        "compares the states another way."
    )


class IdentifierNotUnique(IcebergSourceError):
    """A key has several changes in one commit, and `strict_identifiers` is set (ICE-3.15)."""

    snapshot: str
    key: str
    changes: int
    template = (
        "commit {snapshot}: expected at most one DELETE and one INSERT per key, found several: "
        "{changes} rows of such keys, first {key}. Correct `source.read.identifier_columns`, or "
        "set `source.read.strict_identifiers: false`, which leaves such rows unpaired."
    )


class NonAppendSnapshot(IcebergSourceError):
    """An append read met a commit that deletes or replaces rows (ICE-3.5)."""

    source: str
    snapshots: str
    remedy: str
    """What to do about what these commits took away, as sentences."""
    template = "{source}: expected appends only, found {snapshots}. {remedy}"


class RemovedRowsRead(IcebergSourceError):
    """A commit to be passed over takes away rows that the same window reads (ICE-3.5)."""

    source: str
    snapshots: str
    removed: str
    """How many files and rows."""
    template = (
        "{source}: `read.on_non_append: skip` expects that what a window reads is still there at "
        "its end; found {snapshots}, which take away {removed} of this window. Published, these "
        "rows would stand beside those that correct them, so nothing was read. Read the table in "
        "a new pipeline: with `read.on_non_append: changelog`, and `_change_type` among "
        "`read.columns`, it has every change; with `start: full` it has the rows as they stand "
        "now, and later `tidegate rebuild PIPELINE PARTITION` brings up to date the days that a "
        "skipped commit changes."
    )


class SnapshotClassMismatch(IcebergSourceError):
    """A commit that calls itself an append removes files or adds deletes (ICE-3.3)."""

    source: str
    snapshot: str
    found: str
    template = (
        "{source}: snapshot {snapshot} says 'append' but {found}. Its writer is not to be "
        "trusted; see `tidegate instants PIPELINE`."
    )


class UnsupportedFeature(IcebergSourceError):
    """The table uses something that is refused rather than read approximately (ICE-1.3)."""

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
    """The table's name mapping is not what the Iceberg specification says (ICE-6.14)."""

    source: str
    problem: str
    template = (
        "{source}: `schema.name-mapping.default` cannot be parsed: {problem}. Correct that table "
        "property."
    )


class StatsMissing(IcebergSourceError):
    """Planning was asked for something that a file's metadata does not say (ICE-5.9, 5.10)."""

    path: str
    missing: str
    remedy: str
    template = (
        "{path}: the plan needs {missing}, which the table's metadata does not have. {remedy}."
    )


class CorruptDeletes(IcebergSourceError):
    """A delete file contradicts itself, another one, or its data file (ICE-4.12, 4.13)."""

    path: str
    expected: str
    found: str
    template = (
        "{path}: expected {expected}, found {found}. Nothing was read: repair or rewrite the "
        "table's delete files with the engine that wrote them."
    )


class AmbiguousPath(IcebergSourceError):
    """A deleted path fits several data files, and none exactly (ICE-4.15)."""

    path: str
    target: str
    candidates: str
    template = (
        "{path}: expected a data file of the table, found '{target}', which but for its scheme "
        "names each of {candidates}. Rewrite the delete file in the source, or set "
        "`source.path_match: exact`."
    )
