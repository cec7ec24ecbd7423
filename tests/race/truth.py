"""What has to hold whatever happened: every row once, nothing backwards, nothing left over.

The rows are those that the test wrote into the source; what is published is read twice, by markers
as our reader does and by listing as other engines do.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.model.revision_folder import partition_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from race.table import Rows
    from race.world import World

_known: dict[str, list[Any]] = {}
"""Hash of a file → the rows in it: most runs make the same files."""


def untruths(world: World, name: str) -> Iterator[str]:
    """Say what is wrong once everything has settled, and the target is the pipeline's."""
    source = world.source
    expected, columns = source.rows_after(world.landed), source.columns
    for how, rows in (("marker", rows_by_marker), ("listing", rows_by_listing)):
        found = source.standing(rows(world.target, columns))
        yield from _difference(f"by {how}", expected, found)
    yield from (f"fsck: {finding}" for finding in world.pipeline(name).findings())


def rows_by_marker(target: Path, columns: Sequence[str]) -> Rows:
    """Count the rows of the files that the newest marker of each partition lists."""
    found: Rows = Counter()
    for marker, listed in _newest(target).values():
        for name in listed:
            found.update(_rows(marker.parent / name, columns))
    return found


def _newest(target: Path) -> dict[str, tuple[Path, list[str]]]:
    """Give the newest marker of each partition with the files that it lists."""
    read = [(path, json.loads(path.read_bytes())) for path in target.rglob("_SUCCESS")]
    return {
        partition_of(str(path.parent)): (path, [file["name"] for file in said["files"]])
        for path, said in sorted(read, key=lambda item: item[1]["revision"])
    }


def rows_by_listing(target: Path, columns: Sequence[str]) -> Rows:
    """Count the rows of all files that a reader sees who looks at no marker.

    Where each revision has a directory, whoever keeps the list of them sends readers to the newest.
    """
    found: Rows = Counter()
    sent_to = {marker.parent for marker, _ in _newest(target).values()}
    for path in target.rglob("*.parquet"):
        is_hidden = any(part.startswith((".", "_")) for part in path.relative_to(target).parts)
        if not is_hidden or path.parent in sent_to:
            found.update(_rows(path, columns))
    return found


def broken_marker(target: Path) -> str | None:
    """Say which marker lists a file that is not there."""
    for marker in target.rglob("_SUCCESS"):
        for file in json.loads(marker.read_bytes())["files"]:
            if not (marker.parent / file["name"]).exists():
                return f"{marker.parent.name} lists {file['name']}, which is not there"
    return None


class Progress:
    """Sees checkpoint and watermark between any two steps; neither may go back."""

    def __init__(self, world: World) -> None:
        """Begin to look."""
        self._world = world
        self._era = world.swapped
        self._reached = (-1, "")
        self.wrong: list[str] = []

    def look(self) -> None:
        """Compare with what was seen before, unless somebody exchanged the ledger."""
        if not self._world.written:
            return
        self._world.written = False
        found = self._world.progress()
        if found is None:
            return
        order = self._world.instants
        at = order.index(found[0]) if found[0] else -1, found[1] or ""
        if self._era != self._world.swapped:
            self._era, self._reached = self._world.swapped, at
        if at[0] < self._reached[0]:
            self.wrong.append(f"the checkpoint went back to commit {at[0] + 1}")
        if at[1] < self._reached[1]:
            self.wrong.append(f"the watermark went back to {at[1]}")
        self._reached = max(self._reached[0], at[0]), max(self._reached[1], at[1])


def _rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[str, Any]]:
    content = path.read_bytes()
    name = hashlib.sha256(content).hexdigest()
    if name not in _known:
        table = pq.read_table(pa.BufferReader(content), columns=list(columns))
        _known[name] = told(table, columns)
    partition = PurePath(partition_of(str(path.parent))).name
    return ((partition, row) for row in _known[name])


def told(table: pa.Table, columns: Sequence[str]) -> list[Any]:
    """Give what tells the rows of a table: the value of a column, or those of several."""
    rows = zip(*(table[name].to_pylist() for name in columns), strict=True)
    return [row if len(columns) > 1 else row[0] for row in rows]


def _difference(how: str, expected: Rows, found: Rows) -> Iterator[str]:
    lost, more = expected - found, found - expected
    if lost or more:
        yield (
            f"rows {how}: {found.total()} for {expected.total()}, "
            f"lost {sorted(lost.elements())}, too many {sorted(more.elements())}"
        )
