"""Keep connections to a SQLite ledger open during a step of a pipeline.

A step queries the ledger dozens of times. Opening SQLite's file costs ten times as much as one of
these queries, and the last connection that closes also writes the whole log back.
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
    """Opens a connection for each use, or reuses one that was opened inside `keeping`.

    A connection is reused only if its file is still at the same path and nobody else has changed
    it: otherwise it would continue with a file that no longer exists. Before that, what was written
    to the log is written back to the file itself, because a copy of the file would lack the log
    beside it, and SQLite would apply the log to another file that is copied over this one.

    Outside of `keeping` no connection is open. Threads take turns at the connections, and a forked
    process opens its own.
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
        """Keep connections open until the last step that asked for it ends."""
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
        """Close the connections that are not in use."""
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
            # The last step may have ended in the meantime.
            if self._steps:
                self._idle.append(entry)
            return self._steps > 0

    def _pop(self) -> ConnectionPoolEntry | None:
        with self._guard:
            if self._process != os.getpid():
                # SQLite loses its locks in a fork: connections of the parent are not even closed.
                self._of_parent, self._idle = self._idle, []
                self._process = os.getpid()
            return self._idle.pop() if self._idle else None


def note_file(entry: ConnectionPoolEntry, path: str) -> None:
    """Record the file that a connection is about to be opened on."""
    entry.info[_FILE] = path
    entry.info[_SEEN] = _look(path)


def _look(path: str) -> _Stamp | None:
    """Return a value that distinguishes a file from others and from its earlier states."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _is_good(entry: ConnectionPoolEntry) -> bool:
    """Write back the log; return whether the connection may be used again for its path."""
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
    """Write the log to the file, as closing would; return False if that is impossible now."""
    try:
        (patience,) = connection.execute("PRAGMA busy_timeout").fetchone()
        connection.execute("PRAGMA busy_timeout=0")
        (is_busy, *_pages) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        connection.execute(f"PRAGMA busy_timeout={patience}")
    except sqlite3.Error:
        # What was written is safe in the log. On a full disk, the next to write is told so.
        return False
    return not is_busy
