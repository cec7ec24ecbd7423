from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import select, update

if TYPE_CHECKING:
    from airflow.dag_processing.dagbag import DagBag

pytestmark = pytest.mark.airflow

ENDED = ("load", "publish")


@pytest.fixture
def unpaused(bag: DagBag, airflow_database: None) -> None:
    """Store the DAGs as the DAG processor does, and unpause them."""
    from airflow.models.dag import DagModel
    from airflow.models.dagbundle import DagBundleModel
    from airflow.serialization.definitions.dag import SerializedDAG
    from airflow.serialization.serialized_objects import DagSerialization, LazyDeserializedDAG
    from airflow.utils.session import create_session

    with create_session() as session:
        session.merge(DagBundleModel(name="dags-folder"))
        session.flush()
        lazy = [
            LazyDeserializedDAG(data=DagSerialization.to_dict(dag)) for dag in bag.dags.values()
        ]
        SerializedDAG.bulk_write_to_db("dags-folder", None, lazy, None, session=session)
        session.execute(update(DagModel).values(is_paused=False))


@pytest.mark.parametrize("kind", ENDED)
def test_pipeline_of_the_past_unpaused_has_no_next_run(unpaused: None, kind: str) -> None:
    from airflow.models.dag import DagModel
    from airflow.utils.session import create_session

    with create_session() as session:
        found = session.scalar(select(DagModel).where(DagModel.dag_id == f"flights_{kind}"))

        assert found is not None
        assert found.next_dagrun is None
        assert found.next_dagrun_create_after is None


def test_reconcile_of_a_pipeline_of_the_past_goes_on(unpaused: None) -> None:
    """What the last interval left unfinished is found after it, too."""
    from airflow.models.dag import DagModel
    from airflow.utils.session import create_session

    with create_session() as session:
        found = session.scalar(select(DagModel).where(DagModel.dag_id == "flights_reconcile"))

        assert found is not None
        assert found.next_dagrun_create_after is not None
        assert found.next_dagrun_create_after > datetime.now(UTC) - timedelta(hours=1)


def test_scheduler_asked_for_dags_in_need_of_a_run_names_none_of_the_past(unpaused: None) -> None:
    from airflow.models.dag import DagModel
    from airflow.utils.session import create_session

    with create_session() as session:
        needy, _ = DagModel.dags_needing_dagruns(session)
        found = {dag.dag_id for dag in needy}

    assert found.isdisjoint({f"flights_{kind}" for kind in ENDED})
    # The pipeline without dates is due, so the question was a real one.
    assert "orders_load" in found


def test_backfill_of_the_past_has_its_local_days(bag: DagBag) -> None:
    from airflow.serialization.serialized_objects import DagSerialization

    dag = DagSerialization.from_dict(DagSerialization.to_dict(bag.dags["flights_load"]))
    start, end = datetime(2013, 2, 5, 5, tzinfo=UTC), datetime(2013, 2, 12, 5, tzinfo=UTC)

    intervals = [info.data_interval for info in dag.iter_dagrun_infos_between(start, end)]

    assert len(intervals) == 8
    assert intervals[0].start == start
    assert intervals[-1].end == datetime(2013, 2, 13, 5, tzinfo=UTC)
