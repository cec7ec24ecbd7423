"""Find the files with the changes of a window, by commit or from end to end (ICE-3.9–3.19).

A file whose presence and deletes a commit did not change is never listed, so it is never opened.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tidegate.errors import (
    ChangelogParentMissing,
    LineageUnavailable,
    SnapshotNotFound,
    SourceFileGone,
)
from tidegate.model.file_slice import Change, CheckedState
from tidegate.source.iceberg.changes.states import ChangedFile
from tidegate.source.iceberg.manifests.tally import skipped_notes, tally_notes
from tidegate.source.iceberg.timeline.history import operation

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence

    from pyiceberg.table.snapshots import Snapshot

    from tidegate.errors import TidegateError
    from tidegate.model.instant import Instant
    from tidegate.model.plan import Piece
    from tidegate.model.time_bounds import TimeBounds
    from tidegate.source.iceberg.changes.pieces import PieceMaker
    from tidegate.source.iceberg.changes.states import LiveFile, State, StateReader
    from tidegate.source.iceberg.timeline.history import History

_ROW_LINEAGE_FORMAT = 3


@dataclass
class PlannedFiles:
    """The files of a window in source order, and what was skipped."""

    pieces: list[Piece] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    """Class of commit → how many were skipped."""
    tally: Counter[str] = field(default_factory=Counter)
    """What was pruned or applies to nothing, counted as in `manifests.tally`."""
    notes: tuple[str, ...] = ()
    checks: list[Piece] = field(default_factory=list)
    """Files of the states before and after each commit, if its changes are checked."""
    refusal: TidegateError | None = None
    """The reason why no pipeline may publish the rows."""
    removed: tuple[TimeBounds, ...] = ()
    """Event times of rows that skipped commits removed from earlier windows."""
    left_out: list[Piece] = field(default_factory=list)
    """Files that skipped commits added."""

    def sentences(self) -> tuple[str, ...]:
        """Return what was skipped, one sentence each."""
        return self.notes + skipped_notes(self.skipped) + tally_notes(self.tally)


class ChangePlanner:
    """Plans change reads of one table."""

    def __init__(
        self, history: History, states: StateReader, make: PieceMaker, *, verify: bool = False
    ) -> None:
        """Prepare.

        Args:
            history: the history up to the end of the window.
            states: of the same metadata.
            make: makes pieces of its files.
            verify: also list the files that are needed to check the changes (ICE-3.17).
        """
        self._verify = verify
        self._history = history
        self._states = states
        self._make = make

    def changelog(
        self, snapshots: Sequence[Snapshot], unreadable: Collection[int] = ()
    ) -> PlannedFiles:
        """List the changes of each commit; commits that only rewrite files are skipped.

        Args:
            snapshots: a range of the lineage, oldest first.
            unreadable: commits that a policy skips, because the state before them is gone.

        Raises:
            ChangelogParentMissing: the state before a commit is not retained (ICE-3.12).
        """
        planned = PlannedFiles()
        ordinal = 0
        for snapshot in snapshots:
            if operation(snapshot) == "replace":
                planned.skipped["replace"] += 1
            elif snapshot.snapshot_id in unreadable:
                planned.skipped["unreadable"] += 1
            else:
                self._add(planned, self._parent(snapshot), snapshot, ordinal)
                ordinal += 1
        return planned

    def difference(self, before: Snapshot | None, after: Snapshot) -> PlannedFiles:
        """List the difference between two states, as one commit (ICE-3.18)."""
        planned = PlannedFiles()
        self._add(planned, before, after, 0, net=True)
        return planned

    def whole(self, head: Snapshot) -> PlannedFiles:
        """List a state as if one commit had inserted it (ICE-3.6)."""
        planned = PlannedFiles()
        state = self._states.state(head)
        planned.tally.update(state.tally)
        for file in state.files:
            changed = ChangedFile(file.entry, None, file.deletes, file.rivals)
            planned.pieces += self._pieces((changed,), head, 0)
        if self._verify:
            planned.checks += self._checks(None, head)
        return planned

    def upserts(self, head: Snapshot, start: Instant | None, format_version: int) -> PlannedFiles:
        """List the files that may have rows written since an instant (ICE-8.3).

        Raises:
            LineageUnavailable: the table does not tell when rows were written (ICE-8.5).
        """
        since = self._sequence_number(start, format_version)
        planned = PlannedFiles(notes=("rows that were deleted are not seen by lineage upserts",))
        state = self._states.state(head)
        planned.tally.update(state.tally)
        for file in state.files:
            entry = file.entry
            if not entry.rows or (since is not None and entry.sequence_number <= since):
                continue
            if since is not None and entry.first_row_id is None:
                raise LineageUnavailable(
                    source=self._history.source,
                    problem=f"{entry.path} was written without row ids",
                )
            planned.pieces.append(
                self._make.piece(entry, file.rivals, deltas=file.deletes, since=since)
            )
        return planned

    def before_all(self) -> Snapshot | None:
        """Return the state before the oldest retained commit; None if that is the empty table.

        Raises:
            ChangelogParentMissing: it is not retained.
        """
        return self._parent(self._history.ancestors[0])

    def _add(
        self,
        planned: PlannedFiles,
        before: Snapshot | None,
        after: Snapshot,
        ordinal: int,
        *,
        net: bool = False,
    ) -> None:
        try:
            difference = self._states.difference(before, after)
        except SourceFileGone as gone:
            raise self._missing(before, after, f"its file {gone.path} is gone") from gone
        planned.tally.update(difference.tally)
        planned.pieces += self._pieces(difference.files, after, ordinal, net=net)
        if self._verify:
            planned.checks += self._checks(before, after)

    def _checks(self, before: Snapshot | None, after: Snapshot) -> Iterator[Piece]:
        """List the files of both states, except those that are in both with the same deletes."""
        old = {} if before is None else _by_content(self._states.state(before))
        new = _by_content(self._states.state(after))
        for key, file in [*old.items(), *new.items()]:
            if file.entry.rows and not (key in old and key in new):
                check = CheckedState(after.snapshot_id, is_before=key in old)
                yield self._make.piece(file.entry, file.rivals, deltas=file.deletes, check=check)

    def _pieces(
        self,
        files: Iterable[ChangedFile],
        snapshot: Snapshot,
        ordinal: int,
        *,
        net: bool = False,
    ) -> Iterator[Piece]:
        commit = self._history.instant(snapshot)
        for file in files:
            if file.entry.rows:
                change = Change(
                    ordinal,
                    snapshot.snapshot_id,
                    file.before,
                    file.after,
                    net,
                    time=commit.time,
                    sequence=commit.sequence_number,
                )
                yield self._make.piece(file.entry, file.rivals, change=change)

    def _parent(self, snapshot: Snapshot) -> Snapshot | None:
        parent = snapshot.parent_snapshot_id
        if parent is None:
            return None
        found = self._retained(parent)
        if found is None:
            raise self._missing(None, snapshot, f"snapshot {parent} was expired")
        return found

    def _retained(self, snapshot_id: int) -> Snapshot | None:
        try:
            return self._history.snapshot(str(snapshot_id))
        except SnapshotNotFound:
            return None

    def _missing(
        self, before: Snapshot | None, after: Snapshot, problem: str
    ) -> ChangelogParentMissing:
        parent = before.snapshot_id if before else after.parent_snapshot_id
        return ChangelogParentMissing(
            source=self._history.source,
            snapshot=str(after.snapshot_id),
            parent=str(parent),
            problem=problem,
        )

    def _sequence_number(self, start: Instant | None, format_version: int) -> int | None:
        if format_version < _ROW_LINEAGE_FORMAT:
            problem = f"the table has format v{format_version}; v3 is the first with row lineage"
            raise LineageUnavailable(source=self._history.source, problem=problem)
        if start is None:
            return None
        known = self._retained(int(start.id))
        number = known.sequence_number if known else start.sequence_number
        if number is None:
            problem = f"the checkpoint {start.id} does not say its sequence number"
            raise LineageUnavailable(source=self._history.source, problem=problem)
        return number


def _by_content(state: State) -> dict[Hashable, LiveFile]:
    """Return what identifies a file's content: its rows, and the deletes that apply to them."""
    return {
        (file.entry.path, file.entry.sequence_number, frozenset(it.key for it in file.deletes)): (
            file
        )
        for file in state.files
    }
