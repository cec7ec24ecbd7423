"""The file slices of file groups as of an instant, from the names of their files. Opens nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from tidegate.source.hudi.slices.names import BaseFile, LogFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

LOGS_BY_COMPLETION = 8
"""The table version since which a log file's own completion time says which slice it is part of."""


class View(Protocol):
    """The instants that are visible in one state of a table."""

    def is_visible(self, requested: str) -> bool:
        """Return whether the instant was done in that state (HUDI-F2)."""
        ...

    def completed(self, requested: str) -> str:
        """Return when an instant was done; its requested time if that is no longer known."""
        ...


@dataclass(frozen=True)
class Slice:
    """A base file, or none, and the log files that belong to it, in the order of HUDI-F11."""

    partition: str
    group: str
    base: BaseFile | None
    logs: tuple[LogFile, ...] = ()
    history: tuple[LogFile, ...] = ()
    """Other logs of the group, of slices before or after it."""


def latest_slices(
    partition: str,
    groups: Mapping[str, Sequence[BaseFile | LogFile]],
    view: View,
    table_version: int,
    named: Callable[[BaseFile], bool],
) -> Iterator[Slice]:
    """Return the newest slice of each file group in one state of a table.

    Args:
        partition: the folder of the files, below the table.
        groups: all files there, by file group.
        view: the state.
        table_version: decides which slice a log file belongs to (HUDI-F4, F5).
        named: tells of one of several base files of one instant whether its commit names it.

    Yields:
        Slices with at least one file, by file group.
    """
    for group in sorted(groups):
        bases = [it for it in groups[group] if isinstance(it, BaseFile)]
        logs = [it for it in groups[group] if isinstance(it, LogFile) and it.kind != "cdc"]
        visible = [it for it in bases if view.is_visible(it.instant)]
        newest = max((it.instant for it in visible), default="")
        base = one_of([it for it in visible if it.instant == newest], named)
        own = sorted(
            (it for it in logs if is_part(it, base, view, table_version)), key=lambda it: it.order
        )
        if base is not None or own:
            other = sorted(set(logs).difference(own), key=lambda it: it.order)
            yield Slice(partition, group, base, tuple(own), tuple(other))


def one_of(found: Sequence[BaseFile], named: Callable[[BaseFile], bool]) -> BaseFile | None:
    """Return the base file of one group and instant; None if there is none.

    A task that was tried again may have left a second one, which its commit does not name
    (HUDI-F1).
    """
    kept = [it for it in found if named(it)] if len(found) > 1 else found
    return max(kept or found, key=lambda it: it.token, default=None)


def is_part(log: LogFile, base: BaseFile | None, view: View, table_version: int) -> bool:
    """Return whether a log belongs to the slice of the newest visible base file."""
    if table_version >= LOGS_BY_COMPLETION:
        if not view.is_visible(log.instant):
            return False
        return base is None or view.completed(log.instant) >= base.instant
    # Logs named by a compaction that is not visible lie over the slice before it (HUDI-F6).
    return base is None or log.instant >= base.instant
