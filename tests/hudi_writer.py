"""Write small Hudi tables file by file, as Hudi's writers lay them out; nothing of the reader's.

It decides nothing: a test says which rows are in which file, and when an instant is done.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

import hudi_metadata
from hudi_logs import (
    COMPACTED,
    PARTIAL,
    deletes_block,
    parquet_block,
    rollback_block,
    rows_block,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from hudi_logs import Ordering

META = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)
TIME, _, KEY, FOLDER, FILE = META
START = datetime(2026, 1, 1, tzinfo=UTC)
TOKEN = "1-0-1"
_DONE = {"compaction": "commit", "logcompaction": "deltacommit", "clustering": "replacecommit"}
_LAYOUT_2_SINCE = 8
Columns = dict[str, tuple[Any, pa.DataType]]
"""Name → Avro type, or union, and Arrow type; all can be NULL."""
PLAIN: Columns = {
    "k": ("string", pa.string()),
    "ts": ("long", pa.int64()),
    "v": ("string", pa.string()),
}


@dataclass(frozen=True)
class Rows:
    """A data block."""

    rows: Sequence[Mapping[str, Any]]
    columns: Columns | None = None
    """Other columns than the table has: older ones, or those of a partial update."""
    partial: bool = False
    parquet: bool = False
    compacted: Sequence[str] = ()
    """The instants that a log compaction stands for."""


@dataclass(frozen=True)
class Deletes:
    """A delete block."""

    keys: Sequence[tuple[str, Ordering | None]]
    version: int = 3


@dataclass(frozen=True)
class Rollback:
    """A command that takes back the blocks of another instant."""

    target: str


Content = Rows | Deletes | Rollback | bytes


def gone(*keys: str) -> Deletes:
    """A delete block of keys without ordering values."""
    return Deletes([(key, None) for key in keys])


def _deletes(content: Content) -> int:
    """The number of deletes that a writer counts: those of rows that say their kind are not."""
    if isinstance(content, Deletes):
        return len(content.keys)
    rows = content.rows if isinstance(content, Rows) else ()
    return sum(bool(row.get("_hoodie_is_deleted")) for row in rows)


@dataclass
class HudiTable:
    """A table that is being written."""

    root: Path
    version: int = 9
    kind: str = "MERGE_ON_READ"
    columns: Columns = field(default_factory=lambda: dict(PLAIN))
    ordering: str = "ts"
    """Empty: commit time decides."""
    meta: bool = True
    keyed_by: str = "k"
    properties: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.has_times = self.version >= _LAYOUT_2_SINCE
        self.timeline = self.root / ".hoodie" / ("timeline" if self.has_times else "")
        self.timeline.mkdir(parents=True)
        self._seconds = 0
        self._archives = 0
        self._metadata: dict[str, tuple[str, str, Mapping[str, Any]]] = {}
        self.slices: dict[tuple[str, str], str] = {}
        """(partition, group) → the instant that new logs are named by before version 8."""
        mode = "EVENT_TIME_ORDERING" if self.ordering else "COMMIT_TIME_ORDERING"
        said = {
            "hoodie.table.name": "nasty",
            "hoodie.table.version": str(self.version),
            "hoodie.table.initial.version": str(self.version),
            "hoodie.table.type": self.kind,
            "hoodie.timeline.layout.version": "2" if self.has_times else "1",
            "hoodie.table.timeline.timezone": "UTC",
            "hoodie.table.recordkey.fields": self.keyed_by,
            "hoodie.table.ordering.fields": self.ordering,
            "hoodie.record.merge.mode": mode,
            "hoodie.populate.meta.fields": str(self.meta).lower(),
            **self.properties,
        }
        lines = [f"{key}={value.replace(':', chr(92) + ':')}" for key, value in said.items()]
        (self.root / ".hoodie" / "hoodie.properties").write_text("\n".join(lines))

    def tick(self) -> str:
        """The next moment."""
        self._seconds += 1
        return f"{START + timedelta(seconds=self._seconds):%Y%m%d%H%M%S}000"

    def begin(self, action: str = "", plan: bytes = b"") -> Write:
        """Request an action and begin it: a write of the table's kind, if nothing is said."""
        usual = "deltacommit" if self.kind == "MERGE_ON_READ" else "commit"
        return Write(self, action or usual, self.tick(), plan)

    def pending(self, action: str, *groups: str, partition: str = "") -> Write:
        """Request a compaction of groups; before version 8 new logs are named by it."""
        write = self.begin(action)
        if not self.has_times:
            self.slices |= {(partition, group): write.requested for group in groups}
        return write

    def upsert(self, group: str, *content: Content, partition: str = "", **more: Any) -> str:
        """A whole write of one log."""
        write = self.begin()
        write.log(group, *content, partition=partition, **more)
        return write.done()

    def insert(
        self, group: str, rows: Sequence[Mapping[str, Any]], *, partition: str = "", **more: Any
    ) -> str:
        """A whole write of one base file."""
        write = self.begin()
        write.base(group, rows, partition=partition, **more)
        return write.done("INSERT")

    def compact(self, group: str, rows: Sequence[Mapping[str, Any]], *, partition: str = "") -> str:
        """A whole compaction of one group; rows say their commit times."""
        write = self.pending("compaction", group, partition=partition)
        write.base(group, rows, partition=partition)
        return write.done("COMPACT")

    def cluster(
        self, old: Sequence[str], new: str, rows: Sequence[Mapping[str, Any]], partition: str = ""
    ) -> str:
        """A whole clustering of groups into one; rows say their commit times."""
        write = self.begin("clustering" if self.has_times else "replacecommit")
        write.base(new, rows, partition=partition)
        write.replaced.setdefault(partition, []).extend(old)
        return write.done("CLUSTER")

    def clean(self, retained: str) -> None:
        """A done clean; the test removes the files."""
        requested = self.tick()
        (self.timeline / f"{requested}.clean.requested").write_bytes(
            hudi_metadata.clean_plan(retained)
        )
        name = f"{requested}_{self.tick()}.clean" if self.has_times else f"{requested}.clean"
        (self.timeline / name).write_bytes(hudi_metadata.clean(retained))

    def archive(self, *requested: str) -> None:
        """Move instants from the active timeline to the archive."""
        found = [
            (time, completed, action, raw)
            for time, (completed, action, raw) in sorted(self._metadata.items())
            if time in requested
        ]
        self._archives += 1
        if self.has_times:
            hudi_metadata.history(self.timeline / "history", self._archives, found)
        else:
            folder = self.root / ".hoodie" / "archived"
            hudi_metadata.archive_of_logs(folder, self._archives, found)
        self.forget(*requested)

    def forget(self, *requested: str) -> None:
        """Remove instants from the active timeline."""
        for time in requested:
            for path in self.timeline.glob(f"{time}[._]*"):
                path.unlink()

    @property
    def times(self) -> list[str]:
        """The requested times of what is done."""
        return sorted(self._metadata)

    def remember(self, write: Write, completed: str, raw: Mapping[str, Any]) -> None:
        """Keep what a write did, for the archive."""
        action = _DONE.get(write.action, write.action)
        self._metadata[write.requested] = completed, action, raw

    def avro(self, columns: Columns | None = None) -> dict[str, Any]:
        """The Avro schema of rows, with those columns that the writer adds."""
        meta = dict.fromkeys(META, "string") if self.meta else {}
        kinds = {**meta, **{name: it[0] for name, it in (columns or self.columns).items()}}
        fields = [
            {
                "name": name,
                "type": kind if isinstance(kind, list) else ["null", kind],
                "default": None,
            }
            for name, kind in kinds.items()
        ]
        return {"type": "record", "name": "row", "namespace": "hoodie.nasty", "fields": fields}

    def arrow(self, columns: Columns | None = None) -> pa.Schema:
        """The same for Parquet."""
        meta = [pa.field(name, pa.string()) for name in META] if self.meta else []
        own = (columns or self.columns).items()
        return pa.schema([*meta, *(pa.field(name, kind) for name, (_, kind) in own)])

    def key_of(self, row: Mapping[str, Any]) -> str:
        """The record key of a row."""
        names = self.keyed_by.split(",")
        if len(names) == 1:
            return str(row[names[0]])
        return ",".join(f"{name}:{row[name]}" for name in names)

    def folder(self, partition: str) -> Path:
        """The folder of a partition, with Hudi's own file in it."""
        folder = self.root / partition
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".hoodie_partition_metadata").touch()
        return folder


class Write:
    """An action that was requested and begun; done, or left pending."""

    def __init__(self, table: HudiTable, action: str, requested: str, plan: bytes = b"") -> None:
        self.table = table
        self.action = action
        self.requested = requested
        self.stats: dict[str, list[dict[str, Any]]] = {}
        self.replaced: dict[str, list[str]] = {}
        bare = not table.has_times and action == "commit"
        (table.timeline / f"{requested}.{action}.requested").write_bytes(plan)
        name = f"{requested}.inflight" if bare else f"{requested}.{action}.inflight"
        (table.timeline / name).touch()

    def base(
        self,
        group: str,
        rows: Sequence[Mapping[str, Any]],
        *,
        partition: str = "",
        columns: Columns | None = None,
        row_group_size: int | None = None,
        token: str = TOKEN,
        previous: str = "null",
        deletes: int = 0,
        named: bool = True,
    ) -> Path:
        """Write a base file."""
        name = f"{group}_{token}_{self.requested}.parquet"
        path = self.table.folder(partition) / name
        made = [self.whole(row, partition, name) for row in rows]
        found = pa.Table.from_pylist(made, self.table.arrow(columns))
        pq.write_table(found, path, row_group_size=row_group_size)
        self.table.slices[partition, group] = self.requested
        if named:
            more = {"prevCommit": previous, "numDeletes": deletes, "numWrites": len(rows)}
            self._tell(partition, group, path, more)
        return path

    def log(
        self,
        group: str,
        *content: Content,
        partition: str = "",
        append: Path | None = None,
        number: int = 1,
        token: str = TOKEN,
        named: bool = True,
    ) -> Path:
        """Write a log, or append to one."""
        table = self.table
        named_by = self.requested
        if not table.has_times:
            named_by = table.slices.setdefault((partition, group), self.requested)
        path = append or table.folder(partition) / f".{group}_{named_by}.log.{number}_{token}"
        while append is None and path.exists():
            number += 1
            path = path.with_name(f".{group}_{named_by}.log.{number}_{token}")
        with path.open("ab") as file:
            for one in content:
                file.write(self.block(one, partition))
        if named:
            more: dict[str, Any] = {"prevCommit": named_by, "logFiles": [path.name]}
            if not any(isinstance(one, bytes) for one in content):
                more["numDeletes"] = sum(map(_deletes, content))
            self._tell(partition, group, path, more)
        return path

    def done(
        self, operation: str = "UPSERT", *, completed: str = "", as_json: bool | None = None
    ) -> str:
        """Finish it; its requested time."""
        table = self.table
        finished = completed or (table.tick() if table.has_times else self.requested)
        raw: dict[str, Any] = {
            "partitionToWriteStats": self.stats,
            "extraMetadata": {"schema": json.dumps(table.avro())},
            "operationType": operation,
        }
        action = _DONE.get(self.action, self.action)
        if action == "replacecommit":
            raw["partitionToReplaceFileIds"] = self.replaced
        json_said = not table.has_times if as_json is None else as_json
        times = f"{self.requested}_{finished}" if table.has_times else self.requested
        encoded = hudi_metadata.commit(raw, as_json=json_said)
        (table.timeline / f"{times}.{action}").write_bytes(encoded)
        table.remember(self, finished, raw)
        return self.requested

    def whole(self, row: Mapping[str, Any], partition: str, file: str = "") -> dict[str, Any]:
        """A row with the columns that the writer adds."""
        if not self.table.meta:
            return dict(row)
        key = self.table.key_of(row) if KEY not in row else row[KEY]
        made = {TIME: self.requested, KEY: key, FOLDER: partition, FILE: file}
        return {**made, **row}

    def block(self, content: Content, partition: str = "") -> bytes:
        """The bytes of a block."""
        if isinstance(content, bytes):
            return content
        if isinstance(content, Rollback):
            return rollback_block(self.requested, content.target)
        if isinstance(content, Deletes):
            return deletes_block(self.requested, content.keys, partition, content.version)
        header: dict[str, str] = {}
        if content.partial:
            header[f"h{PARTIAL}"] = "true"
        if content.compacted:
            header[f"h{COMPACTED}"] = ",".join(content.compacted)
        rows = [self.whole(row, partition) for row in content.rows]
        avro = self.table.avro(content.columns)
        if content.parquet:
            found = pa.Table.from_pylist(rows, self.table.arrow(content.columns))
            return parquet_block(self.requested, found, json.dumps(avro), **header)
        names = {it["name"] for it in avro["fields"]}
        known = [{name: value for name, value in row.items() if name in names} for row in rows]
        return rows_block(self.requested, known, avro, **header)

    def _tell(self, partition: str, group: str, path: Path, more: Mapping[str, Any]) -> None:
        stat = {
            "fileId": group,
            "path": path.relative_to(self.table.root).as_posix(),
            "partitionPath": partition,
            "fileSizeInBytes": path.stat().st_size,
            **more,
        }
        self.stats.setdefault(partition, []).append(stat)
