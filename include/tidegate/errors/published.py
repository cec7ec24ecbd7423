"""Errors of reading a published table by its markers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.errors.base import TerminalError, TransientError

if TYPE_CHECKING:
    from collections.abc import Sequence


class MarkerInvalid(TerminalError):
    """A marker cannot be read as a list of files (PC-A07)."""

    path: str
    found: str
    template = (
        "{path}: expected a marker of Tidegate (JSON, format 1), found {found}. "
        "Point at a table that Tidegate publishes, or have the partition published again: "
        "`tidegate rebuild PIPELINE PARTITION`, then `tidegate publish PIPELINE PARTITION`."
    )


class CommittedFileMissing(TerminalError):
    """A marker lists a file that is not in its partition."""

    path: str
    template = (
        "{path}: expected, as the marker beside it lists it; not found. Run `tidegate fsck "
        "PIPELINE` to find out what to do."
    )


class PublishedTableMissing(TerminalError):
    """There is no folder at the path of a table that is to be read by its markers."""

    root: str
    found: str
    template = (
        "{root}: expected the folder of a published table, found {found}. Correct the path, which "
        "is `target.path` in the pipeline file; a table that was never published has no folder: "
        "run `tidegate publish PIPELINE` first."
    )


class PublishedTablesBelow(TerminalError):
    """A folder is to be read as one published table, and has others below it."""

    root: str
    found: str
    template = (
        "{root}: expected the folder of a published table, found one with other tables below: "
        "{found}. Name the folder of one of them: `source.path` of a pipeline, or the path that is "
        "read."
    )


def tables_below(root: str, folders: Sequence[str]) -> PublishedTablesBelow:
    """Return the error for a folder that is read as one table, and has others below it.

    Args:
        root: the folder.
        folders: those of the tables, in order, one at least.
    """
    more = f" and {len(folders) - 1} more" if len(folders) > 1 else ""
    return PublishedTablesBelow(root=root, found=f"{folders[0]}{more}")


class PublishedInCatalog(TerminalError):
    """Files belong to a table whose catalog says which of them count; no marker lists them."""

    root: str
    table: str
    kind: str
    template = (
        "{root}: expected markers of Tidegate, found a table of kind {kind} in {table}. Read it by "
        "its catalog, which alone knows which of its files and rows count: listed, rows that were "
        "replaced or erased would be read, too."
    )


class MarkerMissing(TransientError):
    """A table has data files, but no marker says which of them count (PC-A06)."""

    root: str
    file: str
    template = (
        "{root}: expected markers of Tidegate, found only files such as {file}, which no marker "
        "lists. A commit may be under way: read again when it has ended. A pipeline without the "
        "policy `success-file` writes no markers; read its files by listing."
    )


class PartitionNotThere(TransientError):
    """A partition that is to be read by its marker has none."""

    root: str
    partition: str
    template = (
        "{root}: expected a committed partition {partition}, found no marker in it. It may be "
        "committed later, so try again; or correct the path, which is that of its directory, as "
        "in 'dt=2026-02-01'."
    )


class RevisionNotThere(TerminalError):
    """A revision of a partition that is to be read does not stand, or not any more."""

    root: str
    partition: str
    revision: int
    found: str
    template = (
        "{root}: expected revision {revision} of {partition}, found {found}. Choose one that "
        "stands: with `target.layout: in_place` that is the newest, with 'revisions' also those "
        "before it, of which as many are kept as `target.keep_revisions` says."
    )


class ColumnTypesDiffer(TerminalError):
    """Two part files have a column with types that no common type can hold."""

    column: str
    file: str
    type: str
    other_file: str
    other_type: str
    template = (
        "column '{column}': {file} has {type}, and {other_file} has {other_type}; expected types "
        "of which one can hold the values of the other. Run `tidegate rebuild PIPELINE PARTITION` "
        "for the partition of the older file, which reads it again as the source has it now, and "
        "publish it."
    )
