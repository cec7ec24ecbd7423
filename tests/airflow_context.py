"""What a task sees of Airflow, for calling the functions of tasks without a run."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tidegate.model.instant import DataInterval


@dataclass
class OutletEvent:
    """What a task adds to an asset's event."""

    partition_keys: set[str] = field(default_factory=set)
    extra: dict[str, Any] = field(default_factory=dict)

    def add_partitions(self, keys: str | list[str]) -> None:
        self.partition_keys.update([keys] if isinstance(keys, str) else keys)


@dataclass
class TaskInstance:
    """The XComs of one run, and who asks."""

    handed: dict[tuple[str, str], Any] = field(default_factory=dict)
    dag_id: str = "orders_publish"
    run_id: str = "run-1"
    task_id: str = "task"
    try_number: int = 1

    def xcom_pull(self, task_ids: str, key: str = "return_value") -> Any:
        return self.handed.get((task_ids, key))

    def xcom_push(self, key: str, value: Any) -> None:
        self.handed[self.task_id, key] = value


def task_context(
    *,
    run: str = "run-1",
    partition: str | None = None,
    interval: DataInterval | None = None,
    handed: dict[str, Any] | None = None,
    run_type: str = "asset_triggered",
    cleared: int = 0,
) -> dict[str, Any]:
    """Make the context of a task of the pipeline `orders`."""
    dag_id = "orders_load" if partition is None else "orders_publish"
    return {
        "dag_run": SimpleNamespace(
            dag_id=dag_id,
            run_id=run,
            run_type=run_type,
            clear_number=cleared,
            data_interval_start=interval.start if interval else None,
            data_interval_end=interval.end if interval else None,
        ),
        "ti": TaskInstance(
            {(task, "return_value"): value for task, value in (handed or {}).items()},
            dag_id=dag_id,
            run_id=run,
        ),
        "partition_key": partition,
        "params": {},
        "outlet_events": defaultdict(OutletEvent),
    }
