"""Errors of reading the changes of an Iceberg table: commits, deletes, changelogs."""

from tidegate.errors.sources.iceberg.table import IcebergSourceError


class ChangelogParentMissing(IcebergSourceError):
    """The state before a commit is not retained, so its changes are unknown (ICE-3.12)."""

    source: str
    snapshot: str
    parent: str
    problem: str
    template = (
        "{source}: the changes of snapshot {snapshot} cannot be read without the state before it, "
        "snapshot {parent}: {problem}. Start with `source.start: full`, or after a commit whose "
        "state is retained: `source.start: {{after: {snapshot}}}`."
    )


class LineageUnavailable(IcebergSourceError):
    """Row lineage does not show which rows were written since the checkpoint (ICE-8.5)."""

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
        "compares the states in another way."
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
    """What to do about the rows that these commits removed, as sentences."""
    template = "{source}: expected appends only, found {snapshots}. {remedy}"


class RemovedRowsRead(IcebergSourceError):
    """A commit that is to be skipped removes rows that the same window reads (ICE-3.5)."""

    source: str
    snapshots: str
    removed: str
    """How many files and rows."""
    template = (
        "{source}: `read.on_non_append: skip` expects that the rows of a window still exist at "
        "its end; found {snapshots}, which remove {removed} of this window. If these rows were "
        "published, they would appear beside the rows that correct them, so nothing was read. "
        "To publish the table as it is now in place of what was published, run `tidegate reset "
        "PIPELINE`. Otherwise read it in a new pipeline: with `read.on_non_append: changelog`, "
        "and `_change_type` among `read.columns`, it has every change; with `start: full` it has "
        "the current rows, and `tidegate rebuild PIPELINE PARTITION` later updates the days that a "
        "skipped commit changes."
    )


class SnapshotClassMismatch(IcebergSourceError):
    """A commit that calls itself an append removes files or adds deletes (ICE-3.3)."""

    source: str
    snapshot: str
    found: str
    template = (
        "{source}: snapshot {snapshot} says 'append' but {found}. Its writer cannot be trusted; "
        "see `tidegate instants PIPELINE`."
    )


class StatsMissing(IcebergSourceError):
    """Planning needs something that a file's metadata does not have (ICE-5.9, 5.10)."""

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
    """A path in a delete file matches several data files, and none exactly (ICE-4.15)."""

    path: str
    target: str
    candidates: str
    template = (
        "{path}: expected a data file of the table, found '{target}', which, apart from its "
        "scheme, matches each of {candidates}. Rewrite the delete file in the source, or set "
        "`source.path_match: exact`."
    )
