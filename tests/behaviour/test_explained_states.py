"""Each pending partition is explained by one state and every condition that fails."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from tidegate.cli.app import app

if TYPE_CHECKING:
    from pathlib import Path

PIPELINE = """
name: orders
source: {{kind: files, path: {root}/raw}}
event_time: {{column: at}}
rows:
- {{name: has_amount, where: "amount > 0", on_failure: hold}}
- {{name: has_id, where: "id > 0", on_failure: hold}}
target: {{path: {root}/out, partition_by: {{dt: day(at)}}}}
"""
DAY, LAST = datetime(2024, 5, 1, tzinfo=UTC), datetime(2024, 5, 3, tzinfo=UTC)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A held day, a day that is not over, and a row without a day."""
    (tmp_path / "orders.yaml").write_text(PIPELINE.format(root=tmp_path))
    monkeypatch.setenv("TIDEGATE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TIDEGATE_PIPELINES", str(tmp_path))
    times = pa.array([DAY, DAY, LAST, None], pa.timestamp("us", "UTC"))
    rows = {"id": [1, -2, 3, 4], "amount": [-1.0, 1.0, 2.0, 3.0], "at": times}
    (tmp_path / "raw").mkdir()
    pq.write_table(pa.table(rows), tmp_path / "raw" / "a.parquet")
    return tmp_path


def tidegate(*arguments: str) -> str:
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False).stdout


def test_pending_partitions_have_one_state_and_every_failing_condition(root: Path) -> None:
    """PC-V37."""
    tidegate("load", "orders")
    tidegate("publish", "orders")

    shown = {
        value: tidegate("explain", "orders", f"dt={value}")
        for value in ("2024-05-01", "2024-05-03", "__DEFAULT_PARTITION__")
    }

    heads = {value: text.partition("\n\n")[0] for value, text in shown.items()}
    assert {value: re.findall(r"^state +(\S+)", text, re.M) for value, text in heads.items()} == {
        "2024-05-01": ["held"],
        "2024-05-03": ["pending"],
        "__DEFAULT_PARTITION__": ["pending"],
    }
    reasons = {value: re.findall(r"\b[A-Z]+_[A-Z_]+(?=:)", text) for value, text in heads.items()}
    assert reasons == {
        "2024-05-01": ["GATE_FAILED"],
        "2024-05-03": ["WATERMARK_BEHIND"],
        "__DEFAULT_PARTITION__": ["DEFAULT_PARTITION"],
    }
    assert re.findall(r"row rule (\w+)", heads["2024-05-01"]) == ["has_amount", "has_id"]
