"""Deletes that hit nothing are ignored, and counted in the run's report (ICE-4.10)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from golden_iceberg import answers, golden_copy
from golden_pipeline import GoldenPipeline
from tidegate.cli.status_view import summary_line
from tidegate.pipeline import open_pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from tidegate.model.message import RunSummary

CASE = "dangling_deletes_v2"
# Ten rows in one file; of what is deleted, position 99 is not among them.
CHANGELOG = {"mode": "changelog", "columns": ["id", "v", "_change_type"]}
READS = {
    "state": {"read": {"mode": "snapshot"}},
    "state in pieces": {"read": {"mode": "snapshot"}, "split": {"max_rows": 3}},
    "changes": {"read": CHANGELOG, "start": "earliest"},
    "checked changes": {
        "read": {**CHANGELOG, "verify_changelog": True},
        "start": "earliest",
        "split": {"max_rows": 3},
    },
}


def reported(table: GoldenPipeline) -> RunSummary:
    """Read the report of the last window from the ledger."""
    summary = open_pipeline(table.file, ledger=table.ledger).ledger.windows.all()[-1].summary
    assert summary is not None
    return summary


@pytest.mark.parametrize("keys", READS.values(), ids=READS.keys())
def test_position_past_the_end_is_counted_once_however_the_table_is_read(
    tmp_path: Path, keys: dict[str, Any]
) -> None:
    table = GoldenPipeline(CASE, tmp_path, keys)

    announced = table.take(5)

    assert announced.summary.deletes_ignored == reported(table).deletes_ignored == 1
    assert "1 delete that hit nothing" in summary_line(announced.summary)


def test_ignored_deletes_leave_the_rows_of_the_engine(tmp_path: Path) -> None:
    table = GoldenPipeline(CASE, tmp_path, READS["state"])

    table.take(5)

    alive = {(str(row[0]), row[1]): 1 for row in answers(CASE)["head"]["rows"]}
    assert table.published() == alive


def test_deletes_are_counted_with_the_commit_that_made_them(tmp_path: Path) -> None:
    table = GoldenPipeline(CASE, tmp_path, READS["changes"])

    counts = [table.take(version).summary.deletes_ignored for version in (2, 3, 4, 5)]

    assert counts == [0, 1, 0, 0]


@pytest.mark.parametrize("split", [{}, {"max_rows": 3}], ids=["one piece", "pieces"])
def test_rows_of_a_delete_file_without_a_path_are_counted_once(
    tmp_path: Path, split: dict[str, int]
) -> None:
    copy = golden_copy(CASE, tmp_path / "copy")
    for file in copy.folder.glob("table/data/pos-delete-*.parquet"):
        forget_unknown_files(file)
    keys = {**READS["state"], "location_rewrite": copy.config()["location_rewrite"], "split": split}
    table = GoldenPipeline(CASE, tmp_path, keys)

    announced = table.take(5)

    # The position past the end, and two rows without a path.
    assert announced.summary.deletes_ignored == 3
    assert len(table.published()) == len(answers(CASE)["head"]["rows"])


def forget_unknown_files(file: Path) -> None:
    """Take the paths of files that never were from a delete file."""
    rows = pq.read_table(file)
    known = [None if "never" in path else path for path in rows["file_path"].to_pylist()]
    field = rows.schema.field("file_path").with_nullable(True)
    pq.write_table(rows.set_column(0, field, pa.array(known, field.type)), file)


def test_delete_files_of_files_that_are_gone_are_counted(tmp_path: Path) -> None:
    table = GoldenPipeline("compaction_v2", tmp_path, {"read": {"mode": "snapshot"}})

    summary = table.take(12).summary

    assert summary.left_out == {"delete files address no data file of the table": 2}
    assert reported(table).left_out == summary.left_out
