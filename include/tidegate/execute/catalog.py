"""A table as the catalog of Spark lists it, kept by SQL alone: whatever catalog that is.

SQL has no word for the properties of a partition, nor for a wider type of a column.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tidegate.errors import DatabaseMissing, MetastoreRefused, SparkCatalogUnfit
from tidegate.execute.catalog_types import type_text
from tidegate.execute.session import open_session
from tidegate.metastore.agreement import same_place
from tidegate.metastore.hive import PIPELINE, format_of
from tidegate.metastore.hive_types import identifier, quoted
from tidegate.model.metastore import ListedColumn, ListedPartition, ListedTable, TableColumns
from tidegate.model.partition import HIVE_DEFAULT_NAME

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import SparkSession

_SERVER = "of Spark"
_OWN = "spark_catalog"
"""The catalog that every Spark has, of tables that Hive's metastore lists, or nothing does."""
_NEVER = frozenset(
    {
        "CATALOG_NOT_FOUND",
        "FORBIDDEN_OPERATION",
        "INVALID_PARTITION_OPERATION",
        "MISSING_CATALOG_ABILITY",
        "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE",
        "NOT_SUPPORTED_COMMAND_WITHOUT_HIVE_SUPPORT",
        "REQUIRES_SINGLE_PART_NAMESPACE",
        "UNSUPPORTED_FEATURE",
    }
)
"""What Spark says where a catalog will never do what is asked."""
_UNFIT = {
    "spark.sql.parser.escapedStringLiterals": (
        "true", "so that values with a quote cannot be said"
    ),
    "spark.sql.legacy.parseNullPartitionSpecAsStringLiteral": (
        "true", "so that NULL would be listed as a text"
    ),
}  # fmt: skip
"""Settings by which SQL says another thing."""


class CatalogTable:
    """See `Metastore`.

    Args:
        table: `database.table` of the session's catalog, or `catalog.database.table`.
    """

    keeps_properties = False
    changes_types = False

    def __init__(self, table: str) -> None:
        self._name = table
        self._table = ".".join(map(identifier, table.split(".")))
        self._keys: tuple[ListedColumn, ...] | None = None
        """Those of the last look at the table."""

    def table(self) -> ListedTable | None:
        """See `Metastore`."""
        self._check_settings()
        # Asked before: whatever Spark says by an error, it logs with all that it was doing.
        if not self._is_there("tableExists", self._table):
            database = self._name.rpartition(".")[0]
            if not self._is_there("databaseExists", self._table.rpartition(".")[0]):
                raise DatabaseMissing(uri=_SERVER, database=database)
            return None
        said = self._described("")
        names = said.get("partition_columns", ())
        columns = [ListedColumn(it["name"], type_text(it["type"])) for it in said["columns"]]
        keys = {column.name: column for column in columns if column.name in names}
        self._keys = tuple(keys[name] for name in names)
        provider = str(said.get("provider", said.get("type"))).lower()
        return ListedTable(
            TableColumns(tuple(it for it in columns if it.name not in keys), self._keys),
            said.get("location", ""),
            format_of(said.get("input_format", provider)) if provider == "hive" else provider,
            said.get("table_properties", {}).get(PIPELINE),
            keeps_files=said.get("type") != "MANAGED",
        )

    def create(self, table: ListedTable) -> None:
        """See `Metastore`. A table with a location is an external one."""
        columns = (*table.columns.columns, *table.columns.keys)
        keys = ", ".join(identifier(key.name) for key in table.columns.keys)
        partitioned = f" PARTITIONED BY ({keys})" if keys else ""
        made_by = {PIPELINE: table.pipeline} if table.pipeline else {}
        properties = ", ".join(f"{_text(key)} = {_text(value)}" for key, value in made_by.items())
        self._run(
            f"CREATE TABLE IF NOT EXISTS {self._table} ({_columns(columns)}) "
            f"USING {table.format}{partitioned} LOCATION {_text(table.location)}"
            + (f" TBLPROPERTIES ({properties})" if properties else "")
        )

    def widen(self, columns: tuple[ListedColumn, ...]) -> None:
        """See `Metastore`."""
        found = self.table()
        known = {it.name.lower() for it in found.columns.columns} if found else set()
        new = [column for column in columns if column.name.lower() not in known]
        if new:
            self._run(f"ALTER TABLE {self._table} ADD COLUMNS ({_columns(new)})")

    def set_location(self, location: str) -> None:
        """See `Metastore`."""
        self._run(f"ALTER TABLE {self._table} SET LOCATION {_text(location)}")
        self._look_again()

    def partition(self, values: tuple[str, ...]) -> ListedPartition | None:
        """See `Metastore`."""
        if self._keys is None and self.table() is None:
            return None
        named = self._named(values)
        if not self._run(f"SHOW PARTITIONS {self._table} {named}"):
            return None
        return ListedPartition(values, self._described(named).get("location", ""), None)

    def put(self, partition: ListedPartition) -> None:
        """See `Metastore`."""
        named, location = self._named(partition.values), _text(partition.location)
        self._run(f"ALTER TABLE {self._table} ADD IF NOT EXISTS {named} LOCATION {location}")
        listed = self.partition(partition.values)
        if listed is None or not same_place(listed.location, partition.location):
            self._run(f"ALTER TABLE {self._table} {named} SET LOCATION {location}")
        self._look_again()

    def drop(self, values: tuple[str, ...]) -> None:
        """See `Metastore`."""
        self._run(f"ALTER TABLE {self._table} DROP IF EXISTS {self._named(values)}")

    @cached_property
    def _session(self) -> SparkSession:
        from pyspark.errors import PySparkException

        try:
            return open_session("tidegate metastore")
        except PySparkException as broken:
            problem = f"Spark does not start: {broken}"
            raise self._refused(problem) from broken

    def _look_again(self) -> None:
        """Let this session forget which files it saw."""
        self._run(f"REFRESH TABLE {self._table}")

    def _named(self, values: tuple[str, ...]) -> str:
        """Return a partition as SQL names it: Spark reads each text as one of the key's type."""
        keys = self._keys
        if keys is None:
            found = self.table()
            keys = () if found is None else found.columns.keys
        if len(keys) != len(values):
            problem = "the table was dropped or changed at this moment"
            raise self._refused(problem)
        pairs = zip(keys, values, strict=True)
        named = (f"{identifier(key.name)} = {_value(value)}" for key, value in pairs)
        return f"PARTITION ({', '.join(named)})"

    def _check_settings(self) -> None:
        for setting, (value, problem) in self._unfit():
            if (self._setting(setting) or "").lower() == value:
                said = f"`{setting}` is `{value}`, {problem}"
                raise SparkCatalogUnfit(table=self._name, problem=said)

    def _unfit(self) -> Iterator[tuple[str, tuple[str, str]]]:
        yield from _UNFIT.items()
        parts = self._name.split(".")
        catalog = parts[0] if len(parts) > 2 else self._run("SELECT current_catalog()")
        # Another one may stand in its place, which keeps tables wherever it likes.
        own = self._setting(f"spark.sql.catalog.{_OWN}")
        if catalog.lower() == _OWN and own in {None, "builtin"}:
            gone = "so that tables are gone with the process; `hive` keeps them"
            yield "spark.sql.catalogImplementation", ("in-memory", gone)

    def _setting(self, name: str) -> str | None:
        said: str | None = self._session.conf.get(name, None)
        return said

    def _is_there(self, question: str, name: str) -> bool:
        with self._explained():
            found: bool = getattr(self._session.catalog, question)(name)
        return found

    def _described(self, part: str) -> dict[str, Any]:
        """Return what Spark tells of the table, or of a part of it."""
        said = self._run(f"DESCRIBE TABLE EXTENDED {self._table} {part} AS JSON")
        return dict(json.loads(said))

    def _run(self, statement: str) -> str:
        """Run a statement of SQL; return the first value of the first row, if there is one."""
        with self._explained():
            rows = self._session.sql(statement).collect()
        return str(rows[0][0]) if rows else ""

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn what Spark says into an error of the table."""
        from py4j.protocol import Py4JError
        from pyspark.errors import (
            ParseException,
            PySparkException,
            UnsupportedOperationException,
        )

        try:
            yield
        except (PySparkException, Py4JError) as said:
            condition = said.getCondition() if isinstance(said, PySparkException) else None
            # The first line of some says only that there was an error; later ones where.
            problem = " ".join(str(said).split("\n")[:2]).rstrip(" .")
            is_never = (condition or "").partition(".")[0] in _NEVER
            if is_never or isinstance(said, (ParseException, UnsupportedOperationException)):
                raise SparkCatalogUnfit(table=self._name, problem=problem) from said
            raise self._refused(problem) from said

    def _refused(self, problem: str) -> MetastoreRefused:
        return MetastoreRefused(uri=_SERVER, table=self._name, problem=problem)


def _columns(columns: Iterable[ListedColumn]) -> str:
    return ", ".join(f"{identifier(column.name)} {quoted(column.type)}" for column in columns)


def _value(value: str) -> str:
    return "NULL" if value == HIVE_DEFAULT_NAME else _text(value)


def _text(text: str) -> str:
    """Return a text as SQL says it, in which `${env:NAME}` would be a variable."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("${", "\\u0024{")
    return f"'{escaped}'"
