"""Windows of Hudi tables come out of both executors alike, cut into many pieces, in every mode."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from golden_hudi import Golden, answers, canonical, folder, texts
from tidegate.model.instant import InstantRange

if TYPE_CHECKING:
    from collections.abc import Mapping

    from staged_reads import StagedReads

KIND, KEY, TIME = "_change_type", "_hoodie_record_key", "_hoodie_commit_time"
OF_CHANGES = [KIND, "_change_ordinal", KEY, TIME]
MODES: dict[str, tuple[str, list[str]]] = {
    "snapshot": ("v9_mor_types", []),
    "rebuild_partitions": ("v9_mor_event_time_compacted", []),
    "complete": ("v9_mor_basic", ["k", "ts", "v", TIME]),
    "with_deletes": ("v8_mor_replace", ["k", "ts", "v", "p", KIND, KEY, TIME]),
    "changelog": ("v9_cow_cdc_before_after", [*OF_CHANGES, "k", "ts", "v"]),
    "latest_state": ("v6_mor_basic", ["k", "ts", "v"]),
    "skip_merge": ("v9_mor_event_time", ["k", "ts", "v"]),
}
"""Mode → a table, and the columns that are read; none: all."""


def source(mode: str) -> Mapping[str, Any]:
    """The window from the table's first write to its last, in pieces of two rows."""
    case, columns = MODES[mode]
    read = {"mode": mode, **({"columns": columns} if columns else {})}
    if mode in {"complete", "latest_state", "skip_merge"}:
        read["keys_repeat"] = True
    start = {"after": answers(case)["snapshots"][0]["as_of"]}
    return {
        "kind": "hudi",
        "path": str(folder(case)),
        "read": read,
        "start": "full" if mode == "snapshot" else start,
        "split": {"max_rows": 2, "target_size": "1 KiB", "open_cost": "1 B"},
    }


def in_one_piece(mode: str) -> list[dict[str, Any]]:
    """The rows of the same window; other tests compare them with the engine's."""
    case, columns = MODES[mode]
    table = Golden(case, mode, read={"columns": columns} if columns else {})
    writes = table.writes
    start = None if mode == "snapshot" else writes[0]
    return table.rows(InstantRange(start, writes[-1]))


def rows_of(files: list[str]) -> list[dict[str, Any]]:
    tables = [pq.read_table(path, partitioning=None) for path in files]
    return canonical(pa.concat_tables(tables).to_pylist(maps_as_pydicts="strict"))


def whole(rows: list[dict[str, Any]]) -> Any:
    """Rows as comparable texts, with the columns that the writer adds."""
    return texts([{key.replace("_hoodie_", "meta_"): row[key] for key in row} for row in rows])


@pytest.mark.parametrize("mode", MODES)
def test_window_staged_by_threads_in_pieces_has_the_rows_of_one_piece(
    mode: str, local: StagedReads
) -> None:
    files = local.files(source(mode))

    assert len(files) > 1
    assert whole(rows_of(files)) == whole(in_one_piece(mode))


@pytest.mark.spark
@pytest.mark.parametrize("mode", MODES)
def test_window_staged_by_spark_tasks_has_the_files_of_threads_byte_by_byte(
    mode: str, local: StagedReads, in_spark: StagedReads
) -> None:
    by_tasks, by_threads = (executor.files(source(mode)) for executor in (in_spark, local))

    assert by_tasks
    assert contents(by_tasks) == contents(by_threads)


def contents(files: list[str]) -> list[bytes]:
    return [Path(path).read_bytes() for path in files]
