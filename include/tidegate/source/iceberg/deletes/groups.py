"""Index delete files of one scope by sequence number and bounds, to find those of a data file."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

import numpy as np

from tidegate.source.iceberg.deletes.key_metrics import KeyBounds, key_metrics
from tidegate.source.iceberg.manifests.matching import path_key, path_origin
from tidegate.source.iceberg.manifests.overlaps import Overlaps, Range

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from tidegate.model.file_slice import Delta
    from tidegate.source.iceberg.deletes.entries import FoundDelete
    from tidegate.source.iceberg.deletes.rules import DeleteRules
    from tidegate.source.iceberg.manifests.entries import Entry


class _ByAge:
    """Delete files in the order of their sequence numbers; data files of one age share answers."""

    def __init__(self, found: Sequence[FoundDelete]) -> None:
        self.files = tuple(each.file for each in found)
        self.sequences = [file.sequence for file in self.files]
        self._since: dict[int, tuple[Delta, ...]] = {}

    def since(self, first: int, without: NDArray[np.bool_] | None) -> tuple[Delta, ...]:
        """Return the files from number `first` on, without those that are marked."""
        if without is not None and without.any():
            return tuple(self.files[first + index] for index in np.flatnonzero(~without))
        if first not in self._since:
            self._since[first] = self.files[first:]
        return self._since[first]


def _oldest_first(found: Iterable[FoundDelete]) -> list[FoundDelete]:
    return sorted(found, key=lambda each: (each.file.sequence, each.file.path))


class PositionGroup:
    """Position delete files of one partition (ICE-4.6)."""

    def __init__(self, found: Iterable[FoundDelete], *, exact_paths: bool) -> None:
        ordered = _oldest_first(found)
        self._by_age = _ByAge(ordered)
        self._exact_paths = exact_paths
        self._overlaps = Overlaps([self._range(each) for each in ordered])

    def applying(self, entry: Entry) -> tuple[Delta, ...]:
        """Name those as old as the data file or younger whose paths enclose its own."""
        first = bisect_left(self._by_age.sequences, entry.sequence_number)
        key = entry.path if self._exact_paths else path_key(entry.path)
        return self._by_age.since(first, self._overlaps.apart_from(key, key, first))

    def _range(self, found: FoundDelete) -> Range | None:
        if self._exact_paths or found.path_bounds is None:
            return found.path_bounds
        lower, upper = found.path_bounds
        # All paths between two of one origin have that origin, so the order survives stripping.
        if path_origin(lower) != path_origin(upper):
            return None
        return path_key(lower), path_key(upper)


class KeyDeletes:
    """Equality delete files of one scope by the same columns (ICE-4.7, 4.9)."""

    def __init__(
        self, found: Iterable[FoundDelete], field_ids: tuple[int, ...], rules: DeleteRules
    ) -> None:
        ordered = _oldest_first(found)
        self._by_age = _ByAge(ordered)
        self._fields = [(field_id, rules.key_fields[field_id]) for field_id in field_ids]
        self._columns = [
            KeyBounds([key_metrics(each.entry.metrics, field_id, field) for each in ordered])
            for field_id, field in self._fields
        ]
        self.ruled_out = 0
        """How often a delete file was ruled out for a data file."""

    def applying(self, entry: Entry) -> tuple[Delta, ...]:
        """Name those younger than the data file that may hold a key of it."""
        first = bisect_right(self._by_age.sequences, entry.sequence_number)
        if first == len(self._by_age.files):
            return ()
        without: NDArray[np.bool_] | None = None
        for (field_id, field), column in zip(self._fields, self._columns, strict=True):
            marks = column.ruled_out(key_metrics(entry.metrics, field_id, field), first)
            if marks is not None:
                without = marks if without is None else without | marks
        if without is not None:
            self.ruled_out += int(np.count_nonzero(without))
        return self._by_age.since(first, without)
