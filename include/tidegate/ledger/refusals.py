"""Turn errors of the ledger's database into those of Tidegate: Transient, or to act on."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.exc import DatabaseError, OperationalError

from tidegate.errors import LedgerDamaged, LedgerUnreachable, StorageFull, TidegateError

if TYPE_CHECKING:
    from sqlalchemy.engine import ExceptionContext

ROOM_BYTES = 1 << 20
"""A disk with less free space than this is called full where SQLite cannot use its files."""

_PRIMARY = 0xFF
"""The bits of a SQLite error code that give its kind; the higher ones give details."""
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_DAMAGED_STATES = {"XX001", "XX002"}
"""PostgreSQL's data_corrupted and index_corrupted."""
_MAYBE_FULL = {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN}
"""What SQLite also reports if a file beside the database cannot be created or cannot grow."""


def name_refusals(engine: sa.Engine) -> None:
    """Turn errors of the database, now or in any later transaction, into Tidegate's."""

    @event.listens_for(engine, "handle_error")
    def _refused(context: ExceptionContext) -> None:
        error = context.sqlalchemy_exception
        # All but one of its subclasses are mistakes of the caller, which a retry would repeat.
        refusal = isinstance(error, OperationalError) or type(error) is DatabaseError
        if refusal and not context.is_pre_ping:
            raise _refusal(engine.url, context.original_exception)


def _refusal(address: sa.URL, refused: BaseException) -> TidegateError:
    problem, ledger = str(refused), address.render_as_string(hide_password=True)
    code = getattr(refused, "sqlite_errorcode", 0) & _PRIMARY
    # Broken for good, not just locked, full or unreachable.
    if code in _DAMAGED or str(getattr(refused, "sqlstate", "")) in _DAMAGED_STATES:
        return LedgerDamaged(ledger=ledger, problem=problem)
    if address.database and _is_full(Path(address.database), code):
        return StorageFull(path=address.database, problem=problem)
    return LedgerUnreachable(ledger=ledger, problem=problem)


def _is_full(file: Path, code: int) -> bool:
    """Return whether SQLite fails because the disk of a database has no space."""
    if code not in _MAYBE_FULL:
        return code == sqlite3.SQLITE_FULL
    try:
        return shutil.disk_usage(file.resolve().parent).free < ROOM_BYTES
    except OSError:
        return False
