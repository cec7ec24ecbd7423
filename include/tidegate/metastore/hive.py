"""A Hive metastore, spoken to by Thrift: Hive's own server, and every service that speaks like it.

Tables that Tidegate makes are external: whoever drops one drops no file.
"""

from __future__ import annotations

import contextlib
import copy
import threading
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from tidegate.errors import DatabaseMissing, MetastoreRefused
from tidegate.metastore.connections import ask
from tidegate.metastore.hive_types import holds
from tidegate.model.metastore import ListedColumn, ListedPartition, ListedTable, TableColumns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from hive_metastore.ThriftHiveMetastore import Client

_Answer = TypeVar("_Answer")

PIPELINE = "tidegate.pipeline"
"""The property of a table that names the pipeline which made it."""
_REVISION, _COMMIT = "tidegate.revision", "tidegate.commit"
# A server would list the directory otherwise, at every change.
_NO_STATISTICS = {"DO_NOT_UPDATE_STATS": "true"}


class _Classes(NamedTuple):
    """The classes by which Hive reads and writes a format."""

    input: str
    output: str
    rows: str


_HIVE = "org.apache.hadoop.hive"
_FORMATS: Mapping[str, _Classes] = MappingProxyType(
    {
        "parquet": _Classes(
            f"{_HIVE}.ql.io.parquet.MapredParquetInputFormat",
            f"{_HIVE}.ql.io.parquet.MapredParquetOutputFormat",
            f"{_HIVE}.ql.io.parquet.serde.ParquetHiveSerDe",
        ),
        "orc": _Classes(
            f"{_HIVE}.ql.io.orc.OrcInputFormat",
            f"{_HIVE}.ql.io.orc.OrcOutputFormat",
            f"{_HIVE}.ql.io.orc.OrcSerde",
        ),
    }
)

_ALTERING = threading.Lock()
"""A table is replaced as a whole, without a condition: threads would undo each other's changes."""


class HiveMetastore:
    """See `Metastore`.

    Args:
        uri: `thrift://host:port`, or several with commas between, tried in turn.
        table: `database.table`.
    """

    keeps_properties = True
    changes_types = True

    def __init__(self, uri: str, table: str) -> None:
        self._uri = uri
        self._name = table
        self._database, _, self._table = table.partition(".")
        self._listed: Any | None = None
        """The table as it was at the last look, so that a commit asks for it once."""

    def table(self) -> ListedTable | None:
        """See `Metastore`."""
        found = self._listed = self._asked(self._found)
        if found is None:
            return None
        parameters = found.parameters or {}
        return ListedTable(
            TableColumns(_columns(found.sd.cols), _columns(found.partitionKeys)),
            found.sd.location or "",
            format_of(found.sd.inputFormat or ""),
            parameters.get(PIPELINE),
        )

    def create(self, table: ListedTable) -> None:
        """See `Metastore`."""
        from hive_metastore.ttypes import AlreadyExistsException, Table

        made_by = {PIPELINE: table.pipeline} if table.pipeline else {}
        wanted = Table(
            dbName=self._database,
            tableName=self._table,
            owner="tidegate",
            sd=_storage(table),
            partitionKeys=_fields(table.columns.keys),
            parameters={"EXTERNAL": "TRUE", **made_by},
            tableType="EXTERNAL_TABLE",
        )

        def create(client: Client) -> None:
            with contextlib.suppress(AlreadyExistsException):
                client.create_table(wanted)

        self._asked(create)

    def widen(self, columns: tuple[ListedColumn, ...]) -> None:
        """See `Metastore`."""

        def change(found: Any) -> None:
            found.sd.cols = _fields(_widened(_columns(found.sd.cols), columns))

        self._alter(change)

    def set_location(self, location: str) -> None:
        """See `Metastore`."""
        self._alter(lambda found: setattr(found.sd, "location", location))

    def _alter(self, changed: Callable[[Any], None]) -> None:
        from hive_metastore.ttypes import InvalidOperationException

        def change(client: Client) -> None:
            found = self._required(client)
            changed(found)
            client.alter_table_with_environment_context(
                self._database, self._table, found, _context()
            )

        # What is known of the table is that of before.
        self._listed = None
        with _ALTERING:
            self._asked(change, InvalidOperationException)

    def partition(self, values: tuple[str, ...]) -> ListedPartition | None:
        """See `Metastore`."""
        from hive_metastore.ttypes import NoSuchObjectException

        def look(client: Client) -> Any | None:
            try:
                return client.get_partition(self._database, self._table, list(values))
            except NoSuchObjectException:
                return None

        found = self._asked(look)
        if found is None:
            return None
        said = found.parameters or {}
        revision = said.get(_REVISION)
        return ListedPartition(
            tuple(found.values),
            found.sd.location or "",
            int(revision) if revision and revision.isdecimal() else None,
            said.get(_COMMIT),
            *(int(said.get(name) or 0) for name in ("numFiles", "numRows", "totalSize")),
        )

    def put(self, partition: ListedPartition) -> None:
        """See `Metastore`."""
        from hive_metastore.ttypes import AlreadyExistsException, InvalidOperationException

        def write(client: Client) -> None:
            wanted = self._partition(client, partition)
            try:
                client.add_partition_with_environment_context(wanted, _context())
            except AlreadyExistsException:
                # Dropped by somebody between the two calls: the next commit lists it.
                client.alter_partition_with_environment_context(
                    self._database, self._table, wanted, _context()
                )

        self._asked(write, InvalidOperationException)

    def drop(self, values: tuple[str, ...]) -> None:
        """See `Metastore`."""
        from hive_metastore.ttypes import NoSuchObjectException

        def drop(client: Client) -> None:
            with contextlib.suppress(NoSuchObjectException):
                client.drop_partition(self._database, self._table, list(values), False)

        self._asked(drop)

    def _partition(self, client: Client, listed: ListedPartition) -> Any:
        """Return a partition with the formats and columns that its table had at the last look."""
        from hive_metastore.ttypes import Partition

        storage = copy.copy((self._listed or self._required(client)).sd)
        storage.location = listed.location
        return Partition(
            values=list(listed.values),
            dbName=self._database,
            tableName=self._table,
            sd=storage,
            parameters={
                _REVISION: str(listed.revision),
                _COMMIT: str(listed.key),
                "numFiles": str(listed.files),
                "numRows": str(listed.rows),
                "totalSize": str(listed.size_bytes),
            },
        )

    def _found(self, client: Client) -> Any | None:
        from hive_metastore.ttypes import NoSuchObjectException

        try:
            return client.get_table(self._database, self._table)
        except NoSuchObjectException:
            try:
                client.get_database(self._database)
            except NoSuchObjectException as missing:
                raise DatabaseMissing(uri=self._uri, database=self._database) from missing
            return None

    def _required(self, client: Client) -> Any:
        found = self._found(client)
        if found is None:
            problem = "the table was dropped at this moment"
            raise MetastoreRefused(uri=self._uri, table=self._name, problem=problem)
        return found

    def _asked(self, question: Callable[[Client], _Answer], *more: type[Exception]) -> _Answer:
        """Ask the server; turn what it says into an error of the table."""
        with self._explained(*more):
            return ask(self._uri, question)

    @contextlib.contextmanager
    def _explained(self, *more: type[Exception]) -> Iterator[None]:
        """Turn what the server says into an error of the table."""
        from hive_metastore.ttypes import InvalidObjectException, MetaException
        from thrift.Thrift import TApplicationException

        try:
            yield
        except (InvalidObjectException, MetaException, TApplicationException, *more) as refused:
            problem = str(getattr(refused, "message", None) or refused)
            raise MetastoreRefused(uri=self._uri, table=self._name, problem=problem) from refused


def _context() -> Any:
    from hive_metastore.ttypes import EnvironmentContext

    return EnvironmentContext(_NO_STATISTICS)


def _storage(table: ListedTable) -> Any:
    from hive_metastore.ttypes import SerDeInfo, StorageDescriptor

    classes = _FORMATS[table.format]
    return StorageDescriptor(
        cols=_fields(table.columns.columns),
        location=table.location,
        inputFormat=classes.input,
        outputFormat=classes.output,
        numBuckets=-1,
        serdeInfo=SerDeInfo(
            serializationLib=classes.rows, parameters={"serialization.format": "1"}
        ),
        bucketCols=[],
        sortCols=[],
        parameters={},
    )


def format_of(input_format: str) -> str:
    """Return the format that a class of Hive reads; the class itself if it is another one."""
    known = {classes.input: name for name, classes in _FORMATS.items()}
    return known.get(input_format, input_format)


def _widened(
    found: tuple[ListedColumn, ...], wanted: tuple[ListedColumn, ...]
) -> tuple[ListedColumn, ...]:
    """Return the columns of a table with others, of which it may have wider ones by now."""
    columns = {column.name.lower(): column for column in found}
    for column in wanted:
        known = columns.get(column.name.lower())
        if known is None or not holds(known.type, column.type):
            columns[column.name.lower()] = column
    return tuple(columns.values())


def _fields(columns: tuple[ListedColumn, ...]) -> list[Any]:
    from hive_metastore.ttypes import FieldSchema

    return [FieldSchema(column.name, column.type, None) for column in columns]


def _columns(fields: list[Any] | None) -> tuple[ListedColumn, ...]:
    return tuple(ListedColumn(field.name, field.type) for field in fields or ())
