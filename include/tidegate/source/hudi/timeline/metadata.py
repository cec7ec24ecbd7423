"""What an instant did: its commit metadata, in JSON or Avro (HUDI-T7, T8). Opens nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from tidegate.source.hudi.table.avro import first_record

_AVRO = b"Obj\x01"
_KIND = '"_hoodie_operation"'
"""In the schema of a writer whose rows say of themselves that they are deletes (Flink)."""


class Role(Enum):
    """What an instant means for the rows of a table (HUDI-W6)."""

    WRITE = "write"
    """It brings rows, takes them away, or changes the schema."""
    SERVICE = "service"
    """It puts rows that were there before into other files."""


_LOG_COMPACTION = "LOG_COMPACT"
_SERVICE_OPERATIONS = frozenset({"COMPACT", _LOG_COMPACTION, "CLUSTER"})
_MOVING = frozenset({"COMPACT", "CLUSTER"})
_OVERWRITES = frozenset({"INSERT_OVERWRITE", "INSERT_OVERWRITE_TABLE", "DELETE_PARTITION"})


@dataclass(frozen=True)
class WriteStat:
    """A file that an instant wrote."""

    file_id: str
    path: str
    """Below the table; empty if it wrote none."""
    size_bytes: int
    previous: str
    """The instant of the file that it replaces on copy-on-write tables; `null` if there is none."""
    deletes: int
    rows: int
    """Those of the file, which a rewrite of it has copied for the most part."""
    changed: int
    """Those of them that were inserted or updated."""
    changes: tuple[tuple[str, int], ...] = ()
    """(path, size) of the log of changes that was written with it."""
    end_bytes: int = 0
    """The length that the file had at least when it was written, which logs may grow beyond; 0 if
    that is not known."""
    may_delete: bool = False
    """Whether a log may have deletes: their number says so, or is not known."""

    @property
    def name(self) -> str:
        """The path without its folders."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True)
class CommitMetadata:
    """What one instant wrote and replaced."""

    operation: str
    written: Mapping[str, tuple[WriteStat, ...]]
    """Partition → files."""
    replaced: Mapping[str, tuple[str, ...]]
    """Partition → ids of file groups that do not exist from then on."""
    schema: str | None
    """The writer's Avro schema."""
    evolution: str | None
    """Schema-on-read: a schema whose columns have ids."""

    @property
    def role(self) -> Role:
        """What it means for the rows."""
        return Role.SERVICE if self.operation in _SERVICE_OPERATIONS else Role.WRITE

    @property
    def compacts_logs(self) -> bool:
        """Whether it is a service that wrote the records of logs into other logs."""
        return self.operation == _LOG_COMPACTION

    @property
    def moves_rows(self) -> bool:
        """Whether it is a service that wrote rows of before into other base files."""
        return self.operation in _MOVING

    @property
    def is_unknown_replacement(self) -> bool:
        """Whether it replaces groups, and its operation does not tell what becomes of their rows.

        Those of an overwrite are gone (HUDI-F10), those of a clustering stand elsewhere.
        """
        return bool(self.replaced) and self.operation not in _OVERWRITES | _SERVICE_OPERATIONS

    @property
    def partitions(self) -> frozenset[str]:
        """The partitions whose files it changed (HUDI-W8)."""
        return frozenset((*self.written, *self.replaced))

    @property
    def files(self) -> Sequence[WriteStat]:
        """All files that it wrote."""
        return [stat for stats in self.written.values() for stat in stats]


NOTHING = CommitMetadata("UNKNOWN", {}, {}, None, None)
"""Of a done file without content."""


def parse_metadata(content: bytes) -> CommitMetadata:
    """Read the content of a done file.

    Raises:
        ValueError: it is not commit metadata.
    """
    if not content.strip():
        return NOTHING
    try:
        return _read(_decoded(content))
    except (ValueError, TypeError, KeyError, AttributeError) as broken:
        msg = f"no commit metadata: {broken!r}"
        raise ValueError(msg) from broken


def is_clustering_plan(content: bytes) -> bool:
    """Return whether the file of a requested replacement plans a clustering."""
    if not content.startswith(_AVRO):
        return False
    try:
        raw = first_record(content)
    except ValueError:
        return False
    return isinstance(raw, Mapping) and raw.get("operationType") == "CLUSTER"


def taken_back(content: bytes) -> frozenset[str]:
    """Return the instants that a rollback or a restore took back, from its done file.

    Raises:
        ValueError: it is not the metadata of one.
    """
    try:
        raw = _decoded(content or b"{}")
        named = [*(raw.get("instantsToRollback") or ()), *(raw.get("commitsRollback") or ())]
        return frozenset(map(str, named))
    except (ValueError, TypeError, AttributeError) as broken:
        msg = f"no metadata of a rollback: {broken!r}"
        raise ValueError(msg) from broken


def earliest_retained(content: bytes) -> str | None:
    """Return the instant whose state a clean keeps, from its plan or done file; None without one.

    Raises:
        ValueError: it is not the metadata of a clean.
    """
    try:
        raw: Any
        if content.startswith(_AVRO):
            raw = first_record(content) or {}
        else:
            raw = json.loads(content or b"{}")
        planned = raw.get("earliestInstantToRetain") or {}
        return raw.get("earliestCommitToRetain") or planned.get("timestamp") or None
    except (ValueError, AttributeError) as broken:
        msg = f"no metadata of a clean: {broken!r}"
        raise ValueError(msg) from broken


def _decoded(content: bytes) -> Any:
    """Return what a file says, which is JSON or an Avro container (HUDI-T7)."""
    return first_record(content) if content.startswith(_AVRO) else json.loads(content)


def _read(raw: Any) -> CommitMetadata:
    extra = raw.get("extraMetadata") or {}
    has_kinds = _KIND in (extra.get("schema") or "")
    written = {
        partition: tuple(_stat(stat, has_kinds=has_kinds) for stat in stats)
        for partition, stats in (raw.get("partitionToWriteStats") or {}).items()
    }
    replaced = {
        partition: tuple(ids)
        for partition, ids in (raw.get("partitionToReplaceFileIds") or {}).items()
    }
    return CommitMetadata(
        operation=raw.get("operationType") or "UNKNOWN",
        written=written,
        replaced=replaced,
        schema=extra.get("schema") or None,
        evolution=extra.get("latest_schema") or None,
    )


def _stat(raw: Mapping[str, Any], *, has_kinds: bool) -> WriteStat:
    changes = raw.get("cdcStats") or {}
    size_bytes = int(raw.get("fileSizeInBytes") or 0)
    rows, new = int(raw.get("numWrites") or 0), raw.get("numInserts")
    return WriteStat(
        file_id=raw["fileId"],
        path=raw["path"] or "",
        size_bytes=size_bytes,
        previous=raw.get("prevCommit") or "null",
        deletes=int(raw.get("numDeletes") or 0),
        rows=rows,
        changed=rows if new is None else int(new) + int(raw.get("numUpdateWrites") or 0),
        changes=tuple(sorted((path, int(size)) for path, size in changes.items())),
        # Of a log, the size is that of the blocks which were added at the offset (HUDI-F14).
        end_bytes=size_bytes and size_bytes + int(raw.get("logOffset") or 0),
        may_delete=has_kinds or raw.get("numDeletes") != 0,
    )
