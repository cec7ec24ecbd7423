"""Tell Airflow's consumers about partitions that a command published, as the publish DAG does.

Only if `TIDEGATE_AIRFLOW_API` names an Airflow; a command publishes without one, too.
"""

from __future__ import annotations

import os
from datetime import timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    import httpx

    from tidegate.model.ledger_rows import RevisionEntry
    from tidegate.model.partition import Partition
    from tidegate.pipeline import PipelineControl

API = "TIDEGATE_AIRFLOW_API"
"""Address of Airflow's UI and API, such as `http://localhost:8080`."""

TOKEN = "TIDEGATE_AIRFLOW_TOKEN"
"""Bearer token of somebody who may create asset events, and read the pipeline's DAGs: events of
others are not shown. Not needed without a login."""

_SECONDS = 10.0
_PAGE = 100
"""Airflow returns no more events at once, or fewer, as it is configured."""
_CLOCKS = timedelta(hours=1)
"""The clocks of this host and of Airflow's differ by no more."""


class AirflowConsumers:
    """Emits an event of the published asset for each revision that this command makes.

    Others may publish meanwhile, and tell of their own revisions.

    *Failure:* the revisions are published whatever Airflow answers; those that it was not told are
    named, because nobody else will tell it. If the command is killed, that is the one partition
    whose commit had just ended: while an Airflow is told, partitions are published one by one.

    Args:
        pipeline: whose partitions are published.
        owner: the name by which they are claimed.
    """

    def __init__(self, pipeline: PipelineControl, owner: str) -> None:
        self._pipeline = pipeline
        self._owner = owner
        self._place = os.environ.get(API)
        self._before = _revisions(pipeline) if self._place else {}
        self._told: list[str] = []
        self._untold: dict[str, str] = {}
        self._silence: str | None = None
        self._asset: int | None = None

    @property
    def is_told(self) -> bool:
        """Whether an Airflow is named."""
        return self._place is not None and self._place != ""

    def tell(self, partition: Partition) -> None:
        """Tell of the revisions of a partition that are new; without an Airflow, do nothing."""
        standing = self._before.get(partition, 0)
        if not self._place or not partition.has_key:
            return
        made = [
            revision
            for revision in self._pipeline.ledger.publications.revisions(partition)
            if revision.revision > standing and revision.owner == self._owner
        ]
        if made:
            self._before[partition] = made[-1].revision
            self._tell(made)

    def _rows_before(self, made: RevisionEntry) -> int:
        known = self._pipeline.ledger.publications.revisions(made.partition)
        return next((item.rows for item in known if item.revision == made.revision - 1), 0)

    @property
    def said(self) -> list[str]:
        """What Airflow was told, in lines for a person."""
        lines = [f"Airflow was told: {', '.join(self._told)}."] if self._told else []
        for problem in dict.fromkeys(self._untold.values()):
            keys = ", ".join(key for key, found in self._untold.items() if found == problem)
            lines.append(
                f"Published, but the Airflow at {self._place} was not told about {keys}: "
                f"{problem}. Check {API} and {TOKEN}, and trigger the DAGs that wait for "
                f"`{self._pipeline.config.name}_published` with the partition's key."
            )
        return lines

    def _tell(self, made: Sequence[RevisionEntry]) -> None:
        import httpx

        token = os.environ.get(TOKEN)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        base = f"{str(self._place).rstrip('/')}/api/v2"
        name, key = self._pipeline.config.name, made[0].partition.key
        if self._silence is not None:
            # Each try may take seconds, and there may be hundreds of partitions.
            self._untold[key] = self._silence
            return
        try:
            with httpx.Client(base_url=base, headers=headers, timeout=_SECONDS) as http:
                if self._asset is None:
                    self._asset = _asset_id(http, f"{name}_published")
                asset = self._asset
                # Of a commit that a run of Airflow began and this command finished, both may tell.
                events = _events(http, asset, min(item.committed_at for item in made))
                for item in made:
                    if any(item.is_told_by(it["partition_key"], it["extra"]) for it in events):
                        continue
                    extra = item.event(name, self._rows_before(item))
                    event = {"asset_id": asset, "partition_key": key, "extra": extra}
                    http.post("/assets/events", json=event).raise_for_status()
                    self._told += [key] if key not in self._told else []
        except (httpx.HTTPError, httpx.InvalidURL, LookupError, ValueError) as problem:
            self._untold[key] = str(problem)
            if isinstance(problem, httpx.TransportError):
                self._silence = str(problem)


def _events(http: httpx.Client, asset: int, since: datetime) -> list[dict[str, Any]]:
    """Return the events of an asset since some time."""
    after = (since - _CLOCKS).isoformat()
    return list(
        _listed(http, "/assets/events", "asset_events", asset_id=asset, timestamp_gte=after)
    )


def _revisions(pipeline: PipelineControl) -> dict[Partition, int]:
    return {state.partition: state.revision for state in pipeline.ledger.partitions.all()}


def _asset_id(http: httpx.Client, name: str) -> int:
    for asset in _listed(http, "/assets", "assets", name_pattern=name):
        if asset["name"] == name:
            return int(asset["id"])
    msg = f"it has no asset `{name}`"
    raise LookupError(msg)


def _listed(
    http: httpx.Client, path: str, key: str, **asked: str | int
) -> Iterator[dict[str, Any]]:
    """Yield what a collection of the API has, page by page."""
    seen = 0
    while True:
        page: dict[str, str | int] = {**asked, "offset": seen, "limit": _PAGE}
        answer = http.get(path, params=page).raise_for_status().json()
        yield from answer[key]
        seen += len(answer[key])
        if not answer[key] or seen >= answer["total_entries"]:
            return
