"""Whole runs of the DAGs, in process, and what Airflow stored of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import select

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun


def run_dag(dag_id: str, **options: Any) -> DagRun:
    """Run a DAG to its end."""
    from airflow.dag_processing.dagbag import DagBag

    return DagBag().dags[dag_id].test(**options)


def states(run: DagRun) -> dict[str, str]:
    """Give the states of a run's tasks."""
    return {item.task_id: str(item.state) for item in run.get_task_instances()}


def tries(run: DagRun) -> dict[str, int]:
    """Give how often each task of a run was tried."""
    return {item.task_id: item.try_number for item in run.get_task_instances()}


def events_of(run: DagRun, asset: str) -> dict[str | None, dict[str, Any]]:
    """Give the events that a run emitted for an asset: key → extra."""
    from airflow.models.asset import AssetEvent, AssetModel
    from airflow.utils.session import create_session

    query = (
        select(AssetEvent)
        .join(AssetModel, AssetModel.id == AssetEvent.asset_id)
        .where(AssetModel.name == asset, AssetEvent.source_run_id == run.run_id)
    )
    with create_session() as session:
        return {event.partition_key: event.extra for event in session.scalars(query)}
