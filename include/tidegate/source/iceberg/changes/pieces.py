"""Turn data files and the deletes that apply to them into pieces of a plan (ICE-4.11, 5.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from tidegate.model.file_slice import FileSlice
from tidegate.model.plan import Piece
from tidegate.source.iceberg.columns.columns import IdentityValues

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyiceberg.partitioning import PartitionSpec

    from tidegate.model.file_slice import Change, CheckedState, Deltas
    from tidegate.source.iceberg.columns.slice_details import SliceDetails
    from tidegate.source.iceberg.manifests.entries import Entry
    from tidegate.source.iceberg.manifests.event_bounds import EventBounds


class PieceMaker:
    """Makes pieces of one table's files."""

    def __init__(
        self, specs: Mapping[int, PartitionSpec], bounds: EventBounds | None = None
    ) -> None:
        """Prepare.

        Args:
            specs: of the table.
            bounds: reads event-time bounds from an entry's metrics; None: pieces have no bounds.
        """
        self._identity = IdentityValues(specs)
        self._bounds = bounds

    def piece(
        self,
        entry: Entry,
        rivals: Sequence[str] = (),
        *,
        deltas: Deltas = (),
        change: Change | None = None,
        check: CheckedState | None = None,
        since: int | None = None,
    ) -> Piece:
        """Return a whole data file.

        Args:
            entry: of the data file.
            rivals: data files that deletes distinguish from it by exact path only (ICE-4.15).
            deltas: deletes that apply to it; none for rows as they were committed (ICE-3.8).
            change: the change, in a read of changes.
            check: the state that it is checked for.
            since: the sequence number after which rows are read; None: all rows (ICE-8.3).
        """
        details: SliceDetails = {
            "snapshot": entry.snapshot_id,
            "sequence": entry.sequence_number,
            "spec": entry.spec_id,
            "partition": self._identity.of(entry.spec_id, entry.partition),
            "first_row_id": entry.first_row_id,
        }
        if rivals:
            details["rivals"] = tuple(rivals)
        if since is not None:
            details["since_sequence"] = since
        bounds = self._bounds.read(entry.metrics) if self._bounds and entry.metrics else None
        slice = FileSlice(
            path=entry.path,
            file_format=entry.file_format,
            file_bytes=entry.size_bytes,
            rows=entry.rows,
            offsets=entry.split_offsets,
            sequence=entry.file_sequence_number,
            deltas=deltas,
            change=change,
            check=check,
            details=cast("dict[str, Any]", details),
        )
        return Piece(slice, entry.rows, entry.size_bytes, event_times=bounds)
