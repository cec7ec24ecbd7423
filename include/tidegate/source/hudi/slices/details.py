"""The details of a Hudi file slice in a plan, besides those of every kind of source."""

from __future__ import annotations

from typing import TYPE_CHECKING, NotRequired, TypedDict, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidegate.model.file_slice import FileSlice

LOG_ONLY = "hudi-log"
"""`FileSlice.file_format` of a slice without a base file, whose path is that of its first log."""
BLOCKS = "log"
"""`Delta.file_format` of a log that has blocks; a native log is a file of its own format."""

ONLY_WINDOW = frozenset({"latest_state", "skip_merge"})
"""Modes in which rows and records of other instants are not looked at (HUDI-R4, R8)."""


WITH_DELETES = "with_deletes"
"""The mode in which deleted keys are returned beside changed rows (HUDI-R6)."""
REPLACING = "rebuild_partitions"
"""The mode in which the partitions that changed are read whole (HUDI-R9)."""


CHANGELOG = "changelog"
"""The mode in which the records of each write are returned, not merged (HUDI-R7)."""

OF_CHANGES = frozenset({WITH_DELETES, CHANGELOG})
"""Modes in which rows have a kind."""


class SliceDetails(TypedDict):
    """`FileSlice.details` of a slice."""

    partition: str
    """The folder, below the table."""
    group: str
    """The id of the file group."""
    numbers: NotRequired[int]
    """Of a slice without a base file: how many numbers its keys have, of which a piece reads those
    from `row_start` on (HUDI-P7)."""
    until: NotRequired[tuple[str, str]]
    """Completion and requested time after which blocks do not count (HUDI-M2); only where a log may
    have blocks of several instants."""
    instants: NotRequired[tuple[str, ...]]
    """The instants of the window that may have written rows of the slice; without it, the whole
    state is read."""
    short: NotRequired[tuple[str, ...]]
    """Logs that a write left longer than they are (HUDI-F14)."""
    only_deletes: NotRequired[bool]
    """Whether the rows that were written are returned of another slice, which has them by now."""
    removed_by: NotRequired[str]
    """The first instant that deleted rows of `DeltaKind.PREVIOUS`."""
    times: NotRequired[Mapping[str, str]]
    """Instants of the window → the time by which their changes are in order, if it is another."""
    ordinal: NotRequired[int]
    """In a changelog: the number of the write in the window."""
    only_inserts: NotRequired[bool]
    """In a changelog: whether all rows are known to be new."""
    gone_since: NotRequired[str]
    """The instant that removed the whole slice: all of its rows are returned as deleted."""


def details_of(slice: FileSlice) -> SliceDetails:
    """Return the details that planning added to a slice."""
    return cast("SliceDetails", slice.details)
