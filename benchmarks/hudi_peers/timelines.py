"""Make a table that is nothing but a timeline: very many writes, of which old ones are archived."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pathlib import Path

_SCHEMA = {
    "type": "record",
    "name": "orders",
    "fields": [
        {"name": "order_id", "type": "long"},
        {"name": "ordered_at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    ],
}
_PROPERTIES = """hoodie.table.name=orders
hoodie.table.type=MERGE_ON_READ
hoodie.table.version=8
hoodie.timeline.layout.version=2
hoodie.table.recordkey.fields=order_id
hoodie.record.merge.mode=COMMIT_TIME_ORDERING
"""
GROUP = "00000000-0000-0000-0000-000000000000-0"


def make_timeline(folder: Path, writes: int, archived: int) -> list[str]:
    """Write a table of one file group whose log every write continues; gives their requested times.

    Args:
        folder: of the table; emptied before.
        writes: how many there are.
        archived: how many of them, the oldest, are in the archive.
    """
    shutil.rmtree(folder, ignore_errors=True)
    timeline = folder / ".hoodie" / "timeline"
    (timeline / "history").mkdir(parents=True)
    (folder / ".hoodie" / "hoodie.properties").write_text(_PROPERTIES)
    (folder / ".hoodie_partition_metadata").touch()
    times = [f"2026030100{number // 60_000:02}{number % 60_000:05}" for number in range(writes)]
    for number, requested in enumerate(times[archived:], archived):
        done = timeline / f"{requested}_{_after(requested)}.deltacommit"
        done.write_bytes(_metadata(number, requested))
        for state in ("requested", "inflight"):
            (timeline / f"{requested}.deltacommit.{state}").touch()
        (folder / _log(requested)).touch()
    _archive(timeline / "history", times[:archived])
    return times


def _archive(folder: Path, times: list[str]) -> None:
    name = f"{times[0]}_{times[-1]}_0.parquet"
    table = pa.table(
        {
            "instantTime": times,
            "completionTime": [_after(time) for time in times],
            "action": ["deltacommit"] * len(times),
            "metadata": [_metadata(number, time) for number, time in enumerate(times)],
            "plan": pa.nulls(len(times), pa.binary()),
        }
    )
    pq.write_table(table, folder / name)
    manifest = {"files": [{"fileName": name, "fileLen": (folder / name).stat().st_size}]}
    (folder / "manifest_1").write_text(json.dumps(manifest))
    (folder / "_version_").write_text("1")


def _metadata(number: int, requested: str) -> bytes:
    stat = {
        "fileId": GROUP,
        "path": _log(requested),
        "numWrites": 10,
        "numInserts": 0,
        "numUpdateWrites": 10,
        "numDeletes": 0,
        "fileSizeInBytes": 0,
    }
    return json.dumps(
        {
            "operationType": "UPSERT",
            "partitionToWriteStats": {"": [stat]},
            "extraMetadata": {"schema": json.dumps(_SCHEMA), "number": str(number)},
        }
    ).encode()


def _log(requested: str) -> str:
    return f".{GROUP}_{requested}.log.1_0-0-0"


def _after(requested: str) -> str:
    """Give when a write was done."""
    return f"{int(requested) + 1}"
