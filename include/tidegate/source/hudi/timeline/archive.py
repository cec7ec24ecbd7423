"""The archived instants of a table, in both layouts (HUDI-T12)."""

from __future__ import annotations

import io
import json
import re
import struct
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.errors import LogBlockUnreadable, NoLogFile, TimelineFileDamaged
from tidegate.source.hudi.logs.blocks import BlockType, Header, read_blocks
from tidegate.source.hudi.timeline.actions import WRITES
from tidegate.source.hudi.timeline.metadata import NOTHING, CommitMetadata, parse_metadata

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tidegate.source.hudi.files import TableFiles
    from tidegate.source.hudi.table.properties import TableProperties

_ARCHIVE = re.compile(r"[.]commits_[.]archive[.](\d+)(?:_.*)?")
_COLUMNS = ("instantTime", "completionTime", "action", "metadata")
_LEAD = struct.Struct(">II")
_LENGTH = struct.Struct(">I")
_DONE = frozenset({"COMPLETED"})


@dataclass(frozen=True)
class ArchivedInstant:
    """One done write that has left the active timeline."""

    requested: str
    completed: str
    kind: str
    content: bytes | Mapping[str, Any] | None
    """The metadata as it was stored."""

    @property
    def order(self) -> tuple[str, str]:
        """Its place among done actions."""
        return self.completed, self.requested

    @cached_property
    def metadata(self) -> CommitMetadata:
        """What it did."""
        if not self.content:
            return NOTHING
        content = self.content
        if not isinstance(content, bytes):
            content = json.dumps(content).encode()
        return parse_metadata(content)


def read_archive(files: TableFiles, table: TableProperties) -> tuple[ArchivedInstant, ...]:
    """Read the archived writes of a table, in the order in which they were done.

    Raises:
        TimelineFileDamaged: a file of the archive cannot be read.
    """
    read = _log_archive if table.layout == 1 else _history
    found = {it.requested: it for it in read(files, table.history_folder)}
    return tuple(sorted(found.values(), key=lambda it: it.order))


def _history(files: TableFiles, folder: str) -> Iterator[ArchivedInstant]:
    """Read layout 2: Parquet files that the newest manifest names."""
    names = {entry.name for entry in files.folder(folder)}
    if "_version_" not in names:
        return
    version = files.read(f"{folder}/_version_").decode().strip()
    manifest = f"{folder}/manifest_{version}"
    try:
        listed = json.loads(files.read(manifest))["files"]
        for entry in listed:
            yield from _history_file(files, f"{folder}/{entry['fileName']}")
    except (ValueError, KeyError, TypeError) as damaged:
        raise TimelineFileDamaged(path=files.path(manifest), problem=repr(damaged)) from damaged


def _history_file(files: TableFiles, path: str) -> Iterator[ArchivedInstant]:
    try:
        with files.open(path) as file:
            rows = pq.read_table(file, columns=list(_COLUMNS)).to_pylist()
    except (OSError, pa.ArrowException) as damaged:
        raise TimelineFileDamaged(path=files.path(path), problem=str(damaged)) from damaged
    for row in rows:
        if row["action"] in WRITES and row["completionTime"]:
            yield ArchivedInstant(
                row["instantTime"], row["completionTime"], row["action"], row["metadata"]
            )


def _log_archive(files: TableFiles, folder: str) -> Iterator[ArchivedInstant]:
    """Read layout 1: log files with a record for each state of an instant."""
    for entry in files.folder(folder):
        if _ARCHIVE.fullmatch(entry.name) is None:
            continue
        path = f"{folder}/{entry.name}"
        try:
            yield from _archive_file(files, path)
        except (OSError, ValueError, EOFError, KeyError, IndexError, struct.error) as damaged:
            raise TimelineFileDamaged(path=files.path(path), problem=str(damaged)) from damaged
        except (LogBlockUnreadable, NoLogFile) as damaged:
            raise TimelineFileDamaged(path=files.path(path), problem=damaged.problem) from damaged


def _archive_file(files: TableFiles, path: str) -> Iterator[ArchivedInstant]:
    with files.open(path) as file:
        for block in read_blocks(file, files.path(path), file.size()):
            if block.type is not BlockType.AVRO:
                continue
            file.seek(block.offset)
            schema = fastavro.parse_schema(json.loads(block.header[Header.SCHEMA]))
            for record in _records(bytes(file.read(block.length)), schema):
                kind, state = record["actionType"], record.get("actionState") or "COMPLETED"
                if kind in WRITES and state in _DONE:
                    yield ArchivedInstant(
                        record["commitTime"],
                        record["commitTime"],
                        kind,
                        record.get("hoodieCommitMetadata")
                        or record.get("hoodieReplaceCommitMetadata"),
                    )


def _records(content: bytes, schema: Any) -> Iterator[dict[str, Any]]:
    _, count = _LEAD.unpack_from(content)
    position = _LEAD.size
    for _ in range(count):
        (length,) = _LENGTH.unpack_from(content, position)
        start = position + _LENGTH.size
        position = start + length
        record: Any = fastavro.schemaless_reader(io.BytesIO(content[start:position]), schema, None)
        yield record
