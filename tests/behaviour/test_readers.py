"""The published table is read as the README says, by every library that it names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest
from pyiceberg.types import StringType

import tidegate
from small_lake import DAY_1, NOW, SmallLake, known, load, publish

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def _reads(text: str) -> list[list[str]]:
    """Give the lines of each example that read the table."""
    return [
        [line for line in block.splitlines() if not line.startswith("orders = ")]
        for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    ]


_TEXT = README.partition("**Reading what was published.")[2].partition("\n## ")[0]
READS, READS_OF_CHANGED = _reads(_TEXT)
(READS_OF_TEXT,) = _reads((ROOT / "docs" / "targets.md").read_text())


def rows(found: Any) -> list[tuple[int, str]]:
    """Give the ids and days that a library read, in its own form of a table."""
    match found:
        case pa.Table() | pl.DataFrame():
            table = found.to_dict(as_series=False) if isinstance(found, pl.DataFrame) else None
            columns = table or found.to_pydict()
        case pd.DataFrame():
            columns = found.to_dict("list")
        case duckdb.DuckDBPyRelation():
            columns = found.to_arrow_table().to_pydict()
        case _:
            columns = {name: [row[name] for row in found.collect()] for name in ("id", "dt")}
    return sorted(zip(columns["id"], map(str, columns["dt"]), strict=True))


@pytest.mark.spark
def test_every_read_of_the_readme_finds_the_published_rows(
    tmp_path: Path, spark: SparkSession
) -> None:
    lake = SmallLake(tmp_path)
    first, second = lake.commit({1: 3}), lake.commit({2: 2})
    lake.commit({3: 1})
    load(lake.pipeline())
    publish(lake.pipeline())
    wanted = sorted(
        [(number, "2026-02-01") for number in first] + [(number, "2026-02-02") for number in second]
    )
    names = {
        "orders": str(lake.target),
        "spark": spark,
        "pyarrow": pa,
        "pandas": pd,
        "polars": pl,
        "duckdb": duckdb,
        "tidegate": tidegate,
    }

    assert len(READS) == 6
    assert (lake.target / "dt=2026-02-01" / "_SUCCESS").exists()
    for line in READS:
        assert rows(eval(line, names)) == wanted, line


def _column(found: Any, name: str) -> list[Any]:
    """Give one column that a library read, in the order of the ids."""
    if isinstance(found, duckdb.DuckDBPyRelation):
        found = found.to_arrow_table()
    columns = {each: list(found[each]) for each in ("id", name)}
    plain = [[getattr(it, "as_py", lambda it=it: it)() for it in each] for each in columns.values()]
    return [value for _, value in sorted(zip(*plain, strict=True))]


def test_reads_of_a_table_whose_columns_changed_have_all_of_them(tmp_path: Path) -> None:
    lake = SmallLake(tmp_path, keys={"commit": {"trigger": "process-time"}})
    lake.commit({1: 2})
    load(lake.pipeline())
    publish(lake.pipeline())
    with lake.table.update_schema() as change:
        change.add_column("region", StringType())
    rows = {"id": [3], "at": [DAY_1], "amount": [2], "region": ["eu"]}
    found = pa.table(rows, lake.table.schema().as_arrow())
    lake.table.append(found, snapshot_properties={"known-at": known(1.5).isoformat()})
    load(lake.pipeline())
    publish(lake.pipeline())
    names = {"orders": str(lake.target), "polars": pl, "duckdb": duckdb, "tidegate": tidegate}

    assert len(READS_OF_CHANGED) == 3
    for line in READS_OF_CHANGED:
        found = eval(line, names)
        assert _column(found, "region") == [None, None, "eu"], line


@pytest.mark.parametrize("is_retired", [False, True], ids=["owned", "retired"])
@pytest.mark.parametrize("partition_by", [None, {"dt": "day(at)"}], ids=["whole", "partitioned"])
@pytest.mark.parametrize("form", ["json", "csv"])
def test_reads_of_text_find_the_published_rows_and_no_file_beside_them(
    tmp_path: Path, form: str, partition_by: dict[str, str] | None, is_retired: bool
) -> None:
    lake = SmallLake(tmp_path, keys={"commit": {"trigger": "process-time"}})
    lake.commit({1: 2, 2: 1})
    target = {"format": form, "partition_by": partition_by}
    pipeline = lake.pipeline(name=f"orders.{form}", target=target)
    load(pipeline)
    publish(pipeline)
    if is_retired:
        pipeline.retire("me", "cli", NOW)
    names = {"orders": str(lake.target), "polars": pl, "duckdb": duckdb, "tidegate": tidegate}

    lines = [line for line in READS_OF_TEXT if "*." not in line or f"*.{form}" in line]

    assert len(lines) == 3
    for line in lines:
        found = eval(line, names)
        table = found.to_arrow_table() if "duckdb" in line else found.to_arrow()
        has_key = bool(partition_by) and "scan_ndjson" not in line and "scan_csv" not in line
        assert sorted(table["id"].to_pylist()) == [1, 2, 3], line
        assert set(table.column_names) == {"id", "at", "amount", *["dt"] * has_key}, line
