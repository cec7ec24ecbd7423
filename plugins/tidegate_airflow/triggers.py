"""Airflow triggers that poll the ledger until their task has something to do (AF-4.8).

They run in the triggerer, many side by side, and only wake their task, which checks again. A poll
is one or two short queries, made in a thread so that it blocks no other trigger. Nothing is changed
except the reason that `evaluate` keeps in the ledger.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from abc import abstractmethod
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from tidegate.config import ask_airflow, find_pipeline
from tidegate_airflow.assets import read_partition
from tidegate_airflow.connections import find
from tidegate_airflow.runs import utc_now
from tidegate_airflow.waiting import log_wait_for_window, wait_for_partition

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tidegate.pipeline import Pipeline, PipelineControl

_LOG = logging.getLogger(__name__)

GIVE_WAY = timedelta(seconds=8)
"""Longer than a new run needs from its sensor to its claim."""


class LedgerTrigger(BaseTrigger):
    """Polls every `poll_seconds` and fires once.

    Failure: an error ends the trigger and fails its task, as for every Airflow trigger; a retry of
    the task starts a new one.
    """

    def __init__(self, pipeline: str, owner: str, poll_seconds: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.pipeline = pipeline
        self.owner = owner
        self.poll_seconds = poll_seconds

    @abstractmethod
    def has_work(self, now: datetime) -> bool:
        """Return whether the task should continue; blocks for a query."""

    def arguments(self) -> dict[str, Any]:
        """Return the arguments from which the triggerer builds the trigger again."""
        return {"pipeline": self.pipeline, "owner": self.owner, "poll_seconds": self.poll_seconds}

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the import path of the class for the triggerer, and its arguments."""
        return f"{type(self).__module__}.{type(self).__qualname__}", self.arguments()

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Sleep, poll, and fire when the task should continue; the task has just checked itself."""
        while True:
            await asyncio.sleep(self.poll_seconds)
            if await asyncio.to_thread(self.has_work, utc_now()):
                yield TriggerEvent({})  # type: ignore[no-untyped-call]
                return


class WindowTrigger(LedgerTrigger):
    """Fires when no other run works on a window any longer."""

    def __init__(self, pipeline: str, owner: str, sequence: int, poll_seconds: float) -> None:
        super().__init__(pipeline, owner, poll_seconds)
        self.sequence = sequence
        self._holder: str | None = None

    def arguments(self) -> dict[str, Any]:
        """Return the arguments from which the triggerer builds the trigger again."""
        return {**super().arguments(), "sequence": self.sequence}

    def has_work(self, now: datetime) -> bool:
        """Return whether the window is free for this run."""
        pipeline = controlled(self.pipeline)
        if pipeline.window_is_free(self.sequence, self.owner, now):
            return True
        held = pipeline.ledger.windows.find(self.sequence)
        holder = held.owner if held else None
        if self._holder not in {None, holder}:
            log_wait_for_window(pipeline, self.sequence)
        self._holder = holder
        return False


class PartitionTrigger(LedgerTrigger):
    """Fires when this run may commit a partition, or when nothing is pending for it any longer.

    Rows that move the watermark past a partition's end often belong to that partition, too, and
    then start a second run for it, which finds it committable at once. This trigger therefore gives
    way for a moment: two runs that wake together would only contend for the claim.
    """

    def __init__(self, pipeline: str, owner: str, key: str, poll_seconds: float) -> None:
        super().__init__(pipeline, owner, poll_seconds)
        self.key = key
        self._committable_since: datetime | None = None
        self._logged: str | None = None

    def arguments(self) -> dict[str, Any]:
        """Return the arguments from which the triggerer builds the trigger again."""
        return {**super().arguments(), "key": self.key}

    def has_work(self, now: datetime) -> bool:
        """Return whether the sensor has something to decide."""
        pipeline = controlled(self.pipeline)
        partition = read_partition(pipeline.config, self.key)
        evaluation = pipeline.evaluate(partition, now)
        if evaluation is None:
            return True
        if not evaluation.committable:
            return self._wait(f"{self.key}: not yet: {evaluation.to_line()}")
        if not pipeline.partition_is_free(partition, self.owner, now):
            return self._wait(wait_for_partition(pipeline, partition))
        self._committable_since = self._committable_since or now
        return now - self._committable_since >= GIVE_WAY

    def _wait(self, reason: str) -> bool:
        """Keep the log of the waiting task up to date, which has the lines of its trigger, too."""
        self._committable_since = None
        if reason != self._logged:
            _LOG.info("%s", reason)
            self._logged = reason
        return False


def controlled(name: str) -> PipelineControl:
    """Open a pipeline's control plane once per version of its file.

    Waiting partitions share its connections, and wait without loading what reads rows.
    """
    path = find_pipeline(name)
    return _control_once(str(path), path.stat().st_mtime_ns)


def opened(name: str) -> Pipeline:
    """Open a pipeline once per version of its file."""
    path = find_pipeline(name)
    return _open_once(str(path), path.stat().st_mtime_ns)


@functools.lru_cache(maxsize=512)
def _control_once(path: str, _changed: int) -> PipelineControl:
    from tidegate.pipeline import open_control
    from tidegate_airflow.lives import life_in_airflow

    _prepare()
    return open_control(path, life_of=life_in_airflow)


@functools.lru_cache(maxsize=512)
def _open_once(path: str, _changed: int) -> Pipeline:
    from tidegate.pipeline import open_pipeline
    from tidegate_airflow.lives import life_in_airflow

    _prepare()
    return open_pipeline(path, life_of=life_in_airflow)


def _prepare() -> None:
    ask_airflow(find)
    # It logs with every connection that it would migrate; task logs are for people.
    logging.getLogger("alembic").setLevel(logging.WARNING)
