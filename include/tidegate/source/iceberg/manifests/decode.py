"""Read manifest lists and manifests with the v3 schemas for every format version (ICE-4.1, 4.2)."""

from __future__ import annotations

import zlib
from collections import OrderedDict, deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING, Any, TypeVar

from pyiceberg.avro.resolver import resolve_reader
from pyiceberg.exceptions import ResolveError
from pyiceberg.manifest import MANIFEST_LIST_FILE_SCHEMAS, ManifestFile, PartitionFieldSummary
from pyiceberg.schema import Schema

from tidegate.errors import SourceFileDamaged, SourceFileGone, SourceUnreachable, UnsupportedFeature
from tidegate.source.iceberg.manifests.avro_records import AvroRecords
from tidegate.source.iceberg.manifests.entries import Entry, EntryReader
from tidegate.source.iceberg.manifests.written_types import written_types

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterable, Sequence
    from concurrent.futures import Future

    from pyiceberg.io import FileIO
    from pyiceberg.table.snapshots import Snapshot

_AHEAD = 8
"""Manifests have about 8 MB, so these need well below 100 MB."""
_KEPT_LISTS = 32
"""Each snapshot of a window is compared with its parent, and read a few times."""
_Result = TypeVar("_Result")
_DELETES = 1
_FIRST_ROW_ID = 15
_ENCRYPTED = b"AGS1"
"""The first bytes of a file that Iceberg encrypted as a whole."""
# pyiceberg's compiled decoder raises SystemError or MemoryError for invalid lengths.
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
# Path and spec; since v2 sequence number and content, without which deletes would look like data.
_REQUIRED_IN_LISTS = {1: (500, 502), 2: (500, 502, 515, 517)}
# Older lists lack fields that v3 requires; they read as NULL instead of failing (ICE-4.1).
_LIST_SCHEMA = Schema(
    *[
        field.model_copy(update={"required": False})
        for field in MANIFEST_LIST_FILE_SCHEMAS[3].fields
    ]
)
_LIST_TYPES: dict[int, Callable[..., Any]] = {-1: ManifestFile, 508: PartitionFieldSummary}


class ManifestReader:
    """Reads the manifests of one table, with a cache of manifest lists."""

    def __init__(self, files: FileIO, source: str) -> None:
        self._files = files
        self._source = source
        self._lists: OrderedDict[str, tuple[ManifestFile, ...]] = OrderedDict()
        self.manifests_read = 0
        """How many were opened."""

    def manifests(self, snapshot: Snapshot) -> tuple[ManifestFile, ...]:
        """Read a snapshot's manifest list, in its order.

        Raises:
            SourceFileGone, SourceFileDamaged, SourceUnreachable, UnsupportedFeature: see `entries`.
        """
        location = snapshot.manifest_list
        if location not in self._lists:
            found = self._decode(location, self._content(location), _manifest_files)
            if not found and _has_files(snapshot):
                raise SourceFileDamaged(
                    path=location, problem="expected manifests, as the summary says; found none"
                )
            self._lists[location] = found
            if len(self._lists) > _KEPT_LISTS:
                self._lists.popitem(last=False)
        return self._lists[location]

    def entries(
        self, manifests: Iterable[ManifestFile], metric_ids: Collection[int] = ()
    ) -> list[list[Entry]]:
        """Read manifests in parallel, each in its order; the first error ends it.

        Args:
            manifests: of this table.
            metric_ids: columns whose metrics are needed; metrics make up most of a manifest.

        Raises:
            SourceFileGone: a manifest does not exist any more.
            SourceFileDamaged: it is truncated, or not a manifest.
            SourceUnreachable: the store did not answer (Transient).
            UnsupportedFeature: it is encrypted, or has Avro maps as only BigQuery writes them.
        """
        wanted = list(manifests)
        self.manifests_read += len(wanted)
        # An error leaves it unfinished; the garbage collector might then end it while a thread
        # starts, and deadlock with that thread.
        with closing(self._contents([manifest.manifest_path for manifest in wanted])) as contents:
            return [
                self._entries(manifest, content, metric_ids)
                for manifest, content in zip(wanted, contents, strict=True)
            ]

    def _contents(self, locations: Sequence[str]) -> Generator[bytes]:
        """Read files in parallel, a few ahead of the one that is decoded.

        Decoding in several threads, too, would be slower, because of the interpreter's lock.
        """
        if not locations:
            return
        with ThreadPoolExecutor(min(_AHEAD, len(locations))) as pool:
            ahead: deque[Future[bytes]] = deque()
            for location in locations:
                ahead.append(pool.submit(self._content, location))
                if len(ahead) == _AHEAD:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()

    def _entries(
        self, manifest: ManifestFile, content: bytes, metric_ids: Collection[int]
    ) -> list[Entry]:
        if manifest.key_metadata is not None:
            raise UnsupportedFeature(source=self._source, feature="an encrypted manifest")

        def read(records: AvroRecords) -> list[Entry]:
            reader = EntryReader(
                records.schema,
                manifest,
                manifest[_FIRST_ROW_ID],
                metric_ids,
                written_types(records.meta.get("schema")),
            )
            found = list(records.read(reader.read))
            _check_whole(manifest, len(content), len(found))
            return found

        return self._decode(manifest.manifest_path, content, read)

    def _decode(
        self, location: str, content: bytes, read: Callable[[AvroRecords], _Result]
    ) -> _Result:
        if content.startswith(_ENCRYPTED):
            raise UnsupportedFeature(source=self._source, feature=f"{location}: an encrypted file")
        try:
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
    version = min(int(records.meta.get("format-version", 1)), max(_REQUIRED_IN_LISTS))
    for field_id in _REQUIRED_IN_LISTS[version]:
        if field_id not in records.schema.field_ids:
            problem = f"expected field {field_id} in every list of format v{version}, found none"
            raise ValueError(problem)
    reader = resolve_reader(records.schema, _LIST_SCHEMA, _LIST_TYPES)
    return tuple(records.read(reader.read))


def _check_whole(manifest: ManifestFile, size_bytes: int, entries: int) -> None:
    """Detect a file that was truncated between two blocks, which looks like a shorter file."""
    counts = (
        manifest.added_files_count,
        manifest.existing_files_count,
        manifest.deleted_files_count,
    )
    known = [count for count in counts if count is not None]
    # Lists of some writers have wrong lengths, so counts are compared first.
    if len(known) == len(counts):
        is_whole, expected = entries >= sum(known), f"{sum(known)} entries"
    else:
        is_whole, expected = size_bytes == manifest.manifest_length, "more entries"
    if not is_whole:
        problem = f"it is cut off: expected {expected}, found {entries}"
        raise ValueError(problem)


def _has_files(snapshot: Snapshot) -> bool:
    counts = snapshot.summary.additional_properties if snapshot.summary else {}
    return counts.get("total-data-files", "0") != "0"


def is_delete_manifest(manifest: ManifestFile) -> bool:
    """Return whether a manifest lists delete files."""
    return manifest.content == _DELETES


def has_live_files(manifest: ManifestFile) -> bool:
    """Return whether a manifest may list live files; true if the counts are unknown."""
    return manifest.has_added_files() or manifest.has_existing_files()
