"""Keep connections to a SQLite ledger open during a step of a pipeline.

A step queries the ledger dozens of times. Opening SQLite's file costs ten times as much as one of
these queries, and the last connection that closes also writes the whole log back.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import threading
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.exc import DisconnectionError

from tidegate.ledger.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy.pool import ConnectionPoolEntry, PoolProxiedConnection

_Stamp = tuple[int, ...]
_FILE = "tidegate_file"
_SEEN = "tidegate_seen"
_PROCESS = "tidegate_process"
_KEPT = "tidegate_kept"
_TURN = "tidegate_turn"
_PATIENCE_SECONDS = 1.0
"""Who waits longer opens a connection of its own: another thread may think in its transaction."""
_HANDED_ON = 16
"""How often a connection is handed on before its log is written back."""
_SIZE = 2
"""Where the size is in a stamp; before it stands which file it is."""


class KeptOpen(sa.pool.QueuePool):
    """Opens a connection for each use, or reuses one that was opened inside `keeping`.

    A connection is reused only if its file is still at the same path and nobody else has changed
    it: otherwise it would continue with a file that no longer exists. Before that, what was written
    to the log is written back to the file itself, because a copy of the file would lack the log
    beside it, and SQLite would apply the log to another file that is copied over this one.

    Outside of `keeping` no connection is open. Inside, threads take turns with one connection:
    SQLite has one writer at a time anyway, and lets others look again and again whether it is done.
    A log that the thread whose turn is next goes on with is not written back in between, which
    would take most of the time of a transaction. A forked process has connections of its own. Works
    only with `watch_connections`.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        # SQLAlchemy logs by the name of the class: its lines would pass for steps of Tidegate.
        self.logger = logging.getLogger("sqlalchemy.pool.QueuePool")
        self._guard = threading.Lock()
        self._steps = 0
        self._turns = Turns(_PATIENCE_SECONDS)
        self._handed_on = 0

    def hands_on(self) -> bool:
        """Return whether the connection that is given back is used again at once."""
        if self._turns.is_awaited and self._handed_on < _HANDED_ON:
            self._handed_on += 1
            return True
        self._handed_on = 0
        return False

    def _do_get(self) -> ConnectionPoolEntry:
        has_turn = self.is_keeping and self._turns.take()
        try:
            entry = super()._do_get()
        except BaseException:
            if has_turn:
                self._turns.give_back()
            raise
        entry.record_info[_TURN] = has_turn  # type: ignore[index]
        return entry

    def _do_return_conn(self, record: ConnectionPoolEntry) -> None:
        had_turn = record.record_info.pop(_TURN, False)  # type: ignore[union-attr]
        super()._do_return_conn(record)
        if had_turn:
            self._turns.give_back()

    @property
    def is_keeping(self) -> bool:
        """Whether connections stay open for the next use."""
        return self._steps > 0

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
            if not self.is_keeping:
                self.dispose()


def watch_connections(engine: sa.Engine) -> None:
    """Reuse a connection only while that is safe; see `KeptOpen`."""
    of_parents: list[Any] = []

    @event.listens_for(engine, "do_connect")
    def _note(_dialect: object, entry: ConnectionPoolEntry, _where: object, _how: object) -> None:
        path = str(engine.url.database)
        entry.info[_FILE], entry.info[_SEEN] = path, _look(path)
        entry.info[_PROCESS] = os.getpid()

    @event.listens_for(engine, "checkout")
    def _check(connection: Any, entry: ConnectionPoolEntry, proxy: PoolProxiedConnection) -> None:
        if entry.info[_PROCESS] != os.getpid():
            # SQLite loses its locks in a fork: connections of the parent are not even closed.
            of_parents.append(connection)
            entry.dbapi_connection = proxy.dbapi_connection = None  # type: ignore[misc]
            raise DisconnectionError
        if entry.info.pop(_KEPT, False) and _look(entry.info[_FILE]) != entry.info[_SEEN]:
            raise DisconnectionError

    @event.listens_for(engine, "checkin")
    def _keep(connection: Any, entry: ConnectionPoolEntry) -> None:
        if connection is None:
            return
        pool = engine.pool
        entry.info[_KEPT] = (
            isinstance(pool, KeptOpen) and pool.is_keeping and _is_good(entry, pool.hands_on())
        )
        if not entry.info[_KEPT]:
            entry.invalidate()


def _look(path: str) -> _Stamp | None:
    """Return a value that distinguishes a file from others and from its earlier states."""
    try:
        found = os.stat(path)  # noqa: PTH116 - asked for three times at each use
    except OSError:
        return None
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _is_good(entry: ConnectionPoolEntry, is_handed_on: bool) -> bool:
    """Write back the log; return whether the connection may be used again for its path."""
    connection: Any = entry.dbapi_connection
    before = entry.info.get(_SEEN)
    if connection is None or before is None:
        return False
    # Also of others: while this connection was reading, they could not write back.
    log = _look(f"{entry.info[_FILE]}-wal")
    has_log = log is not None and log[_SIZE] > 0
    if has_log and not is_handed_on and not _is_written_back(connection):
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
