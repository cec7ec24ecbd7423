"""Choose the slices that a window reads, and check that they can still be there.

Opens no file of data; what instants did is read from the timeline.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.errors import HudiFilesCleaned, HudiReplacementUnknown
from tidegate.source.hudi.slices.names import LogFile, parse_name
from tidegate.source.hudi.slices.split_buckets import written_once
from tidegate.source.hudi.timeline.kept import is_kept
from tidegate.source.hudi.timeline.metadata import NOTHING, Role
from tidegate.source.words import first_few

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tidegate.source.hudi.slices.file_groups import Slice
    from tidegate.source.hudi.slices.listing import FolderFiles
    from tidegate.source.hudi.timeline.loaded import LoadedTimeline, Order, State
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
    origins: Mapping[str, frozenset[str]]
    """Of those groups, the ones whose rows were clustered → the groups that the rows come from."""


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
            # A file that failed or came out empty may be noted without a path.
            stats = [stat for stat in metadata.written.get(partition, ()) if stat.path]
            groups.setdefault(partition, set()).update(stat.file_id for stat in stats)
            files.setdefault(partition, set()).update(stat.name for stat in stats)
    origins: dict[str, dict[str, set[str]]] = {}
    for metadata in clusterings(timeline, window, until):
        for partition, replaced in metadata.replaced.items():
            clustered = groups.get(partition, set()).intersection(replaced)
            if not clustered:
                continue
            moved = {stat.file_id for stat in metadata.written.get(partition, ())}
            groups[partition].update(moved)
            found = origins.setdefault(partition, {})
            sources = clustered.union(*(found.get(group, ()) for group in clustered))
            for group in moved:
                found.setdefault(group, set()).update(sources)
    return {
        partition: Touched(
            tuple(sorted(times)),
            frozenset(groups[partition]),
            frozenset(files[partition]),
            {group: frozenset(of) for group, of in origins.get(partition, {}).items()},
        )
        for partition, times in instants.items()
    }


def clusterings(
    timeline: LoadedTimeline, window: Sequence[Order], until: Order
) -> Iterator[CommitMetadata]:
    """Yield the clusterings up to a state that may have moved rows of a window, in their order."""
    active = timeline.active
    if window and timeline.archived_after(window[0]):
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


def rewriting_services(timeline: LoadedTimeline, start: Order, until: Order) -> frozenset[str]:
    """Return the services after an instant and up to a state that may have moved later rows.

    They are returned by their requested times. What was done before the instant moved only rows
    that were there by then.
    """
    active = timeline.active
    found = {
        action.requested
        for action in active.done
        if start < action.order <= until
        and active.writes.get(action.requested) == action
        and timeline.metadata(action).moves_rows
    }
    if timeline.archived_after(start):
        found |= {
            it.requested
            for it in timeline.archived.values()
            if start < it.order <= until and it.metadata.moves_rows
        }
    return frozenset(found)


def unread_changes(timeline: LoadedTimeline, window: Sequence[Order]) -> tuple[str, ...]:
    """Return what a window's writes took away, of which most modes return nothing, as sentences."""
    deleted = 0
    replaced: dict[str, int] = {}
    for _, requested in window:
        metadata = timeline.metadata_of(requested)
        written = written_once(timeline, requested).values()
        deleted += sum(stat.deletes for found in written for stat in found.files)
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


def empty_instants(timeline: LoadedTimeline, window: Sequence[Order]) -> tuple[str, ...]:
    """Return a sentence about the writes of a window whose files are empty; none for none."""
    found = [
        requested
        for _, requested in window
        if requested in timeline.active.writes and timeline.metadata_of(requested) is NOTHING
    ]
    if not found:
        return ()
    return (
        f"the timeline has an empty file for the write of {first_few(found)}, which counts as a "
        "write without rows",
    )


def check_known_replacements(timeline: LoadedTimeline, window: Sequence[Order]) -> None:
    """Refuse a window with a replacement that may delete rows, or only move them (HUDI-T5).

    Raises:
        HudiReplacementUnknown: its operation is none of those that are known.
    """
    for _, requested in window:
        metadata = timeline.metadata_of(requested)
        if metadata.is_unknown_replacement:
            raise HudiReplacementUnknown(
                source=timeline.table.source, instant=requested, operation=metadata.operation
            )


def check_not_cleaned(timeline: LoadedTimeline, until: Order) -> None:
    """Refuse an earlier state whose files the cleaner may have removed (HUDI-W13).

    Raises:
        HudiFilesCleaned: it is older than what the last clean kept.
    """
    if not any(action.order > until for action in timeline.active.writes.values()):
        return
    if not is_kept(timeline, until):
        cleaned = f"the table's cleaner keeps files since {timeline.retained_since()} only"
        raise HudiFilesCleaned(source=timeline.table.source, instant=until[1], cleaned=cleaned)


def check_groups_stand(
    timeline: LoadedTimeline,
    state: State,
    touched: Mapping[str, Touched],
    standing: Iterable[Slice],
) -> None:
    """Refuse a state that lacks a group which a write of the window wrote, and nothing replaced.

    The clean that removed its files may be archived itself, so that `check_not_cleaned` knows of
    none.

    Raises:
        HudiFilesCleaned: a group is missing.
    """
    found = {(slice.partition, slice.group) for slice in standing}
    written = {(place, group) for place, it in touched.items() for group in it.groups}
    # A write while buckets are split writes into the groups that the clustering will make: it is
    # pending, or done after this state.
    written -= {
        (place, file.group)
        for place, it in touched.items()
        for file in (parse_name(name, 0) for name in it.files)
        if file is not None and not state.is_visible(file.instant)
    }
    missing = written - found - _pairs(state.replaced())
    if missing and missing - _pairs(*(it.metadata.replaced for it in timeline.archived.values())):
        gone = first_few([group for _, group in sorted(missing)])
        raise HudiFilesCleaned(
            source=timeline.table.source,
            instant=state.until[1],
            cleaned=gone_files(timeline, f"the files of {gone}"),
        )


def removed_logs(
    timeline: LoadedTimeline,
    state: State,
    touched: Mapping[str, Touched],
    folders: FolderFiles,
) -> tuple[str, ...]:
    """Return a sentence about logs of a window that were removed; none if all are there.

    What won in them is in base files, with its time. A row that a record changed although it lost
    has an earlier time, and only the record tells of it (HUDI-R5).
    """
    found = [
        name
        for partition in sorted(touched)
        for name in sorted(touched[partition].files)
        if folders.named(partition, name) is None and is_needed_log(state, name)
    ]
    if not found:
        return ()
    gone = gone_files(timeline, f"the logs {first_few(found)}")
    return (
        f"{gone}, which the window wrote: rows that its late records changed although they lost by "
        "event time (brought back after a delete, or a column filled) are not returned",
    )


def is_needed_log(state: State, path: str) -> bool:
    """Return whether a file that a write names is a log, and has the name that the write gave."""
    file = parse_name(path, 0)
    return isinstance(file, LogFile) and state.is_known(file.instant)


def gone_files(timeline: LoadedTimeline, files: str) -> str:
    """Return in words that files are gone; the cleaner is named only if it was ever at work."""
    if any(action.kind == "clean" for action in timeline.active.actions):
        return f"the table's cleaner removed {files}"
    return f"{files} are not there any more"


def _pairs(*replaced: Mapping[str, Iterable[str]]) -> set[tuple[str, str]]:
    """Return the partitions and groups that were replaced."""
    return {(place, group) for one in replaced for place in one for group in one[place]}
