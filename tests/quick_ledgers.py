"""New ledgers of tests, made by the statements that once came of all migrations.

Alembic takes twenty times as long, and nearly every test begins with a ledger of its own. Ledgers
that are there already, and those in PostgreSQL, are migrated as ever.
"""

from __future__ import annotations

import functools
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from unittest.mock import patch

import sqlalchemy as sa

from tidegate.ledger import migrating

_migrate = migrating.migrate


def install() -> None:
    """Make new ledgers quickly from here on, in this process and those forked from it."""
    _statements()
    patch.object(migrating, "migrate", _make).start()


def _make(engine: sa.Engine, ledger: str) -> None:
    if engine.dialect.name == "sqlite" and engine.url.database:
        # As migrations do: one process at a time, and nothing where another one was first.
        with engine.begin() as connection:
            if not sa.inspect(connection).get_table_names():
                for statement in _statements():
                    connection.exec_driver_sql(statement)
                return
    _migrate(engine, ledger)


@functools.cache
def _statements() -> tuple[str, ...]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "ledger.db")
        engine = sa.create_engine(f"sqlite:///{path}")
        _migrate(engine, str(path))
        engine.dispose()
        with closing(sqlite3.connect(path)) as connection:
            made = [line for line in connection.iterdump() if line.startswith(("CREATE", "INSERT"))]
    return tuple(made)
