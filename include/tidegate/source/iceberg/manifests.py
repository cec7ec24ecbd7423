"""Read manifest lists and manifests with the v3 schemas for every format version (ICE-4.1, 4.2)."""

from __future__ import annotations

import zlib
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from pyiceberg.avro.resolver import resolve_reader
from pyiceberg.exceptions import ResolveError
from pyiceberg.manifest import MANIFEST_LIST_FILE_SCHEMAS, ManifestFile, PartitionFieldSummary
from pyiceberg.schema import Schema

from tidegate.errors import SourceFileDamaged, SourceFileGone, SourceUnreachable, UnsupportedFeature
from tidegate.source.iceberg.avro_records import AvroRecords
from tidegate.source.iceberg.entries import Entry, EntryReader

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from pyiceberg.io import FileIO
    from pyiceberg.table.snapshots import Snapshot

_THREADS = 8
_Result = TypeVar("_Result")
_DELETES = 1
_FIRST_ROW_ID = 15
# pyiceberg's compiled decoder answers nonsense lengths with SystemError or MemoryError.
_DAMAGE = (
    ValueError,
    EOFError,
    KeyError,
    IndexError,
    ResolveError,
    SystemError,
    MemoryError,
    zlib.error,
)
# Older lists lack fields that v3 requires; they read as NULL instead of failing (ICE-4.1).
_LIST_SCHEMA = Schema(
    *[
        field.model_copy(update={"required": False})
        for field in MANIFEST_LIST_FILE_SCHEMAS[3].fields
    ]
)
_LIST_TYPES: dict[int, Callable[..., Any]] = {-1: ManifestFile, 508: PartitionFieldSummary}


class ManifestReader:
    """Reads the manifests of one table; the same manifest list is read once."""

    def __init__(self, files: FileIO, source: str) -> None:
        self._files = files
        self._source = source
        self._lists: dict[str, tuple[ManifestFile, ...]] = {}

    def manifests(self, snapshot: Snapshot) -> tuple[ManifestFile, ...]:
        """Read a snapshot's manifest list, in its order.

        Raises:
            SourceFileGone, SourceFileDamaged, SourceUnreachable, UnsupportedFeature: see `entries`.
        """
        location = snapshot.manifest_list
        if location not in self._lists:
            self._lists[location] = self._read(location, None, _manifest_files)
        return self._lists[location]

    def entries(
        self, manifests: Iterable[ManifestFile], metric_ids: Collection[int] = ()
    ) -> list[list[Entry]]:
        """Read manifests side by side, each in its order; the first error ends it.

        Args:
            manifests: of this table.
            metric_ids: columns whose metrics are wanted; metrics make up most of a manifest.

        Raises:
            SourceFileGone: a manifest is not there any more.
            SourceFileDamaged: it is cut off, or no manifest.
            SourceUnreachable: the store did not answer (Transient).
            UnsupportedFeature: it is encrypted, or has Avro maps as only BigQuery writes them.
        """
        wanted = list(manifests)
        if not wanted:
            return []
        with ThreadPoolExecutor(min(_THREADS, len(wanted))) as pool:
            return list(pool.map(partial(self._entries, metric_ids=metric_ids), wanted))

    def _entries(self, manifest: ManifestFile, metric_ids: Collection[int]) -> list[Entry]:
        if manifest.key_metadata is not None:
            raise UnsupportedFeature(source=self._source, feature="an encrypted manifest")

        def read(records: AvroRecords) -> list[Entry]:
            reader = EntryReader(records.schema, manifest, manifest[_FIRST_ROW_ID], metric_ids)
            return list(records.read(reader.read))

        return self._read(manifest.manifest_path, manifest.manifest_length, read)

    def _read(
        self, location: str, length: int | None, read: Callable[[AvroRecords], _Result]
    ) -> _Result:
        try:
            content = self._content(location)
            if length is not None and len(content) != length:
                problem = f"expected {length} bytes, found {len(content)}"
                raise ValueError(problem)
            return read(AvroRecords(content))
        except TypeError as odd:
            # pyiceberg expects maps as lists of pairs, as every writer but BigQuery has them.
            raise UnsupportedFeature(
                source=self._source, feature=f"{location}: a manifest with Avro maps ({odd})"
            ) from odd
        except _DAMAGE as broken:
            raise SourceFileDamaged(
                path=location, problem=f"no Iceberg manifest: {broken}"
            ) from broken

    def _content(self, location: str) -> bytes:
        try:
            with self._files.new_input(location).open() as stream:
                return stream.read()
        except FileNotFoundError as gone:
            raise SourceFileGone(path=location) from gone
        except OSError as silent:
            raise SourceUnreachable(
                source=self._source, problem=f"{location}: {silent}"
            ) from silent


def _manifest_files(records: AvroRecords) -> tuple[ManifestFile, ...]:
    reader = resolve_reader(records.schema, _LIST_SCHEMA, _LIST_TYPES)
    return tuple(records.read(reader.read))


def is_delete_manifest(manifest: ManifestFile) -> bool:
    """Say whether a manifest lists delete files."""
    return manifest.content == _DELETES


def has_live_files(manifest: ManifestFile) -> bool:
    """Say whether a manifest may list files that are not removed; unknown counts count as yes."""
    return manifest.has_added_files() or manifest.has_existing_files()
