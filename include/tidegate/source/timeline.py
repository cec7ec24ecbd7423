"""The protocol of a source's instants: its head, its history, and what follows a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from tidegate.model.instant import Instant
from tidegate.model.plan import WindowKind
from tidegate.model.wire import SPARSE, Value

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from datetime import datetime

    from tidegate.errors import TidegateError
    from tidegate.model.instant import DataInterval, InstantRange
    from tidegate.model.plan import Piece, Pin
    from tidegate.model.report import CheckpointState


@dataclass(frozen=True)
class InstantReport(Value):
    """The changes of one source commit, from its summary; none of the table's files is opened."""

    instant: Instant
    operation: str
    """The source's own term: `append`, `overwrite`, `listing`."""
    files_added: int | None
    files_removed: int | None
    rows_added: int | None
    rows_removed: int | None
    summary: Mapping[str, str] = field(default_factory=dict)
    """Everything that the writer stored in the commit."""
    files_changed: int | None = field(default=None, metadata={SPARSE: True})
    """Files that are others under the same name; None if there are none."""


@dataclass(frozen=True)
class Following:
    """The instants that a window from a checkpoint may take, and what taking them means."""

    instants: tuple[Instant, ...]
    """The instants at which the window may end, in the source's order; empty if there are none."""
    start: Instant | None
    """The instant that the window begins after: the checkpoint, unless it begins again."""
    kind: WindowKind = WindowKind.LOAD
    joins_on: bool = True
    """Whether the history continues from the checkpoint; False if a policy decides how to go on."""


class Timeline(Protocol):
    """The instants of a source. Answers belong to a pin; only `pin` looks at the source's head."""

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
            expected_identity: the identity of the table in the ledger, if any.
            until: the end of what the run may take: a listing leaves out files that arrived at or
                after it, so that newer files do not delay older ones.
            after: the checkpoint, whose listing has the files that were taken in; None before the
                first load.

        Raises:
            SourceNotFound: there is no table.
            SourceUnreachable: catalog or store did not answer (Transient).
            TableIdentityChanged: the table was dropped and created again (ICE-2.3).
        """
        ...

    def at(self, pin: Pin, instant: Instant) -> Pin:
        """Return the same pin with an earlier head, for a batch read as of an instant."""
        ...

    def whole_at(self, pin: Pin, checkpoint: Instant) -> Pin:
        """Return the same pin with the checkpoint as its head, for a rebuild.

        Where what the checkpoint took in was changed in place, its head is an instant of its own,
        which has that as it is now, and nothing that came after the checkpoint.

        Raises:
            TidegateError: the source cannot be read as of the checkpoint.
        """
        ...

    def named(self, pin: Pin, text: str) -> Instant | None:
        """Find an instant by its id or another name of it; None for text that names none.

        Raises:
            SnapshotNotFound: the text is an id of Iceberg's, and no retained snapshot has it.
        """
        ...

    def as_of(self, pin: Pin, moment: datetime) -> Instant | None:
        """Find the last instant at or before a time; None if the history begins later.

        Raises:
            HistoryTruncated: what was there at that time is no longer retained.
        """
        ...

    def first_checkpoint(self, pin: Pin) -> Instant | None:
        """Return the instant that `source.start` begins after; None: the whole history."""
        ...

    def instants(self, pin: Pin, after: Instant | None) -> tuple[Instant, ...]:
        """List the instants after a checkpoint up to the pinned head, in the source's order.

        Raises:
            TidegateError: the history does not continue from the checkpoint; each kind of source
                has its own errors.
        """
        ...

    def following(self, pin: Pin, after: Instant | None) -> Following:
        """Return the instants that the next window after a checkpoint may take, as in `instants`.

        Raises:
            TidegateError: as `instants`.
        """
        ...

    def restarting(self, pin: Pin) -> Following:
        """Return what a pipeline takes that begins again at `source.start`, whatever it took in.

        Raises:
            TidegateError: the start cannot be found, as in `first_checkpoint`.
        """
        ...

    def checkpoint_state(self, pin: Pin, checkpoint: Instant) -> CheckpointState:
        """Return how a checkpoint relates to the pinned head, and the ways out."""
        ...

    def retained(self, pin: Pin) -> tuple[Instant, ...]:
        """List the retained instants up to the pinned head, in the source's order."""
        ...

    def history(self, pin: Pin, before: Instant, interval: DataInterval) -> tuple[Instant, ...]:
        """List the instants at which windows before the first one may end, in the source's order.

        Args:
            pin: the source as the run sees it.
            before: the boundary of `source.start`; no such window ends after it.
            interval: that of the run; may be used to list nothing if no instant can be in it.
        """
        ...

    def describe(self, pin: Pin, instants: Sequence[Instant]) -> list[InstantReport]:
        """Return the changes of commits."""
        ...


@dataclass(frozen=True)
class ChangedFiles:
    """Files that were taken in and changed since, are gone, or are back after they were gone."""

    paths: frozenset[str]
    """As plans name them."""
    said: str
    """The first few of them and how many more there are, for messages."""
    standing: tuple[Piece, ...]
    """Those that are there now, and those that came in their place."""
    pin: Pin
    """To read only some columns of these."""


class KeptHistory(Protocol):
    """The history that Tidegate keeps of a source without a history of its own."""

    def has_lost(self, window: InstantRange) -> bool:
        """Return whether a window can never be read again, because its records are gone."""
        ...

    def missing(self, checkpoint: Instant, start: Instant | None) -> Iterator[TidegateError]:
        """Yield errors, with remedies, for records that are not there as they were written.

        Args:
            checkpoint: the instant that the next window begins after.
            start: the boundary of `source.start`, before which windows may still be taken.
        """
        ...

    def changed(self, pin: Pin, checkpoint: Instant, columns: Collection[str]) -> ChangedFiles:
        """Compare the files of a pin with those that were taken in.

        Args:
            pin: the source as the run sees it, or as a rebuild reads it.
            checkpoint: the instant up to which files were taken in.
            columns: those that are read of changed files.

        Returns:
            No file, if the pipeline file lets rows of changed files stay.
        """
        ...

    def check_history(self, pin: Pin, before: Instant, interval: DataInterval) -> None:
        """Compare what came in an interval with what stands, before a first window over it.

        Args:
            pin: the source as the run sees it.
            before: as for `history`.
            interval: the interval of the wanted instants.

        Raises:
            HistoryChanged: the source no longer has these changes as they arrived.
        """
        ...


class Protection(Protocol):
    """Protects a checkpoint from expiry in its source."""

    def protect(self, pipeline: str, checkpoint: Instant) -> None:
        """Protect a pipeline's checkpoint from expiry.

        May be repeated; the protection of an older checkpoint ends (ICE-2.23).

        Raises:
            SourceUnreachable: the catalog did not store it (Transient).
        """
        ...
