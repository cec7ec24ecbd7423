"""Read the positions of data files from position delete files (ICE-4.6, 4.10, 4.14–4.16)."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.errors import AmbiguousPath, CorruptDeletes
from tidegate.physical.arrays import Integers, integer_column, integers
from tidegate.source.iceberg.columns.columns import field_id
from tidegate.source.iceberg.manifests.matching import path_key

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tidegate.physical import PhysicalRows

_LOG = logging.getLogger(__name__)

_PATH = (2147483546, "file_path")
_POSITION = (2147483545, "pos")

IsWanted = Callable[[str], bool]


@dataclass(frozen=True)
class Target:
    """The data file whose deletes are read, and how paths are compared."""

    path: str
    rivals: tuple[str, ...] = ()
    """Other live data files whose paths differ in scheme and authority only (ICE-4.15)."""
    exact: bool = False
    """Whether paths are compared with scheme and authority (ICE-4.14)."""


@dataclass(frozen=True)
class PositionDeletes:
    """One delete file, as far as it was read: path as written → positions in the file's order."""

    path: str
    by_key: Mapping[str, Mapping[str, pa.Int64Array]]
    """Key of a data file's path → the paths with this key → their positions."""
    unaddressed: int = 0
    """Rows without path or position (ICE-4.10)."""

    @property
    def size_bytes(self) -> int:
        """The memory of the positions."""
        return sum(array.nbytes for paths in self.by_key.values() for array in paths.values())

    def of(self, target: Target) -> list[pa.Int64Array]:
        """Return the positions of one data file.

        Raises:
            AmbiguousPath: a path matches several live data files, and none of them exactly.
        """
        paths = self.by_key.get(path_key(target.path), {})
        if not target.exact and not target.rivals:
            return list(paths.values())
        live = (target.path, *target.rivals)
        for written in paths:
            if not target.exact and written not in live:
                raise AmbiguousPath(path=self.path, target=written, candidates=" and ".join(live))
        return [paths[target.path]] if target.path in paths else []


def read_positions(file: PhysicalRows, path: str, is_wanted: IsWanted) -> PositionDeletes:
    """Read the paths and positions of a delete file; its other columns are not decoded (ICE-6.7).

    Args:
        file: the open delete file.
        path: its own path, for errors.
        is_wanted: tells from the key of a path whether its positions are needed.

    Raises:
        CorruptDeletes: it is not a position delete file.
    """
    columns = [_column(file.schema, *_PATH, path), _column(file.schema, *_POSITION, path)]
    numbers: dict[str, int] = {}
    parts: list[tuple[Integers, Integers]] = []
    unaddressed = 0
    for _, batch in file.batches(columns, 0, file.rows):
        named = batch.filter(pc.is_valid(batch.column(0)))
        named = named.filter(pc.is_valid(named.column(1)))
        unaddressed += batch.num_rows - named.num_rows
        part = _kept(named, numbers, is_wanted)
        if len(part[0]):
            parts.append(part)
    if unaddressed:
        _LOG.info("%s: %s rows without path or position delete nothing", path, unaddressed)
    return PositionDeletes(path, _by_key(numbers, parts), unaddressed)


def _kept(
    batch: pa.RecordBatch, numbers: dict[str, int], is_wanted: IsWanted
) -> tuple[Integers, Integers]:
    """Return the numbers of the paths, and the positions, of the rows that are wanted.

    Only distinct paths are looked at one by one (ICE-4.16).
    """
    paths = batch.column(0).dictionary_encode()
    found = [
        numbers.setdefault(written, len(numbers)) if is_wanted(path_key(written)) else -1
        for written in paths.dictionary.to_pylist()
    ]
    by_row = np.asarray(found, dtype=np.int64)[integers(paths.indices)] if found else _NO_ROWS
    positions = integers(batch.column(1).cast(pa.int64()))
    wanted = by_row >= 0
    return by_row[wanted], positions[wanted]


def _by_key(
    numbers: Mapping[str, int], parts: Sequence[tuple[Integers, Integers]]
) -> Mapping[str, Mapping[str, pa.Int64Array]]:
    if not parts:
        return {}
    by_row, positions = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(by_row, kind="stable")
    bounds = np.searchsorted(by_row[order], range(len(numbers) + 1))
    grouped: defaultdict[str, dict[str, pa.Int64Array]] = defaultdict(dict)
    for written, number in numbers.items():
        rows = order[bounds[number] : bounds[number + 1]]
        grouped[path_key(written)][written] = integer_column(positions[rows])
    return dict(grouped)


def _column(schema: pa.Schema, wanted_id: int, name: str, path: str) -> str:
    """Find a column by its reserved field id, or by its name in files without ids."""
    for field in schema:
        if field_id(field) == wanted_id:
            return str(field.name)
    if name not in schema.names:
        found = ", ".join(schema.names) or "no column"
        raise CorruptDeletes(path=path, expected=f"a column '{name}'", found=found)
    return name


_NO_ROWS: Integers = np.zeros(0, dtype=np.int64)
