"""The columns of a table, from its Avro schema, and those that merging needs besides."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tidegate.errors import HudiSchemaUnsupported
from tidegate.model.row_kind import CHANGE_TYPE
from tidegate.model.wire import Value
from tidegate.physical.avro_types import read_columns
from tidegate.source.hudi.table.avro import avro_schema
from tidegate.source.named_columns import decode_schema, wanted_column

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from tidegate.source.column_kernels import Wanted

COMMIT_TIME = "_hoodie_commit_time"
KEY = "_hoodie_record_key"
PARTITION = "_hoodie_partition_path"
META_COLUMNS = (
    COMMIT_TIME,
    "_hoodie_commit_seqno",
    KEY,
    PARTITION,
    "_hoodie_file_name",
)
"""The columns that the writer adds to every row, in its order."""
ORDINAL, PARTIAL = "_change_ordinal", "_partial"
OF_CHANGES = {CHANGE_TYPE: pa.string(), ORDINAL: pa.int32(), PARTIAL: pa.bool_()}
"""The columns of changes: of them, `with_deletes` has the kind alone."""
IS_DELETED, OPERATION = "_hoodie_is_deleted", "_hoodie_operation"


def arrow_schema(source: str, avro: str) -> pa.Schema:
    """Return the columns of a table's Avro schema, without those that the writer adds.

    Raises:
        HudiSchemaUnsupported: it cannot be read, or has a type that no column can have.
    """
    try:
        columns = read_columns(avro_schema(avro))
    except (ValueError, pa.ArrowException) as refused:
        raise HudiSchemaUnsupported(source=source, problem=str(refused)) from refused
    return pa.schema(
        [
            pa.field(column.name, wanted_column(column.field).type)
            for column in columns
            if column.name not in META_COLUMNS
        ]
    )


def refuse_defaults(source: str, avro: str, kept: Collection[str]) -> None:
    """Refuse columns whose default is a value, where defaults stand for what was not sent.

    Args:
        source: the table, for errors.
        avro: its Avro schema.
        kept: columns that are never filled: those of keys and of ordering values.

    Raises:
        HudiSchemaUnsupported: a column has such a default (HUDI-M13).
    """
    try:
        fields = json.loads(avro)["fields"]
        found = {it["name"]: it.get("default") for it in fields}
    except (ValueError, TypeError, KeyError, AttributeError):
        # Reading its columns tells what is wrong with it.
        return
    for name, default in found.items():
        if default is not None and name not in kept and not name.startswith("_hoodie_"):
            problem = (
                f"the column '{name}' has the default {json.dumps(default)}; expected NULL, "
                "because the table takes defaults for values that were not sent "
                "(`hoodie.table.partial.update.mode` IGNORE_DEFAULTS, or its payload class)"
            )
            raise HudiSchemaUnsupported(source=source, problem=problem)


@dataclass(frozen=True)
class KeyedBy(Value):
    """How rows are keyed, ordered and deleted: what a task needs to know of the properties."""

    mode: str
    """A `MergeMode`."""
    ordering: tuple[str, ...]
    filling: str
    """A `Filling`."""
    key_fields: tuple[str, ...]
    """The columns of virtual keys; empty if rows have their key in a column."""
    marker: tuple[str, str] | None = None
    """Column and value of a delete."""


class SliceColumns:
    """The columns that are read of the files of a slice.

    Args:
        details: of the pin.
    """

    def __init__(self, details: Mapping[str, Any]) -> None:
        self.table = decode_schema(details["table_schema"])
        """All columns of the table, with those that the writer adds."""
        self.names: tuple[str, ...] = tuple(details["names"])
        """The columns of the result."""
        self.keyed_by = KeyedBy.from_json(details["keyed_by"])
        self.schema = pa.schema([self.table.field(name) for name in self.names])
        """The schema of the result."""

    @property
    def keys(self) -> tuple[Wanted, ...]:
        """The columns of the record key."""
        names = self.keyed_by.key_fields or (KEY,)
        return tuple(wanted_column(self.table.field(name)) for name in names)

    def keys_and_time(self, *, with_time: bool) -> tuple[Wanted, ...]:
        """Return the columns of the record key, and that of the commit time if it is needed."""
        if not with_time:
            return self.keys
        return (*self.keys, wanted_column(self.table.field(COMMIT_TIME)))

    def telling_deletes(self) -> tuple[Wanted, ...]:
        """Return the columns that tell of a record's key whether it was deleted, and when."""
        marker = self.keyed_by.marker
        names = (COMMIT_TIME, IS_DELETED, OPERATION, *(marker[:1] if marker else ()))
        return (*self.keys, *self._known(names))

    def of_changes(self, key_fields: Iterable[str]) -> tuple[Wanted, ...]:
        """Return the columns of the result, that of operations and those of keys."""
        return self._known(dict.fromkeys((*self.names, OPERATION, *key_fields)))

    def with_hidden(self, *, merging: bool, times: bool) -> tuple[Wanted, ...]:
        """Return the columns of the result, followed by those that are needed only to get there.

        Args:
            merging: whether keys, ordering values and marks of deletes are needed.
            times: whether the commit time is needed.
        """
        by = self.keyed_by
        hidden: list[str] = []
        if merging:
            hidden += by.key_fields or (KEY,)
            hidden += by.ordering
            hidden += [IS_DELETED, OPERATION, *(by.marker[:1] if by.marker else ())]
        if times:
            hidden.append(COMMIT_TIME)
        return self._known(dict.fromkeys((*self.names, *hidden)))

    def _known(self, names: Iterable[str]) -> tuple[Wanted, ...]:
        """Return the columns of the table, and that of operations, which no schema names."""
        known = set(self.table.names)
        fields = {OPERATION: pa.field(OPERATION, pa.string())}
        fields |= {name: self.table.field(name) for name in names if name in known}
        return tuple(wanted_column(fields[name]) for name in names if name in fields)
