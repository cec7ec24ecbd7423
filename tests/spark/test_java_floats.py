"""Floats of Hudi tables that became doubles have the digits that Java writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidegate.source.hudi.table.promotion import cast_to

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
ODD, SMALLEST = (1e25, 1e26), 2.0**-126
"""Between 1e25 and 1e26, and below the smallest normal float, Java's last digits are its own."""


def test_double_of_any_float_is_what_java_reads_of_its_text(
    spark: SparkSession, tmp_path: Path
) -> None:
    """HUDI-M17; Spark writes floats as Java does, which Hudi lets it do."""
    random = np.random.default_rng(7)
    found = np.concatenate(
        [
            random.integers(0, 2**32, 20_000, dtype=np.uint64).astype(np.uint32).view(np.float32),
            random.integers(-(2**62), 2**62, 5_000).astype(np.float32),
            random.integers(-(2**31), 2**31, 5_000).astype(np.float32),
            np.round(random.random(5_000) * 1000, 2).astype(np.float32),
            np.ldexp(np.float32(1), np.arange(-20, 63)),
        ]
    )
    size = np.abs(found)
    is_odd = (size < SMALLEST) | ((size > ODD[0]) & (size < ODD[1]))
    floats = pa.array(found[np.isfinite(found) & ~is_odd])
    cast = cast_to(floats.type, pa.float64())
    assert cast is not None
    pq.write_table(pa.table({"f": floats, "made": cast(floats)}), tmp_path / "floats.parquet")

    rows = spark.read.parquet(str(tmp_path)).selectExpr("f", "made", "double(string(f)) as java")
    wrong = rows.where("not (made <=> java)").collect()

    assert wrong == []
