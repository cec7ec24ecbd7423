"""One Iceberg table as a source of changes: pins a snapshot and plans windows over its lineage."""

from __future__ import annotations

from typing import TYPE_CHECKING, ParamSpec, TypeVar

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from tidegate.errors import (
    HistoryTruncated,
    SourceNotFound,
    SourceUnreachable,
    TableIdentityChanged,
)
from tidegate.model.plan import Pin
from tidegate.source.iceberg.changes import ChangeReader, Changes
from tidegate.source.iceberg.delete_rules import delete_rules
from tidegate.source.iceberg.format import IcebergFormat, open_rows
from tidegate.source.iceberg.history import History, operation
from tidegate.source.iceberg.manifests import ManifestReader
from tidegate.source.iceberg.opening import TableOpener
from tidegate.source.iceberg.pieces import PieceMaker
from tidegate.source.iceberg.pruning import Pruning
from tidegate.source.iceberg.selection import pinned_selection
from tidegate.source.iceberg.starts import first_checkpoint
from tidegate.source.iceberg.states import StateReader
from tidegate.source.iceberg.tally import skipped_notes, tally_notes
from tidegate.source.protocol import InstantReport, Units, pinned_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    import pyarrow as pa
    from pyiceberg.io import FileIO
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot

    from tidegate.config import SourceConfig
    from tidegate.model.instant import Instant, InstantRange
    from tidegate.model.plan import Piece
    from tidegate.physical import RowGroup

_BRANCH = "main"
_ATTEMPTS = 3

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


class IcebergSource:
    """The `Source` of one Iceberg table.

    Only `pin` asks for newer metadata (ICE-2.2). What a catalog or store does not answer is asked
    three times while planning (ICE-2.24), then it is Transient `SourceUnreachable`.
    """

    def __init__(
        self,
        config: SourceConfig,
        extra_columns: Sequence[str] = (),
        *,
        retry_pause_seconds: float = 1.0,
    ) -> None:
        """Prepare; nothing is opened yet.

        Args:
            config: the pipeline's `source`.
            extra_columns: read besides `read.columns`, at the end: what a filter names.
            retry_pause_seconds: pause before the second attempt; the third waits twice as long.
        """
        self._config = config
        self._extra_columns = tuple(extra_columns)
        self._opener = TableOpener(config)
        self._tables: dict[str, Table] = {}
        self._retrying = Retrying(
            retry=retry_if_exception_type(SourceUnreachable),
            stop=stop_after_attempt(_ATTEMPTS),
            wait=wait_exponential(retry_pause_seconds, max=10 * retry_pause_seconds),
            reraise=True,
        )

    @property
    def name(self) -> str:
        """The table's name for people."""
        return self._opener.source

    def pin(
        self, now: datetime, expected_identity: str | None = None, until: datetime | None = None
    ) -> Pin:
        """Load the newest metadata and pin its head; commits have times of their own."""
        del now, until
        table = self._patiently(self._opener.open)
        identity = str(table.metadata.table_uuid)
        self._check_identity(identity, expected_identity)
        self._tables = {table.metadata_location: table}
        head = table.metadata.snapshot_by_name(_BRANCH)
        return self._pinned(table, head.snapshot_id if head else None)

    def at(self, pin: Pin, instant: Instant) -> Pin:
        """Pin an earlier or other retained snapshot of the same metadata."""
        table = self._table(pin)
        head = self._history(pin).snapshot(instant.id)
        # Batch reads take the snapshot's own schema, incremental ones the table's (ICE-2.9).
        own_schema = self._config.read.read_schema is None and self._config.read.mode == "snapshot"
        return self._pinned(table, head.snapshot_id, own_schema=own_schema)

    def instant(self, pin: Pin, text: str) -> Instant:
        """Find a snapshot by id, or the last ancestor at or before an ISO time."""
        history = self._history(pin)
        return history.instant(history.find(text))

    def first_checkpoint(self, pin: Pin) -> Instant | None:
        """See `tidegate.source.iceberg.starts`."""
        return first_checkpoint(self._history(pin), self._config.start)

    def instants(self, pin: Pin, after: Instant | None) -> tuple[Instant, ...]:
        """List the snapshots after a checkpoint, which is classified first (ICE-2.17).

        Raises:
            CursorOffLineage, HistoryTruncated, CursorExpired: see `History.after`.
            InstantTimeMissing: `source.instant_time` names a property that a snapshot lacks.
        """
        history = self._history(pin)
        return tuple(history.instant(snapshot) for snapshot in history.after(after))

    def history(self, pin: Pin, before: Instant) -> tuple[Instant, ...]:
        """List the retained ancestors up to and including an instant."""
        history = self._history(pin)
        return tuple(history.instant(snapshot) for snapshot in history.up_to(before))

    def describe(self, pin: Pin, instants: Sequence[Instant]) -> list[InstantReport]:
        """Say from the snapshot summaries what commits did.

        Raises:
            SnapshotNotFound: a commit was expired.
        """
        history = self._history(pin)
        return [_report(instant, history.snapshot(instant.id)) for instant in instants]

    def units(self, pin: Pin, window: InstantRange, *, whole: bool = False) -> Units:
        """List the data files of a window (ICE-3.7), or of a snapshot if the window has no start.

        Raises:
            NonAppendSnapshot, SnapshotClassMismatch, UnsupportedFeature: see `ChangeReader`.
            HistoryTruncated: a window from the beginning, and the beginning was expired.
            SnapshotNotFound: the window's end was expired.
        """
        return self._patiently(self._units, pin, window, whole=whole)

    def _units(self, pin: Pin, window: InstantRange, *, whole: bool) -> Units:
        table = self._table(pin)
        # The filter may name columns that are not read out, so it is bound to the whole schema.
        schema = table.metadata.schema_by_id(pin.details["schema_id"]) or table.schema()
        pruning = Pruning(schema, table.specs(), self._config.read.filter)
        manifests = ManifestReader(table.io, self.name)
        history = self._history(pin, int(window.end_inclusive.id))
        make = PieceMaker(table.specs())
        whole = whole or self._config.read.mode == "snapshot"
        if whole or (window.start_exclusive is None and self._config.start.kind == "full"):
            rules = delete_rules(self.name, table.metadata, self._config.path_match)
            state = StateReader(manifests, pruning, rules).state(history.ancestors[-1])
            pieces = tuple(make.live(file) for file in state.files if file.entry.rows > 0)
            notes = tally_notes(state.tally)
        else:
            reader = ChangeReader(self.name, manifests, pruning)
            changes = self._appended(reader, history, window)
            pieces = tuple(make.piece(entry) for entry in changes.entries if entry.rows > 0)
            notes = skipped_notes(changes.skipped) + tally_notes(changes.tally)
        return Units(pieces, notes + self._notes(history, window))

    def _appended(self, reader: ChangeReader, history: History, window: InstantRange) -> Changes:
        if window.start_exclusive is None and not history.is_whole:
            # An expired beginning must not make the same window smaller in silence (ICE-2.16).
            raise HistoryTruncated(
                source=self.name,
                start="the beginning",
                oldest_kept=str(history.ancestors[0].snapshot_id),
                head=window.end_inclusive.id,
            )
        skip = self._config.read.on_non_append == "skip"
        return reader.appended(history.after(window.start_exclusive), skip_non_append=skip)

    def row_groups(self, piece: Piece) -> tuple[RowGroup, ...]:
        """Read the row groups of a data file."""
        return self._patiently(self._row_groups, piece)

    def _row_groups(self, piece: Piece) -> tuple[RowGroup, ...]:
        files = (
            next(iter(self._tables.values())).io if self._tables else self._opener.files(piece.path)
        )
        with open_rows(files, piece, self.name) as file:
            return file.row_groups

    def schema(self, pin: Pin) -> pa.Schema:
        """Give the schema of conformed batches."""
        return self.format(pin).schema

    def format(self, pin: Pin) -> IcebergFormat:
        """Give the reading side; in a task it opens files without asking the catalog."""
        location = pin.details["metadata"]
        table = self._tables.get(location)
        files: FileIO = table.io if table else self._opener.files(location)
        return IcebergFormat(pin, files, self.name, self._config)

    def _patiently(
        self,
        call: Callable[_Arguments, _Result],
        *args: _Arguments.args,
        **kwargs: _Arguments.kwargs,
    ) -> _Result:
        return self._retrying.copy()(call, *args, **kwargs)

    def _check_identity(self, found: str, expected: str | None) -> None:
        if expected is not None and found != expected:
            raise TableIdentityChanged(source=self.name, expected=expected, found=found)

    def _pinned(self, table: Table, head: int | None, *, own_schema: bool = False) -> Pin:
        metadata = table.metadata
        history = History(self.name, metadata, head, self._time_key)
        own_schema = own_schema or self._config.read.read_schema == "snapshot"
        whole = _schema_of(metadata, history.head) if own_schema else metadata.schema()
        details = {
            "metadata": table.metadata_location,
            "ref": _BRANCH,
            **pinned_selection(metadata, whole, self._config, self._extra_columns, self.name),
            "format_version": metadata.format_version,
        }
        pin = Pin(
            str(metadata.table_uuid),
            history.instant(history.head) if history.head else None,
            (),
            details,
        )
        form = IcebergFormat(pin, table.io, self.name, self._config)
        columns = pinned_columns(form.schema)
        return Pin(pin.identity, pin.head, columns, details)

    @property
    def _time_key(self) -> str | None:
        return self._config.instant_time.summary if self._config.instant_time else None

    def _table(self, pin: Pin) -> Table:
        """Give the pinned metadata; if its file is gone, newer metadata of the same table."""
        location = pin.details["metadata"]
        if location not in self._tables:
            try:
                table = self._patiently(self._opener.open_metadata, location)
            except SourceNotFound:
                table = self._patiently(self._opener.open)
            self._check_identity(str(table.metadata.table_uuid), pin.identity)
            self._tables[location] = table
        return self._tables[location]

    def _history(self, pin: Pin, head: int | None = None) -> History:
        if head is None and pin.head is not None:
            head = int(pin.head.id)
        return History(self.name, self._table(pin).metadata, head, self._time_key)

    @staticmethod
    def _notes(history: History, window: InstantRange) -> tuple[str, ...]:
        if window.start_exclusive is None and history.may_be_truncated:
            oldest = history.ancestors[0]
            return (
                f"history may be truncated: the oldest kept snapshot {oldest.snapshot_id} "
                f"has sequence number {oldest.sequence_number} (ICE-2.16)",
            )
        return ()


def _schema_of(metadata: TableMetadata, snapshot: Snapshot | None) -> Schema:
    if snapshot is None or snapshot.schema_id is None:
        return metadata.schema()
    return metadata.schema_by_id(snapshot.schema_id) or metadata.schema()


def _report(instant: Instant, snapshot: Snapshot) -> InstantReport:
    summary = snapshot.summary.additional_properties if snapshot.summary else {}

    def count(key: str) -> int | None:
        text = summary.get(key)
        return int(text) if text is not None else None

    return InstantReport(
        instant=instant,
        operation=operation(snapshot) or "unknown",
        files_added=count("added-data-files"),
        files_removed=count("deleted-data-files"),
        rows_added=count("added-records"),
        rows_removed=count("deleted-records"),
        summary=dict(summary),
    )
