"""Hand rows of many small files from the sub-splits that read them to those that assemble them.

A sub-split hands on one file for all buckets, as in an exchange; its message names the file beside
the part files. Every attempt at a sub-split that assembles finds the same rows in the same order.
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from tidegate.model.exchange import SpreadFile
from tidegate.pipeline.load.exchanging import read_spread
from tidegate.read.exchange import SpreadWriter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import BinaryIO

    import pyarrow as pa

    from tidegate.model.assembly import Assembly
    from tidegate.model.plan import Split
    from tidegate.read.row_hash import Hashes
    from tidegate.storage import Storage


class HandedOnFile:
    """The file of rows that one attempt hands on; it is created with the first row.

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
        """Append rows, with the place of each."""
        if self._open is None:
            full = posixpath.join(self._root, self._path)
            self._storage.make_dirs(posixpath.dirname(full), synced=False)
            file = self._storage.open_new(full)
            self._open = file, SpreadWriter(file, self._schema, self._buckets, self._path)
        self._open[1].append(batch, places)

    def finish(self) -> SpreadFile | None:
        """Finish the file and flush it to disk; None if no row was handed on."""
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


def handing_on(splits: Iterable[Split]) -> tuple[str, ...]:
    """Return the sub-splits of a plan that may hand on rows, in plan order."""
    return tuple(part.id for split in splits for part in split.sub_splits if part.may_hand_on)


def assembly_in(splits: Sequence[Split]) -> Assembly | None:
    """Return how a plan assembles rows, as its last bucket says it; None if it does not."""
    # Splits that assemble come after all those that they wait for.
    return splits[-1].sub_splits[-1].assembly if splits else None


def read_handed_on(
    storage: Storage, plan_uri: str, givers: Iterable[str], assembly: Assembly
) -> Iterator[pa.RecordBatch]:
    """Read a bucket of the rows that sub-splits handed on, in plan order.

    Raises:
        ExchangeIncomplete: one of them has no message yet (Transient).
        ExchangeFileLost: a file is missing, or was changed since it was written.
    """
    return read_spread(storage, plan_uri, givers, assembly.bucket, assembly.buckets)
