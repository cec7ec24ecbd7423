"""Errors of listing partitions in a metastore."""

from tidegate.errors.base import TerminalError, TransientError


class MetastoreSilent(TransientError):
    """A metastore does not answer."""

    uri: str
    problem: str
    template = (
        "metastore {uri}: no answer: {problem}. The next publish tries again; if it is another "
        "one, correct `target.metastore.uri`."
    )


class MetastoreRefused(TransientError):
    """A metastore refuses a change for a reason of its own; the partition stays pending."""

    uri: str
    table: str
    problem: str
    template = (
        "metastore {uri}: table '{table}': {problem}. The next publish tries again, once the "
        "metastore allows it."
    )


class SparkCatalogUnfit(TerminalError):
    """The catalog of Spark cannot keep a table and its partitions."""

    table: str
    problem: str
    template = (
        "table '{table}' cannot be kept through Spark: {problem}. Correct the settings of "
        "Spark (in spark-defaults.conf, or by `spark-submit --conf`), name a table of another "
        "catalog in `target.metastore.table`, or give `target.metastore.uri` in place of "
        "`through: spark`."
    )


class DatabaseMissing(TerminalError):
    """The metastore does not have the database of the table."""

    uri: str
    database: str
    template = (
        "metastore {uri}: expected a database '{database}', found none. Make it there with "
        "`CREATE DATABASE {database}`, or name another one in `target.metastore.table`."
    )


class ListedTableDiffers(TerminalError):
    """The table in the metastore is not the one that the pipeline publishes (PC-A09)."""

    table: str
    part: str
    expected: str
    found: str
    template = (
        "table '{table}' in the metastore: {part}: expected {expected}, found {found}. Change the "
        "table there or drop it (an external table keeps its files), or name another one in "
        "`target.metastore.table`. A table that is not listed is made by the next publish; "
        "`tidegate relist PIPELINE` lists what was published before."
    )


class ListsNothing(TerminalError):
    """Partitions are to be listed again, but no policy lists them (PC-A14)."""

    pipeline: str
    found: str
    template = (
        "pipeline '{pipeline}': expected a policy that lists partitions in `commit.policies`, "
        "found {found}. Name `metastore` there, and the table in `target.metastore`."
    )


class ColumnUnlistable(TerminalError):
    """A table in a metastore cannot have a column of the target."""

    table: str
    column: str
    problem: str
    template = (
        "table '{table}': column '{column}' cannot be listed in a metastore: {problem}. Leave it "
        "out by `source.read.columns` and run `tidegate rebuild PIPELINE PARTITION` for what has "
        "it, or take `metastore` out of `commit.policies`."
    )


class PartitionUnlistable(TerminalError):
    """A metastore would take a value of a partition for another one."""

    table: str
    partition: str
    problem: str
    template = (
        "table '{table}': {partition} cannot be listed in a metastore: {problem}. Correct the "
        "value in the source, or take `metastore` out of `commit.policies`."
    )


class ColumnsUnknown(TerminalError):
    """A table is to be listed, but the plans of its files are lost, which tell its columns."""

    table: str
    partition: str
    template = (
        "table '{table}' is not in the metastore, and the plans of {partition} that tell its "
        "columns are lost. Make the table there, or publish a partition of a later window first; "
        "the next publish then lists this one."
    )
