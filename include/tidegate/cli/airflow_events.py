"""Tell Airflow's consumers about partitions that a command published, as the publish DAG does.

Only if `TIDEGATE_AIRFLOW_API` names an Airflow; a command publishes without one, too.
"""

from __future__ import annotations

import contextlib
import os
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    import httpx

    from tidegate.model.ledger_rows import RevisionEntry
    from tidegate.model.partition import Partition
    from tidegate.pipeline import PipelineControl

API = "TIDEGATE_AIRFLOW_API"
"""Address of Airflow's UI and API, such as `http://localhost:8080`."""

TOKEN = "TIDEGATE_AIRFLOW_TOKEN"
"""Bearer token of somebody who may create asset events; not needed without a login."""

_SECONDS = 10.0
_PAGE = 100
"""Airflow returns no more events at once, or fewer, as it is configured."""
_CLOCKS = timedelta(hours=1)
"""The clocks of this host and of Airflow's differ by no more."""


@contextlib.contextmanager
def telling_airflow(pipeline: PipelineControl, owner: str) -> Iterator[list[str]]:
    """Emit an event of the published asset for each revision that is made in the context.

    Others may publish meanwhile, and tell of their own revisions.

    *Failure:* the revisions are published whatever Airflow answers; those that it was not told are
    named, because nobody else will tell it. It is also told what was published before an error.

    Args:
        pipeline: whose partitions are published.
        owner: the name by which they are claimed in the context.

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
        made = [item for item in _made(pipeline, before) if item.owner == owner]
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
            # A commit that a run of Airflow began and this command finished has two to tell of it.
            known = _announced(http, asset, min(item.committed_at for item in made))
            for item in made:
                if _announcement(item.partition.key, item.event(pipeline)) in known:
                    continue
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
    return f"Airflow was told: {', '.join(told)}." if told else "Airflow had been told before."


def _announced(http: httpx.Client, asset: int, since: datetime) -> set[tuple[object, object]]:
    """Return what distinguishes the events of an asset since some time."""
    after, found, offset = (since - _CLOCKS).isoformat(), set(), 0
    while True:
        asked: dict[str, str | int] = {
            "asset_id": asset,
            "timestamp_gte": after,
            "offset": offset,
            "limit": _PAGE,
        }
        answer = http.get("/assets/events", params=asked).raise_for_status().json()
        events = answer["asset_events"]
        found |= {_announcement(it["partition_key"], it["extra"] or {}) for it in events}
        offset += len(events)
        if not events or offset >= answer["total_entries"]:
            return found


def _announcement(key: object, extra: Mapping[str, object]) -> tuple[object, object]:
    return key, extra.get("committed_at")


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
