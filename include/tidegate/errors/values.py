"""Errors of values and configuration."""

from tidegate.errors.base import TerminalError


class FormatUnknown(TerminalError):
    """A JSON value was written by a version of Tidegate whose shape this one does not read."""

    kind: str
    found: str
    expected: int
    template = (
        "{kind}: expected format version {expected}, found {found}. "
        "Use the version of Tidegate that wrote it, or a later one; this one cannot read it."
    )


class ConfigInvalid(TerminalError):
    """A pipeline file is invalid."""

    file: str
    line: int
    key: str
    problem: str
    template = "{file}:{line}: `{key}`: {problem}"


class SourceLibraryFailed(TerminalError):
    """The library that reads a kind of source does not start, mostly because of its settings."""

    kind: str
    problem: str
    template = (
        "sources of kind '{kind}' cannot be read here, because a library does not start: "
        "{problem}. Correct its settings and run the command again; those of pyiceberg are in "
        "`.pyiceberg.yaml`, in the folder of the environment variable PYICEBERG_HOME, the home "
        "directory or the current one."
    )


class NameTaken(TerminalError):
    """Two pipeline files have the same name, which is an identity; the first valid one is used."""

    file: str
    name: str
    taken: str
    template = (
        "{file}: the name '{name}' is taken by {taken}, which is used. Remove this file, or give "
        "its pipeline another name and another target."
    )


class NameKnown(TerminalError):
    """A pipeline file is to be written under a name that the ledger has for another pipeline."""

    name: str
    key: str
    expected: str
    found: str
    target: str
    proposal: str
    template = (
        "the ledger knows a pipeline '{name}' whose `{key}` is {expected}; this one has {found}. "
        "Nothing was written. Choose another name, as `--name {proposal}`; for a new file of the "
        "pipeline that the ledger knows, name its source, and its target with `--target {target}`."
    )


class PipelineNotFound(TerminalError):
    """No pipeline file has the requested name."""

    name: str
    folder: str
    known: str
    remedy: str
    template = "pipeline '{name}': no file in {folder} has this name; found: {known}. {remedy}"


class SecretMissing(TerminalError):
    """A `${env:NAME}` in the pipeline file names a variable that is not set where it is used.

    Tasks of a cluster also have the values of the process that started them.
    """

    name: str
    key: str
    host: str
    process: int
    template = (
        "`{key}`: the environment variable {name} is not set on host {host}, in process {process}. "
        "Set it where the run is started, and run again."
    )


class ConnectionUnreadable(TerminalError):
    """A variable that has a connection of Airflow cannot be read as one."""

    name: str
    key: str
    template = (
        "`{key}`: the environment variable {name} is set, but is neither JSON nor a URI of a "
        'connection. Set it as Airflow does: `{{"conn_type": …}}`, or '
        "`aws://LOGIN:PASSWORD@/…` "
        "with `/`, `+`, `@` and `:` of login and password as %2F, %2B, %40 and %3A."
    )


class ConnectionUnfit(TerminalError):
    """A connection of Airflow cannot say who asks a store."""

    name: str
    key: str
    problem: str
    template = (
        "`{key}`: the connection '{name}' {problem}. Set it to one of type `aws` that has the "
        "access key as login and its secret as password, or neither, for a role or a profile."
    )


class PartitionPathInvalid(TerminalError):
    """A directory at a partition level does not match the declared keys (PC-P05)."""

    path: str
    expected: str
    template = (
        "partition path '{path}': expected {expected}. Correct the spelling or `partition_by`, or "
        "move the directory away."
    )


class PartitionKeyIllegal(TerminalError):
    """A partition has no valid key in Airflow (AF-3.16)."""

    partition: str
    key: str
    template = (
        "partition {partition}: the key '{key}' is not legal; expected 1 to 250 of "
        "[A-Za-z0-9_.~:+-], one value "
        "per partition key joined by '~'. Partition by shorter values, or publish it with "
        "`tidegate publish PIPELINE PARTITION`."
    )


class PartitionValueInvalid(TerminalError):
    """A partition value does not parse as its declared type (PC-P06)."""

    path: str
    value: str
    type: str
    template = (
        "{path}: expected a value of type {type}, found '{value}'. Correct the directory or the "
        "declared type."
    )


class DefaultPartitionForeign(TerminalError):
    """A directory has the name that another engine uses for NULL (PC-P08)."""

    path: str
    value: str
    template = (
        "partition path '{path}': '{value}' is the name that other engines use for the partition "
        "of NULL, but would be read as a text. Set `source.default_partition_name: {value}`, or "
        "rename the directory."
    )


class PredicateInvalid(TerminalError):
    """A filter or row rule cannot be parsed or does not fit the columns."""

    where: str
    predicate: str
    problem: str
    template = (
        '{where}: the predicate "{predicate}" cannot be used: {problem}. '
        "Correct it in the pipeline file."
    )


class PartitionFieldInvalid(TerminalError):
    """A key of `target.partition_by` does not fit the column it is made from (PC-P01)."""

    key: str
    column: str
    problem: str
    template = "`target.partition_by.{key}`: column '{column}': {problem}."


class SortColumnInvalid(TerminalError):
    """A column of `target.sort_by` has values that cannot be compared (PC-F07)."""

    column: str
    found: str
    problem: str
    template = (
        "`target.sort_by`: expected columns whose values have an order, found '{column}' of type "
        "{found}: {problem}. Remove the column from the list in the pipeline file."
    )


class PartitionTimeUnnamed(TerminalError):
    """Partitions wait for a time that their values cannot name (PC-T16)."""

    key: str
    found: str
    template = (
        "`commit.trigger: partition-time` expects partitions that name a time, found "
        "`target.partition_by.{key}` of type {found}. Set `commit.trigger: process-time`, or make "
        "a key of a time: `day(COLUMN)`."
    )


class PartitionValueReserved(TerminalError):
    """A value is spelled like the directory of the default partition (PC-P07)."""

    column: str
    value: str
    rule: str
    template = (
        "column '{column}': the value '{value}' is the name of the default partition and would be "
        "read back as NULL. Quarantine such rows with a row rule, such as `{{name: reserved, "
        "where: {rule}}}`; or set another `target.default_partition_name`, which a pipeline takes "
        "as long as none of its partitions is for NULL or has the new name as a value."
    )


class KeyUnusable(TerminalError):
    """A column of `target.keys` has a type whose values do not identify a row."""

    column: str
    found: str
    template = (
        "`target.keys`: expected a column of whole numbers, decimals of at most 38 digits, text, "
        "times or bytes, found '{column}' of type {found}, whose values do not identify a row. Use "
        "another column."
    )


class DeletesUnplaced(TerminalError):
    """Rows of deletes lack a column that says in which partition the deleted row stands."""

    column: str
    template = (
        "`target.partition_by`: expected columns that rows of deletes have; found '{column}', of "
        "which a deleted row's value is not known, so that the row would stay where it is. "
        "Partition by columns of the record key or of the table's own partitions, and run "
        "`tidegate reset PIPELINE`."
    )


class KeyMissing(TerminalError):
    """A row of an upsert has no value in a column that identifies it."""

    column: str
    rows: int
    template = (
        "`target.keys`: expected a value of '{column}' in every row, found {rows} rows of a batch "
        "with NULL, which would all be taken for the same row. Quarantine such rows with a row "
        "rule, such as `{{name: no_key, where: {column} is not null}}`, and load again."
    )
