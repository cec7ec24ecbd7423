"""Errors of looking at a partition's revisions."""

from tidegate.errors.base import TerminalError


class RevisionUnknown(TerminalError):
    """A partition has no revision of this number."""

    partition: str
    revision: int
    known: str
    template = (
        "{partition}: expected a revision {revision}, found {known}. Choose one that "
        "`tidegate explain PIPELINE {partition}` lists."
    )


class RevisionFileGone(TerminalError):
    """A file of an earlier revision is neither in the table nor in the work directory."""

    path: str
    partition: str
    revision: int
    why: str
    kept: str
    template = (
        "{path}: expected, because revision {revision} of {partition} has it; not found: {why}. "
        "Choose revisions whose files are kept: {kept}. To keep more of them from now on, set "
        "`retention.revisions` in the pipeline file."
    )


class KeyUnknown(TerminalError):
    """Rows are to be compared by a column that no file has."""

    column: str
    known: str
    template = (
        "column '{column}': expected among the columns of the partition's files, found only "
        "{known}. Name one of these with `--keys`; the keys of the partition itself have one value."
    )


class FormatNotCompared(TerminalError):
    """Rows of files of this format cannot be compared: the files do not say their types."""

    path: str
    format: str
    template = (
        "{path}: expected Parquet, ORC or Avro, whose rows can be compared by revision; found "
        "{format}."
    )
