"""Counts are read once for all partitions that are looked at together (PC-C03)."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.config import PipelineConfig
from tidegate.model.partition import Partition
from tidegate.pipeline.publish.counting import FRESH, UpstreamReader
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

NOW = datetime(2026, 6, 1, tzinfo=UTC)
DAY = Partition((("dt", "2026-02-01"),))


def reader(**counts: Any) -> UpstreamReader:
    config = PipelineConfig.from_resolved(
        {
            "name": "orders",
            "source": {"kind": "files", "path": "/in"},
            "event_time": "at",
            "target": {"path": "/out", "partition_by": {"dt": "day(at)"}},
            "commit": {"counts": counts} if counts else {},
        }
    )
    return UpstreamReader(config, LocalStorage())


def found(made: UpstreamReader, now: datetime = NOW) -> tuple[int | None, str | None]:
    upstream = made.at(now)
    assert upstream is not None
    return upstream.of(DAY), upstream.problem


def test_pipeline_without_counts_reads_none() -> None:
    assert reader().at(NOW) is None


def test_counts_come_from_a_query_a_file_and_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sqlite3.connect(tmp_path / "audit.db") as database:
        database.execute("create table audit as select '2026-02-01' as dt, 7 as n")
    (tmp_path / "c.csv").write_text("dt,n\n2026-02-01,8\n")
    (tmp_path / "folder").mkdir()
    pq.write_table(pa.table({"dt": ["2026-02-01"], "n": [9]}), tmp_path / "folder" / "a.parquet")
    monkeypatch.setenv("AUDIT", f"sqlite:///{tmp_path}/audit.db")

    places: list[dict[str, str]] = [
        {"query": "select * from audit", "connection": "${env:AUDIT}"},
        {"file": str(tmp_path / "c.csv")},
        {"table": str(tmp_path / "folder")},
    ]
    assert [found(reader(**place)) for place in places] == [(7, None), (8, None), (9, None)]


def test_one_answer_is_shared_until_it_is_old(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text("dt,n\n2026-02-01,1\n")
    made = reader(file=str(path))
    assert found(made) == (1, None)
    path.write_text("dt,n\n2026-02-01,2\n")

    almost = FRESH - timedelta(microseconds=1)
    assert found(made, NOW + almost) == (1, None)
    assert found(made, NOW + FRESH) == (2, None)
    path.write_text("dt,n\n2026-02-01,3\n")
    assert found(made, NOW) == (3, None), "a clock that was set back looks again"


def test_failure_is_kept_as_a_reason_and_ends_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    made = reader(file=str(path))
    assert found(made) == (None, f"{path} cannot be read: there is no such file")
    path.write_text("dt,n\n2026-02-01,2\n")

    assert found(made, NOW + FRESH) == (2, None)


def test_missing_password_is_told_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AUDIT", raising=False)

    _, problem = found(reader(query="select 1", connection="${env:AUDIT}"))

    assert problem is not None
    assert "AUDIT" in problem
