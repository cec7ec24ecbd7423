"""What a source is asked about its files: which ones a window reads, and how they may be cut."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from tidegate.model.plan_record import Listed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tidegate.errors import TidegateError
    from tidegate.model.event_column import EventColumn
    from tidegate.model.instant import Instant, InstantRange
    from tidegate.model.plan import Piece, Pin
    from tidegate.model.time_bounds import TimeBounds
    from tidegate.model.volume import Volume
    from tidegate.physical import RowGroup


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


class TableHints(Protocol):
    """What a table tells of its files without their being read."""

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


def unnamed_rebuild(times: TimeBounds) -> str:
    """Write the command with its arguments left open, for who reads without a pipeline."""
    del times
    return "`tidegate rebuild PIPELINE PARTITION`"
