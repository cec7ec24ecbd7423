"""Keep rows and records in local files, in buckets by the hashes of their keys.

All of a key is in one bucket, in the order in which it was added, so that buckets can be merged one
after the other in bounded memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np
import pyarrow as pa

from tidegate.physical.arrays import boolean_column, flags, integer_column, whole
from tidegate.read.key_share import numbered_keys
from tidegate.read.keyed_merge import KeyedRecords
from tidegate.storage.temporary_folder import TemporaryFolder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_ROW, _ORDER, _LACKS = "row ", "order ", "lacks "
_KEY, _DELETED, _MARKED, _UNORDERED = "key", "deleted", "marked", "unordered"
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")


class KeyedSpill:
    """The files of one merge, below the folder for temporary files.

    *Failure:* the files are removed with it; after a kill they stay, and nothing reads them.

    Args:
        buckets: how many there are.
    """

    def __init__(self, buckets: int) -> None:
        self._buckets = buckets

    def __enter__(self) -> Self:
        self._folder = TemporaryFolder("merge")
        return self

    def __exit__(self, *exception: object) -> None:
        """Remove the files."""
        self._folder.close()

    def add(self, name: str, table: pa.Table, keys: pa.Array) -> None:
        """Append rows.

        Args:
            name: of what they are; their columns may differ from call to call.
            table: the rows.
            keys: of the rows.
        """
        numbers = numbered_keys(keys, self._buckets)
        order = np.argsort(numbers, kind="stable")
        sorted_rows = table.take(integer_column(order))
        ends = np.cumsum(np.bincount(numbers, minlength=self._buckets)).tolist()
        for bucket, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
            if start < end:
                with (
                    self._path(name, bucket).open("ab") as file,
                    pa.ipc.new_stream(file, table.schema, options=_OPTIONS) as stream,
                ):
                    stream.write_table(sorted_rows.slice(start, end - start))

    def read(self, name: str, bucket: int) -> Iterator[pa.Table]:
        """Yield what was added to a bucket, call by call."""
        path = self._path(name, bucket)
        if not path.exists():
            return
        with pa.OSFile(str(path)) as file:
            while file.tell() < file.size():
                yield pa.ipc.open_stream(file).read_all()

    def add_records(self, name: str, records: KeyedRecords) -> None:
        """Append records that are not merged yet."""
        fields = records.rows.column_names
        columns = {_ROW + field: records.rows.column(field) for field in fields}
        columns |= {_ORDER + str(place): values for place, values in enumerate(records.ordering)}
        columns |= {_LACKS + field: boolean_column(it) for field, it in records.missing.items()}
        columns |= {
            _KEY: records.keys,
            _DELETED: boolean_column(records.deleted),
            _MARKED: boolean_column(records.marked),
        }
        if records.ordering:
            columns[_UNORDERED] = boolean_column(records.unordered)
        table = pa.Table.from_arrays(list(columns.values()), names=list(columns))
        self.add(name, table, records.keys)

    def records(self, name: str, bucket: int) -> Iterator[KeyedRecords]:
        """Yield the records of a bucket, as they were appended."""
        for table in self.read(name, bucket):
            # Of one batch, because each call appended a stream of its own.
            ordering = _named(table, _ORDER).values()
            lacks = _named(table, _LACKS)
            rows = _named(table, _ROW)
            yield KeyedRecords(
                rows=pa.Table.from_arrays(list(rows.values()), names=list(rows)),
                keys=whole(table.column(_KEY)),
                deleted=_flags(table.column(_DELETED)),
                marked=_flags(table.column(_MARKED)),
                ordering=tuple(whole(values) for values in ordering),
                unordered=_flags(table.column(_UNORDERED)) if ordering else np.zeros(0, np.bool_),
                missing={name: _flags(values) for name, values in lacks.items()},
            )

    def _path(self, name: str, bucket: int) -> Path:
        return self._folder.path / f"{name}-{bucket}.arrows"


def _named(table: pa.Table, prefix: str) -> dict[str, pa.ChunkedArray]:
    return {
        name.removeprefix(prefix): table.column(name)
        for name in table.column_names
        if name.startswith(prefix)
    }


def _flags(column: pa.ChunkedArray) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return flags(whole(column))
