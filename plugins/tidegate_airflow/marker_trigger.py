"""The Airflow trigger that waits for a revision of a partition, by its marker alone (AF-3.29, 4.8).

It needs neither the pipeline file nor the ledger, so that any team's DAG can use it.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from tidegate.config import S3Config
from tidegate.errors import TerminalError, TransientError
from tidegate.storage import Stores
from tidegate.target.standing import read_partition_path, standing_revision
from tidegate_airflow.connections import lend

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tidegate.target.standing import StandingRevision

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Awaited:
    """A revision of a partition that somebody waits for."""

    table: str
    partition: str
    """Its path, or `all`."""
    min_revision: int
    marker: str | None = None
    """The only name that its marker may have."""
    connection: str | None = None
    """Id of the Airflow connection by which its store is reached."""

    @property
    def storage(self) -> Stores:
        """Reaches the table."""
        return Stores.of(S3Config(connection=self.connection))

    def found(self) -> StandingRevision | None:
        """Return what stands in the partition, whichever revision it is; blocks.

        Raises:
            PartitionPathInvalid: the path is none.
            PublishedTableMissing: there is no table.
            MarkerInvalid: what stands there is no marker of Tidegate.
        """
        partition = read_partition_path(self.partition)
        return standing_revision(self.storage, self.table, partition, self.marker)

    def is_met(self, found: StandingRevision | None) -> bool:
        """Return whether it is what somebody waits for."""
        return found is not None and found.revision >= self.min_revision

    def not_yet(self, found: StandingRevision | None) -> str:
        """Return why the wait goes on."""
        stands = "no marker stands" if found is None else f"revision {found.revision} stands"
        return (
            f"{self.table}: {self.partition}: not yet: {stands}; waiting for revision "
            f"{self.min_revision} or a later one"
        )


class MarkerTrigger(BaseTrigger):
    """Looks every `poll_seconds` at one directory, and fires once, with what it found.

    Failure: what can only be corrected fires as well, so that the task fails with that error; what
    may be over soon is logged, and looked at again.
    """

    def __init__(self, awaited: dict[str, Any], poll_seconds: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.awaited = Awaited(**awaited)
        self.poll_seconds = poll_seconds
        self._logged: str | None = None

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the import path of the class for the triggerer, and its arguments."""
        path = f"{type(self).__module__}.{type(self).__qualname__}"
        return path, {"awaited": dict(vars(self.awaited)), "poll_seconds": self.poll_seconds}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Sleep, look, and fire; the task has just looked itself."""
        while True:
            await asyncio.sleep(self.poll_seconds)
            if self.awaited.connection is not None:
                # At each look, because its credentials may have been renewed.
                await lend(self.awaited.connection)
            event = await asyncio.to_thread(self.look)
            if event is not None:
                yield TriggerEvent(event)  # type: ignore[no-untyped-call]
                return

    def look(self) -> dict[str, Any] | None:
        """Return what the task is to know, None as long as it is to wait; blocks."""
        try:
            found = self.awaited.found()
        except TerminalError as wrong:
            return {"error": wrong.to_json()}
        except TransientError as silent:
            self._wait(str(silent))
            return None
        if found is None or not self.awaited.is_met(found):
            self._wait(self.awaited.not_yet(found))
            return None
        return {"standing": found.to_json()}

    def _wait(self, reason: str) -> None:
        """Keep the log of the waiting task up to date, which has the lines of its trigger, too."""
        if reason != self._logged:
            _LOG.info("%s", reason)
            self._logged = reason
