"""The instants of a table that bring changes, in the order in which they were done (HUDI-W3, W6).

Opens only the files of instants that are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.errors import HudiHistoryLost, HudiInstantGone
from tidegate.source.hudi.timeline.metadata import Role, is_clustering_plan
from tidegate.source.hudi.timeline.times import order_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tidegate.model.instant import Instant
    from tidegate.source.hudi.timeline.actions import Action
    from tidegate.source.hudi.timeline.loaded import LoadedTimeline, Order

_SERVICE_ACTIONS = frozenset({"compaction", "logcompaction", "clustering"})


def active_writes(timeline: LoadedTimeline, after: Order | None = None) -> tuple[Order, ...]:
    """Return the done writes of the active timeline that follow an instant (HUDI-W6)."""
    done = [
        action
        for action in timeline.active.done
        if action.requested in timeline.active.writes
        and timeline.active.writes[action.requested] == action
        and (after is None or action.order > after)
    ]
    timeline.look_ahead(done)
    return tuple(action.order for action in done if _brings_changes(timeline, action))


def newest_write(timeline: LoadedTimeline) -> Order | None:
    """Return the last done write of the active timeline, without reading the older ones."""
    for action in reversed(timeline.active.done):
        is_write = timeline.active.writes.get(action.requested) == action
        if is_write and _brings_changes(timeline, action):
            return action.order
    return None


def archived_writes(timeline: LoadedTimeline, after: Order | None = None) -> tuple[Order, ...]:
    """Return the writes that have left the active timeline, and follow an instant."""
    return tuple(
        it.order
        for it in timeline.archived.values()
        if (after is None or it.order > after)
        and it.requested not in timeline.active.writes
        and it.metadata.role is Role.WRITE
    )


def writes_after(timeline: LoadedTimeline, after: Order | None) -> tuple[Order, ...]:
    """Return all writes that follow an instant, archived ones included.

    Raises:
        HudiInstantGone: the instant was rolled back, or restored away (HUDI-T6).
        HudiHistoryLost: it was archived, and the archive does not have it any more.
    """
    if after is None:
        return active_writes(timeline)
    _, requested = after
    action = timeline.active.writes.get(requested)
    if action is not None and action.order == after:
        if not timeline.archived_after(after):
            return active_writes(timeline, after)
    elif not _may_be_archived(timeline, requested):
        raise _gone(timeline, requested)
    known = {it.order for it in timeline.archived.values()}
    if action is None and after not in known:
        if timeline.took_back(requested):
            # A savepoint may hold older instants than it, which then is no sign of an archive.
            raise _gone(timeline, requested)
        oldest = min((order[1] for order in known), default=timeline.active.first or "none")
        raise HudiHistoryLost(source=timeline.table.source, instant=requested, oldest=oldest)
    return tuple(sorted({*archived_writes(timeline, after), *active_writes(timeline, after)}))


def times_in_order(timeline: LoadedTimeline, window: Sequence[Order]) -> dict[str, str]:
    """Return requested time → another one, for the writes of a window that it puts out of order.

    Writers that do not wait for each other may be done in another order than they were requested
    in. By its requested time such a write would come before others that were read in earlier
    windows: the time when it was done does not (HUDI-R6).
    """
    if timeline.table.layout == 1:
        return {}
    is_merged = timeline.table.is_merge_on_read
    active = {
        it.order
        for it in timeline.active.writes.values()
        if not (is_merged and it.kind == "commit")
    }
    latest, found = "", dict[str, str]()
    for done, requested in sorted(active | timeline.archived_orders):
        time = requested if requested > latest else done
        if time != requested and (done, requested) in window:
            found[requested] = time
        latest = max(latest, time)
    return found


def _gone(timeline: LoadedTimeline, requested: str) -> HudiInstantGone:
    has_writes = active_writes(timeline) or archived_writes(timeline)
    remedy = (
        "To publish what it has now, run `tidegate reset PIPELINE`."
        if has_writes
        else "It has no write now. To delete what was published of it, run `tidegate reset "
        "PIPELINE --drop-target`; with the table's next write, `tidegate reset PIPELINE` publishes "
        "what it has then."
    )
    return HudiInstantGone(source=timeline.table.source, instant=requested, remedy=remedy)


def writes_following(timeline: LoadedTimeline, after: Instant | None) -> tuple[Order, ...]:
    """Return all writes that follow an instant of the source, whatever timeline it was seen on.

    An instant of layout 1 was the last of all that were requested before it. On the timeline of
    the upgraded table, which is in the order of completion, others may stand before it that were
    requested later, and not read yet (HUDI-W2).

    Raises:
        HudiInstantGone, HudiHistoryLost: see `writes_after`.
    """
    if after is None:
        return writes_after(timeline, None)
    found = writes_after(timeline, timeline.order(after))
    if not _was_upgraded(timeline, after):
        return found
    _, requested = order_of(after)
    known = {*found, *active_writes(timeline)}
    return tuple(sorted(it for it in known if it[1] > requested))


def ends_following(timeline: LoadedTimeline, after: Instant | None) -> tuple[Order, ...]:
    """Return the writes at which a window that begins after an instant may end.

    The first window after an upgrade does not end before a write that was read already: the next
    one, which goes by completion, would read it again.

    Raises:
        HudiInstantGone, HudiHistoryLost: see `writes_after`.
    """
    found = writes_following(timeline, after)
    if after is None or not _was_upgraded(timeline, after):
        return found
    _, requested = order_of(after)
    read = [it for it in active_writes(timeline) if it[1] <= requested]
    last = max(read, default=timeline.order(after))
    later = tuple(it for it in found if it > last)
    return later if len(later) == len(found) else (last, *later)


def _was_upgraded(timeline: LoadedTimeline, after: Instant) -> bool:
    """Return whether an instant was seen on a timeline of layout 1, and the table has another."""
    completed, requested = order_of(after)
    return timeline.table.layout != 1 and completed == requested


def blocking(timeline: LoadedTimeline) -> Action | None:
    """Return the first pending write of layout 1, before which windows end (HUDI-W5)."""
    if timeline.table.layout != 1:
        return None
    return next(pending_writes(timeline), None)


def pending_writes(timeline: LoadedTimeline) -> Iterator[Action]:
    """Yield the pending writes in the order of their requested times, services left out."""
    for requested in sorted(timeline.active.pending):
        action = timeline.active.pending[requested]
        if action.service in _SERVICE_ACTIONS:
            continue
        if action.kind == "replacecommit" and _plans_clustering(timeline, action):
            continue
        yield action


def _plans_clustering(timeline: LoadedTimeline, action: Action) -> bool:
    name = f"{action.requested}.replacecommit.requested"
    return is_clustering_plan(timeline.content(name))


def _brings_changes(timeline: LoadedTimeline, action: Action) -> bool:
    if action.service in _SERVICE_ACTIONS:
        return False
    return timeline.metadata(action).role is Role.WRITE


def _may_be_archived(timeline: LoadedTimeline, requested: str) -> bool:
    first = timeline.active.first
    return first is not None and requested < first
