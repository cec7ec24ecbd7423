"""The protocol of a source's instants: its head, its history, and what follows a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from tidegate.model.instant import Instant
from tidegate.model.plan import WindowKind
from tidegate.model.wire import Value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from tidegate.errors import TidegateError
    from tidegate.model.instant import DataInterval, InstantRange
    from tidegate.model.plan import Pin
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

    def describe(self, pin: Pin, instants: Sequence[Instant]) -> list[InstantReport]:
        """Return what commits did."""
        ...


class KeptHistory(Protocol):
    """What Tidegate itself keeps of a source that does not tell of its past."""

    def has_lost(self, window: InstantRange) -> bool:
        """Return whether a window can never be read again, since what told of it is gone."""
        ...

    def missing(self, checkpoint: Instant, start: Instant | None) -> Iterator[TidegateError]:
        """Name what is not there as it was written, with what helps.

        Args:
            checkpoint: what the next window begins after.
            start: what `source.start` came to, before which windows may still be taken.
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


class Protection(Protocol):
    """Keeps a source from forgetting a checkpoint."""

    def protect(self, pipeline: str, checkpoint: Instant) -> None:
        """Keep the source from forgetting a pipeline's checkpoint.

        May be repeated; an older checkpoint's protection ends with it (ICE-2.23).

        Raises:
            SourceUnreachable: the catalog did not take it (Transient).
        """
        ...
