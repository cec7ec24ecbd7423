"""The details of a Hudi file slice in a plan, besides those of every kind of source."""

from __future__ import annotations

from typing import TYPE_CHECKING, NotRequired, TypedDict, cast

if TYPE_CHECKING:
    from tidegate.model.file_slice import FileSlice

LOG_ONLY = "hudi-log"
"""`FileSlice.file_format` of a slice without a base file, whose path is that of its first log."""


class SliceDetails(TypedDict):
    """`FileSlice.details` of a slice."""

    partition: str
    """The folder, below the table."""
    group: str
    """The id of the file group."""
    until: NotRequired[str]
    """Before table version 8: blocks of later instants do not count (HUDI-M2)."""
    instants: NotRequired[tuple[str, ...]]
    """The instants of the window that may have written rows of the slice; without it, the whole
    state is read."""


def details_of(slice: FileSlice) -> SliceDetails:
    """Return the details that planning added to a slice."""
    return cast("SliceDetails", slice.details)
