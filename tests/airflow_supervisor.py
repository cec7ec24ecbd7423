"""Airflow's answers to the questions of tasks and triggers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from airflow.sdk.exceptions import AirflowRuntimeError, ErrorType
from airflow.sdk.execution_time.comms import DRCount, ErrorResponse, GetDRCount, GetTICount, TICount


@dataclass
class Supervisor:
    """Answers for Airflow as it answers tasks and triggers."""

    states: dict[tuple[str, str], str] = field(default_factory=dict)
    """(DAG, run) → its state; what is not here was deleted."""
    tasks: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    """(DAG, task) → its states in all runs."""
    silent: bool = False

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
        assert isinstance(msg, GetDRCount)
        assert msg.run_ids is not None
        assert msg.states is not None
        runs = [self.states.get((msg.dag_id, run)) for run in msg.run_ids]
        return DRCount(count=sum(state in msg.states for state in runs))
