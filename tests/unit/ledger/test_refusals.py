"""A disk without space is named as the reason where SQLite names none."""

from __future__ import annotations

import shutil
import sqlite3
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa

from tidegate.errors import LedgerUnreachable, StorageFull, TransientError
from tidegate.ledger import Ledger, open_engine
from tidegate.ledger.refusals import ROOM_BYTES

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("free_bytes", "expected"),
    [(0, StorageFull), (ROOM_BYTES - 1, StorageFull), (ROOM_BYTES, LedgerUnreachable)],
)
@pytest.mark.parametrize("code", [sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_CANTOPEN])
def test_disk_with_next_to_no_space_is_full_whatever_sqlite_says(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    code: int,
    free_bytes: int,
    expected: type[TransientError],
) -> None:
    engine = open_engine(f"sqlite:///{tmp_path}/ledger.db")
    refuse(engine, code)
    disk = shutil.disk_usage(tmp_path)._replace(free=free_bytes)
    monkeypatch.setattr(shutil, "disk_usage", {tmp_path: disk}.__getitem__)

    with pytest.raises(expected, match=r"ledger\.db.*disk I/O error"):
        Ledger(engine, "orders").pipeline.register({}, "/orders", NOW)


@pytest.mark.parametrize("name", ["/ledger.db", ""], ids=["gone", "in memory"])
def test_ledger_whose_disk_is_not_known_is_unreachable(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "home"
    folder.mkdir()
    engine = open_engine(f"sqlite:///{folder}{name}" if name else "sqlite://")
    refuse(engine, sqlite3.SQLITE_IOERR_SHMSIZE)
    shutil.rmtree(folder)

    with pytest.raises(LedgerUnreachable, match="cannot be opened"):
        Ledger(engine, "orders").pipeline.register({}, "/orders", NOW)


def refuse(engine: sa.Engine, code: int) -> None:
    """Let every statement fail as SQLite would."""

    @sa.event.listens_for(engine, "do_execute")
    def _refuse(*_: object) -> None:
        refused = sqlite3.OperationalError("disk I/O error")
        refused.sqlite_errorcode = code
        raise refused
