"""What keeps a published table from being read by its markers."""

from tidegate.errors.base import TerminalError, TransientError


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
        "{path}: expected, as the marker beside it lists it; not found. `tidegate fsck PIPELINE` "
        "says what helps."
    )


class MarkerMissing(TransientError):
    """A table has data files, and no marker says which of them count (PC-A06)."""

    root: str
    file: str
    template = (
        "{root}: expected markers of Tidegate, found only files such as {file}, which no marker "
        "lists. A commit may be under way: read again when it has ended. A pipeline without the "
        "policy `success-file` writes no markers; read its files by listing."
    )


class ColumnTypesDiffer(TerminalError):
    """Two part files have a column with types that no type holds both of."""

    column: str
    file: str
    type: str
    other_file: str
    other_type: str
    template = (
        "column '{column}': {file} has {type}, and {other_file} has {other_type}; "
        "expected types of which one holds the other's values. "
        "Let `tidegate rebuild PIPELINE PARTITION` read the partition of the older file again as "
        "the source has it now, and publish it."
    )
