"""One file of a manifest, with what it inherits from the manifest (ICE-4.2, 8.1)."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from tidegate.source.iceberg.manifests.entry_fields import record_reader
from tidegate.source.iceberg.manifests.metrics import ColumnMetrics, Metrics

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pyiceberg.avro.decoder import BinaryDecoder
    from pyiceberg.manifest import ManifestFile
    from pyiceberg.schema import Schema
    from pyiceberg.types import PrimitiveType

# In the order in which `EntryReader.read` takes them: status, snapshot, sequence numbers, content,
# path, format, partition, rows, size, key, offsets, row id, equality ids, reference, blob, metrics.
_WANTED = (
    *(0, 1, 3, 4, 134, 100, 101, 102, 103, 104, 131, 132, 142, 135, 143, 144, 145),
    *(109, 110, 137, 125, 128),
)


class Status(IntEnum):
    """The status of a file in a manifest entry."""

    EXISTING = 0
    ADDED = 1
    DELETED = 2


class Content(IntEnum):
    """The content of the file of a manifest entry."""

    ROWS = 0
    POSITION_DELETES = 1
    EQUALITY_DELETES = 2


class Entry(NamedTuple):
    """One file of a manifest; a plain tuple, because tables have hundreds of thousands."""

    status: int
    snapshot_id: int
    sequence_number: int
    file_sequence_number: int
    spec_id: int
    content: int
    path: str
    file_format: str
    partition: tuple[Any, ...]
    rows: int
    size_bytes: int
    encrypted: bool
    split_offsets: tuple[int, ...]
    first_row_id: int | None
    equality_ids: tuple[int, ...]
    referenced: str | None
    """The data file that a delete file refers to."""
    content_offset: int | None
    content_size: int | None
    metrics: Metrics | None


class EntryReader:
    """Decodes the entries of one manifest, in order, because row ids continue from file to file."""

    def __init__(
        self,
        schema: Schema,
        manifest: ManifestFile,
        first_row_id: int | None,
        metric_ids: Collection[int],
        types: Mapping[int, PrimitiveType],
    ) -> None:
        """Prepare.

        Args:
            schema: as the manifest was written.
            manifest: its entry in the manifest list.
            first_row_id: that of the manifest; without it, none of its files has row ids (ICE-8.1).
            metric_ids: columns whose metrics are kept.
            types: the types of the table's columns when the manifest was written.
        """
        ids = sorted(metric_ids)
        self._fields = record_reader(schema, _WANTED, ids)
        self._metric_places = {field_id: place for place, field_id in enumerate(ids)}
        self._types = types
        self._unknown = [None] * len(ids)
        self._manifest_snapshot = manifest.added_snapshot_id or 0
        self._manifest_sequence = manifest.sequence_number or 0
        self._spec_id = manifest.partition_spec_id
        self._next_row_id = first_row_id
        self._formats: dict[str, str] = {}

    def read(self, decoder: BinaryDecoder) -> Entry:
        """Decode one entry.

        Raises:
            ValueError: it inherits a sequence number without having been added here.
        """
        (
            status,
            snapshot,
            sequence,
            file_sequence,
            content,
            path,
            file_format,
            partition,
            rows,
            size_bytes,
            key,
            offsets,
            row_id,
            equality_ids,
            referenced,
            blob_offset,
            blob_size,
            *maps,
        ) = self._fields(decoder)
        # Called for every file of a table; `Entry(...)` would take twice as long.
        return Entry._make(
            (
                status,
                self._manifest_snapshot if snapshot is None else snapshot,
                self._inherited(status, path) if sequence is None else sequence,
                self._inherited(status, path) if file_sequence is None else file_sequence,
                self._spec_id,
                content or 0,
                path,
                self._formats.get(file_format) or self._lower(file_format),
                partition or (),
                rows,
                size_bytes,
                key is not None,
                offsets or (),
                self._row_id(row_id, status, rows),
                equality_ids or (),
                referenced,
                blob_offset,
                blob_size,
                self._metrics(rows, maps) if self._metric_places else None,
            )
        )

    def _metrics(self, rows: int, maps: list[Sequence[Any] | None]) -> Metrics:
        unknown = self._unknown
        parts = [unknown if found is None else found for found in maps]
        columns = tuple(map(ColumnMetrics._make, zip(*parts, strict=True)))
        return Metrics._make((rows, self._metric_places, columns, self._types))

    def _inherited(self, status: int, path: str) -> int:
        if self._manifest_sequence and status != Status.ADDED:
            problem = f"entry of {path}: no sequence number, but not added here"
            raise ValueError(problem)
        return self._manifest_sequence

    def _row_id(self, own: int | None, status: int, rows: int) -> int | None:
        if self._next_row_id is None:
            return None
        if own is not None or status == Status.DELETED:
            return own
        first = self._next_row_id
        self._next_row_id += rows
        return first

    def _lower(self, file_format: str) -> str:
        return self._formats.setdefault(file_format, str(file_format).lower())
