"""The note of a publish run: its partition, and how it ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from airflow_runs import run_dag
from small_lake import SmallLake, known, load, publish
from tidegate_airflow import listeners

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun

pytestmark = [
    pytest.mark.airflow,
    pytest.mark.timeout(120),
    # Airflow's in-process API is made of packages that warn of each other.
    pytest.mark.filterwarnings("ignore:Using `httpx`:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::starlette.exceptions.StarletteDeprecationWarning"),
]

KEY = "2026-02-01"


@pytest.fixture(autouse=True)
def _database(airflow_database: None) -> None:
    """Every run is stored."""


@pytest.fixture
def lake(lake: SmallLake) -> SmallLake:
    lake.commit({1: 3})
    lake.commit({2: 3})
    load(lake.pipeline(), until=known(5))
    return lake


def note_of(dag_id: str, before: str | None = None, **options: Any) -> str | None:
    """Run a DAG, let the scheduler hear of its end, and read the note that it stores."""
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session

    run = run_dag(dag_id, logical_date=None, **options)
    with create_session() as session:
        stored = session.get(DagRun, run.id)
        assert stored is not None
        stored.dag, stored.note = run.dag, before
        hear_of_end(stored)
    with create_session() as session:
        stored = session.get(DagRun, run.id)
        assert stored is not None
        note: str | None = stored.note
        return note


def hear_of_end(run: DagRun) -> None:
    """Call what Airflow calls."""
    ended = {"success": listeners.on_dag_run_success, "failed": listeners.on_dag_run_failed}
    ended[str(run.state)](run)


def test_note_tells_partition_and_revision_of_a_run_that_published(lake: SmallLake) -> None:
    note = note_of("orders_publish", run_conf={"partition": KEY})

    assert note == f"Partition {KEY}: revision 1 is published, 3 rows"


def test_note_tells_why_a_run_had_nothing_to_do(lake: SmallLake) -> None:
    publish(lake.pipeline())

    note = note_of("orders_publish", run_conf={"partition": KEY})

    assert note is not None
    assert note.startswith(f"Partition {KEY}: dt={KEY}: nothing is pending: revision 1")


def test_note_of_a_run_that_failed_tells_its_partition(lake: SmallLake) -> None:
    note = note_of("orders_publish", run_conf={"partition": "2027-01-01"})

    assert note == "Partition 2027-01-01"


def test_other_dags_get_no_note(lake: SmallLake) -> None:
    assert note_of("orders_reconcile") is None


def test_note_of_a_person_is_kept(lake: SmallLake) -> None:
    note = note_of("orders_publish", before="looked at by Ada", run_conf={"partition": KEY})

    assert note == "looked at by Ada"
