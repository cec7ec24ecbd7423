"""Choose where the demo's Airflow and ledger keep their state: PostgreSQL, or SQLite as a fallback.

What a home has stays in use: neither runs of Airflow nor windows of a ledger are left behind.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from tidegate.config import has_postgres, ledger_file, ledger_note, postgres_folder
from tidegate.errors import PostgresNotStarted
from tidegate.ledger.embedded import AIRFLOW, EmbeddedServer, attach, create_cluster

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
    """
    if not airflow_file(places).exists():
        try:
            _create(places)
        except PostgresNotStarted as refused:
            yield (f"Airflow runs on SQLite here: {refused.problem}. {_DIALOG}",)
            return
    notes = tuple(_notes(places))
    if not has_postgres(places.home):
        yield notes
        return
    server = attach(postgres_folder(places.home))
    try:
        yield notes
    finally:
        server.release()


def _create(places: DemoPlaces) -> None:
    """Create the home's PostgreSQL; a ledger that the home has by then stays where it is."""
    if has_postgres(places.home):
        return
    note = ledger_note(places.home)
    if ledger_file(places.home).exists():
        note.unlink(missing_ok=True)
    else:
        try:
            note.parent.mkdir(parents=True, exist_ok=True)
            note.touch()
        except OSError as refused:
            raise PostgresNotStarted(problem=str(refused)) from refused
    create_cluster(postgres_folder(places.home))


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
