"""Derive from the files of announces which announces were made, in which order, and which is lost.

A window never changes after it was taken, it is taken only when the one before is sealed, and it
starts at the checkpoint that the windows before it reached. A file that contradicts this was
written by a process that had lost its fence; if no file has a window that the others need, its file
is lost. Reads nothing.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tidegate.model.plan import WindowKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tidegate.model.instant import Instant
    from tidegate.model.ledger_rows import WindowState
    from tidegate.model.plan import Window
    from tidegate.pipeline.state.records import CommitFile, SealedFile

Turn = tuple[int, datetime]
"""When something was recorded: its number, and the clock for records from before numbers were
given."""
_NEVER: Turn = (-1, datetime.min.replace(tzinfo=UTC))


@dataclass(frozen=True)
class Announces:
    """The announces of a pipeline, as far as the files have them."""

    files: tuple[SealedFile, ...]
    """The files of valid announces, in their order."""
    missing: int | None
    """A window that has to be there for the others to join; None if they do."""

    def lacks(
        self, known: Mapping[int, str], plans: Sequence[CommitFile]
    ) -> tuple[int, str] | None:
        """Return the first window, with its plan, that is relied on but is in no file.

        Args:
            known: the plan in effect of each window that a ledger knows as announced.
            plans: the last one that counts a window names the window's plan in effect, unless the
                window was announced again since.
        """
        told = {(item.sealed.window.sequence, item.sealed.plan_digest) for item in self.files}
        last = {item.sealed.window.sequence: turn_of(item) for item in self.files}
        counted: dict[int, str] = {}
        for plan in sorted(plans, key=turn_of_plan):
            for window, digest in plan.plan.publication.contributions.items():
                counted.pop(int(window), None)
                if turn_of_plan(plan) > last.get(int(window), _NEVER):
                    counted[int(window)] = digest
        return min((known.items() | counted.items()) - told, default=None)

    def overtook(self, known: Sequence[WindowState]) -> bool:
        """Return whether a ledger knows a past of before a reset, or of before a restoration.

        Windows take what follows the checkpoint, so that none begins at the start after another one
        but after a reset; and a number has one window, which replays do not change, unless a ledger
        that was restored meanwhile took another one by the same number.

        Args:
            known: the windows that the ledger knows as announced.
        """
        told: dict[int, list[SealedFile]] = defaultdict(list)
        for item in self.files:
            told[item.sealed.window.sequence].append(item)
        for state in known:
            items = told.get(state.window.sequence, [])
            is_another = not any(_is_same(item.sealed.window, state.window) for item in items)
            if is_another and any(item.sealed.number > state.number for item in items):
                return True
        joined = [item for item in self.files if _moves_on(item.sealed.window)]
        if not joined or self.missing is not None:
            return False
        first = min(joined, key=lambda item: item.sealed.window.sequence).sealed
        return _begins_at(first.window, first.first_start) and any(
            _moves_on(state.window)
            and state.window.sequence < first.window.sequence
            and state.number < first.number
            for state in known
        )

    def first(self) -> dict[int, SealedFile]:
        """Return the first announce of each window, by window."""
        found = {item.sealed.window.sequence: item for item in reversed(self.files)}
        return dict(sorted(found.items()))

    def turns(self, plans: Sequence[CommitFile]) -> dict[int, Turn]:
        """Return when each window was announced for the first time, by window.

        That was before each later window, and before each commit that counts it. The original file
        may be lost, and replaced by a replay with a later number.
        """
        first = self.first()
        turns = {sequence: turn_of(item) for sequence, item in first.items()}
        for plan in plans:
            for window in map(int, plan.plan.publication.contributions):
                if window in turns:
                    turns[window] = min(turns[window], turn_of_plan(plan))
        earliest: Turn | None = None
        for sequence in reversed(first):
            earliest = min(turns[sequence], earliest or turns[sequence])
            turns[sequence] = earliest
        return turns


def turn_of(item: SealedFile) -> Turn:
    """Return when an announce was recorded."""
    return item.sealed.number, item.sealed.announced_at


def turn_of_plan(item: CommitFile) -> Turn:
    """Return when a commit began, if it did."""
    return item.plan.number, item.plan.prepared_at


def tell(files: Iterable[SealedFile]) -> Announces:
    """Derive the valid announces from the existing files."""
    by_window: dict[int, list[SealedFile]] = defaultdict(list)
    for item in sorted(files, key=turn_of):
        by_window[item.sealed.window.sequence].append(item)
    windows = [by_window[sequence][-1].sealed.window for sequence in sorted(by_window)]
    line = _line(windows)
    kept = {window.sequence: window for window in line}
    told = [
        item
        for items in by_window.values()
        for item in items
        if _is_same(item.sealed.window, kept.get(item.sealed.window.sequence))
    ]
    told.sort(key=turn_of)
    joined = [window for window in line if window.kind is not WindowKind.HISTORY]
    missing = None
    if joined and not _begins_at(joined[0], told[-1].sealed.first_start):
        before = joined[0].sequence
        missing = max(set(range(1, before)) - by_window.keys(), default=max(before - 1, 1))
    return Announces(tuple(told), missing)


def _line(windows: Sequence[Window]) -> list[Window]:
    """Leave out windows that never existed, because the next one does not begin there."""
    kept: list[Window] = []
    after: Window | None = None
    for window in reversed(windows):
        if window.kind is not WindowKind.HISTORY:
            if after is not None and not _begins_at(after, window.range.end_inclusive):
                continue
            after = window
        kept.append(window)
    return kept[::-1]


def _moves_on(window: Window) -> bool:
    """Return whether a window takes what follows the checkpoint."""
    kind = window.kind
    return not kind.replaces_everything and kind not in {WindowKind.HISTORY, WindowKind.REBUILD}


def _begins_at(window: Window, checkpoint: Instant | None) -> bool:
    """Return whether a window may have been taken at a checkpoint; some start anywhere."""
    if window.kind.replaces_everything:
        return True
    at = window.range.start_exclusive
    if at is None and window.kind is WindowKind.REBUILD:
        # Without a start it reads up to the checkpoint, and does not move it.
        at = window.range.end_inclusive
    return (at.id if at else None) == (checkpoint.id if checkpoint else None)


def _is_same(one: Window, other: Window | None) -> bool:
    """Return whether two windows are the same; the runs that took them may differ."""
    return other is not None and (one.kind, one.range, one.partitions) == (
        other.kind,
        other.range,
        other.partitions,
    )
