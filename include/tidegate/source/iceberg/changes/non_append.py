"""Decide which commits that are not appends an append read skips, and explain them (ICE-3.5).

Opens nothing. Skipping a commit leaves everything that was published before it unchanged; but rows
that the same read returns and that the commit removed would be published beside the rows that
correct them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.errors import NonAppendSnapshot, RemovedRowsRead
from tidegate.model.time_bounds import TimeBounds
from tidegate.source.iceberg.changes.appends import APPEND, EMPTY, REWRITE
from tidegate.source.words import first_few

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tidegate.source.iceberg.changes.appends import Commit
    from tidegate.source.iceberg.changes.passed_over import TakenAway
    from tidegate.source.iceberg.manifests.entries import Entry
    from tidegate.source.slicing import Rebuilding

_MOST_COMMITS = 10
"""Named in a message; a window may have hundreds."""
_NEW_PIPELINE = (
    "a new pipeline with `read.on_non_append: changelog`, and `_change_type` among "
    "`read.columns`, has every change"
)
_LIBRARY = (
    "Set `read: {on_non_append: skip}` in the source for the rows as they were committed, which "
    "gives nothing of such commits, or read with `mode: changelog`, which gives every change."
)


def is_passed_over(commit: Commit) -> bool:
    """Return whether an append read skips a commit that changes rows."""
    return commit.kind not in {APPEND, REWRITE, EMPTY}


def passing_over(
    source: str,
    commits: Iterable[Commit],
    taken: TakenAway,
    event_times: Callable[[Entry], TimeBounds],
    rebuilding: Rebuilding | None,
    *,
    skip: bool,
) -> tuple[str, ...]:
    """Return the consequences of skipping commits, one sentence each.

    Args:
        source: the table, for errors.
        commits: those that change rows and are not appends.
        taken: the rows and files that they removed.
        event_times: returns the bounds of a file, as far as they are known.
        rebuilding: returns the command that reads the rows of event times again; None: no pipeline
            reads.
        skip: whether the pipeline says `skip`.

    Raises:
        NonAppendSnapshot: the pipeline does not say `skip`.
    """
    # A load names the partitions itself, and one that is refused has nothing after it.
    sentences = _sentences(taken, event_times, None if skip else rebuilding)
    if not skip:
        remedy = _LIBRARY if rebuilding is None else _remedy(taken, sentences)
        raise NonAppendSnapshot(source=source, snapshots=_describe(commits), remedy=remedy)
    if taken.read:
        own = f"commits passed over took away {_files(taken.read)} that are read here"
        sentences = (own, *sentences)
    return sentences


def refusal(source: str, commits: Iterable[Commit], taken: TakenAway) -> RemovedRowsRead | None:
    """Return why no pipeline may publish a read that skips commits; None if it may.

    Args:
        source: the table.
        commits: the skipped commits.
        taken: the rows and files that they removed.
    """
    if not taken.read:
        return None
    removed = _files(taken.read)
    return RemovedRowsRead(source=source, snapshots=_describe(commits), removed=removed)


def removed_times(
    taken: TakenAway, event_times: Callable[[Entry], TimeBounds]
) -> tuple[TimeBounds, ...]:
    """Return the event times of removed rows of earlier windows, unknown ones without bounds.

    Args:
        taken: the rows and files that skipped commits removed.
        event_times: returns the bounds of a file, as far as they are known.
    """
    spans = [event_times(entry) for entry in taken.earlier]
    # Delete files tell no event times.
    spans += [TimeBounds()] if taken.deletes else []
    return tuple(dict.fromkeys(spans))


def _remedy(taken: TakenAway, sentences: Sequence[str]) -> str:
    if taken.read:
        earlier = f", and {_files(taken.earlier)} of earlier ones" if taken.earlier else ""
        return (
            f"They take away {_files(taken.read)} of this window, which `skip` therefore "
            f"refuses{earlier}. To publish the table as it is now in place of what was published, "
            f"run `tidegate reset PIPELINE`. Otherwise {_NEW_PIPELINE}; one with `start: full` has "
            "the rows as they stand now."
        )
    told = "".join(f" {sentence[0].upper()}{sentence[1:]}." for sentence in sentences)
    return (
        "Set `read.on_non_append: skip` to pass over such commits (their changes are then lost "
        f"to this pipeline).{told} Or {_NEW_PIPELINE}."
    )


def _sentences(
    taken: TakenAway,
    event_times: Callable[[Entry], TimeBounds],
    rebuilding: Rebuilding | None,
) -> tuple[str, ...]:
    found = []
    if taken.earlier:
        found.append(
            f"passing over takes nothing back: {_files(taken.earlier)} of earlier windows "
            f"{'was' if len(taken.earlier) == 1 else 'were'} removed"
            f"{_span(taken.earlier, event_times)}"
        )
    if taken.deletes:
        found.append(f"passing over applies no delete: {_files(taken.deletes, 'delete file')} came")
    if taken.brought:
        found.append(
            f"what came with commits passed over is not read: {_files(taken.brought)}"
            f"{_span(taken.brought, event_times)}"
        )
    if found and rebuilding is not None:
        # A row may have moved from a day to another one: only both of them together have it once.
        brought = (event_times(entry) for entry in taken.brought)
        again = rebuilding((*removed_times(taken, event_times), *brought))
        found[-1] += (
            f"; after this load, {again} reads the days concerned as they stand, to be published "
            "again"
        )
    return tuple(found)


def _files(entries: Sequence[Entry], noun: str = "file") -> str:
    rows = sum(entry.rows for entry in entries)
    return f"{len(entries)} {noun}{'s' * (len(entries) != 1)} ({rows} row{'s' * (rows != 1)})"


def _span(entries: Sequence[Entry], event_times: Callable[[Entry], TimeBounds]) -> str:
    """Name the event times of some files, if those of all are known."""
    times = [event_times(entry) for entry in entries]
    bounds = TimeBounds.around(times)
    if TimeBounds() in times or bounds.smallest is None or bounds.largest is None:
        return ""
    return f", event times {bounds.smallest:%Y-%m-%d %H:%M} to {bounds.largest:%Y-%m-%d %H:%M} UTC"


def _describe(commits: Iterable[Commit]) -> str:
    return first_few([_described(commit) for commit in commits], _MOST_COMMITS)


def _described(commit: Commit) -> str:
    summary = commit.snapshot.summary
    said = summary.additional_properties if summary else {}
    absent = "0" if said else "?"
    added = said.get("added-data-files", absent)
    removed = said.get("deleted-data-files", absent)
    deletes = said.get("added-delete-files", absent)
    counts = f"{added} files added, {removed} removed, {deletes} delete files"
    return f"{commit.snapshot.snapshot_id} ({commit.kind}: {counts})"
