"""Keep connections to a SQLite ledger open while a step of a pipeline lasts.

A step looks at the ledger dozens of times. Opening SQLite's file costs ten times as much as one of
these looks, and the last connection that closes writes the whole log back besides.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy.pool import ConnectionPoolEntry

_Stamp = tuple[int, ...]
_FILE = "tidegate_file"
_SEEN = "tidegate_seen"
_SIZE = 2
"""Where the size is in a stamp; before it stands which file it is."""


class KeptOpen(sa.pool.NullPool):
    """Opens a connection for each use, or uses again what was opened inside `keeping`.

    A connection is used again only if the file is the one that it was opened on, and nobody else
    has changed it: one that stays open would go on with what is there no more. What was written
    stands in the file itself by then, not only in the log beside it, which a copy of the file would
    lack, and which SQLite would add to another file that is copied over it.

    Outside of `keeping` nothing is open. Threads take turns at the connections, and a process that
    was forked opens its own.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._guard = threading.Lock()
        self._steps = 0
        self._idle: list[ConnectionPoolEntry] = []
        self._process = os.getpid()
        self._of_parent: list[ConnectionPoolEntry] = []

    @contextlib.contextmanager
    def keeping(self) -> Iterator[None]:
        """Keep connections until the last step that asked for it ends."""
        with self._guard:
            self._steps += 1
        try:
            yield
        finally:
            with self._guard:
                self._steps -= 1
                is_last = not self._steps
            if is_last:
                self.dispose()

    def dispose(self) -> None:
        """Close what nobody uses."""
        while (entry := self._pop()) is not None:
            entry.close()

    def _do_get(self) -> ConnectionPoolEntry:
        while (entry := self._pop()) is not None:
            if _look(entry.info[_FILE]) == entry.info[_SEEN]:
                return entry
            entry.close()
        return super()._do_get()

    def _do_return_conn(self, record: ConnectionPoolEntry) -> None:
        if not (self._steps and _is_good(record) and self._put_back(record)):
            super()._do_return_conn(record)

    def _put_back(self, entry: ConnectionPoolEntry) -> bool:
        with self._guard:
            # The last step may have ended meanwhile.
            if self._steps:
                self._idle.append(entry)
            return self._steps > 0

    def _pop(self) -> ConnectionPoolEntry | None:
        with self._guard:
            if self._process != os.getpid():
                # SQLite loses its locks in a fork: what the parent opened is not even closed here.
                self._of_parent, self._idle = self._idle, []
                self._process = os.getpid()
            return self._idle.pop() if self._idle else None


def note_file(entry: ConnectionPoolEntry, path: str) -> None:
    """Note which file a connection is about to be opened on."""
    entry.info[_FILE] = path
    entry.info[_SEEN] = _look(path)


def _look(path: str) -> _Stamp | None:
    """Return what tells a file from any other, and from what it was before a change."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _is_good(entry: ConnectionPoolEntry) -> bool:
    """Write back what stands in the log; whether a connection still speaks for the file."""
    connection: Any = entry.dbapi_connection
    before = entry.info.get(_SEEN)
    if connection is None or before is None:
        return False
    # Also of others: while this connection was reading, they could not write back.
    log = _look(f"{entry.info[_FILE]}-wal")
    has_log = log is not None and log[_SIZE] > 0
    if has_log and not _is_written_back(connection):
        return False
    after = _look(entry.info[_FILE])
    entry.info[_SEEN] = after
    return after == before or (has_log and after is not None and after[:_SIZE] == before[:_SIZE])


def _is_written_back(connection: Any) -> bool:
    """Write the log into the file, as closing would; False where that cannot be done now."""
    try:
        (patience,) = connection.execute("PRAGMA busy_timeout").fetchone()
        connection.execute("PRAGMA busy_timeout=0")
        (is_busy, *_pages) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        connection.execute(f"PRAGMA busy_timeout={patience}")
    except sqlite3.Error:
        # What was written is safe in the log. On a full disk, the next to write is told so.
        return False
    return not is_busy
