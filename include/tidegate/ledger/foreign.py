"""Ask a database that is not the ledger one question, and change nothing there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from tidegate.errors import CountsUnreadable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def ask(address: str, query: str) -> Mapping[str, Sequence[Any]]:
    """Return the answer to a query, column by column.

    Args:
        address: of the database, with its password resolved; no message repeats it.
        query: SQL as that database speaks it.

    Raises:
        CountsUnreadable: the address names no database, or it does not answer (Transient).
    """
    try:
        engine = sa.create_engine(address, poolclass=sa.NullPool)
    except (sa.exc.ArgumentError, sa.exc.NoSuchModuleError, ImportError) as broken:
        problem = "the address names no database that can be asked"
        if isinstance(broken, ImportError):
            problem = f"its driver is not installed: {broken}"
        raise CountsUnreadable(place="the query's database", problem=problem) from broken
    try:
        # Nothing is committed: a query that changes something is rolled back.
        with engine.connect() as connection:
            found = connection.exec_driver_sql(query)
            names = list(found.keys())
            rows = found.fetchall()
    except (sa.exc.SQLAlchemyError, OSError) as broken:
        problem = str(getattr(broken, "orig", None) or broken).strip().splitlines()[0]
        raise CountsUnreadable(place=_place(engine.url), problem=problem) from broken
    finally:
        engine.dispose()
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    return dict(zip(names, columns, strict=True))


def _place(url: sa.URL) -> str:
    host = f" at {url.host}" if url.host else ""
    return f"database {url.database or url.drivername}{host}"
