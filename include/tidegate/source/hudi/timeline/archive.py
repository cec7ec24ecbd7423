"""The archived instants of a table, in both layouts (HUDI-T12)."""

from __future__ import annotations

import json
import re
import struct
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.errors import (
    HudiTimelineMoved,
    LogBlockUnreadable,
    NoLogFile,
    SourceFileGone,
    TimelineFileDamaged,
)
from tidegate.source.hudi.logs.blocks import BlockType, Header, read_blocks
from tidegate.source.hudi.table.avro import lone_record, parsed_schema
from tidegate.source.hudi.timeline.actions import WRITES
from tidegate.source.hudi.timeline.metadata import NOTHING, CommitMetadata, parse_metadata

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tidegate.source.hudi.files import TableFiles
    from tidegate.source.hudi.table.properties import TableProperties

_ARCHIVE = re.compile(r"[.]commits_[.]archive[.](\d+)(?:_.*)?")
_VERSION = "_version_"
_TIMES = ("instantTime", "completionTime", "action")
_COLUMNS = (*_TIMES, "metadata")
_LEAD = struct.Struct(">II")
_LENGTH = struct.Struct(">I")
_DONE = frozenset({"COMPLETED"})
_DAMAGE = (
    OSError,
    pa.ArrowException,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    struct.error,
)
"""What reading damaged bytes raises."""


@dataclass(frozen=True)
class ArchivedInstant:
    """One done write that has left the active timeline."""

    requested: str
    completed: str
    kind: str
    content: bytes | Mapping[str, Any] | None
    """The metadata as it was stored."""
    path: str = ""
    """The file of the archive, for errors."""

    @property
    def order(self) -> tuple[str, str]:
        """Its place among done actions."""
        return self.completed, self.requested

    @cached_property
    def metadata(self) -> CommitMetadata:
        """What it did.

        Raises:
            TimelineFileDamaged: the archive has no metadata for it that can be read.
        """
        if not self.content:
            return NOTHING
        content = self.content
        try:
            if not isinstance(content, bytes):
                content = json.dumps(content).encode()
            return parse_metadata(content)
        except (ValueError, TypeError) as damaged:
            problem = f"the instant {self.requested}: {damaged}"
            raise TimelineFileDamaged(path=self.path, problem=problem) from damaged


def read_archive(files: TableFiles, table: TableProperties) -> tuple[ArchivedInstant, ...]:
    """Read the archived writes of a table, in the order in which they were done.

    Raises:
        TimelineFileDamaged: a file of the archive cannot be read.
        HudiTimelineMoved: a file was merged into another one after it was listed (Transient).
        SourceUnreachable: the store does not answer now (Transient).
    """
    read = _log_archive if table.layout == 1 else _history
    found = {it.requested: it for it in read(files, table.history_folder)}
    return tuple(sorted(found.values(), key=lambda it: it.order))


def read_archived_orders(files: TableFiles, table: TableProperties) -> frozenset[tuple[str, str]]:
    """Read completion and requested times of the archived writes of layout 2, and nothing else.

    Raises:
        TimelineFileDamaged, HudiTimelineMoved, SourceUnreachable: see `read_archive`.
    """
    found = set[tuple[str, str]]()
    for path in _history_files(files, table.history_folder):
        try:
            with files.open(path) as file:
                read = _history_file(file, files.path(path), _TIMES)
        except _DAMAGE:
            # Read whole, it is seen whether the file is at fault or the store.
            with _damage_named(files, path):
                read = _history_file(_reader(files, path), files.path(path), _TIMES)
        found.update(it.order for it in read)
    return frozenset(found)


def _history(files: TableFiles, folder: str) -> Iterator[ArchivedInstant]:
    """Read layout 2."""
    for path in _history_files(files, folder):
        with _damage_named(files, path):
            yield from _history_file(_reader(files, path), files.path(path), _COLUMNS)


def _history_files(files: TableFiles, folder: str) -> list[str]:
    """Return the Parquet files that the newest manifest names."""
    names = {entry.name for entry in files.folder(folder)}
    if _VERSION not in names:
        return []
    path = f"{folder}/{_VERSION}"
    with _damage_named(files, path):
        # A number, and nothing that could lead to another folder.
        manifest = f"{folder}/manifest_{int(_content(files, path))}"
    with _damage_named(files, manifest):
        return [
            f"{folder}/{it['fileName']}" for it in json.loads(_content(files, manifest))["files"]
        ]


def _history_file(file: pa.NativeFile, path: str, columns: Sequence[str]) -> list[ArchivedInstant]:
    rows = pq.ParquetFile(file).read(columns=list(columns)).to_pylist()
    return [
        _archived(
            row["instantTime"], row["completionTime"], row["action"], row.get("metadata"), path
        )
        for row in rows
        if row["action"] in WRITES and row["completionTime"]
    ]


def _log_archive(files: TableFiles, folder: str) -> Iterator[ArchivedInstant]:
    """Read layout 1: log files with a record for each state of an instant."""
    for entry in files.folder(folder):
        if _ARCHIVE.fullmatch(entry.name) is None:
            continue
        path = f"{folder}/{entry.name}"
        with _damage_named(files, path):
            yield from _archive_file(_content(files, path), files.path(path))


def _archive_file(content: bytes, path: str) -> list[ArchivedInstant]:
    found = []
    for block in read_blocks(pa.BufferReader(content), path, len(content)):
        if block.type is BlockType.CORRUPT:
            # Passed over as in a log of rows, its commits would be missing in windows for ever.
            msg = f"{block.length} bytes at byte {block.offset} are no whole block"
            raise ValueError(msg)
        if block.type is not BlockType.AVRO:
            continue
        schema = parsed_schema(block.header[Header.SCHEMA])
        for record in _records(content[block.offset : block.offset + block.length], schema):
            kind, state = record["actionType"], record.get("actionState") or "COMPLETED"
            if kind in WRITES and state in _DONE:
                done = record.get("hoodieCommitMetadata")
                done = done or record.get("hoodieReplaceCommitMetadata")
                requested = record["commitTime"]
                found.append(_archived(requested, requested, kind, done, path))
    return found


def _archived(
    requested: Any, completed: Any, kind: str, content: bytes | Mapping[str, Any] | None, path: str
) -> ArchivedInstant:
    for time in (requested, completed):
        if not isinstance(time, str) or not time.isdecimal():
            msg = f"expected an instant, found {time!r}"
            raise ValueError(msg)
    return ArchivedInstant(requested, completed, kind, content, path)


def _records(content: bytes, schema: Any) -> Iterator[dict[str, Any]]:
    _, count = _LEAD.unpack_from(content)
    position = _LEAD.size
    for _ in range(count):
        (length,) = _LENGTH.unpack_from(content, position)
        start = position + _LENGTH.size
        position = start + length
        yield lone_record(content[start:position], schema)


def _reader(files: TableFiles, path: str) -> pa.BufferReader:
    return pa.BufferReader(_content(files, path))


def _content(files: TableFiles, path: str) -> bytes:
    """Read a whole file, so that what goes wrong afterwards is damage and no silent store."""
    try:
        return files.read(path)
    except SourceFileGone as gone:
        raise HudiTimelineMoved(path=files.path(path)) from gone


@contextmanager
def _damage_named(files: TableFiles, path: str) -> Iterator[None]:
    """Name the file whose content cannot be read."""
    try:
        yield
    except (LogBlockUnreadable, NoLogFile) as damaged:
        raise TimelineFileDamaged(path=files.path(path), problem=damaged.problem) from damaged
    except _DAMAGE as damaged:
        problem = str(damaged) if isinstance(damaged, ValueError) else repr(damaged)
        raise TimelineFileDamaged(path=files.path(path), problem=problem) from damaged
