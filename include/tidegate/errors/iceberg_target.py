"""Errors of publishing to an Iceberg table."""

from tidegate.errors.base import TerminalError, TransientError


class TableCatalogSilent(TransientError):
    """The catalog of the target does not answer, or its store does not."""

    table: str
    problem: str
    template = (
        "table '{table}': no usable answer of its catalog: {problem}. The next publish tries "
        "again, and looks first whether the last commit was made; if it is another catalog, "
        "correct `target.catalog`."
    )


class TableCatalogRefuses(TerminalError):
    """The catalog of the target answers that it will not do what it is asked."""

    table: str
    problem: str
    template = (
        "table '{table}': its catalog refuses: {problem}. Correct the credentials in "
        "`target.catalog`, or let the catalog's owner grant what is refused. Nothing was published."
    )


class TableBusy(TransientError):
    """Other writers committed to the table again and again while a partition was published."""

    table: str
    attempts: int
    template = (
        "table '{table}': other commits came first {attempts} times in a row. Nothing was "
        "published; the next publish tries again."
    )


class TableCatalogUnknown(TerminalError):
    """There is no catalog as the pipeline file describes it."""

    table: str
    problem: str
    template = (
        "table '{table}': its catalog cannot be opened: {problem}. Correct `target.catalog`, which "
        "takes the options of pyiceberg."
    )


class TableNamespaceMissing(TerminalError):
    """The catalog does not have the namespace of the table."""

    table: str
    namespace: str
    template = (
        "table '{table}': expected the namespace '{namespace}' in its catalog, found none. Make it "
        "there, as with `CREATE NAMESPACE {namespace}` in Spark, or name another one in "
        "`target.table`."
    )


class TargetTableDiffers(TerminalError):
    """The Iceberg table is not the one that the pipeline publishes."""

    table: str
    part: str
    expected: str
    found: str
    template = (
        "table '{table}': {part}: expected {expected}, found {found}. Nothing was published. "
        "Change the table there or the pipeline file, or name another table in `target.table`; "
        "one that is not there is made by the next publish."
    )


class TargetTableOwned(TerminalError):
    """The Iceberg table belongs to another pipeline."""

    table: str
    owner: str
    pipeline: str
    template = (
        "table '{table}': belongs to the pipeline '{owner}', not to '{pipeline}', by its property "
        "`tidegate.pipeline`. Name another table in `target.table`; if '{owner}' publishes to it "
        "no longer, remove the property from the table."
    )


class TargetBranchMissing(TerminalError):
    """The Iceberg table does not have the branch that is published to."""

    table: str
    branch: str
    known: str
    template = (
        "table '{table}': expected a branch '{branch}', found {known}. Make it there, as with "
        "`ALTER TABLE … CREATE BRANCH` in Spark, or correct `target.branch`."
    )


class TableFileMissing(TerminalError):
    """The store does not have a file that the catalog or a snapshot of the table names."""

    table: str
    problem: str
    template = (
        "table '{table}': a file that it needs is missing: {problem}. Nothing was published. "
        "Restore that file, or let the catalog name an older metadata file of the table whose "
        "files are there; after the latter, run `tidegate fsck PIPELINE --rebuild`, which finds "
        "the last revision that the table has then, and `tidegate publish PIPELINE`."
    )


class TargetTableGone(TerminalError):
    """The table is not in its catalog any more."""

    table: str
    partition: str
    template = (
        "table '{table}': not in its catalog, though {partition} was published to it: it was "
        "dropped or renamed, or the catalog was restored. Nothing was published. Put it back "
        "there with its newest metadata file, if it has one. Otherwise run `tidegate fsck PIPELINE "
        "--rebuild` and then `tidegate publish PIPELINE`, which makes it with all rows that are "
        "published. If its data files were deleted, too, run `tidegate reset PIPELINE "
        "--drop-target` and then `tidegate load PIPELINE`, which reads the source again."
    )


class TargetTableMoved(TerminalError):
    """The table does not have the files of a partition that the last commit left."""

    table: str
    branch: str
    partition: str
    revision: int
    snapshot: str
    problem: str
    template = (
        "table '{table}', branch '{branch}': {partition} is not as revision {revision} left it: "
        "snapshot {snapshot} {problem}. It was changed by another writer, or the catalog was "
        "restored. Nothing was published. If the catalog was restored, run `tidegate fsck PIPELINE "
        "--rebuild`, which finds the last revision that the table has. Otherwise set "
        "`target.on_foreign_change: replace` to put the next revision in the place of what is "
        "there; rows that only the other writer has are not in the table then. Run "
        "`tidegate publish PIPELINE {partition}` after either."
    )


class TableColumnUnfit(TerminalError):
    """An Iceberg table cannot have a column of the target."""

    table: str
    column: str
    problem: str
    template = (
        "table '{table}': column '{column}' fits no Iceberg table: {problem}. Leave it out by "
        "`source.read.columns`, or change it in the source."
    )
