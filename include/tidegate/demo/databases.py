"""Choose where the demo's Airflow and ledger keep their state: PostgreSQL, or SQLite as a fallback.

What a home has stays in use: neither runs of Airflow nor windows of a ledger are left behind.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

from tidegate.config import (
    has_postgres,
    ledger_file,
    ledger_note,
    ledger_of_home,
    postgres_folder,
)
from tidegate.errors import PostgresNotStarted
from tidegate.ledger.embedded import AIRFLOW, EmbeddedServer, attach
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tidegate.demo.places import DemoPlaces

_DIALOG = (
    'In its Backfill dialog, choose "Missing Runs" or "Missing and Errored Runs": with "All Runs" '
    "it may answer 503 there, lose runs from its history and stop. `tidegate replay` loads windows "
    "again without it."
)
_RECENT_SECONDS = 15 * 60
_MOST_ENDS = 5
_WAITS_SECONDS = (1.0, 5.0)


@contextlib.contextmanager
def databases(places: DemoPlaces) -> Iterator[tuple[str, ...]]:
    """Keep the home's PostgreSQL running for the duration of the context, if it can have one.

    Yields:
        What a user should know about the databases: nothing if both are in PostgreSQL.

    Raises:
        PostgresNotStarted: the home has databases in PostgreSQL, which does not start.
        PostgresOther: another major version of PostgreSQL made them.
        PostgresLost: their files are gone.
    """
    # Before anything is made: where the files of a PostgreSQL are gone, no new ones take their
    # place.
    ledger_of_home(places.home)
    server, notes = _opened(places)
    try:
        yield notes
    finally:
        if server is not None:
            server.release()


def _opened(places: DemoPlaces) -> tuple[EmbeddedServer | None, tuple[str, ...]]:
    folder = postgres_folder(places.home)
    if has_postgres(places.home):
        return attach(folder), tuple(_notes(places))
    if airflow_file(places).exists():
        return None, tuple(_notes(places))
    try:
        server = attach(folder)
    except PostgresNotStarted as refused:
        if has_postgres(places.home):
            # On a file system without sockets, for example. It is empty, but is not deleted.
            LocalStorage().delete_tree(str(folder / "data.refused"))
            (folder / "data").rename(folder / "data.refused")
        return None, (f"Airflow runs on SQLite here: {refused.problem}. {_DIALOG}",)
    _note_ledger(places)
    return server, ()


def _note_ledger(places: DemoPlaces) -> None:
    """Say where the ledger will be: one that the home has stays where it is.

    The note comes last: without it the ledger is in SQLite, and with it the files must be there.
    """
    if ledger_file(places.home).exists():
        return
    try:
        ledger_note(places.home).touch()
    except OSError as refused:
        raise PostgresNotStarted(problem=str(refused)) from refused


def airflow_file(places: DemoPlaces) -> Path:
    """Return the file of Airflow's database, where it is in SQLite."""
    return places.airflow / "airflow.db"


def airflow_database(places: DemoPlaces) -> dict[str, str]:
    """Return Airflow's variables for its database in the home's PostgreSQL; none for SQLite."""
    if airflow_file(places).exists() or not has_postgres(places.home):
        return {}
    server = attach(postgres_folder(places.home))
    return {
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": server.url(AIRFLOW),
        # Otherwise Airflow asks for asyncpg, which would be a second driver.
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_ASYNC": server.url(AIRFLOW, "psycopg_async"),
    }


class Reviver:
    """Starts the home's PostgreSQL again whenever it has ended.

    *Failure:* one that does not start, or that ends again and again, is named and left.
    """

    def __init__(self, places: DemoPlaces, tell: Callable[[str], None]) -> None:
        self._places = places
        self._tell = tell
        self._ends: list[float] = []

    def look(self) -> bool:
        """Start it again if it has ended; return whether it had.

        Raises:
            PostgresNotStarted: it does not start, or ends again and again.
        """
        server = _ended_postgres(self._places)
        if server is None:
            return False
        now = time.monotonic()
        self._ends = [*(end for end in self._ends if now - end < _RECENT_SECONDS), now]
        if len(self._ends) > _MOST_ENDS:
            raise PostgresNotStarted(problem=f"it ended again and again, see {server.log}")
        self._tell(f"PostgreSQL ended, see {server.log}. Starting it again …")
        _attach_patiently(postgres_folder(self._places.home))
        return True


def _attach_patiently(folder: Path) -> EmbeddedServer:
    """Start a server that was killed; it refuses as long as processes of the old one live."""
    for wait_seconds in _WAITS_SECONDS:
        try:
            return attach(folder)
        except PostgresNotStarted:
            time.sleep(wait_seconds)
    return attach(folder)


def _ended_postgres(places: DemoPlaces) -> EmbeddedServer | None:
    """Return the home's PostgreSQL if it has one that does not run."""
    if not has_postgres(places.home):
        return None
    server = EmbeddedServer.of(postgres_folder(places.home))
    return None if server.is_running else server


def _notes(places: DemoPlaces) -> Iterator[str]:
    if airflow_file(places).exists():
        yield (
            f"Airflow goes on with SQLite, which has its runs: {airflow_file(places)}. {_DIALOG} "
            f"Without that file it begins anew on PostgreSQL; the ledger keeps what is published."
        )
