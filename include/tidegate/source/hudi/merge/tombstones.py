"""Make the rows of deletes, and complete partial ones, with what key and folder tell."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.errors import HudiPartitionUnreadable
from tidegate.model.row_kind import CHANGE_TYPE, RowKind
from tidegate.physical.arrays import repeated_text, text_scalar
from tidegate.source.hudi.merge.records import EMPTY_IN_KEY, NULL_IN_KEY
from tidegate.source.hudi.table.columns import COMMIT_TIME, KEY, PARTITION
from tidegate.source.hudi.table.partition_values import partition_values

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tidegate.source.hudi.table.columns import SliceColumns
    from tidegate.source.hudi.table.properties import TableProperties


class Tombstones:
    """Makes the rows of deletes of one table.

    Args:
        columns: of the result.
        table: its properties, which say how keys and folders are named.
    """

    def __init__(self, columns: SliceColumns, table: TableProperties) -> None:
        self._columns = columns
        self._table = table
        self._partition = functools.lru_cache(self._values_of)

    def rows(self, partition: str, keys: pa.Array, times: pa.Array) -> pa.Table:
        """Return one row per key.

        Args:
            partition: the folder of the rows.
            keys: as the writer spells them.
            times: the requested times of the instants that deleted them.
        """
        known: dict[str, pa.Array] = {
            CHANGE_TYPE: repeated_text(RowKind.DELETE.value, len(keys)),
            COMMIT_TIME: times,
            **self._told(partition, keys),
        }
        arrays = [
            known[column.name].cast(column.type)
            if column.name in known
            else pa.nulls(len(keys), column.type)
            for column in self._columns.schema
        ]
        return pa.Table.from_arrays(arrays, schema=self._columns.schema)

    def completed(self, rows: pa.Table, partition: str, keys: pa.Array) -> pa.Table:
        """Return rows that lack columns, with the values that key and folder tell.

        Args:
            rows: partial records; what they have stays.
            partition: the folder of the rows.
            keys: of the rows, as the writer spells them.
        """
        for name, told in self._told(partition, keys).items():
            place = rows.schema.get_field_index(name)
            if place >= 0:
                field = rows.schema.field(place)
                filled = pc.coalesce(rows.column(place), told.cast(field.type))
                rows = rows.set_column(place, field, filled)
        return rows

    def _told(self, partition: str, keys: pa.Array) -> dict[str, pa.Array]:
        """Return the columns that folder and keys tell, by name."""
        values = self._partition(partition)
        return {
            KEY: keys,
            PARTITION: repeated_text(partition, len(keys)),
            **{name: pa.repeat(value, len(keys)) for name, value in values.items()},
            **self._key_columns(keys),
        }

    def _values_of(self, partition: str) -> Mapping[str, pa.Scalar]:
        try:
            (values,) = partition_values(self._table, self._columns.table, [partition])
        except HudiPartitionUnreadable:
            return {}
        return values

    def _key_columns(self, keys: pa.Array) -> dict[str, pa.Array]:
        """Return the columns of keys that can be read from their texts; each key is read alone.

        A text of several columns may be cut in more than one way, if a value has the name of a
        column in it. It tells them if the types of the columns allow one of the cuts only.
        """
        names = self._table.key_fields
        if not names:
            return {}
        if len(names) == 1:
            return {names[0]: self._values(names[0], self._lone_values(names[0], keys))[0]}
        late, lates_fit = self._cut(names, keys, ".*")
        twice = functools.reduce(
            pc.or_, (pc.match_substring_regex(keys, _twice(name)) for name in names[1:])
        )
        if not pc.any(twice).as_py():
            return late
        early, earlies_fit = self._cut(names, keys, ".*?")
        is_late = pc.or_(pc.invert(twice), pc.and_not(lates_fit, earlies_fit))
        is_early = pc.and_not(earlies_fit, lates_fit)
        return {
            name: pc.if_else(
                is_late,
                late[name],
                pc.if_else(is_early, early[name], pa.nulls(1, late[name].type)[0]),
            )
            for name in names
        }

    def _cut(
        self, names: Sequence[str], keys: pa.Array, some: str
    ) -> tuple[dict[str, pa.Array], pa.Array]:
        """Return the columns of keys that are cut one way, and which keys' values have their types.

        Args:
            names: of the columns.
            keys: as the writer spells them.
            some: the pattern of a value, which takes as much as it can, or as little.
        """
        pattern = ",".join(f"{re.escape(name)}:(?P<f{at}>{some})" for at, name in enumerate(names))
        parts = pc.extract_regex(keys, pattern=f"(?s)^{pattern}$")
        found, fit = {}, []
        for at, name in enumerate(names):
            found[name], fits = self._values(name, pc.struct_field(parts, f"f{at}"))
            fit.append(fits)
        return found, functools.reduce(pc.and_, fit)

    def _values(self, name: str, texts: pa.Array) -> tuple[pa.Array, pa.Array]:
        """Return the values of one column, and which texts are values of its type."""
        is_null = pc.equal(texts, NULL_IN_KEY)
        plain = pc.if_else(is_null, pa.nulls(1, pa.string())[0], texts)
        plain = pc.if_else(pc.equal(plain, EMPTY_IN_KEY), text_scalar(""), plain)
        values = _cast(plain, self._columns.table.field(name).type)
        is_kept = pc.equal(pc.is_valid(values), pc.is_valid(plain))
        return values, pc.and_(pc.is_valid(texts), is_kept)

    def _lone_values(self, name: str, keys: pa.Array) -> pa.Array:
        """Return the values of the only key column; it may stand with its name (HUDI-M15)."""
        kind = self._columns.table.field(name).type
        if pa.types.is_string(kind) and not self._table.names_lone_keys:
            return keys
        named = pc.starts_with(keys, pattern=f"{name}:")
        rest = pc.utf8_slice_codeunits(keys, start=len(name) + 1)
        return pc.if_else(named, rest, keys)


def _twice(name: str) -> str:
    """Return the pattern of key texts in which a column's name stands more than once."""
    return f"(?s),{re.escape(name)}:.*,{re.escape(name)}:"


def _cast(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return the values of texts; NULL where a text is none."""
    try:
        return texts.cast(kind)
    except pa.ArrowNotImplementedError:
        return pa.nulls(len(texts), kind)
    except pa.ArrowInvalid:
        if len(texts) <= 1:
            return pa.nulls(len(texts), kind)
        half = len(texts) // 2
        return pa.concat_arrays([_cast(texts[:half], kind), _cast(texts[half:], kind)])
