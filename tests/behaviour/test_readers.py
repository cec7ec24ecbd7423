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
from small_lake import DAY_1, SmallLake, known, load, publish

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

README = (Path(__file__).parents[2] / "README.md").read_text()
_TEXT = README.partition("**Reading what was published.")[2].partition("\n## ")[0]
READS, READS_OF_CHANGED = (
    [line for line in block.splitlines() if not line.startswith("orders = ")]
    for block in re.findall(r"```python\n(.*?)```", _TEXT, re.DOTALL)
)


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
