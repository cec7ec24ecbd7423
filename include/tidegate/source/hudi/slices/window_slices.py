"""Choose the slices that a window reads, and check that they can still be there. Opens nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.errors import HudiFilesCleaned
from tidegate.source.hudi.timeline.metadata import Role
from tidegate.source.words import first_few

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tidegate.source.hudi.timeline.loaded import LoadedTimeline, Order
    from tidegate.source.hudi.timeline.metadata import CommitMetadata


@dataclass(frozen=True)
class Touched:
    """What the writes of a window touched in one partition."""

    instants: tuple[str, ...]
    """Their requested times."""
    groups: frozenset[str]
    """The file groups whose slices may have rows of them."""
    files: frozenset[str]
    """The names of the files that they wrote."""


def touched_partitions(
    timeline: LoadedTimeline, window: Sequence[Order], until: Order
) -> Mapping[str, Touched]:
    """Return partition → what a window touched there (HUDI-W8, F10).

    Groups that were clustered by the end of the window are followed to the groups that have their
    rows.

    Args:
        timeline: one listing.
        window: its writes.
        until: the last visible instant.
    """
    instants: dict[str, list[str]] = {}
    groups: dict[str, set[str]] = {}
    files: dict[str, set[str]] = {}
    for _, requested in window:
        metadata = timeline.metadata_of(requested)
        for partition in metadata.partitions:
            instants.setdefault(partition, []).append(requested)
            stats = metadata.written.get(partition, ())
            groups.setdefault(partition, set()).update(stat.file_id for stat in stats)
            names = (stat.path.rpartition("/")[2] for stat in stats)
            files.setdefault(partition, set()).update(names)
    for metadata in clusterings(timeline, window, until):
        for partition, replaced in metadata.replaced.items():
            if not groups.get(partition, set()).isdisjoint(replaced):
                stats = metadata.written.get(partition, ())
                groups[partition].update(stat.file_id for stat in stats)
    return {
        partition: Touched(
            tuple(sorted(found)), frozenset(groups[partition]), frozenset(files[partition])
        )
        for partition, found in instants.items()
    }


def clusterings(
    timeline: LoadedTimeline, window: Sequence[Order], until: Order
) -> Iterator[CommitMetadata]:
    """Yield the clusterings up to a state that may have moved rows of a window, in their order."""
    active = timeline.active
    if any(requested not in active.writes for _, requested in window):
        # The archive is needed only for a window that begins in it.
        for archived in timeline.archived.values():
            is_own = archived.requested not in active.writes
            if is_own and archived.kind == "replacecommit" and archived.order <= until:
                yield from _if_clustering(archived.metadata)
    for action in active.done:
        if action.kind == "replacecommit" and action.order <= until:
            yield from _if_clustering(timeline.metadata(action))


def _if_clustering(metadata: CommitMetadata) -> Iterator[CommitMetadata]:
    if metadata.role is Role.SERVICE:
        yield metadata


def unread_changes(timeline: LoadedTimeline, window: Sequence[Order]) -> tuple[str, ...]:
    """Return what a window's writes took away, which no mode returns, one sentence each."""
    deleted = 0
    replaced: dict[str, int] = {}
    for _, requested in window:
        metadata = timeline.metadata_of(requested)
        deleted += sum(stat.deletes for stat in metadata.files)
        for partition, groups in metadata.replaced.items():
            replaced[partition] = replaced.get(partition, 0) + len(groups)
    notes = []
    if deleted:
        rows = "1 row" if deleted == 1 else f"{deleted} rows"
        notes.append(f"the writes of the window deleted {rows}, which this mode does not return")
    if replaced:
        places = first_few([partition or "the table" for partition in sorted(replaced)])
        notes.append(
            f"the writes of the window replaced {sum(replaced.values())} file groups in {places}: "
            "this mode returns the new rows, and does not tell which ones are gone"
        )
    return tuple(notes)


def check_not_cleaned(timeline: LoadedTimeline, until: Order) -> None:
    """Refuse an earlier state whose files the cleaner may have removed (HUDI-W13).

    Raises:
        HudiFilesCleaned: it is older than what the last clean kept.
    """
    if not any(action.order > until for action in timeline.active.writes.values()):
        return
    retained = timeline.retained_since()
    if retained is not None and until[1] < retained:
        raise HudiFilesCleaned(source=timeline.table.source, instant=until[1], retained=retained)
