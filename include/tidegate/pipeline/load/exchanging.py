"""Exchange rows between sub-splits through files of the plan directory (ICE-3.13).

Each sub-split writes one file for all buckets, unless it has no rows, and a message that names it.
Sub-splits of the next stage read their bucket of every such file, in plan order, so that every
attempt finds the same rows in the same order.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.errors import ExchangeFileLost, ExchangeIncomplete
from tidegate.model.exchange import SpreadFile
from tidegate.model.message import CommitMessage
from tidegate.read.exchange import SpreadWriter, gather
from tidegate.stage import layout
from tidegate.stage.stored import read_stored

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import BinaryIO

    import pyarrow as pa

    from tidegate.model.exchange import Exchange
    from tidegate.model.plan import Split
    from tidegate.read.exchange import Placement
    from tidegate.read.row_hash import Hashes
    from tidegate.storage import Storage


@dataclass(frozen=True)
class SpreadRows:
    """Rows on their way to buckets."""

    batches: Iterable[pa.RecordBatch]
    schema: pa.Schema
    placement: Placement


class SpreadFileWriter:
    """Writes the file of one attempt; it is created with the first row.

    *Failure:* an unfinished file stays under the attempt's name, which no message has.

    Args:
        storage: the storage of the file.
        root: directory that the file's name is relative to.
        path: the path of the new file.
        schema: the schema of the rows.
        buckets: the number of buckets, at least 1.
    """

    def __init__(
        self, storage: Storage, root: str, path: str, schema: pa.Schema, buckets: int
    ) -> None:
        self._storage = storage
        self._root = root
        self._path = path
        self._schema = schema
        self._buckets = buckets
        self._open: tuple[BinaryIO, SpreadWriter] | None = None

    def append(self, batch: pa.RecordBatch, places: Hashes) -> None:
        """Append rows, with the place of each, see `read.exchange`."""
        if self._open is None:
            full = posixpath.join(self._root, self._path)
            self._storage.make_dirs(posixpath.dirname(full), synced=False)
            file = self._storage.open_new(full)
            self._open = file, SpreadWriter(file, self._schema, self._buckets, self._path)
        self._open[1].append(batch, places)

    def finish(self) -> SpreadFile | None:
        """Finish the file and flush it to disk; None if there was no row."""
        if self._open is None:
            return None
        file, writer = self._open
        writer.end()
        writer.close()
        length = file.tell()
        self.close()
        self._storage.sync_all(self._root, [self._path])
        return SpreadFile(self._path, length, writer.rows)

    def close(self) -> None:
        """Close the file, finished or not."""
        if self._open is not None:
            self._open[0].close()
            self._open = None


def write_spread(storage: Storage, root: str, path: str, rows: SpreadRows) -> SpreadFile | None:
    """Write rows to the file of one attempt; None if there are none."""
    file = SpreadFileWriter(storage, root, path, rows.schema, rows.placement.buckets)
    with closing(file):
        for batch in rows.batches:
            file.append(batch, rows.placement.of(batch))
        return file.finish()


def read_bucket(
    storage: Storage, root: str, file: SpreadFile, bucket: int, buckets: int
) -> Iterator[pa.RecordBatch]:
    """Read one bucket of one file.

    Raises:
        ExchangeFileLost: it is gone, or not as it was written.
    """
    import pyarrow as pa

    path = posixpath.join(root, file.path)
    found = storage.length(path)
    if found != file.length:
        lost = "no file" if found is None else f"{found} bytes"
        raise ExchangeFileLost(path=path, expected=file.length, found=lost)
    try:
        with storage.open_input(path) as opened:
            yield from gather(opened, bucket, buckets, file.path)
    except (OSError, pa.ArrowException) as damaged:
        raise ExchangeFileLost(path=path, expected=file.length, found=str(damaged)) from damaged


def read_spread(
    storage: Storage, plan_uri: str, givers: Iterable[str], bucket: int, buckets: int
) -> Iterator[pa.RecordBatch]:
    """Read one bucket of what sub-splits spread, in their order.

    Raises:
        ExchangeIncomplete: one of them has no message yet (Transient).
        ExchangeFileLost: a file is gone, or not as it was written.
    """
    for giver in givers:
        path = layout.message_file(plan_uri, giver)
        if not storage.exists(path):
            raise ExchangeIncomplete(plan=plan_uri, sub_split=giver)
        message = read_stored(storage, path, CommitMessage)
        if message.spread is not None:
            yield from read_bucket(storage, plan_uri, message.spread, bucket, buckets)


Spreading = Mapping[tuple[str, int], Sequence[str]]
"""Group and stage → the sub-splits that spread its rows, in plan order."""


def spreading(splits: Iterable[Split]) -> Spreading:
    """Find the sub-splits of a plan that spread rows."""
    found: dict[tuple[str, int], list[str]] = {}
    for split in splits:
        for part in split.sub_splits:
            if part.exchange is not None and part.exchange.spreads:
                key = part.exchange.group, part.exchange.stage
                found.setdefault(key, []).append(part.id)
    return found


@dataclass(frozen=True)
class PlanExchange:
    """The exchange between the sub-splits of one plan."""

    storage: Storage
    plan_uri: str
    spreading: Spreading

    def read(self, exchange: Exchange) -> Iterator[pa.RecordBatch]:
        """Read a sub-split's bucket of what the stage before spread, in plan order.

        Raises:
            ExchangeIncomplete: a sub-split of the stage before has no message yet (Transient).
            ExchangeFileLost: a file is gone, or not as it was written.
        """
        givers = self.spreading.get((exchange.group, exchange.stage - 1), ())
        if exchange.bucket is not None:
            yield from read_spread(
                self.storage, self.plan_uri, givers, exchange.bucket, exchange.buckets
            )
