"""List the files that a window reads, by read mode and the history between its ends (ICE-3.6)."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.errors import HistoryTruncated
from tidegate.model.time_bounds import TimeBounds
from tidegate.source.iceberg.changes.changelog import ChangePlanner, PlannedFiles
from tidegate.source.iceberg.changes.non_append import (
    is_passed_over,
    passing_over,
    refusal,
    removed_times,
)
from tidegate.source.iceberg.timeline.continuing import Continuation, within_window

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyiceberg.table.snapshots import Snapshot

    from tidegate.config import IcebergSourceConfig
    from tidegate.model.instant import Instant
    from tidegate.source.iceberg.changes.appends import ChangeReader, Commit
    from tidegate.source.iceberg.changes.passed_over import TakenAway
    from tidegate.source.iceberg.changes.pieces import PieceMaker
    from tidegate.source.iceberg.changes.states import StateReader
    from tidegate.source.iceberg.deletes.rules import DeleteRules
    from tidegate.source.iceberg.manifests.entries import Entry
    from tidegate.source.iceberg.timeline.history import History
    from tidegate.source.slicing import Rebuilding

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class WindowFiles:
    """Lists the files of windows that end at the head of one history."""

    config: IcebergSourceConfig
    history: History
    format_version: int
    rules: DeleteRules
    appends: ChangeReader
    states: StateReader
    make: PieceMaker
    rebuilding: Rebuilding | None
    enough: int | None = None
    """The number of rows after which listing may stop, if nothing filters or deletes (ICE-5.13)."""

    def whole(self) -> PlannedFiles:
        """List the files of the head; modes that emit row kinds read their rows as inserts.

        Raises:
            LineageUnavailable: see `ChangePlanner.upserts`.
        """
        mode = self.config.read.output_mode
        if mode in {"changelog", "snapshot_diff"}:
            return self._changes.whole(self._head)
        if mode == "lineage_upserts":
            return self._changes.upserts(self._head, None, self.format_version)
        state = self.states.state(self._head, self.enough)
        live = [
            self.make.piece(file.entry, file.rivals, deltas=file.deletes)
            for file in state.files
            if file.entry.rows > 0
        ]
        return PlannedFiles(live, tally=state.tally)

    def after(self, start: Instant | None) -> PlannedFiles:
        """List the files of a window that begins after an instant, or with the kept history.

        Raises:
            CursorOffLineage, HistoryTruncated, CursorExpired: see `within_window`.
            NonAppendSnapshot: see `passing_over`.
            SnapshotClassMismatch: see `ChangeReader.appended`.
            ChangelogParentMissing, LineageUnavailable: see `ChangePlanner`.
        """
        found = within_window(self.history, start, self.config)
        if found.mode == "append":
            planned = self._appended(found)
        elif found.mode == "lineage_upserts":
            planned = self._changes.upserts(self._head, found.start, self.format_version)
        elif found.mode == "snapshot_diff" or self.config.read.net_changes:
            planned = self._changes.difference(self._before(found.start), self._head)
        else:
            planned = self._changes.changelog(found.snapshots, found.unreadable)
        for note in found.notes:
            _LOG.warning("%s: %s", self.history.source, note)
        planned.notes = found.notes + planned.notes
        return planned

    @property
    def _head(self) -> Snapshot:
        return self.history.ancestors[-1]

    @property
    def _changes(self) -> ChangePlanner:
        verify = self.config.read.verify_changelog
        return ChangePlanner(self.history, self.states, self.make, verify=verify)

    def _before(self, start: Instant | None) -> Snapshot | None:
        if start is None:
            return self._changes.before_all()
        return self.history.snapshot(start.id)

    def _appended(self, found: Continuation) -> PlannedFiles:
        if found.start is None and not self.history.is_whole:
            # An expired beginning must not silently make the same window smaller (ICE-2.16).
            raise HistoryTruncated(
                source=self.history.source,
                start="the beginning",
                oldest_kept=str(self.history.ancestors[0].snapshot_id),
                head=str(self._head.snapshot_id),
                remedy="Start the pipeline anew under another name, or with `start: full`.",
            )
        commits = self.appends.classified(found.snapshots)
        skipped = [commit for commit in commits if is_passed_over(commit)]
        passed = self.appends.passed_over(commits if skipped else (), self.rules)
        changes = self.appends.appended(commits, enough=self.enough, metric_ids=passed.metric_ids)
        pieces = [self.make.piece(entry) for entry in changes.entries if entry.rows > 0]
        planned = PlannedFiles(pieces, changes.skipped, changes.tally)
        if skipped:
            self._pass_over(skipped, passed.taken_away(changes.entries), planned)
        return planned

    def _pass_over(
        self, skipped: Sequence[Commit], taken: TakenAway, planned: PlannedFiles
    ) -> None:
        """Add what skipped commits removed from the planned files, and from earlier ones."""
        source = self.history.source

        def event_times(entry: Entry) -> TimeBounds:
            return self.make.piece(entry).event_times or TimeBounds()

        planned.notes = passing_over(
            source,
            skipped,
            taken,
            event_times,
            self.rebuilding,
            skip=self.config.read.on_non_append == "skip",
        )
        planned.removed = removed_times(taken, event_times)
        planned.left_out = [self.make.piece(entry) for entry in taken.brought if entry.rows]
        planned.refusal = refusal(source, skipped, taken)
        for note in planned.notes:
            _LOG.warning("%s: %s", source, note)
