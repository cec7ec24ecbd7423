"""How far a checkpoint is from what the cleaner and the archiver of a table have removed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.errors import TimelineFileDamaged

if TYPE_CHECKING:
    from tidegate.source.hudi.timeline.loaded import LoadedTimeline, Order


@dataclass(frozen=True)
class Kept:
    """What a table keeps up to a checkpoint (HUDI-W14)."""

    since: str
    """The requested time of the first write whose state is kept."""
    writes: int
    """Kept writes up to the checkpoint, itself included; 0: its state may be gone."""

    @property
    def said(self) -> str:
        """The same in words."""
        if not self.writes:
            return f"the table keeps files since {self.since} only, which is after the checkpoint"
        writes = "1 write" if self.writes == 1 else f"{self.writes} writes"
        return f"the table keeps {writes} up to the checkpoint, since {self.since}"

    def warning(self, threshold: int) -> str | None:
        """Return a warning that files may soon be gone; None if enough writes are kept."""
        if self.writes >= threshold:
            return None
        return (
            f"{self.said}: the changes after it cannot be read once their files are removed. Load "
            "more often, or let the table's cleaner keep more (`hoodie.cleaner.commits.retained`)"
        )


def is_kept(timeline: LoadedTimeline, state: Order) -> bool:
    """Return whether all files of the state after an instant are there, as far as cleans tell.

    A clean names what it keeps by a requested time; states follow each other by completion.
    """
    retained = timeline.retained_since()
    if retained is None:
        return True
    if state < _order(timeline, retained):
        return False
    # What was requested earlier and done later took the place of files that the state needs.
    later = {it.requested for it in timeline.active.writes.values() if it.order > state}
    return min(later | timeline.archived_after(state), default=retained) >= retained


def kept_before(timeline: LoadedTimeline, checkpoint: Order) -> Kept | None:
    """Count the writes that are kept up to a checkpoint; None if nothing was removed yet.

    They are counted by the names of the timeline, so that no commit is opened: clusterings count
    as well. Only the last clean is read, and the archive's folder listed.
    """
    try:
        retained = timeline.retained_since()
    except TimelineFileDamaged:
        # Reported where it is needed; the count is only a hint.
        return None
    archived = timeline.active.first if timeline.has_archive else None
    since = max(filter(None, (retained, archived)), default=None)
    if since is None:
        return None
    compacts = timeline.table.is_merge_on_read
    first = _order(timeline, retained) if retained else ("", "")
    writes = sum(
        (archived or "") <= action.requested and first <= action.order <= checkpoint
        for action in timeline.active.writes.values()
        if not (compacts and action.kind == "commit")
    )
    return Kept(since, writes)


def _order(timeline: LoadedTimeline, requested: str) -> Order:
    """Return the place of an instant; of an archived one, or a clean, by its request."""
    action = timeline.active.writes.get(requested)
    return action.order if action is not None else (requested, requested)
