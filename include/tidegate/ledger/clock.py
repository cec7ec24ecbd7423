"""The clock that claims are measured by: that of the ledger's database."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import sqlalchemy as sa

from tidegate.model.wire import parse_instant_text

Clock = Callable[[sa.Connection], datetime]
"""Reads the time of the database that a connection belongs to."""

_NOW = {
    "sqlite": "SELECT strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')",
    # Not now(), which is when the transaction began: it may have waited for a lock since.
    "postgresql": (
        "SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')"
    ),
}


def database_time(connection: sa.Connection) -> datetime:
    """Return the database's time, aware, in UTC.

    A claim expires by this clock alone, so that a host whose own clock is wrong neither takes what
    a living run holds nor keeps what it has lost.
    """
    (text,) = connection.exec_driver_sql(_NOW[connection.dialect.name]).one()
    return parse_instant_text(text)
