"""Access to one table: metadata by pin, history and files, with retries."""

from __future__ import annotations

from typing import TYPE_CHECKING, ParamSpec, TypeVar

from tenacity import (
    Retrying,
    retry_if_exception_type,
    stop_after_attempt,
    stop_never,
    wait_exponential,
)

from tidegate.errors import SourceNotFound, SourceUnreachable, TableIdentityChanged
from tidegate.source.iceberg.table.opening import TableOpener
from tidegate.source.iceberg.table.paths import local_places
from tidegate.source.iceberg.timeline.history import History

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyiceberg.io import FileIO
    from pyiceberg.table import Table

    from tidegate.config import IcebergSourceConfig
    from tidegate.model.plan import Pin

_PLACES = ("write.data.path", "write.metadata.path", "write.object-storage.path")
_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


class TableAccess:
    """The state that the parts of a source share; one per process.

    A request that a catalog or store does not answer is repeated `max_planning_failures` times
    (ICE-2.24); then `SourceUnreachable` (Transient) is raised.
    """

    def __init__(self, config: IcebergSourceConfig, retry_pause_seconds: float) -> None:
        """Prepare, without opening anything yet.

        Args:
            config: the pipeline's `source`.
            retry_pause_seconds: pause before the second attempt; the third waits twice as long.
        """
        self.config = config
        self.opener = TableOpener(config)
        self._tables: dict[str, Table] = {}
        failures = config.max_planning_failures
        self._retrying = Retrying(
            retry=retry_if_exception_type(SourceUnreachable),
            stop=stop_never if failures < 0 else stop_after_attempt(failures + 1),
            wait=wait_exponential(retry_pause_seconds, max=10 * retry_pause_seconds),
            reraise=True,
        )

    @property
    def name(self) -> str:
        """The table's name for people."""
        return self.opener.source

    def places(self) -> tuple[str, ...]:
        """Return the table's folder, and those that its properties name for data or metadata."""
        metadata = self.patiently(self.opener.open).metadata
        given = [metadata.properties.get(key) for key in _PLACES]
        return local_places([metadata.location, *given], self.config.location_rewrite)

    def newest(self, expected_identity: str | None) -> Table:
        """Load the newest metadata, and drop all other.

        Raises:
            TableIdentityChanged: the table was dropped and created again (ICE-2.3).
        """
        table = self.patiently(self.opener.open)
        self._check_identity(str(table.metadata.table_uuid), expected_identity)
        self._tables = {table.metadata_location: table}
        return table

    def table(self, pin: Pin) -> Table:
        """Return the pinned metadata; if its file is gone, newer metadata of the same table."""
        location = pin.details["metadata"]
        if location not in self._tables:
            try:
                table = self.patiently(self.opener.open_metadata, location)
            except SourceNotFound:
                table = self.patiently(self.opener.open)
            self._check_identity(str(table.metadata.table_uuid), pin.identity)
            self._tables[location] = table
        return self._tables[location]

    @property
    def opened(self) -> Table | None:
        """The table as it was opened for any pin; None if it was not opened yet."""
        return next(iter(self._tables.values()), None)

    def files_at(self, location: str) -> FileIO:
        """Return the opener of the table's files, from its metadata file, without a catalog."""
        table = self._tables.get(location)
        return table.io if table else self.opener.files(location)

    def history(self, pin: Pin, head: int | None = None) -> History:
        """Return the lineage up to a snapshot, by default the pinned head."""
        if head is None and pin.head is not None:
            head = int(pin.head.id)
        return History(self.name, self.table(pin).metadata, head, self.time_key)

    @property
    def time_key(self) -> str | None:
        """Summary property with the time of an instant; None: its commit time."""
        return self.config.instant_time.summary if self.config.instant_time else None

    def patiently(
        self,
        call: Callable[_Arguments, _Result],
        *args: _Arguments.args,
        **kwargs: _Arguments.kwargs,
    ) -> _Result:
        """Repeat a call while catalog or store do not answer (`max_planning_failures`)."""
        return self._retrying.copy()(call, *args, **kwargs)

    def _check_identity(self, found: str, expected: str | None) -> None:
        if expected is not None and found != expected:
            raise TableIdentityChanged(source=self.name, expected=expected, found=found)
