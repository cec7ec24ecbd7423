"""Build the three DAGs of each pipeline file: load, publish, reconcile.

Loads the configuration and nothing that reads data: DAG files are parsed repeatedly (AF-7.2).
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any

import pendulum
from airflow.sdk import DAG, get_parsing_context

from tidegate.config import PipelineConfig, find_pipeline, load_pipeline, load_pipelines
from tidegate.errors import PipelineFilesBroken, TidegateError
from tidegate_airflow.failures import failure_arguments
from tidegate_airflow.load import load_dag
from tidegate_airflow.publish import publish_dag
from tidegate_airflow.reconcile import reconcile_dag

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

POLL_SECONDS = 15.0
"""The interval between two polls of an Airflow trigger; TIDEGATE_POLL_SECONDS overrides it."""


def all_dags() -> dict[str, DAG]:
    """Return every DAG by its id; a file that cannot be loaded is left out, see `check_files`.

    In a task only the DAG of that task is built: with hundreds of pipelines the others take
    seconds.
    """
    wanted = get_parsing_context().dag_id
    return {dag.dag_id: dag for config in _configs_for(wanted) for dag in pipeline_dags(config)}


def pipeline_dags(config: PipelineConfig) -> tuple[DAG, DAG, DAG]:
    """Build the DAGs of one pipeline."""
    poll_seconds = float(os.environ.get("TIDEGATE_POLL_SECONDS", POLL_SECONDS))
    common: dict[str, Any] = {
        "start_date": _zoned(config.dag.start_date, config.timezone),
        "catchup": False,
        "tags": ["tidegate", config.name, *config.dag.tags],
        "default_args": {"owner": config.dag.owner, **failure_arguments()},
    }
    # What was loaded is published, and what was left unfinished is found, after the last interval.
    end_date = _zoned(config.dag.end_date, config.timezone)
    return (
        load_dag(config, poll_seconds, {**common, "end_date": end_date}),
        publish_dag(config, poll_seconds, common),
        reconcile_dag(config, common),
    )


def check_files() -> None:
    """Load every pipeline file, and report the broken ones together.

    Called by a DAG file without DAGs: Airflow disables all DAGs of a file with an import error, so
    the error must not be raised in the file that registers the healthy ones.

    Raises:
        PipelineFilesBroken: some cannot be loaded, or have the name of another; the message has the
            file, line and key of each.
    """
    problems = [str(found) for _, found in load_pipelines() if isinstance(found, TidegateError)]
    if problems:
        raise PipelineFilesBroken(count=len(problems), problems="\n".join(problems))


def _configs_for(dag_id: str | None) -> Iterator[PipelineConfig]:
    """Yield the usable pipelines, or only that of a DAG; `check_files` reports the other files."""
    if dag_id is not None:
        with contextlib.suppress(TidegateError):
            yield load_pipeline(find_pipeline(dag_id.rpartition("_")[0]))
            return
    yield from (found for _, found in load_pipelines() if isinstance(found, PipelineConfig))


def _zoned(wall_clock: datetime | None, timezone: str) -> datetime | None:
    return None if wall_clock is None else pendulum.instance(wall_clock, tz=timezone)
