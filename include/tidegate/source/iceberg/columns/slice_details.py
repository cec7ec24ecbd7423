"""The details of an Iceberg data file in a plan, besides those of every kind of source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NotRequired, TypedDict, cast

if TYPE_CHECKING:
    from tidegate.model.file_slice import FileSlice


class SliceDetails(TypedDict):
    """`FileSlice.details` of a data file."""

    snapshot: int
    """The snapshot that added it."""
    sequence: int
    """Its data sequence number."""
    spec: int
    """Id of its partition spec."""
    partition: dict[str, Any]
    """Field id → value of identity partition columns, from `IdentityValues`."""
    first_row_id: int | None
    """Row id of its first row (ICE-8.2)."""
    rivals: NotRequired[tuple[str, ...]]
    """Other live data files whose paths differ in scheme and authority only (ICE-4.15)."""
    since_sequence: NotRequired[int]
    """Only rows that were written after this sequence number are read (ICE-8.3)."""


def details_of(slice: FileSlice) -> SliceDetails:
    """Return the details that `PieceMaker` added to a slice."""
    return cast("SliceDetails", slice.details)
