"""Choose where the demo's Airflow and ledger keep their state: PostgreSQL, or SQLite as a fallback.

What a home has stays in use: neither runs of Airflow nor windows of a ledger are left behind.
"""

from __future__ import annotations

import contextlib
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
    from collections.abc import Iterator
    from pathlib import Path

    from tidegate.demo.places import DemoPlaces

_DIALOG = (
    'In its Backfill dialog, choose "Missing Runs" or "Missing and Errored Runs": with "All Runs" '
    "it may answer 503 there, lose runs from its history and stop. `tidegate replay` loads windows "
    "again without it."
)


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


def ended_postgres(places: DemoPlaces) -> EmbeddedServer | None:
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
