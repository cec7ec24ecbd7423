"""Turn data files and the deletes that apply to them into pieces of a plan (ICE-4.11, 5.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidegate.model.plan import Piece
from tidegate.source.iceberg.columns.columns import IdentityValues

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyiceberg.partitioning import PartitionSpec

    from tidegate.source.iceberg.changes.states import LiveFile
    from tidegate.source.iceberg.deletes.file import DeleteFile
    from tidegate.source.iceberg.manifests.entries import Entry
    from tidegate.source.iceberg.manifests.event_bounds import EventBounds

_NOTHING: Mapping[str, Any] = {}


class PieceMaker:
    """Makes pieces of one table's files."""

    def __init__(
        self, specs: Mapping[int, PartitionSpec], bounds: EventBounds | None = None
    ) -> None:
        """Prepare.

        Args:
            specs: of the table.
            bounds: reads event-time bounds from the metrics of an entry; None: pieces have none.
        """
        self._identity = IdentityValues(specs)
        self._bounds = bounds
        self._refs: dict[int, tuple[tuple[DeleteFile, ...], list[dict[str, Any]]]] = {}
        self._ref_of: dict[int, tuple[DeleteFile, dict[str, Any]]] = {}

    def live(self, file: LiveFile) -> Piece:
        """Return a file of a state with the deletes that apply to it."""
        deletes = {"deletes": self.refs(file.deletes)} if file.deletes else {}
        return self.piece(file.entry, file.rivals, deletes)

    def refs(self, deletes: tuple[DeleteFile, ...]) -> list[dict[str, Any]]:
        """Return delete files as pieces name them.

        Files of one age and partition have the same deletes: they share one list, for a table may
        have as many pairs of files as it has data files times delete files.
        """
        known = self._refs.get(id(deletes))
        if known is None:
            # The tuple is kept with its list, so that its id is not given to another one.
            known = self._refs[id(deletes)] = deletes, [self._ref(each) for each in deletes]
        return known[1]

    def _ref(self, file: DeleteFile) -> dict[str, Any]:
        known = self._ref_of.get(id(file))
        if known is None:
            known = self._ref_of[id(file)] = file, file.to_json()
        return known[1]

    def piece(
        self, entry: Entry, rivals: Sequence[str] = (), further: Mapping[str, Any] = _NOTHING
    ) -> Piece:
        """Return a whole data file.

        Args:
            entry: of the data file.
            rivals: data files that deletes tell from it by exact path only (ICE-4.15).
            further: more details: `deletes` or `change`; none for rows as they were committed
                (ICE-3.8).
        """
        details = {
            "format": entry.file_format,
            "snapshot": entry.snapshot_id,
            "sequence": entry.sequence_number,
            "file_sequence": entry.file_sequence_number,
            "spec": entry.spec_id,
            "partition": self._identity.of(entry.spec_id, entry.partition),
            "records": entry.rows,
            "length": entry.size_bytes,
            "split_offsets": entry.split_offsets,
            "first_row_id": entry.first_row_id,
        }
        if rivals:
            details["rivals"] = rivals
        if further:
            details |= further
        bounds = self._bounds.read(entry.metrics) if self._bounds and entry.metrics else None
        return Piece(entry.path, entry.rows, entry.size_bytes, details=details, event_times=bounds)
