"""One Iceberg table as a source of changes: pins a snapshot and plans windows over its lineage."""

from __future__ import annotations

from typing import TYPE_CHECKING, ParamSpec, TypeVar

from tenacity import (
    Retrying,
    retry_if_exception_type,
    stop_after_attempt,
    stop_never,
    wait_exponential,
)

from tidegate.errors import (
    SourceNotFound,
    SourceUnreachable,
    TableIdentityChanged,
)
from tidegate.model.plan import Pin
from tidegate.model.settling import SettleRules
from tidegate.source.iceberg.changes.appends import ChangeReader
from tidegate.source.iceberg.changes.listed import instant_actions, listed
from tidegate.source.iceberg.changes.pieces import PieceMaker
from tidegate.source.iceberg.changes.states import StateReader
from tidegate.source.iceberg.changes.volumes import split_defaults, volumes
from tidegate.source.iceberg.changes.window_files import WindowFiles
from tidegate.source.iceberg.columns.selection import pinned_selection
from tidegate.source.iceberg.deletes.rules import delete_rules
from tidegate.source.iceberg.manifests.decode import ManifestReader
from tidegate.source.iceberg.manifests.event_bounds import EventBounds
from tidegate.source.iceberg.manifests.pruning import Pruning
from tidegate.source.iceberg.reading.reader import IcebergReader, open_rows
from tidegate.source.iceberg.table.opening import TableOpener
from tidegate.source.iceberg.table.paths import local_places
from tidegate.source.iceberg.table.tagging import tag_checkpoint
from tidegate.source.iceberg.timeline.continuing import describe_checkpoint, go_on
from tidegate.source.iceberg.timeline.history import History, operation
from tidegate.source.iceberg.timeline.refs import end_of, select_head
from tidegate.source.iceberg.timeline.starts import first_checkpoint
from tidegate.source.protocol import (
    Following,
    InstantReport,
    Units,
    pinned_columns,
    unnamed_rebuild,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    import pyarrow as pa
    from pyiceberg.io import FileIO
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata
    from pyiceberg.table.snapshots import Snapshot

    from tidegate.config import IcebergSourceConfig
    from tidegate.errors import TidegateError
    from tidegate.model.instant import DataInterval, Instant, InstantRange
    from tidegate.model.plan import Piece
    from tidegate.model.plan_record import InstantAction
    from tidegate.model.report import CheckpointState
    from tidegate.model.time_bounds import TimeBounds
    from tidegate.physical import RowGroup
    from tidegate.source.protocol import EventColumn, Rebuilding, Volume


_PLACES = ("write.data.path", "write.metadata.path", "write.object-storage.path")
_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


class IcebergSource:
    """The `Source` of one Iceberg table.

    Only `pin` asks for newer metadata (ICE-2.2). What a catalog or store does not answer is asked
    again `max_planning_failures` times (ICE-2.24), then it is Transient `SourceUnreachable`.
    """

    def __init__(
        self,
        config: IcebergSourceConfig,
        extra_columns: Sequence[str] = (),
        rebuilding: Rebuilding = unnamed_rebuild,
        *,
        retry_pause_seconds: float = 1.0,
    ) -> None:
        """Prepare; nothing is opened yet.

        Args:
            config: the pipeline's `source`.
            extra_columns: read besides `read.columns`, at the end: what a filter names.
            rebuilding: writes the command that reads a stretch of time again, for messages.
            retry_pause_seconds: pause before the second attempt; the third waits twice as long.
        """
        self._config = config
        self._extra_columns = tuple(extra_columns)
        self._rebuilding = rebuilding
        self._opener = TableOpener(config)
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
        return self._opener.source

    def places(self) -> tuple[str, ...]:
        """Name the table's folder, and those that its properties put data or metadata into."""
        metadata = self._patiently(self._opener.open).metadata
        given = [metadata.properties.get(key) for key in _PLACES]
        return local_places([metadata.location, *given], self._config.location_rewrite)

    def pin(
        self,
        now: datetime,
        expected_identity: str | None = None,
        until: datetime | None = None,
        after: Instant | None = None,
    ) -> Pin:
        """Load the newest metadata and pin its head; commits have times of their own."""
        del now, until, after
        table = self._patiently(self._opener.open)
        identity = str(table.metadata.table_uuid)
        self._check_identity(identity, expected_identity)
        self._tables = {table.metadata_location: table}
        found = select_head(table.metadata, self._config, self.name)
        head = found.head
        if self._config.end is not None:
            history = History(self.name, table.metadata, head, self._time_key)
            last = end_of(history, self._config.end)
            head = last.snapshot_id if last else None
        ref = {"ref": found.ref, "ref_head": found.head}
        return self._pinned(table, head, ref, own_schema=found.own_schema)

    def at(self, pin: Pin, instant: Instant) -> Pin:
        """Pin an earlier or other retained snapshot of the same metadata."""
        table = self._table(pin)
        head = self._history(pin).snapshot(instant.id)
        # Batch reads take the snapshot's own schema, incremental ones the table's (ICE-2.9).
        own_schema = self._config.read.read_schema is None and self._config.read.mode == "snapshot"
        ref = {key: pin.details[key] for key in ("ref", "ref_head")}
        return self._pinned(table, head.snapshot_id, ref, own_schema=own_schema)

    def whole_at(self, pin: Pin, checkpoint: Instant) -> Pin:
        """Pin the checkpoint's snapshot.

        Raises:
            SnapshotNotFound: it was expired.
        """
        return self.at(pin, checkpoint)

    def instant(self, pin: Pin, text: str) -> Instant:
        """Find a snapshot by id, or the last ancestor at or before an ISO time."""
        history = self._history(pin)
        return history.instant(history.find(text))

    def first_checkpoint(self, pin: Pin) -> Instant | None:
        """See `tidegate.source.iceberg.timeline.starts`."""
        return first_checkpoint(self._history(pin), self._config)

    def instants(self, pin: Pin, after: Instant | None) -> tuple[Instant, ...]:
        """List the snapshots after a checkpoint, which is classified first (ICE-2.17).

        Raises:
            CursorOffLineage, HistoryTruncated, CursorExpired: see `go_on`.
            InstantTimeMissing: `source.instant_time` names a property that a snapshot lacks.
        """
        return self.following(pin, after).instants

    def following(self, pin: Pin, after: Instant | None) -> Following:
        """See `tidegate.source.iceberg.timeline.continuing`."""
        history = self._history(pin)
        if after is not None and self._lies_past_end(pin, after):
            return Following((), after)
        found = go_on(history, after, self._config)
        ends = tuple(history.instant(snapshot) for snapshot in found.snapshots)
        return Following(ends, found.start, found.kind, joins_on=not found.notes)

    def checkpoint_state(self, pin: Pin, checkpoint: Instant) -> CheckpointState:
        """See `tidegate.source.iceberg.timeline.continuing`."""
        return describe_checkpoint(self._history(pin), checkpoint, self._config)

    def protect(self, pipeline: str, checkpoint: Instant) -> None:
        """Move the pipeline's tag to the checkpoint, with `protect_cursor: tag` (ICE-2.23)."""
        if self._config.protect_cursor == "tag":
            self._patiently(self._tag, pipeline, checkpoint)

    def has_lost(self, window: InstantRange) -> bool:
        """Return False: the table itself tells of its snapshots."""
        del window
        return False

    def missing(self, checkpoint: Instant, start: Instant | None) -> Iterator[TidegateError]:
        """Name nothing: the table itself tells of its snapshots."""
        del checkpoint, start
        return iter(())

    def _tag(self, pipeline: str, checkpoint: Instant) -> None:
        # Opened at each attempt: a tag is refused where another writer came between.
        tag_checkpoint(self._opener.open(), self.name, pipeline, checkpoint)

    def _lies_past_end(self, pin: Pin, after: Instant) -> bool:
        """Return whether `source.end` was set to a snapshot before the checkpoint."""
        behind, end = pin.details["ref_head"], pin.head
        if self._config.end is None or behind is None:
            return False
        whole = History(self.name, self._table(pin).metadata, behind, self._time_key)
        later = {str(snapshot.snapshot_id) for snapshot in whole.after(end)}
        return after.id in later

    def retained(self, pin: Pin) -> tuple[Instant, ...]:
        """List the retained ancestors of the head, and the head."""
        return self._ancestors(pin, pin.head) if pin.head is not None else ()

    def history(
        self,
        pin: Pin,
        before: Instant,
        interval: DataInterval,  # noqa: ARG002 (a snapshot's time may lie before its parent's)
    ) -> tuple[Instant, ...]:
        """List the retained ancestors up to and including an instant; none off its lineage."""
        return self._ancestors(pin, before)

    def check_history(self, pin: Pin, before: Instant, interval: DataInterval) -> None:
        """Do nothing: what a retained snapshot lists does not change."""

    def _ancestors(self, pin: Pin, before: Instant) -> tuple[Instant, ...]:
        history = self._history(pin)
        if not history.cursor(before).state.joins_on:
            return ()
        return tuple(history.instant(snapshot) for snapshot in history.up_to(before))

    def describe(self, pin: Pin, instants: Sequence[Instant]) -> list[InstantReport]:
        """Say from the snapshot summaries what commits did.

        Raises:
            SnapshotNotFound: a commit was expired.
        """
        history = self._history(pin)
        return [_report(instant, history.snapshot(instant.id)) for instant in instants]

    def volumes(
        self, pin: Pin, after: Instant | None, instants: Sequence[Instant]
    ) -> Iterator[Volume] | None:
        """Say from the snapshot summaries how much snapshots bring; None before a full read."""
        read, table = self._config.read, self._table(pin)
        if read.mode == "snapshot" or (after is None and self._config.start.kind == "full"):
            return None
        history = self._history(pin)
        return volumes(
            (history.snapshot(instant.id) for instant in instants),
            ManifestReader(table.io, self.name),
            only_appends=not read.emits_kinds,
        )

    def split_defaults(self, pin: Pin) -> Mapping[str, int]:
        """Return the table properties `read.split.*`."""
        return split_defaults(self._table(pin).metadata.properties)

    def footer_bounds(self, piece: Piece, column: EventColumn) -> TimeBounds | None:
        """Read the bounds of a column from the footer of a Parquet file."""
        return self._patiently(self._footer_bounds, piece, column)

    def units(
        self,
        pin: Pin,
        window: InstantRange,
        *,
        whole: bool = False,
        event_time: EventColumn | None = None,
        enough: int | None = None,
    ) -> Units:
        """List the data files of a window (ICE-3.7), or of a snapshot if the window has no start.

        Raises:
            NonAppendSnapshot, SnapshotClassMismatch: see `WindowFiles.after`.
            UnsupportedFeature: see `ChangeReader`.
            HistoryTruncated: a window from the beginning, and the beginning was expired.
            SnapshotNotFound: the window's end was expired.
        """
        # A filter that rules out no file may still leave rows out of each.
        enough = enough if self._config.read.filter is None else None
        return self._patiently(self._units, pin, window, whole, event_time, enough)

    def _units(
        self,
        pin: Pin,
        window: InstantRange,
        whole: bool,
        event_time: EventColumn | None,
        enough: int | None,
    ) -> Units:
        table = self._table(pin)
        # The filter may name columns that are not read out, so it is bound to the whole schema.
        schema = table.metadata.schema_by_id(pin.details["schema_id"]) or table.schema()
        pruning = Pruning(schema, table.specs(), self._config.read.filter)
        bounds = EventBounds.of(schema, event_time) if event_time else None
        metric_ids = (bounds.field_id,) if bounds else ()
        manifests = ManifestReader(table.io, self.name)
        history = self._history(pin, int(window.end_inclusive.id))
        rules = delete_rules(self.name, table.metadata, self._config.path_match)
        files = WindowFiles(
            config=self._config,
            history=history,
            format_version=table.metadata.format_version,
            rules=rules,
            appends=ChangeReader(self.name, manifests, pruning, metric_ids),
            states=StateReader(manifests, pruning, rules, metric_ids),
            make=PieceMaker(table.specs(), bounds),
            rebuilding=self._rebuilding,
            enough=enough,
        )
        start = window.start_exclusive
        whole = whole or self._config.read.mode == "snapshot"
        actions: tuple[InstantAction, ...] = ()
        if whole or (start is None and self._config.start.kind == "full"):
            planned = files.whole()
        else:
            planned = files.after(start)
            actions = instant_actions(history, window, self._config.read, planned.skipped)
        return Units(
            pieces=tuple(planned.pieces),
            notes=planned.sentences() + self._notes(history, window),
            checks=tuple(planned.checks),
            listed=listed(planned, manifests, actions),
            refusal=planned.refusal,
        )

    def row_groups(self, piece: Piece) -> tuple[RowGroup, ...]:
        """Read the row groups of a data file."""
        return self._patiently(self._row_groups, piece)

    def _footer_bounds(self, piece: Piece, column: EventColumn) -> TimeBounds | None:
        table = next(iter(self._tables.values()))
        bounds = EventBounds.of(table.schema(), column)
        if bounds is None:
            return None
        with open_rows(table.io, piece.slice, self.name) as rows:
            return bounds.read_footer(rows)

    def _row_groups(self, piece: Piece) -> tuple[RowGroup, ...]:
        files = (
            next(iter(self._tables.values())).io if self._tables else self._opener.files(piece.path)
        )
        with open_rows(files, piece.slice, self.name) as file:
            return file.row_groups

    def schema(self, pin: Pin) -> pa.Schema:
        """Return the schema of conformed batches."""
        return self.reader(pin).schema

    def settling(self, pin: Pin) -> SettleRules | None:
        """Return what `settle_rules` said when the table was pinned."""
        raw = pin.details["settling"]
        return None if raw is None else SettleRules.from_json(raw)

    def reader(self, pin: Pin) -> IcebergReader:
        """Return the reading side; in a task it opens files without asking the catalog."""
        location = pin.details["metadata"]
        table = self._tables.get(location)
        files: FileIO = table.io if table else self._opener.files(location)
        return IcebergReader(pin, files, self.name, self._config)

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

    def _pinned(
        self,
        table: Table,
        head: int | None,
        ref: Mapping[str, str | int | None],
        *,
        own_schema: bool = False,
    ) -> Pin:
        metadata = table.metadata
        history = History(self.name, metadata, head, self._time_key)
        wanted = self._config.read.read_schema
        own_schema = wanted == "snapshot" or (own_schema and wanted is None)
        whole = _schema_of(metadata, history.head) if own_schema else metadata.schema()
        details = {
            "metadata": table.metadata_location,
            **ref,
            **pinned_selection(metadata, whole, self._config, self._extra_columns, self.name),
            "format_version": metadata.format_version,
        }
        pin = Pin(
            str(metadata.table_uuid),
            history.instant(history.head) if history.head else None,
            (),
            details,
        )
        reader = IcebergReader(pin, table.io, self.name, self._config)
        columns = pinned_columns(reader.schema)
        return Pin(pin.identity, pin.head, columns, details)

    @property
    def _time_key(self) -> str | None:
        return self._config.instant_time.summary if self._config.instant_time else None

    def _table(self, pin: Pin) -> Table:
        """Return the pinned metadata; if its file is gone, newer metadata of the same table."""
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

    def _notes(self, history: History, window: InstantRange) -> tuple[str, ...]:
        if window.start_exclusive is not None:
            return ()
        if history.may_be_truncated:
            oldest = history.ancestors[0]
            return (
                f"history may be truncated: the oldest kept snapshot {oldest.snapshot_id} "
                f"has sequence number {oldest.sequence_number} (ICE-2.16)",
            )
        if self._config.start.kind == "earliest" and not history.counts_commits:
            return ("unknown whether history is truncated: format 1 counts no commits (ICE-2.16)",)
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
