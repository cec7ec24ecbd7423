"""Open what a command works on. What it needs is imported then: a second that `--help` saves."""

from __future__ import annotations

import functools
import gc
from typing import TYPE_CHECKING, Any

from tidegate.importing import import_at_rest

if TYPE_CHECKING:
    from pathlib import Path

    from tidegate.model.report import PipelineOverview
    from tidegate.pipeline import Pipeline, PipelineControl


def open_pipeline(pipeline: str | Path, *, take_over: bool = False) -> Pipeline:
    """Open a pipeline with its source and all that can be done with it.

    Args:
        pipeline: name or file.
        take_over: a person said that no run that waits in Airflow will go on.
    """
    holders = _loaded("tidegate.pipeline.state.holders")
    life_of = holders.life_by_time if take_over else holders.life_of
    opened: Pipeline = _loaded("tidegate.pipeline.pipeline").open_pipeline(
        pipeline, life_of=life_of
    )
    return opened


def open_control(pipeline: str | Path) -> PipelineControl:
    """Open what the ledger and the work directory tell of a pipeline.

    Args:
        pipeline: name or file.
    """
    opened: PipelineControl = _loaded("tidegate.pipeline.control").open_control(pipeline)
    return opened


def read_all_pipelines() -> tuple[PipelineOverview, ...]:
    """Return the state of every pipeline of the ledger."""
    ledger = _loaded("tidegate.ledger")
    url = _loaded("tidegate.config.environment").ledger_url()
    found: tuple[PipelineOverview, ...] = ledger.read_overview(ledger.open_engine(url))
    return found


def pipeline_names() -> set[str]:
    """Return the names of all pipeline files, unvalidated."""
    names: set[str] = _loaded("tidegate.config.loading").pipeline_names()
    return names


def this_process() -> str:
    """Return the name by which this process holds windows and partitions."""
    owner: str = _loaded("tidegate.pipeline.state.holders").process_owner("cli")
    return owner


@functools.cache
def _loaded(name: str) -> Any:
    """Import a module whose content is not looked through for garbage, now or at the end.

    That was a third of what such a command costs, measured.
    """
    module = import_at_rest(name)
    gc.freeze()
    return module
