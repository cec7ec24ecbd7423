"""Airflow's answers to the questions of tasks and triggers."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.sdk.api.datamodels._generated import AssetEventResponse, AssetResponse
from airflow.sdk.exceptions import AirflowRuntimeError, ErrorType
from airflow.sdk.execution_time.comms import (
    AssetEventsResult,
    DRCount,
    ErrorResponse,
    GetAssetEventByAsset,
    GetDRCount,
    GetTaskStates,
    GetTICount,
    TaskStatesResult,
    TICount,
)

if TYPE_CHECKING:
    from airflow.sdk import Asset


@dataclass
class Supervisor:
    """Answers for Airflow as it answers tasks and triggers."""

    states: dict[tuple[str, str], str] = field(default_factory=dict)
    """(DAG, run) → its state; what is not here was deleted."""
    tasks: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    """(DAG, task) → its states in all runs."""
    events: list[AssetEventResponse] = field(default_factory=list)
    ended: dict[tuple[str, str], str] = field(default_factory=dict)
    """(run, task) → how the task ended in its last try."""
    silent: bool = False

    def tell(self, asset: Asset, key: str, extra: dict[str, Any]) -> None:
        """Have an event of an asset."""
        self.events.append(
            AssetEventResponse(
                id=len(self.events),
                timestamp=datetime.now(UTC),
                extra=extra,
                asset=AssetResponse(name=asset.name, uri=asset.uri, group="asset"),
                created_dagruns=[],
                partition_key=key,
            )
        )

    def send(self, msg: Any) -> Any:
        if self.silent:
            raise AirflowRuntimeError(ErrorResponse(error=ErrorType.API_SERVER_ERROR))
        if isinstance(msg, GetTICount):
            assert msg.task_ids is not None
            assert msg.states is not None
            found = [
                state for task in msg.task_ids for state in self.tasks.get((msg.dag_id, task), [])
            ]
            return TICount(count=sum(state in msg.states for state in found))
        if isinstance(msg, GetAssetEventByAsset):
            named = [event for event in self.events if event.asset.name == msg.name]
            assert msg.after is not None
            return AssetEventsResult(
                asset_events=[event for event in named if event.timestamp >= msg.after]
            )
        if isinstance(msg, GetTaskStates):
            assert msg.run_ids is not None
            assert msg.task_ids is not None
            told = {
                run: {
                    task: self.ended[run, task]
                    for task in msg.task_ids
                    if (run, task) in self.ended
                }
                for run in msg.run_ids
            }
            return TaskStatesResult(task_states=told)
        assert isinstance(msg, GetDRCount)
        assert msg.run_ids is not None
        assert msg.states is not None
        runs = [self.states.get((msg.dag_id, run)) for run in msg.run_ids]
        return DRCount(count=sum(state in msg.states for state in runs))
