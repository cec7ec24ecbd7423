"""Tell which files a write wrote a second time, for the groups of a split of buckets.

While a bucket is split (consistent hashing), a write writes its records into the group that stands
and again into the ones that the clustering will make. Opens no file of data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.source.hudi.slices.names import LogFile, parse_name
from tidegate.source.hudi.timeline.metadata import Role

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from tidegate.source.hudi.timeline.loaded import LoadedTimeline
    from tidegate.source.hudi.timeline.metadata import WriteStat


@dataclass(frozen=True)
class WrittenOnce:
    """What a write wrote in one partition."""

    files: Sequence[WriteStat]
    """With each record once."""
    again: Sequence[WriteStat] = ()
    """Logs that have the records of some of them again."""
    split: frozenset[str] = frozenset()
    """The groups whose records these have, as far as their split is done."""


def written_once(timeline: LoadedTimeline, requested: str) -> Mapping[str, WrittenOnce]:
    """Return what a write wrote by partition, without what it wrote again.

    A repeated file is a log that is named by a clustering: a pending one, or one that replaced
    groups which the write wrote into, so that it was pending then.

    Args:
        timeline: one listing.
        requested: the requested time of the write.
    """
    found = {}
    for partition, stats in timeline.metadata_of(requested).written.items():
        by = {stat.path: _named_by(stat.path) for stat in stats}
        groups = {stat.file_id for stat in stats}
        split: dict[str, frozenset[str]] = {}
        for instant in {it for it in by.values() if it is not None and it != requested}:
            replaced = _replaced(timeline, instant, requested).get(partition, ())
            if _is_pending_clustering(timeline, instant) or not groups.isdisjoint(replaced):
                split[instant] = frozenset(replaced)
        found[partition] = WrittenOnce(
            [stat for stat in stats if by[stat.path] not in split],
            [stat for stat in stats if by[stat.path] in split],
            frozenset().union(*split.values()),
        )
    return found


def _replaced(timeline: LoadedTimeline, instant: str, write: str) -> Mapping[str, Collection[str]]:
    """Return what an instant replaced, if it is a clustering."""
    if instant not in timeline.active.writes and write in timeline.active.writes:
        # Before version 8 most logs are named by an older instant: no archive is read for them.
        return {}
    metadata = timeline.metadata_of(instant)
    return metadata.replaced if metadata.role is Role.SERVICE else {}


def _is_pending_clustering(timeline: LoadedTimeline, instant: str) -> bool:
    action = timeline.active.pending.get(instant)
    return action is not None and action.kind == "replacecommit"


def _named_by(path: str) -> str | None:
    """Return the instant in the name of a log; None for another file."""
    file = parse_name(path, 0)
    return file.instant if isinstance(file, LogFile) else None
