"""Tell Airflow's consumers about partitions that a command published, as the publish DAG does.

Only if `TIDEGATE_AIRFLOW_API` names an Airflow; a command publishes without one, too.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import httpx

    from tidegate.model.ledger_rows import RevisionEntry
    from tidegate.model.partition import Partition
    from tidegate.pipeline import PipelineControl

API = "TIDEGATE_AIRFLOW_API"
"""Address of Airflow's UI and API, such as `http://localhost:8080`."""

TOKEN = "TIDEGATE_AIRFLOW_TOKEN"
"""Bearer token of somebody who may create asset events; not needed without a login."""

_SECONDS = 10.0


@contextlib.contextmanager
def telling_airflow(pipeline: PipelineControl) -> Iterator[list[str]]:
    """Emit an event of the published asset for each revision that is made in the context.

    *Failure:* the revisions are published whatever Airflow answers; those that it was not told are
    named, because nobody else will tell it. It is also told what was published before an error.

    Returns:
        Lines for a person, once the context has ended; none if no Airflow is named, or nothing was
        published.
    """
    place = os.environ.get(API)
    if not place:
        yield []
        return
    said: list[str] = []
    before = _revisions(pipeline)
    try:
        yield said
    finally:
        made = _made(pipeline, before)
        if made:
            said.append(_tell(place, pipeline.config.name, made))


def _tell(place: str, pipeline: str, made: Sequence[RevisionEntry]) -> str:
    import httpx

    token = os.environ.get(TOKEN)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    base = f"{place.rstrip('/')}/api/v2"
    told: list[str] = []
    try:
        with httpx.Client(base_url=base, headers=headers, timeout=_SECONDS) as http:
            asset = _asset_id(http, f"{pipeline}_published")
            for item in made:
                event = {
                    "asset_id": asset,
                    "partition_key": item.partition.key,
                    "extra": item.event(pipeline),
                }
                http.post("/assets/events", json=event).raise_for_status()
                told.append(item.partition.key)
    except (httpx.HTTPError, httpx.InvalidURL, LookupError, ValueError) as problem:
        left = ", ".join(item.partition.key for item in made if item.partition.key not in told)
        return (
            f"Published, but the Airflow at {place} was not told about {left}: {problem}. Check "
            f"{API} and {TOKEN}, and trigger the DAGs that wait for `{pipeline}_published` with "
            "the partition's key."
        )
    return f"Airflow was told: {', '.join(told)}."


def _revisions(pipeline: PipelineControl) -> dict[Partition, int]:
    return {state.partition: state.revision for state in pipeline.ledger.partitions.all()}


def _made(pipeline: PipelineControl, before: Mapping[Partition, int]) -> list[RevisionEntry]:
    """Return the revisions since; nobody can wait for a partition that has no key."""
    return [
        revision
        for partition, standing in _revisions(pipeline).items()
        if standing > before.get(partition, 0) and partition.has_key
        for revision in pipeline.ledger.publications.revisions(partition)
        if revision.revision > before.get(partition, 0)
    ]


def _asset_id(http: httpx.Client, name: str) -> int:
    answer = http.get("/assets", params={"name_pattern": name}).raise_for_status()
    for asset in answer.json()["assets"]:
        if asset["name"] == name:
            return int(asset["id"])
    msg = f"it has no asset `{name}`"
    raise LookupError(msg)
