"""Tell a person which run a task waits for, when it goes on, and what to do if it never does."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING
from urllib.parse import quote

from tidegate.errors.commands import command
from tidegate_airflow.asking import is_at_work
from tidegate_airflow.runs import read_owner
from tidegate_airflow.skips import skipped

if TYPE_CHECKING:
    from tidegate.model.partition import Partition
    from tidegate.pipeline import PipelineControl

_LOG = logging.getLogger(__name__)


def log_wait_for_window(pipeline: PipelineControl, sequence: int) -> None:
    """Log which run a task of a load waits for."""
    held = pipeline.ledger.windows.find(sequence)
    words: tuple[object, ...] = ("load", pipeline.config.name)
    if held is not None and held.sealed:
        words = ("replay", pipeline.config.name, sequence)
    _LOG.info("%s", _waiting(f"window {sequence}", held.owner if held else None, words))


def log_wait_for_partition(pipeline: PipelineControl, partition: Partition) -> None:
    """Log which run a task of a publish run waits for."""
    _LOG.info("%s", wait_for_partition(pipeline, partition))


def wait_for_partition(pipeline: PipelineControl, partition: Partition) -> str:
    """Return which run is publishing a partition, and what to do if it hangs."""
    held = pipeline.ledger.partitions.find(partition)
    words = ("publish", pipeline.config.name, partition)
    return _waiting(str(partition), held.owner if held else None, words)


def leave_to_asking_run(pipeline: PipelineControl, partition: Partition, owner: str) -> None:
    """Skip a task of a run while another one asks a person about the same partition.

    Rows that came since would replace what the person sees, and a partition that receives rows
    every hour could never be approved (design §4); a second question would get a second answer.

    Raises:
        AirflowSkipException: another run asks, and Airflow says that it still waits for the answer.
    """
    asking = pipeline.asking(partition)
    if asking is None or asking == owner or not is_at_work(asking):
        return
    msg = (
        f"{partition}: {name_run(asking)} asks whether it is published as it was shown there. "
        "Rows that come until then wait, and make the next revision: after the answer, the next "
        f"run of {pipeline.config.name}_reconcile starts one for them"
    )
    raise skipped(msg)


def name_run(owner: str) -> str:
    """Return what people call the holder of a window or partition, with its page in Airflow."""
    named = read_owner(owner)
    if named is None:
        return owner
    dag_id, run_id = named
    return f"run {run_id} of {dag_id}, {run_page(dag_id, run_id)}"


def run_page(dag_id: str, run_id: str) -> str:
    """Return the address of a run's page in Airflow."""
    from airflow.sdk.configuration import conf

    place = conf.get("api", "base_url", fallback="http://localhost:8080/")
    return f"{place.rstrip('/')}/dags/{dag_id}/runs/{quote(run_id)}"


def _waiting(subject: str, owner: str | None, words: tuple[object, ...]) -> str:
    if owner is None:
        return f"waiting: {subject} was just given back"
    if read_owner(owner) is None:
        return (
            f"waiting: {subject} is worked on by {owner}, outside of Airflow; this task goes on "
            "once that has ended or does not renew any more"
        )
    return (
        f"waiting: {subject} is worked on by {name_run(owner)}; this task goes on as soon as that "
        "run has ended there. If it hangs, mark it as failed, or end it and run "
        f"`{command(*words, '--take-over')}`"
    )
