"""What timelines store of instants, as JSON and as Avro, and the archives of both layouts."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from hudi_logs import rows_block

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_TEXT = ["null", "string"]
_NUMBER = ["null", "long"]


def _record(name: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    nullable = [{"name": key, "type": kind, "default": None} for key, kind in fields.items()]
    return {"type": "record", "name": name, "fields": nullable}


def _map(values: Any) -> list[Any]:
    return ["null", {"type": "map", "values": values}]


_STAT = _record(
    "HoodieWriteStat",
    {
        "fileId": _TEXT,
        "path": _TEXT,
        "prevCommit": _TEXT,
        "numWrites": _NUMBER,
        "numDeletes": _NUMBER,
        "numUpdateWrites": _NUMBER,
        "partitionPath": _TEXT,
        "fileSizeInBytes": _NUMBER,
        "numInserts": _NUMBER,
        "baseFile": _TEXT,
        "logFiles": ["null", {"type": "array", "items": "string"}],
    },
)
_COMMIT: dict[str, Any] = {
    "partitionToWriteStats": _map({"type": "array", "items": _STAT}),
    "extraMetadata": _map("string"),
    "version": ["null", "int"],
    "operationType": _TEXT,
    "compacted": ["null", "boolean"],
}
_REPLACED = {"partitionToReplaceFileIds": _map({"type": "array", "items": "string"})}
_INSTANT = _record("HoodieActionInstant", {"timestamp": _TEXT, "action": _TEXT, "state": _TEXT})
_INSTANTS = ["null", {"type": "array", "items": "string"}]
_CLEAN = {"startCleanTime": _TEXT, "earliestCommitToRetain": _TEXT, "totalFilesDeleted": _NUMBER}
_CLEAN_PLAN = {"earliestInstantToRetain": ["null", _INSTANT], "policy": _TEXT}


def container(name: str, fields: Mapping[str, Any], value: Mapping[str, Any]) -> bytes:
    """An Avro file with one record."""
    file = io.BytesIO()
    fastavro.writer(file, fastavro.parse_schema(_record(name, fields)), [dict(value)])
    return file.getvalue()


def commit(raw: Mapping[str, Any], *, as_json: bool) -> bytes:
    """The metadata of a done write or service."""
    if as_json:
        return json.dumps(raw).encode()
    if "partitionToReplaceFileIds" in raw:
        return container("HoodieReplaceCommitMetadata", {**_COMMIT, **_REPLACED}, raw)
    return container("HoodieCommitMetadata", _COMMIT, raw)


def clean(retained: str) -> bytes:
    """The metadata of a done clean, which kept the states since an instant."""
    return container("HoodieCleanMetadata", _CLEAN, {"earliestCommitToRetain": retained})


def clean_plan(retained: str) -> bytes:
    """The plan of a clean that will keep the states since an instant."""
    instant = {"timestamp": retained, "action": "commit", "state": "COMPLETED"}
    value = {"earliestInstantToRetain": instant, "policy": "KEEP_LATEST_COMMITS"}
    return container("HoodieCleanerPlan", _CLEAN_PLAN, value)


def restore(*requested: str) -> bytes:
    """The metadata of a done restore, which took instants back."""
    fields = {"startRestoreTime": _TEXT, "instantsToRollback": _INSTANTS}
    return container("HoodieRestoreMetadata", fields, {"instantsToRollback": list(requested)})


def clustering_plan() -> bytes:
    """The plan of a clustering, without what it moves."""
    fields = {"operationType": _TEXT, "version": ["null", "int"]}
    return container("HoodieRequestedReplaceMetadata", fields, {"operationType": "CLUSTER"})


Archived = tuple[str, str, str, "Mapping[str, Any]"]
"""Requested and completion time, action, metadata."""


STATES = ("REQUESTED", "INFLIGHT", "COMPLETED")


def archive_of_logs(
    folder: Path, number: int, instants: Sequence[Archived], states: Sequence[str] = STATES
) -> None:
    """Write a file of the archive of layout 1: a log with a record for each state."""
    metadata = _record("HoodieCommitMetadata", _COMMIT)
    names = {"partitionToWriteStats": "HoodieWriteStat"}
    replaced = {
        **{key: kind for key, kind in _COMMIT.items() if key not in names},
        "partitionToWriteStats": _map({"type": "array", "items": "HoodieWriteStat"}),
        **_REPLACED,
    }
    schema = _record(
        "HoodieArchivedMetaEntry",
        {
            "hoodieCommitMetadata": ["null", metadata],
            "hoodieReplaceCommitMetadata": [
                "null",
                _record("HoodieReplaceCommitMetadata", replaced),
            ],
            "commitTime": _TEXT,
            "actionType": _TEXT,
            "actionState": _TEXT,
        },
    )
    rows: list[dict[str, Any]] = []
    for requested, _, action, raw in instants:
        field = "hoodieReplaceCommitMetadata" if action == "replacecommit" else None
        done = {field or "hoodieCommitMetadata": dict(raw)}
        for state in states:
            said = {"commitTime": requested, "actionType": action, "actionState": state}
            rows.append({**said, **(done if state == "COMPLETED" else {})})
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f".commits_.archive.{number}_1-0-1").write_bytes(rows_block("", rows, schema))


def history(folder: Path, number: int, instants: Sequence[Archived]) -> None:
    """Write a file of the history of layout 2, and a manifest that names it with those before."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [
        {
            "instantTime": requested,
            "completionTime": completed,
            "action": action,
            "metadata": commit(raw, as_json=False),
        }
        for requested, completed, action, raw in instants
    ]
    low, high = min(it[0] for it in instants), max(it[0] for it in instants)
    pq.write_table(pa.Table.from_pylist(rows), folder / f"{low}_{high}_0.parquet")
    listed = [
        {"fileName": path.name, "fileLen": path.stat().st_size}
        for path in sorted(folder.glob("*.parquet"))
    ]
    (folder / f"manifest_{number}").write_text(json.dumps({"files": listed}))
    (folder / "_version_").write_text(str(number))
