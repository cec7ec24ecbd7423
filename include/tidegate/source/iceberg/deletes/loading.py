"""Load the delete files of a piece, once per process (ICE-4.5–4.16, 6.7, 6.9)."""

from __future__ import annotations

from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tidegate import physical
from tidegate.errors import ColumnUnreadable, SourceFileDamaged, UnsupportedFeature
from tidegate.model.file_slice import Delta, DeltaKind
from tidegate.physical import UnreadableValue
from tidegate.physical.arrays import integer_column, integers
from tidegate.read.removed import Removed
from tidegate.source.iceberg.deletes.cache import DELETES
from tidegate.source.iceberg.deletes.keys import KeyPasses, memory_bytes, one_set, read_keys
from tidegate.source.iceberg.deletes.positions import PositionDeletes, Target, read_positions
from tidegate.source.iceberg.deletes.vectors import read_vector
from tidegate.source.iceberg.manifests.matching import path_key
from tidegate.source.iceberg.table.whole_files import ManifestSays, open_whole
from tidegate.storage import silence_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from pyiceberg.io import FileIO

    from tidegate.physical import PhysicalRows
    from tidegate.read.removed import RemovedKeys
    from tidegate.source.iceberg.columns.field_ids import FieldIds
    from tidegate.source.iceberg.columns.key_columns import KeyColumn, KeyColumns

_POSITION_BYTES = 16
"""Memory that a row of a position delete file takes while it is read."""


@dataclass(frozen=True)
class DeleteLoader:
    """Reads delete files of one table; the result is shared by all readers of the table.

    *Runs on:* any task. *Failure:* nothing is written; files that could not be read are read again.
    """

    files: FileIO
    source: str
    """The table, for errors."""
    place: str
    """Identifies the table and the location of its files in the shared cache."""
    fields: FieldIds
    columns: KeyColumns
    most_bytes: int
    """The memory for cached content (`source.split.max_delete_memory`)."""

    def removed(self, deletes: Sequence[Delta], target: Target) -> Removed:
        """Load the deletes of one data file.

        Args:
            deletes: those that apply to it.
            target: the data file.

        Raises:
            CorruptDeletes, AmbiguousPath, UnsupportedFeature: they cannot be trusted or read.
            SourceFileGone, SourceFileDamaged, SourceUnreachable: a file cannot be read.
        """
        keys, passes = self._keys(deletes)
        files = [
            self._position_file(file, target)
            for file in deletes
            if file.kind == DeltaKind.POSITIONS
        ]
        unaddressed = {file.path: file.unaddressed for file in files if file.unaddressed}
        return Removed(self._positions(deletes, files, target), keys, passes, unaddressed)

    @contextmanager
    def open(self, file: Delta) -> Iterator[PhysicalRows]:
        """Open a delete file that has rows; errors name the file.

        Raises:
            SourceFileGone, SourceFileDamaged, SourceUnreachable: see `open_whole`.
            UnsupportedFeature: its format cannot be read.
        """
        if file.file_format not in physical.FORMATS:
            feature = f"a delete file in {file.file_format} ({file.path})"
            raise UnsupportedFeature(source=self.source, feature=feature)
        said = ManifestSays(file.path, file.file_format, file.rows, file.file_bytes)
        try:
            with open_whole(self.files, said, self.source) as rows:
                yield rows
        except UnreadableValue as value:
            raise ColumnUnreadable(
                path=file.path, column=value.column, problem=value.problem
            ) from value
        except pa.ArrowNotImplementedError as unknown:
            raise UnsupportedFeature(
                source=self.source, feature=f"{file.path}: {unknown}"
            ) from unknown
        except (OSError, pa.ArrowException) as broken:
            raise (
                silence_of(file.path, broken)
                or SourceFileDamaged(path=file.path, problem=str(broken))
            ) from broken

    def _positions(
        self, deletes: Sequence[Delta], files: Sequence[PositionDeletes], target: Target
    ) -> pa.Int64Array | None:
        vectors = [self._vector(file) for file in deletes if file.kind == DeltaKind.VECTOR]
        parts = [*vectors, *(part for file in files for part in file.of(target))]
        if not parts:
            return None
        if len(parts) == len(vectors) == 1:
            # Ascending and unique as it is.
            return parts[0]
        return integer_column(np.unique(np.concatenate([integers(part) for part in parts])))

    def _vector(self, file: Delta) -> pa.Int64Array:
        def load() -> tuple[pa.Int64Array, int]:
            positions = read_vector(self.files, file, self.source)
            return positions, positions.nbytes

        return DELETES.get(("vector", self.place, file.key), load, self.most_bytes)

    def _position_file(self, file: Delta, target: Target) -> PositionDeletes:
        if file.rows * _POSITION_BYTES > self.most_bytes:
            wanted = path_key(target.path)
            with self.open(file) as rows:
                return read_positions(rows, file.path, wanted.__eq__)

        def load() -> tuple[PositionDeletes, int]:
            with self.open(file) as rows:
                found = read_positions(rows, file.path, lambda _: True)
            return found, found.size_bytes

        return DELETES.get(("positions", self.place, file.path), load, self.most_bytes)

    def _keys(
        self, deletes: Sequence[Delta]
    ) -> tuple[tuple[RemovedKeys, ...], tuple[KeyPasses, ...]]:
        """Load the key sets; those that do not fit into half of the memory are read in passes."""
        held: list[RemovedKeys] = []
        passes: list[KeyPasses] = []
        part = free = self.most_bytes // 2
        for ids, files in _by_ids(deletes).items():
            columns = self.columns.of(ids, files[0].path)
            needed = memory_bytes(files)
            if needed > free:
                passes.append(KeyPasses(files, columns, self.fields, self.open, part))
            else:
                held.append(self._key_set(files, columns, needed))
                free -= needed
        return tuple(held), tuple(passes)

    def _key_set(
        self, files: Sequence[Delta], columns: Sequence[KeyColumn], needed: int
    ) -> RemovedKeys:
        shape = tuple((column.name, str(column.type)) for column in columns)

        def load() -> tuple[RemovedKeys, int]:
            return one_set(
                columns, [self._key_rows(file, columns, shape) for file in files]
            ), needed

        names = frozenset(file.path for file in files)
        return DELETES.get(("keys", self.place, shape, names), load, self.most_bytes)

    def _key_rows(
        self, file: Delta, columns: Sequence[KeyColumn], shape: Hashable
    ) -> pa.RecordBatch:
        """Read the keys of one file; many key sets of a table share most of their files."""

        def load() -> tuple[pa.RecordBatch, int]:
            with self.open(file) as rows:
                batches = list(read_keys(rows, file.path, columns, self.fields))
            keys = one_set(columns, batches).rows
            return keys, keys.nbytes

        return DELETES.get(("rows", self.place, shape, file.path), load, self.most_bytes)


def _by_ids(deletes: Sequence[Delta]) -> dict[tuple[int, ...], list[Delta]]:
    grouped: defaultdict[tuple[int, ...], list[Delta]] = defaultdict(list)
    for file in deletes:
        if file.kind == DeltaKind.KEYS:
            grouped[tuple(sorted(set(file.field_ids)))].append(file)
    return dict(grouped)
