"""Bring the tables of a ledger up to date with Alembic; imported only when needed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from tidegate.errors import LedgerNewer

_LOCK = 0x71DE6A7E


def migrate(engine: sa.Engine, ledger: str) -> None:
    """Apply the migrations that the database lacks, one process at a time.

    Raises:
        LedgerNewer: it has a migration that this version does not know.
    """
    script = Config()
    script.set_main_option("script_location", "tidegate.ledger:migrations")
    with engine.connect() as connection, _unhindered(connection).begin():
        if connection.dialect.name == "postgresql":
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
        known = ScriptDirectory.from_config(script)
        found = MigrationContext.configure(connection).get_current_revision()
        if found not in {None, *(item.revision for item in known.walk_revisions())}:
            newest = known.get_current_head()
            raise LedgerNewer(ledger=ledger, found=str(found), newest=str(newest))
        script.attributes["connection"] = connection
        command.upgrade(script, "head")


def _unhindered(connection: sa.Connection) -> sa.Connection:
    """Allow a migration to rebuild a SQLite table that others refer to.

    The pragma has no effect inside a transaction, which a statement of SQLAlchemy would begin.
    """
    raw = connection.connection.driver_connection
    if connection.dialect.name == "sqlite" and raw is not None:
        raw.execute("PRAGMA foreign_keys=OFF")
    return connection
