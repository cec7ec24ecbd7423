"""What a load says of itself is counted in rows, also of what it put aside."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from small_lake import NOW, SmallLake, day, load
from terminal import text_of
from tidegate.cli.explain_view import explanation

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.on_disk

SANE = [{"name": "sane", "where": "amount < 1000", "on_failure": "quarantine"}]


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    return SmallLake(tmp_path / "lake")


def test_summary_counts_the_rows_that_a_rule_put_aside(lake: SmallLake) -> None:
    lake.keys = {"rows": SANE}
    kept = lake.commit({1: 5, 2: 1})
    aside = lake.commit({1: 4, 2: 3}, amount=5000)
    pipeline = lake.pipeline()

    summary = load(pipeline).summary

    assert (summary.rows_read, summary.rows_kept) == (len(kept) + len(aside), len(kept))
    explained = pipeline.explain(day(1), NOW)
    (found,) = explained.quarantined
    files = [
        pq.read_table(path)["id"].to_pylist() for path in lake.work.rglob("quarantine/**/*.parquet")
    ]
    assert sorted(number for ids in files for number in ids) == aside
    assert len(files) < len(aside)
    assert summary.rows_quarantined == len(aside)
    assert str(lake.work) in found
    assert explained.quarantined_by == {found: {"sane": len(aside)}}
    assert f"{len(aside)} fail sane" in text_of(explanation(explained, None, "UTC"))
