"""Small Hudi timelines: commit metadata of a few writes in one partition."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.source.hudi.files import TableFiles
from tidegate.source.hudi.table.properties import TableProperties
from tidegate.source.hudi.timeline.loaded import LoadedTimeline

if TYPE_CHECKING:
    from pathlib import Path

    from tidegate.source.hudi.timeline.loaded import Order

TIMES = [f"2026010100000000{number}" for number in range(1, 9)]
END = ("99990101000000000", "99990101000000000")


def wrote(*groups: str, operation: str = "INSERT", **more: Any) -> dict[str, Any]:
    stats = [{"fileId": group, "path": f"p/{group}.parquet", "numDeletes": 0} for group in groups]
    return {"operationType": operation, "partitionToWriteStats": {"p": stats}, **more}


def clustered(old: str, new: str) -> dict[str, Any]:
    return wrote(new, operation="CLUSTER", partitionToReplaceFileIds={"p": [old]})


def timeline(
    root: Path, active: list[dict[str, Any]], archived: list[dict[str, Any]] | None = None
) -> LoadedTimeline:
    """A timeline whose archived actions come before the active ones."""
    folder = root / ".hoodie" / "timeline"
    (folder / "history").mkdir(parents=True)
    kept = archived or []
    rows = [
        {
            "instantTime": TIMES[place],
            "completionTime": TIMES[place],
            "action": kind(raw),
            "metadata": json.dumps(raw).encode(),
        }
        for place, raw in enumerate(kept)
    ]
    if rows:
        pq.write_table(pa.Table.from_pylist(rows), folder / "history" / "a.parquet")
        (folder / "history" / "_version_").write_text("1")
        manifest = json.dumps({"files": [{"fileName": "a.parquet", "fileLen": 1}]})
        (folder / "history" / "manifest_1").write_text(manifest)
    for place, raw in enumerate(active, start=len(kept)):
        name = f"{TIMES[place]}_{TIMES[place]}.{kind(raw)}"
        (folder / name).write_text(json.dumps(raw))
    properties = {"hoodie.table.version": "9", "hoodie.table.type": "COPY_ON_WRITE"}
    return LoadedTimeline(TableFiles(str(root)), TableProperties("lake", properties))


def kind(raw: dict[str, Any]) -> str:
    return "replacecommit" if "partitionToReplaceFileIds" in raw else "commit"


def order(place: int) -> Order:
    return TIMES[place], TIMES[place]


def rewrote(place: int, previous: int | None, deletes: int = 0, group: str = "a") -> dict[str, Any]:
    stat = {
        "fileId": group,
        "path": f"p/{group}_0_{TIMES[place]}.parquet",
        "prevCommit": "null" if previous is None else TIMES[previous],
        "numDeletes": deletes,
    }
    return {"operationType": "UPSERT", "partitionToWriteStats": {"p": [stat]}}


def overwrote(place: int, *groups: str, group: str = "new") -> dict[str, Any]:
    raw = rewrote(place, None, group=group)
    return {
        **raw,
        "operationType": "INSERT_OVERWRITE",
        "partitionToReplaceFileIds": {"p": list(groups)},
    }


def with_files(root: Path, writes: list[dict[str, Any]]) -> LoadedTimeline:
    """A timeline of writes whose files are all there."""
    found = timeline(root, writes)
    (root / "p").mkdir(exist_ok=True)
    (root / "p" / ".hoodie_partition_metadata").write_text("")
    for raw in writes:
        for stat in raw["partitionToWriteStats"]["p"]:
            (root / stat["path"]).write_text("")
    return found
