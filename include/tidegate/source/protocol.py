"""What every kind of source can do: pin, name instants, list a window's files, read them.

Planning happens once, in one process (`Source`); reading happens in many tasks (`SliceReader`),
which get the pin from the plan and never look at the source's head again (ICE-2.2).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from tidegate.model.instant import DataInterval, Instant, InstantRange
from tidegate.model.plan import WindowKind
from tidegate.model.plan_record import Listed
from tidegate.model.wire import Value

if TYPE_CHECKING:
    from datetime import datetime

    import pyarrow as pa

    from tidegate.errors import TidegateError
    from tidegate.model.ignored_deletes import IgnoredDeletes
    from tidegate.model.plan import Piece, Pin
    from tidegate.model.report import CheckpointState
    from tidegate.model.settling import SettleRules
    from tidegate.model.time_bounds import TimeBounds
    from tidegate.physical import RowGroup
    from tidegate.read.merge import ReadOptions


@dataclass(frozen=True)
class InstantReport(Value):
    """What one source commit did, from its summary; nothing of the table's files is opened."""

    instant: Instant
    operation: str
    """As the source names it: `append`, `overwrite`, `listing`."""
    files_added: int | None
    files_removed: int | None
    rows_added: int | None
    rows_removed: int | None
    summary: Mapping[str, str] = field(default_factory=dict)
    """Everything that the writer put into the commit."""


@dataclass(frozen=True)
class EventColumn:
    """The column whose bounds a plan wants to know of every file (ICE-5.10)."""

    name: str
    timezone: str
    """Of times that name no zone."""
    unit: str = "us"
    """What a column of whole numbers counts since 1970."""


@dataclass(frozen=True)
class Volume:
    """How much one instant brings to read, as far as the source's summaries tell (ICE-5.11)."""

    files: int
    bytes: int
    rows: int


@dataclass(frozen=True)
class Following:
    """What a window that begins at a checkpoint may take, and what taking it means."""

    instants: tuple[Instant, ...]
    """At which the window may end, in the source's order; none where there is nothing to take."""
    start: Instant | None
    """What the window begins after: the checkpoint, unless it begins anew."""
    kind: WindowKind = WindowKind.LOAD
    joins_on: bool = True
    """Whether the checkpoint joins on to the head; False where a policy says how to go on."""


@dataclass(frozen=True)
class Units:
    """The whole files of a window in source order, and what was left out on the way (ICE-1.4)."""

    pieces: tuple[Piece, ...]
    notes: tuple[str, ...] = ()
    """One sentence per skipped commit class, pruning step or doubt, for plan and report."""
    listed: Listed = field(default_factory=Listed)
    """What was opened and left out, in numbers."""
    checks: tuple[Piece, ...] = ()
    """Files that are read besides, to check what is read of the others; they give no rows."""
    refusal: TidegateError | None = field(default=None, compare=False)
    """Why no pipeline may publish the rows, which can be read nevertheless."""

    def __iter__(self) -> Iterator[Piece]:
        return iter(self.pieces)

    def __len__(self) -> int:
        return len(self.pieces)


class Rebuilding(Protocol):
    """Writes commands for messages; a source knows neither the pipeline nor its partitions."""

    def __call__(self, times: TimeBounds) -> str:
        """Write the command that reads what lies between two event times again.

        Where they are not known, that of every partition.
        """
        ...


class SliceReader(Protocol):
    """Merge-reads the file slices of one pin inside tasks; used by one thread at a time."""

    @property
    def schema(self) -> pa.Schema:
        """Of the batches that come out."""
        ...

    @property
    def ignored(self) -> IgnoredDeletes:
        """Deletes that hit nothing in what was read so far (ICE-4.10)."""
        ...

    def batches(self, piece: Piece, options: ReadOptions) -> Iterator[pa.RecordBatch]:
        """Read the rows of a piece that are wanted, its deltas applied, in bounded memory.

        Yields:
            Batches of `schema` with at least one row, in the order of the base file; of changes
            each row with its kind, not settled yet.

        Raises:
            SourceFileGone, SourceFileDamaged, ColumnUnreadable, StorageSilent: see `open_piece`.
            SchemaIncompatible: a column cannot become what the schema says.
            TidegateError: deltas cannot be read; each kind of source has its own.
        """
        ...


class Source(Protocol):
    """Where changes come from. Answers belong to a pin; only `pin` looks at the source's head."""

    @property
    def name(self) -> str:
        """The source's name for people."""
        ...

    def places(self) -> tuple[str, ...]:
        """Name the directories of this machine that hold the source's files."""
        ...

    def pin(
        self,
        now: datetime,
        expected_identity: str | None = None,
        until: datetime | None = None,
        after: Instant | None = None,
    ) -> Pin:
        """Look at the source once.

        Args:
            now: the clock of the run; no listing of files is newer than that.
            expected_identity: what the ledger knows of the table, if anything.
            until: end of what the run may take: a listing leaves out files that came at or after
                it, so that younger files beside them do not keep the older ones back.
            after: the checkpoint, whose listing says what was taken in; None before the first load.

        Raises:
            SourceNotFound: there is no table.
            SourceUnreachable: catalog or store did not answer (Transient).
            TableIdentityChanged: the table was dropped and made again (ICE-2.3).
        """
        ...

    def at(self, pin: Pin, instant: Instant) -> Pin:
        """Return the same pin with an earlier head: what a batch read as of an instant uses."""
        ...

    def whole_at(self, pin: Pin, checkpoint: Instant) -> Pin:
        """Return the same pin with the checkpoint as its head: what a rebuild is taken on.

        Raises:
            TidegateError: what stands there now cannot be read whole as of the checkpoint.
        """
        ...

    def instant(self, pin: Pin, text: str) -> Instant:
        """Find an instant by its id, or the last one at or before an ISO time.

        Raises:
            InstantNotFound: there is none (for Iceberg ids: SnapshotNotFound).
        """
        ...

    def first_checkpoint(self, pin: Pin) -> Instant | None:
        """Return the instant that `source.start` begins after; None is the whole history."""
        ...

    def instants(self, pin: Pin, after: Instant | None) -> tuple[Instant, ...]:
        """List the instants after a checkpoint up to the pinned head, in the source's order.

        Raises:
            TidegateError: the checkpoint does not join on to the head; each kind of source has its
                own.
        """
        ...

    def following(self, pin: Pin, after: Instant | None) -> Following:
        """Return what the next window after a checkpoint may take, as `instants` lists it.

        Raises:
            TidegateError: as `instants`.
        """
        ...

    def checkpoint_state(self, pin: Pin, checkpoint: Instant) -> CheckpointState:
        """Return how a checkpoint stands to the pinned head, and which ways there are to go on."""
        ...

    def protect(self, pipeline: str, checkpoint: Instant) -> None:
        """Keep the source from forgetting a checkpoint, if the pipeline file asks for it.

        May be repeated; an older checkpoint's protection ends with it (ICE-2.23).

        Raises:
            SourceUnreachable: the catalog did not take it (Transient).
        """
        ...

    def has_lost(self, window: InstantRange) -> bool:
        """Return whether a window can never be read again: what told of it was kept by Tidegate.

        False where the source itself tells, whether it still does or not.
        """
        ...

    def missing(self, checkpoint: Instant, start: Instant | None) -> Iterator[TidegateError]:
        """Name what Tidegate kept of the source and is not there as written, with what helps.

        Nothing where the source itself tells.

        Args:
            checkpoint: what the next window begins after.
            start: what `source.start` came to, before which windows may still be taken.
        """
        ...

    def retained(self, pin: Pin) -> tuple[Instant, ...]:
        """List the retained instants up to the pinned head, in the source's order."""
        ...

    def history(self, pin: Pin, before: Instant, interval: DataInterval) -> tuple[Instant, ...]:
        """List the instants at which windows before the first one may end, in the source's order.

        Args:
            pin: the source as the run sees it.
            before: what `source.start` came to: no such window ends after it.
            interval: the run's; none need be listed where none of them can lie in it.
        """
        ...

    def check_history(self, pin: Pin, before: Instant, interval: DataInterval) -> None:
        """Compare what came in an interval with what stands, before a first window over it.

        Args:
            pin: the source as the run sees it.
            before: as for `history`.
            interval: which of its instants are wanted.

        Raises:
            HistoryChanged: it is not there as it came.
        """
        ...

    def describe(self, pin: Pin, instants: Sequence[Instant]) -> list[InstantReport]:
        """Return what commits did."""
        ...

    def volumes(
        self, pin: Pin, after: Instant | None, instants: Sequence[Instant]
    ) -> Iterator[Volume] | None:
        """Return how much each of the instants after a checkpoint brings, one after the other.

        Returns:
            None where a window that ends at any of them reads one whole state: then nothing is
            gained by ending it earlier.
        """
        ...

    def split_defaults(self, pin: Pin) -> Mapping[str, int]:
        """Return what the table itself says of splits: keys of `source.split` (ICE-5.6)."""
        ...

    def footer_bounds(self, piece: Piece, column: EventColumn) -> TimeBounds | None:
        """Read the bounds of a column from a file's footer; None where that does not say either."""
        ...

    def units(
        self,
        pin: Pin,
        window: InstantRange,
        *,
        whole: bool = False,
        event_time: EventColumn | None = None,
        enough: int | None = None,
    ) -> Units:
        """List the files that a window brings, whole, in source order, after pruning by the filter.

        A window without a start is read as the table stands at its end if the pipeline starts
        `full` or reads snapshots; otherwise as everything appended since the oldest retained
        instant. With `whole` it is the table as it stands at the end, wherever the pipeline starts:
        what a rebuild reads. With `event_time` the pieces carry the column's bounds. With `enough`
        listing may stop once the files have as many rows, where nothing filters or deletes them.
        """
        ...

    def row_groups(self, piece: Piece) -> tuple[RowGroup, ...]:
        """Read the row groups of the piece's file from its footer."""
        ...

    def schema(self, pin: Pin) -> pa.Schema:
        """Return the schema of the batches that come out of `reader(pin)`."""
        ...

    def settling(self, pin: Pin) -> SettleRules | None:
        """Return how changes are settled that are read as of a pin; None where nothing is."""
        ...

    def reader(self, pin: Pin) -> SliceReader:
        """Return the reading side, bound to the pinned schema; looks at nothing."""
        ...


def unnamed_rebuild(times: TimeBounds) -> str:
    """Write the command with its arguments left open, for who reads without a pipeline."""
    del times
    return "`tidegate rebuild PIPELINE PARTITION`"


def pinned_columns(schema: pa.Schema) -> tuple[tuple[str, str], ...]:
    """Write a schema as `Pin.schema` holds it."""
    return tuple((column.name, str(column.type)) for column in schema)
