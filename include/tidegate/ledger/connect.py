"""Open the ledger's database, SQLite or PostgreSQL, and bring its schema up to date."""

from __future__ import annotations

import re
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy import event

from tidegate.errors import LedgerAddressWrong, LedgerDamaged, LedgerUnreachable, StorageDenied
from tidegate.ledger.kept_open import KeptOpen, watch_connections
from tidegate.ledger.places import PLACE
from tidegate.ledger.refusals import name_refusals
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from contextlib import AbstractContextManager

    from sqlalchemy.pool import ConnectionPoolEntry

READS_ONLY = "tidegate_reads_only"
"""Execution option of a connection that will not write: it takes no write lock in SQLite."""

_BACKENDS = frozenset({"sqlite", "postgresql"})
_EMBEDDED = "embedded"
_BUSY_SECONDS = 60
_MIGRATION = re.compile(r"m(\d+)_\w+\.py")
_SHARED: ContextVar[Mapping[sa.Engine, sa.Connection]] = ContextVar(
    "tidegate_shared", default=MappingProxyType({})
)
"""The connections that this thread reads over, if it reads several things together."""
_VERSIONS = sa.table("alembic_version", sa.column("version_num"))


def open_engine(url: str) -> sa.Engine:
    """Connect to the ledger and migrate it; a missing SQLite file is created.

    Raises:
        LedgerAddressWrong: this is no address of SQLite or PostgreSQL.
        PostgresNotStarted: it is that of a home's own PostgreSQL, which does not start (Transient).
        PostgresOther: another major version of PostgreSQL made its files.
        LedgerUnreachable: the database does not answer or cannot be created (Transient).
        StorageFull: no space is left for its file (Transient).
        LedgerDamaged: the file is not a database, or a broken one.
        LedgerNewer: a later version has changed its tables.
    """
    asked = _parsed(url)
    folder = asked.database if asked.drivername == _EMBEDDED else None
    address = _served(asked)
    if address.get_backend_name() == "sqlite" and address.database:
        _make_folder(address, Path(address.database).parent)
    try:
        where = {} if folder is None else {PLACE: folder}
        engine = sa.create_engine(address, execution_options=where, **_pool(address))
    except (sa.exc.NoSuchModuleError, ImportError) as unknown:
        raise LedgerAddressWrong(found=f"the driver '{address.drivername}'") from unknown
    if address.get_backend_name() == "sqlite":
        _prepare_sqlite(engine)
    name_refusals(engine)
    if address.get_backend_name() == "sqlite" and address.database:
        _check_log(engine, Path(address.database))
    if not _is_up_to_date(engine):
        # Importing Alembic takes a fifth of a command's start-up time.
        from tidegate.ledger.migrating import migrate

        migrate(engine, address.render_as_string(hide_password=True))
    return engine


def _parsed(url: str) -> sa.URL:
    """Read an address, which no message repeats: it may have a password anywhere."""
    try:
        return sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):
        raise LedgerAddressWrong(found="what is no URL") from None


def _served(address: sa.URL) -> sa.URL:
    """Return an address that a database answers.

    That of a home's own PostgreSQL becomes that of its server, which runs from then on.
    """
    if address.drivername == _EMBEDDED and address.database:
        # Most commands do without it, and are short.
        from tidegate.ledger.embedded import LEDGER, attach

        return sa.make_url(attach(Path(address.database)).url(LEDGER))
    if address.get_backend_name() not in _BACKENDS:
        raise LedgerAddressWrong(found=f"'{address.drivername}://…'")
    return address


def reading(engine: sa.Engine) -> AbstractContextManager[sa.Connection]:
    """Connect to read only, which waits for no writer; see `reading_together`."""
    shared = _SHARED.get().get(engine)
    return _connected(engine) if shared is None else nullcontext(shared)


@contextmanager
def reading_together(engine: sa.Engine) -> Iterator[None]:
    """Let what this thread reads in the meantime share one connection and one transaction.

    What is read by SQLite is then of one moment. Whoever has to see what others did in between, or
    what it wrote itself, reads after this has ended.
    """
    with reading(engine) as connection:
        token = _SHARED.set({**_SHARED.get(), engine: connection})
        try:
            yield
        finally:
            _SHARED.reset(token)


def _connected(engine: sa.Engine) -> sa.Connection:
    return engine.connect().execution_options(**{READS_ONLY: True})


def keeping_open(engine: sa.Engine) -> AbstractContextManager[None]:
    """Keep connections for the next use; a pool that always does so needs no word."""
    return engine.pool.keeping() if isinstance(engine.pool, KeptOpen) else nullcontext()


def _check_log(engine: sa.Engine, database: Path) -> None:
    """Check that a log that stands beside a file of SQLite is that file's own.

    SQLite cannot tell. Where a file was put back from a copy, and the log of the one before was
    left, it takes pages of both for one database.

    Raises:
        LedgerDamaged: the file and its log do not fit.
    """
    log = database.with_name(f"{database.name}-wal")
    if not (log.exists() and log.stat().st_size):
        return
    with reading(engine) as connection:
        found = connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar()
    if found != "ok":
        raise LedgerDamaged(ledger=engine.url.render_as_string(), problem=str(found))


def _make_folder(address: sa.URL, folder: Path) -> None:
    if folder.is_dir():
        return
    try:
        # SQLite syncs its files and their names, but not the name of their folder.
        LocalStorage().make_dirs(str(folder))
    except StorageDenied as refused:
        raise LedgerUnreachable(
            ledger=address.render_as_string(), problem=f"{folder}: {refused.problem}"
        ) from refused


def _is_up_to_date(engine: sa.Engine) -> bool:
    """Return whether the newest migration of this version is the last one that was applied."""
    with reading(engine) as connection:
        if not sa.inspect(connection).has_table(_VERSIONS.name):
            return False
        return connection.scalars(sa.select(_VERSIONS.c.version_num)).all() == [newest_migration()]


def newest_migration() -> str:
    """Return the id of the last migration: the number in the name of its file."""
    names = (item.name for item in files("tidegate.ledger.migrations.versions").iterdir())
    return max(found.group(1) for found in map(_MIGRATION.fullmatch, names) if found)


def _pool(address: sa.URL) -> dict[str, Any]:
    if address.get_backend_name() == "sqlite":
        # One in memory lives as long as its connection.
        shared: dict[str, Any] = {"connect_args": {"timeout": _BUSY_SECONDS}}
        if not address.database:
            return {**shared, "poolclass": sa.pool.StaticPool}
        return {**shared, "poolclass": KeptOpen, "max_overflow": -1}
    # As many as partitions are published at once: one that is opened for each use takes longer than
    # all that it is asked.
    return {"pool_size": 8, "max_overflow": 8, "pool_pre_ping": True}


def _prepare_sqlite(engine: sa.Engine) -> None:
    """Set WAL, foreign keys, and transactions that take the write lock when they begin.

    Otherwise a transaction that reads first and writes later would fail, instead of waiting, if
    another writer came in between.
    """
    if isinstance(engine.pool, KeptOpen):
        watch_connections(engine)

    @event.listens_for(engine, "connect")
    def _configure(connection: Any, _entry: ConnectionPoolEntry) -> None:
        connection.isolation_level = None
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA foreign_keys=ON")

    @event.listens_for(engine, "begin")
    def _begin(connection: sa.Connection) -> None:
        reads_only = connection.get_execution_options().get(READS_ONLY, False)
        connection.exec_driver_sql("BEGIN" if reads_only else "BEGIN IMMEDIATE")
