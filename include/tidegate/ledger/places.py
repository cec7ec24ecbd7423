"""Tell where a ledger is, and whether another place has one of the same pipeline.

Only of files on this machine: a server may have many addresses, and no folder copies it.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from tidegate.config.environment import ledger_note
from tidegate.errors import LedgerUnreachable

if TYPE_CHECKING:
    import sqlalchemy as sa

PLACE = "tidegate_place"
"""Execution option of an engine with the folder of a home's own PostgreSQL."""

_PRIMARY = 0xFF
_NO_LEDGER = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR}
"""Codes of SQLite for a broken file, another file, and one without the table that is asked for."""


def place_of(engine: sa.Engine) -> str | None:
    """Return the file of SQLite, or the folder of a home's own PostgreSQL; else None."""
    is_file = engine.url.get_backend_name() == "sqlite"
    named = engine.url.database if is_file else engine.get_execution_options().get(PLACE)
    return os.path.realpath(named) if named else None


def is_same_file(one: str, other: str) -> bool:
    """Return whether two places are one, also if it is mounted twice."""
    try:
        return one == other or Path(one).samefile(other)
    except OSError:
        return False


def has_ledger(place: str, pipeline: str, ledger_id: str) -> bool:
    """Return whether a place has a ledger that knows a pipeline by an id.

    Of a home's own PostgreSQL, its note is enough: to ask would be to start it.

    Raises:
        LedgerUnreachable: it cannot be looked at (Transient).
    """
    try:
        if Path(place).is_dir():
            return ledger_note(Path(place).parent).exists()
        if not Path(place).exists():
            return False
    except OSError as denied:
        raise LedgerUnreachable(ledger=place, problem=str(denied)) from denied
    known = "SELECT 1 FROM pipeline WHERE name = ? AND ledger_id = ?"
    try:
        # Neither created nor migrated: it is not the ledger in use.
        with closing(sqlite3.connect(f"file:{quote(place)}?mode=ro", uri=True)) as opened:
            return opened.execute(known, (pipeline, ledger_id)).fetchone() is not None
    except sqlite3.Error as refused:
        if getattr(refused, "sqlite_errorcode", 0) & _PRIMARY in _NO_LEDGER:
            return False
        raise LedgerUnreachable(ledger=place, problem=str(refused)) from refused
