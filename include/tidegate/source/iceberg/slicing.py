"""The files of an Iceberg table's windows, and hints from its metadata."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from tidegate.model.time_bounds import TimeBounds
from tidegate.source.iceberg.changes.appends import ChangeReader
from tidegate.source.iceberg.changes.listed import instant_actions, listed
from tidegate.source.iceberg.changes.pieces import PieceMaker
from tidegate.source.iceberg.changes.states import StateReader
from tidegate.source.iceberg.changes.volumes import split_defaults, volumes
from tidegate.source.iceberg.changes.window_files import WindowFiles
from tidegate.source.iceberg.columns.selection import narrowed
from tidegate.source.iceberg.deletes.rules import delete_rules
from tidegate.source.iceberg.manifests.decode import ManifestReader
from tidegate.source.iceberg.manifests.event_bounds import EventBounds
from tidegate.source.iceberg.manifests.pruning import Pruning
from tidegate.source.iceberg.reading.reader import open_rows
from tidegate.source.slicing import LeftOut, Units

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tidegate.model.event_column import EventColumn
    from tidegate.model.instant import Instant, InstantRange
    from tidegate.model.plan import Piece, Pin
    from tidegate.model.plan_record import InstantAction
    from tidegate.model.volume import Volume
    from tidegate.physical import RowGroup
    from tidegate.source.iceberg.access import TableAccess
    from tidegate.source.iceberg.timeline.history import History
    from tidegate.source.slicing import Rebuilding


def _left_out(pieces: Sequence[Piece], pin: Pin) -> LeftOut | None:
    times = tuple(dict.fromkeys(piece.event_times or TimeBounds() for piece in pieces))
    return LeftOut(tuple(pieces), times, functools.partial(narrowed, pin)) if pieces else None


class ManifestSlicing:
    """The `Slicing` of one table."""

    def __init__(self, access: TableAccess, rebuilding: Rebuilding | None) -> None:
        """Prepare.

        Args:
            access: to the table.
            rebuilding: returns the command that reads a time range again, for messages; None: no
                pipeline reads.
        """
        self._access = access
        self._rebuilding = rebuilding

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
        # A filter that rules out no file may still exclude rows of each.
        enough = enough if self._access.config.read.filter is None else None
        return self._access.patiently(self._units, pin, window, whole, event_time, enough)

    def row_groups(self, piece: Piece) -> tuple[RowGroup, ...]:
        """Read the row groups of a data file."""
        return self._access.patiently(self._row_groups, piece)

    def replaced_columns(self, pin: Pin) -> tuple[str, ...]:
        """Return none: windows add rows, or replace everything."""
        del pin
        return ()

    def _units(
        self,
        pin: Pin,
        window: InstantRange,
        whole: bool,
        event_time: EventColumn | None,
        enough: int | None,
    ) -> Units:
        table = self._access.table(pin)
        # The filter may name columns that are not selected, so it is bound to the whole schema.
        schema = table.metadata.schema_by_id(pin.details["schema_id"]) or table.schema()
        pruning = Pruning(schema, table.specs(), self._access.config.read.filter)
        bounds = EventBounds.of(schema, event_time) if event_time else None
        metric_ids = (bounds.field_id,) if bounds else ()
        manifests = ManifestReader(table.io, self._access.name)
        history = self._access.history(pin, int(window.end_inclusive.id))
        rules = delete_rules(self._access.name, table.metadata, self._access.config.path_match)
        files = WindowFiles(
            config=self._access.config,
            history=history,
            format_version=table.metadata.format_version,
            rules=rules,
            appends=ChangeReader(self._access.name, manifests, pruning, metric_ids),
            states=StateReader(manifests, pruning, rules, metric_ids),
            make=PieceMaker(table.specs(), bounds),
            rebuilding=self._rebuilding,
            enough=enough,
        )
        start = window.start_exclusive
        whole = whole or self._access.config.read.mode == "snapshot"
        actions: tuple[InstantAction, ...] = ()
        if whole or (start is None and self._access.config.start.kind == "full"):
            planned = files.whole()
        else:
            planned = files.after(start)
            actions = instant_actions(history, window, self._access.config.read, planned.skipped)
        return Units(
            pieces=tuple(planned.pieces),
            notes=planned.sentences() + self._notes(history, window),
            checks=tuple(planned.checks),
            listed=listed(planned, manifests, actions),
            left_out=_left_out(planned.left_out, pin),
            refusal=planned.refusal,
        )

    def _row_groups(self, piece: Piece) -> tuple[RowGroup, ...]:
        table = self._access.opened
        files = table.io if table else self._access.opener.files(piece.path)
        with open_rows(files, piece.slice, self._access.name) as file:
            return file.row_groups

    def _notes(self, history: History, window: InstantRange) -> tuple[str, ...]:
        if window.start_exclusive is not None:
            return ()
        if history.may_be_truncated:
            oldest = history.ancestors[0]
            return (
                f"history may be truncated: the oldest kept snapshot {oldest.snapshot_id} "
                f"has sequence number {oldest.sequence_number}",
            )
        if self._access.config.start.kind == "earliest" and not history.counts_commits:
            return ("unknown whether history is truncated: format 1 counts no commits",)
        return ()


class ManifestHints:
    """The `TableHints` of one table, from summaries, properties and footers."""

    def __init__(self, access: TableAccess) -> None:
        """Prepare."""
        self._access = access

    def volumes(
        self, pin: Pin, after: Instant | None, instants: Sequence[Instant]
    ) -> Iterator[Volume] | None:
        """Return the volumes of snapshots from their summaries; None before a full read."""
        read, table = self._access.config.read, self._access.table(pin)
        if read.mode == "snapshot" or (after is None and self._access.config.start.kind == "full"):
            return None
        history = self._access.history(pin)
        return volumes(
            (history.snapshot(instant.id) for instant in instants),
            ManifestReader(table.io, self._access.name),
            only_appends=not read.emits_kinds,
        )

    def split_defaults(self, pin: Pin) -> Mapping[str, int]:
        """Return the table properties `read.split.*`."""
        return split_defaults(self._access.table(pin).metadata.properties)

    def footer_bounds(self, piece: Piece, column: EventColumn) -> TimeBounds | None:
        """Read the bounds of a column from the footer of a Parquet file."""
        return self._access.patiently(self._footer_bounds, piece, column)

    def _footer_bounds(self, piece: Piece, column: EventColumn) -> TimeBounds | None:
        table = self._access.opened
        bounds = EventBounds.of(table.schema(), column) if table else None
        if table is None or bounds is None:
            return None
        with open_rows(table.io, piece.slice, self._access.name) as rows:
            return bounds.read_footer(rows)
