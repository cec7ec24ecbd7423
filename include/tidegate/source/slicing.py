"""The protocol of a source's files: those that a window reads, and how they may be cut."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from tidegate.model.plan_record import Listed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    import pyarrow as pa

    from tidegate.errors import TidegateError
    from tidegate.model.event_column import EventColumn
    from tidegate.model.instant import Instant, InstantRange
    from tidegate.model.plan import Piece, Pin
    from tidegate.model.time_bounds import TimeBounds
    from tidegate.model.volume import Volume
    from tidegate.physical import RowGroup


@dataclass(frozen=True)
class LeftOut:
    """The files of commits that a window passes over; only what decides the partition is read."""

    pieces: tuple[Piece, ...]
    times: tuple[TimeBounds, ...]
    """The event times of their rows, without bounds where they are not known."""
    narrowed: Callable[[Collection[str]], Pin]
    """Returns the pin with some of the columns."""


@dataclass(frozen=True)
class NarrowFile:
    """A file that lacks columns, in which they are read as NULL."""

    path: str
    lacks: frozenset[str]
    """Columns of the read schema."""


@dataclass(frozen=True)
class Units:
    """The whole files of a window in source order, and what was left out (ICE-1.4)."""

    pieces: tuple[Piece, ...]
    notes: tuple[str, ...] = ()
    """One sentence per skipped commit class, pruning step or doubt, for plan and report."""
    listed: Listed = field(default_factory=Listed)
    """The numbers of what was opened and left out."""
    checks: tuple[Piece, ...] = ()
    """Additional files that are only read to check the others; they return no rows."""
    replaced: tuple[Mapping[str, pa.Scalar], ...] | None = None
    """The source's own partitions that are read whole, because they changed: column → value.

    None: what is read comes on top of what earlier windows read, or in place of all of it.
    """
    left_out: LeftOut | None = field(default=None, compare=False)
    """Rows that came with commits that the read passes over; None: there are none."""
    narrow: tuple[NarrowFile, ...] = field(default=(), compare=False)
    """One file for each set of columns that files lack, where nothing tells whether they had them
    by another name."""
    refusal: TidegateError | None = field(default=None, compare=False)
    """Why no pipeline may publish the rows, although they can be read."""

    def __iter__(self) -> Iterator[Piece]:
        return iter(self.pieces)

    def __len__(self) -> int:
        return len(self.pieces)


class Rebuilding(Protocol):
    """Provides commands for messages; a source knows neither the pipeline nor its partitions."""

    def __call__(self, times: Sequence[TimeBounds]) -> str:
        """Return the command that reads the rows of event times again.

        If some are not known, it is the command for every partition.
        """
        ...


class Slicing(Protocol):
    """The files of a source's windows."""

    def units(
        self,
        pin: Pin,
        window: InstantRange,
        *,
        whole: bool = False,
        event_time: EventColumn | None = None,
        enough: int | None = None,
    ) -> Units:
        """List the whole files of a window, in source order, after pruning by the filter.

        A window without a start reads the table as of its end if the pipeline starts `full` or
        reads snapshots; otherwise everything appended since the oldest retained instant. With
        `whole`, it reads the table as of the end, wherever the pipeline starts, as a rebuild does.
        With `event_time`, the pieces have the column's bounds. With `enough`, listing may stop once
        the files have that many rows, if nothing filters or deletes them.
        """
        ...

    def row_groups(self, piece: Piece) -> tuple[RowGroup, ...]:
        """Read the row groups of the piece's file from its footer."""
        ...

    def replaced_columns(self, pin: Pin) -> tuple[str, ...]:
        """Return the partition columns of the source, if windows replace its partitions whole."""
        ...


class TableHints(Protocol):
    """Hints of a table about files that are not read."""

    def volumes(
        self, pin: Pin, after: Instant | None, instants: Sequence[Instant]
    ) -> Iterator[Volume] | None:
        """Return the volume of each instant after a checkpoint, one after the other.

        Returns:
            None if a window that ends at any of them reads one whole state: ending it earlier would
            gain nothing.
        """
        ...

    def split_defaults(self, pin: Pin) -> Mapping[str, int]:
        """Return the table's own settings for splits, as keys of `source.split` (ICE-5.6)."""
        ...

    def footer_bounds(self, piece: Piece, column: EventColumn) -> TimeBounds | None:
        """Read the bounds of a column from a file's footer; None if it has none either."""
        ...


def unnamed_rebuild(times: Sequence[TimeBounds]) -> str:
    """Return the command with placeholders, for reads of a pipeline that is not loaded."""
    del times
    return "`tidegate rebuild PIPELINE PARTITION`"
