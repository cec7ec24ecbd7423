"""Write Iceberg tables that are nothing but metadata: their data files do not exist.

Planning must not open data files; on these tables it would fail if it did.
"""

from __future__ import annotations

import json
import time
import uuid
from typing import TYPE_CHECKING, Any

from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    write_manifest,
    write_manifest_list,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import DayTransform
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField, StringType, TimestamptzType

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_NAMES = ("region", "channel", "status", "currency", "note")
SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "ordered_at", TimestamptzType()),
    *(NestedField(3 + index, name, StringType()) for index, name in enumerate(_NAMES)),
)
SPEC = PartitionSpec(PartitionField(2, 1000, DayTransform(), "day"))
_FIRST_DAY = 20_000
_DAYS = 365
_DAY = 86_400_000_000
_ROWS = 100_000
_FILE_BYTES = 8 << 20
_PER_MANIFEST = 5_000


def write_many_files(folder: Path, files: int) -> Path:
    """Write a table of one commit that added many files, spread over a year of days.

    Returns:
        The metadata file.
    """
    snapshot = 1
    table = _Writer(folder)
    manifests = [
        table.manifest(range(first, min(first + _PER_MANIFEST, files)), snapshot)
        for first in range(0, files, _PER_MANIFEST)
    ]
    counts = {"added-data-files": str(files), "added-records": str(files * _ROWS)}
    return table.finish([(snapshot, "append", table.manifest_list(snapshot, manifests), counts)])


def write_many_replaces(folder: Path, snapshots: int) -> Path:
    """Write a table of one append and then nothing but compactions.

    Returns:
        The metadata file.
    """
    table = _Writer(folder)
    first = table.manifest_list(1, [table.manifest(range(100), 1)])
    history = [(1, "append", first, {"added-data-files": "100"})]
    for number in range(2, snapshots + 2):
        compacted = table.manifest(range(number * 100, number * 100 + 1), number)
        counts = {"added-data-files": "1", "deleted-data-files": "1"}
        history.append((number, "replace", table.manifest_list(number, [compacted]), counts))
    return table.finish(history)


class _Writer:
    """Writes below one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files = PyArrowFileIO()
        (folder / "metadata").mkdir(parents=True)

    def manifest(self, numbers: Sequence[int], snapshot: int) -> ManifestFile:
        path = f"{self._folder}/metadata/{uuid.uuid4()}-m0.avro"
        output = self._files.new_output(path)
        with write_manifest(2, SPEC, SCHEMA, output, snapshot, "deflate") as writer:
            for number in numbers:
                writer.add_entry(_entry(self._folder, number, snapshot))
        return writer.to_manifest_file()

    def manifest_list(self, snapshot: int, manifests: Sequence[ManifestFile]) -> str:
        path = f"{self._folder}/metadata/snap-{snapshot}.avro"
        output = self._files.new_output(path)
        parent = snapshot - 1 or None
        with write_manifest_list(2, output, snapshot, parent, snapshot, "deflate") as writer:
            writer.add_manifests(list(manifests))
        return path

    def finish(self, history: Sequence[tuple[int, str, str, dict[str, str]]]) -> Path:
        now = int(time.time() * 1000)
        head = history[-1][0]
        raw: dict[str, Any] = {
            "format-version": 2,
            "table-uuid": str(uuid.uuid4()),
            "location": str(self._folder),
            "last-sequence-number": head,
            "last-updated-ms": now,
            "last-column-id": len(SCHEMA.fields),
            "current-schema-id": 0,
            "schemas": [SCHEMA.model_dump(mode="json", by_alias=True)],
            "default-spec-id": 0,
            "partition-specs": [SPEC.model_dump(mode="json", by_alias=True)],
            "last-partition-id": 1000,
            "default-sort-order-id": 0,
            "sort-orders": [{"order-id": 0, "fields": []}],
            "properties": {},
            "current-snapshot-id": head,
            "refs": {"main": {"snapshot-id": head, "type": "branch"}},
            "snapshots": [
                {
                    "snapshot-id": snapshot,
                    **({"parent-snapshot-id": snapshot - 1} if snapshot > 1 else {}),
                    "sequence-number": snapshot,
                    "timestamp-ms": now - head + snapshot,
                    "manifest-list": manifest_list,
                    "summary": {"operation": operation, **counts},
                    "schema-id": 0,
                }
                for snapshot, operation, manifest_list, counts in history
            ],
        }
        path = self._folder / "metadata" / "v1.metadata.json"
        path.write_text(json.dumps(raw))
        return path


def _entry(folder: Path, number: int, snapshot: int) -> ManifestEntry:
    day = _FIRST_DAY + number % _DAYS
    ids = [field.field_id for field in SCHEMA.fields]
    low, high = number * _ROWS, (number + 1) * _ROWS - 1
    first, last = day * _DAY, (day + 1) * _DAY - 1
    file = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=f"{folder}/data/day={day}/part-{number:08d}-{uuid.uuid4()}.parquet",
        file_format=FileFormat.PARQUET,
        partition=Record(day),
        record_count=_ROWS,
        file_size_in_bytes=_FILE_BYTES,
        column_sizes=dict.fromkeys(ids, _FILE_BYTES // len(ids)),
        value_counts=dict.fromkeys(ids, _ROWS),
        null_value_counts=dict.fromkeys(ids, 0),
        nan_value_counts={},
        lower_bounds={1: _long(low), 2: _long(first), **dict.fromkeys(ids[2:], b"aaaaaaaa")},
        upper_bounds={1: _long(high), 2: _long(last), **dict.fromkeys(ids[2:], b"zzzzzzzz")},
        split_offsets=[4],
        spec_id=0,
    )
    return ManifestEntry.from_args(
        status=ManifestEntryStatus.ADDED, snapshot_id=snapshot, data_file=file
    )


def _long(number: int) -> bytes:
    return number.to_bytes(8, "little", signed=True)
