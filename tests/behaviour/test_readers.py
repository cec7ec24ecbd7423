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

import tidegate
from small_lake import SmallLake, load, publish

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

README = (Path(__file__).parents[2] / "README.md").read_text()
(_BLOCK,) = re.findall(r"\*\*Reading what was published.*?```python\n(.*?)```", README, re.DOTALL)
READS = [line for line in _BLOCK.splitlines() if not line.startswith("orders = ")]


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
