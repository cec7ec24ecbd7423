"""Read manifest lists and manifests with the v3 schemas for every format version (ICE-4.1, 4.2)."""

from __future__ import annotations

import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, TypeVar

from pyiceberg.avro.file import AvroFile
from pyiceberg.exceptions import ResolveError
from pyiceberg.manifest import (
    DATA_FILE_TYPE,
    MANIFEST_ENTRY_SCHEMAS,
    MANIFEST_LIST_FILE_SCHEMAS,
    ManifestFile,
    PartitionFieldSummary,
)
from pyiceberg.schema import Schema
from pyiceberg.types import NestedField, StructType

from tidegate.errors import SourceFileDamaged, SourceFileGone, SourceUnreachable, UnsupportedFeature

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pyiceberg.io import FileIO
    from pyiceberg.table.snapshots import Snapshot
    from pyiceberg.typedef import Record

_THREADS = 8
_Result = TypeVar("_Result")
_DELETES = 1
# pyiceberg's compiled decoder answers nonsense lengths with SystemError.
_DAMAGE = (ValueError, EOFError, KeyError, IndexError, ResolveError, SystemError, zlib.error)


class Status(IntEnum):
    """What a manifest entry says of its file."""

    EXISTING = 0
    ADDED = 1
    DELETED = 2


@dataclass(frozen=True, slots=True)
class Metrics:
    """Column metrics by field id, empty where unknown; named as pyiceberg reads them."""

    record_count: int
    value_counts: Mapping[int, int]
    null_value_counts: Mapping[int, int]
    nan_value_counts: Mapping[int, int]
    lower_bounds: Mapping[int, bytes]
    upper_bounds: Mapping[int, bytes]


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of a manifest, with what it inherits from it."""

    status: int
    snapshot_id: int
    sequence_number: int
    spec_id: int
    path: str
    file_format: str
    partition: tuple[Any, ...]
    rows: int
    size_bytes: int
    encrypted: bool
    split_offsets: tuple[int, ...]
    metrics: Metrics | None


def _optional(fields: Iterable[NestedField]) -> list[NestedField]:
    # Older files lack fields that v3 requires; they read as NULL instead of failing (ICE-4.1).
    return [field.model_copy(update={"required": False}) for field in fields]


_LIST_SCHEMA = Schema(*_optional(MANIFEST_LIST_FILE_SCHEMAS[3].fields))
# pyiceberg's decoder cannot leave out maps that it is not asked for, so every field of a file is
# read.
_FILE_FIELDS = _optional(DATA_FILE_TYPE[3].fields)
_ENTRY_SCHEMA = Schema(
    *[
        NestedField(2, "data_file", StructType(*_FILE_FIELDS)) if field.field_id == 2 else field
        for field in _optional(MANIFEST_ENTRY_SCHEMAS[3].fields)
    ]
)
_POSITION = {field.field_id: index for index, field in enumerate(_FILE_FIELDS)}
_PATH, _FORMAT, _PARTITION, _ROWS, _SIZE, _KEY, _OFFSETS = (
    _POSITION[field_id] for field_id in (100, 101, 102, 103, 104, 131, 132)
)
_NO_METRICS: Mapping[int, Any] = {}
_METRICS = tuple(_POSITION[field_id] for field_id in (109, 110, 137, 125, 128))


class ManifestReader:
    """Reads the manifests of one table; the same manifest list is read once."""

    def __init__(self, files: FileIO, source: str) -> None:
        self._files = files
        self._source = source
        self._lists: dict[str, tuple[ManifestFile, ...]] = {}

    def manifests(self, snapshot: Snapshot) -> tuple[ManifestFile, ...]:
        """Read a snapshot's manifest list, in its order."""
        location = snapshot.manifest_list
        if location not in self._lists:
            types = {-1: ManifestFile, 508: PartitionFieldSummary}
            self._lists[location] = tuple(self._read(location, _LIST_SCHEMA, types, lambda it: it))
        return self._lists[location]

    def entries(
        self, manifests: Iterable[ManifestFile], *, with_metrics: bool = False
    ) -> list[list[Entry]]:
        """Read manifests side by side, each in its order; the first error ends it.

        Args:
            manifests: of this table.
            with_metrics: keep column metrics, which make up most of a manifest.
        """
        wanted = list(manifests)
        if not wanted:
            return []
        with ThreadPoolExecutor(min(_THREADS, len(wanted))) as pool:
            return list(pool.map(lambda it: self._entries(it, with_metrics), wanted))

    def _entries(self, manifest: ManifestFile, with_metrics: bool) -> list[Entry]:
        if manifest.key_metadata is not None:
            raise UnsupportedFeature(source=self._source, feature="an encrypted manifest")
        return self._read(
            manifest.manifest_path,
            _ENTRY_SCHEMA,
            {},
            lambda record: _entry(record, manifest, with_metrics),
        )

    def _read(
        self,
        location: str,
        schema: Schema,
        types: Mapping[int, Callable[..., Any]],
        convert: Callable[[Any], _Result],
    ) -> list[_Result]:
        # Records are converted one by one: a list of them would keep the garbage collector busy.
        try:
            file = self._files.new_input(location)
            with AvroFile[Any](file, schema, read_types=dict(types)) as reader:
                return [convert(record) for record in reader]
        except FileNotFoundError as gone:
            raise SourceFileGone(path=location) from gone
        except OSError as silent:
            raise SourceUnreachable(
                source=self._source, problem=f"{location}: {silent}"
            ) from silent
        except TypeError as odd:
            # pyiceberg expects maps as lists of pairs, as every writer but BigQuery has them.
            raise UnsupportedFeature(
                source=self._source, feature=f"{location}: a manifest with Avro maps ({odd})"
            ) from odd
        except _DAMAGE as broken:
            raise SourceFileDamaged(
                path=location, problem=f"no Iceberg manifest: {broken}"
            ) from broken


def is_delete_manifest(manifest: ManifestFile) -> bool:
    """Say whether a manifest lists delete files."""
    return manifest.content == _DELETES


def has_live_files(manifest: ManifestFile) -> bool:
    """Say whether a manifest may list files that are not removed; unknown counts count as yes."""
    return manifest.has_added_files() or manifest.has_existing_files()


def _entry(record: Record, manifest: ManifestFile, with_metrics: bool) -> Entry:
    """Fill in what an entry inherits from its manifest (ICE-4.2)."""
    status, own_snapshot, sequence, _, file = (record[index] for index in range(5))
    if sequence is None:
        sequence = manifest.sequence_number or 0
        if sequence and status != Status.ADDED:
            raise SourceFileDamaged(
                path=manifest.manifest_path,
                problem=f"entry of {file[_PATH]}: no sequence number, but not added here",
            )
    partition = file[_PARTITION]
    return Entry(
        status=status,
        snapshot_id=(manifest.added_snapshot_id or 0) if own_snapshot is None else own_snapshot,
        sequence_number=sequence,
        spec_id=manifest.partition_spec_id,
        path=file[_PATH],
        file_format=str(file[_FORMAT]).lower(),
        partition=tuple(partition[index] for index in range(len(partition))),
        rows=file[_ROWS],
        size_bytes=file[_SIZE],
        encrypted=file[_KEY] is not None,
        split_offsets=tuple(file[_OFFSETS] or ()),
        metrics=_metrics(file) if with_metrics else None,
    )


def _metrics(file: Record) -> Metrics:
    # Compared with None: asking a lazy map whether it is empty would decode it.
    maps = (file[index] for index in _METRICS)
    return Metrics(file[_ROWS], *(_NO_METRICS if found is None else found for found in maps))
