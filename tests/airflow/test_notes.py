"""The note of a publish run: its partition, and how it ended."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import select

from airflow_runs import run_dag
from small_lake import SmallLake, known, load, publish
from tidegate_airflow import listeners
from tidegate_airflow.notes import REASON
from tidegate_airflow.partition_steps import GATE

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun
    from sqlalchemy.orm import Session

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


def note_of(
    dag_id: str, before: str | None = None, said_before: str = "", **options: Any
) -> str | None:
    """Run a DAG, let the scheduler hear of its end, and read the note that it stores."""
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session

    run = run_dag(dag_id, **{"logical_date": None, **options})
    with create_session() as session:
        stored = session.get(DagRun, run.id)
        assert stored is not None
        stored.dag, stored.note = run.dag, before
        if said_before:
            say_before(stored, said_before, session)
        hear_of_end(stored)
    with create_session() as session:
        stored = session.get(DagRun, run.id)
        assert stored is not None
        note: str | None = stored.note
        return note


def say_before(run: DagRun, reason: str, session: Session) -> None:
    """Have a reason that a task handed on an hour earlier, before it was cleared."""
    from airflow.models.xcom import XComModel

    place = {"dag_id": run.dag_id, "task_id": GATE, "run_id": run.run_id}
    XComModel.set(key=REASON, value=reason, session=session, **place)
    session.flush()
    told = session.scalars(select(XComModel).filter_by(key=REASON, **place)).one()
    told.timestamp -= timedelta(hours=1)
    session.flush()


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


def test_note_of_a_run_that_failed_tells_why(lake: SmallLake) -> None:
    note = note_of("orders_publish", run_conf={"partition": "2027-01-01"})

    assert note is not None
    assert note.startswith("Partition 2027-01-01: failed in wait_commit_policy: ")
    assert "known are dt=2026-02-02, dt=2026-02-01" in note


def test_note_of_a_run_without_a_partition_tells_what_is_missing(lake: SmallLake) -> None:
    note = note_of("orders_publish", run_conf={"partitions": KEY})

    assert note is not None
    assert note.startswith("Publish: failed in wait_commit_policy: ")


def test_note_of_a_load_tells_what_it_took(lake: SmallLake) -> None:
    assert str(note_of("orders_load")).startswith("Load: nothing to load: ")
    lake.commit({1: 2})
    assert str(note_of("orders_load")).startswith("Load: windows [2]: 2 rows read, 2 kept")


def test_note_of_a_load_that_runs_again_says_that_its_windows_are_unchanged(
    lake: SmallLake,
) -> None:
    lake.commit({1: 2})
    taken = {"logical_date": known(6)}
    assert str(note_of("orders_load", **taken)).endswith("2 rows read, 2 kept")

    again = str(note_of("orders_load", **taken))

    assert again == "Load: windows [2]: already taken in, same plan"


def test_note_of_reconcile_tells_what_it_announced(lake: SmallLake) -> None:
    publish(lake.pipeline())

    assert note_of("orders_reconcile") == "Reconcile: announced again: 2026-02-02"


def test_note_says_of_a_run_that_failed_nothing_that_was_said_before(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As after a lost heartbeat: nobody is left to say why.
    monkeypatch.setattr("tidegate_airflow.failures.keep_failure", lambda *_: None)

    note = note_of(
        "orders_publish", said_before="held, too few rows", run_conf={"partition": "2027-01-01"}
    )

    assert note == "Partition 2027-01-01"


def test_note_tells_what_was_said_last(lake: SmallLake) -> None:
    note = note_of("orders_publish", said_before="held, too few rows", run_conf={"partition": KEY})

    assert note == f"Partition {KEY}: revision 1 is published, 3 rows"


def test_note_of_a_cleared_load_that_says_nothing_does_not_keep_why_it_failed_before(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate_airflow.skips.keep_reason", lambda *_: None)

    note = note_of("orders_load", before="Load: failed in merge_read: it cannot be read")

    assert note == "Load"


def test_note_of_a_person_is_kept(lake: SmallLake) -> None:
    note = note_of("orders_publish", before="looked at by Ada", run_conf={"partition": KEY})

    assert note == "looked at by Ada"
