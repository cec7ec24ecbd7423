"""Read the changes that the writer logged beside a base file: CDC (HUDI-O11).

A log says what was done to which key; the values of rows before and after stand in it or, if the
table logs fewer, in the base files before and after.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.errors import SourceFileDamaged
from tidegate.model.file_slice import DeltaKind
from tidegate.physical.arrays import (
    boolean_column,
    integer_column,
    repeated_text,
    text_column,
    text_scalar,
    where_true,
)
from tidegate.physical.opening import open_rows
from tidegate.read.key_lookup import KeyLookup
from tidegate.read.open_piece import damage_named
from tidegate.source.hudi.logs.blocks import BlockType
from tidegate.source.hudi.logs.decoding import decode_records
from tidegate.source.hudi.merge.records import record_keys
from tidegate.source.hudi.reading.log_files import LogFiles, conformed
from tidegate.source.hudi.slices.details import details_of
from tidegate.source.hudi.table.columns import COMMIT_TIME, KEY, META_COLUMNS, OPERATION, PARTITION

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidegate.model.file_slice import Delta, FileSlice
    from tidegate.physical.arrays import Flags
    from tidegate.source.hudi.files import TableFiles
    from tidegate.source.hudi.logs.blocks import Block
    from tidegate.source.hudi.table.columns import SliceColumns
    from tidegate.source.hudi.table.properties import TableProperties

_OPERATION, _KEY = "op", "record_key"
_FIELDS = {DeltaKind.PREVIOUS: "before", DeltaKind.WRITTEN: "after"}
"""Where the log has the values of the rows of a base file."""
_OF_FILES = frozenset(META_COLUMNS) - {COMMIT_TIME, KEY, PARTITION}
_INSERT, _UPDATE, _DELETE = map(text_scalar, "iud")


class LoggedChanges:
    """Reads the logs of changes of one table.

    Args:
        files: of the table.
        columns: of the result.
        table: its properties, which say how keys are named.
    """

    def __init__(self, files: TableFiles, columns: SliceColumns, table: TableProperties) -> None:
        self._files = files
        self._logs = LogFiles(files)
        self._columns = columns
        by = columns.keyed_by
        self._by_fields = replace(by, key_fields=table.key_fields) if KEY in columns.names else by
        self._wanted = columns.of_changes(self._by_fields.key_fields)

    def rows(self, slice: FileSlice) -> Iterator[pa.Table]:
        """Yield the changes of a write in the order of its log, block by block.

        An update is two rows. The column of operations tells the kinds; the columns that the writer
        adds have the time, key and partition of the change, and nothing else.

        Raises:
            SourceFileDamaged: a log is damaged, or names a row that the base file does not have.
            TidegateError: a file is gone, or has something that is not read.
        """
        details = details_of(slice)
        logs = [delta for delta in slice.deltas if delta.kind is DeltaKind.CHANGES]
        files = {delta.kind: delta for delta in slice.deltas if delta.kind in _FIELDS}
        blocks = list(self._logs.blocks(logs))
        for block, content in self._logs.contents(blocks):
            if block.type is not BlockType.CDC or block.instant not in details["instants"]:
                expected = f"a block of changes of {', '.join(details['instants'])}"
                found = f"{block.type.name} of {block.instant or 'no instant'}"
                problem = f"expected {expected}, found {found} at byte {block.offset}"
                raise SourceFileDamaged(path=block.path, problem=problem)
            yield self._changes(block, content, files, details["partition"])

    def _changes(
        self, block: Block, content: bytes, files: dict[DeltaKind, Delta], partition: str
    ) -> pa.Table:
        logged = decode_records(block, content, {_OPERATION, _KEY, *_FIELDS.values()})
        operations = logged.column(_OPERATION)
        is_update = where_true(pc.equal(operations, _UPDATE))
        has_before = is_update | where_true(pc.equal(operations, _DELETE))
        has_after = is_update | where_true(pc.equal(operations, _INSERT))
        if not (has_before | has_after).all():
            problem = f"a change that is none of i, u, d: {pc.unique(operations).to_pylist()}"
            raise SourceFileDamaged(path=block.path, problem=problem)
        before = self._image(block, logged, has_before, files, DeltaKind.PREVIOUS)
        after = self._image(block, logged, has_after, files, DeltaKind.WRITTEN)
        rows = pa.concat_tables([before, after])
        updated = np.concatenate([is_update[has_before], is_update[has_after]])
        is_after = np.arange(len(rows)) >= len(before)
        words = np.where(updated, np.where(is_after, "U", "-U"), np.where(is_after, "I", "D"))
        place = 2 * np.concatenate([np.flatnonzero(has_before), np.flatnonzero(has_after)])
        order = integer_column(np.argsort(place + is_after))
        known = {name: pa.nulls(len(rows), pa.string()) for name in _OF_FILES}
        known |= {
            OPERATION: text_column(words.tolist()),
            COMMIT_TIME: repeated_text(block.instant, len(rows)),
            PARTITION: repeated_text(partition, len(rows)),
        }
        return self._named(rows, known).take(order)

    def _image(
        self,
        block: Block,
        logged: pa.RecordBatch,
        chosen: Flags,
        files: dict[DeltaKind, Delta],
        kind: DeltaKind,
    ) -> pa.Table:
        """Return the rows before or after the changes that are chosen."""
        changes = logged.filter(boolean_column(chosen))
        if _FIELDS[kind] in changes.schema.names:
            image = changes.column(_FIELDS[kind])
            if image.null_count:
                problem = f"a change without the values `{_FIELDS[kind]}`"
                raise SourceFileDamaged(path=block.path, problem=problem)
            values = pa.RecordBatch.from_arrays(image.flatten(), names=_names(image.type))
            rows = conformed(values, self._wanted, block.path)
            keys = changes.column(_KEY) if _KEY in changes.schema.names else self._keys(rows)
        elif kind in files and _KEY in changes.schema.names:
            keys = changes.column(_KEY)
            rows = self._rows_of(files[kind], keys, block)
        else:
            problem = f"expected the values `{_FIELDS[kind]}` of changed rows, found none"
            raise SourceFileDamaged(path=block.path, problem=problem)
        return self._named(pa.Table.from_batches([rows]), {KEY: keys})

    def _rows_of(self, delta: Delta, keys: pa.Array, block: Block) -> pa.RecordBatch:
        """Return the rows of a base file that have these keys, in the order of the keys."""
        wanted = (*self._wanted, *(it for it in self._columns.keys if it not in self._wanted))
        lookup = KeyLookup(pc.unique(keys))
        found: list[pa.RecordBatch] = []
        with damage_named(delta.path), self._files.open(self._files.below(delta.path)) as opened:
            file = open_rows(opened, delta.file_format)
            names = set(file.schema.names)
            present = [it.name for it in wanted if it.name in names]
            for _, batch in file.batches(present, 0, file.rows):
                rows = conformed(batch, wanted, delta.path)
                places, _ = lookup.find(record_keys(rows, self._columns.keyed_by))
                found.append(rows.take(integer_column(places)))
        rows = pa.Table.from_batches(found, pa.schema([(it.name, it.type) for it in wanted]))
        (one,) = rows.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], rows.schema)]
        places = pc.index_in(keys, value_set=record_keys(one, self._columns.keyed_by))
        if places.null_count:
            missing = keys.filter(pc.is_null(places))[0]
            problem = f"no row with the key '{missing}', which {block.path} says was changed"
            raise SourceFileDamaged(path=delta.path, problem=problem)
        return one.take(places).select([it.name for it in self._wanted])

    def _keys(self, rows: pa.RecordBatch) -> pa.Array:
        """Return the keys of rows as the writer spells them; NULL where the table has none."""
        if not self._by_fields.key_fields:
            return pa.nulls(rows.num_rows, pa.string())
        return record_keys(rows, self._by_fields)

    def _named(self, rows: pa.Table, known: dict[str, pa.Array]) -> pa.Table:
        """Return rows with these columns set, of those that are wanted."""
        for name, values in known.items():
            place = rows.schema.get_field_index(name)
            if place >= 0:
                rows = rows.set_column(place, name, values)
        return rows


def _names(kind: pa.DataType) -> list[str]:
    return [kind.field(place).name for place in range(kind.num_fields)]
