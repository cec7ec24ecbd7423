"""A folder in Hive style through `init`: the columns of its paths are published."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import yaml
from typer.testing import CliRunner

from small_lake import DAY_1
from tidegate import read_committed
from tidegate.cli.app import app

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

REGIONS = {"eu": 1, "US%2FEast": 2, "__HIVE_DEFAULT_PARTITION__": 3}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIDEGATE_PIPELINES", str(tmp_path))
    monkeypatch.setenv("TIDEGATE_LEDGER", f"sqlite:///{tmp_path}/ledger.db")
    for region, number in REGIONS.items():
        place = tmp_path / "orders" / f"region={region}"
        place.mkdir(parents=True)
        times = pa.array([DAY_1], pa.timestamp("us", "UTC"))
        pq.write_table(pa.table({"id": [number], "ordered_at": times}), place / "a.parquet")
    out = tmp_path / "out"
    tidegate(f"tidegate init --from {tmp_path}/orders --target {out}")
    return tmp_path


def tidegate(line: str) -> str:
    result = CliRunner().invoke(app, shlex.split(line)[1:], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


def test_columns_of_the_path_are_published(folder: Path) -> None:
    assert "partition_by" not in tidegate("tidegate check orders")
    tidegate("tidegate load orders")
    tidegate("tidegate publish orders --final -m all dt=2026-02-01")

    rows = read_committed(str(folder / "out")).to_table().to_pylist()
    assert {(row["region"], row["id"]) for row in rows} == {("eu", 1), ("US/East", 2), (None, 3)}


@pytest.mark.follows("DefaultPartitionForeign")
@pytest.mark.parametrize("remedy", ["key", "rename"])
def test_directory_that_another_engine_gives_to_null_is_no_text(folder: Path, remedy: str) -> None:
    file = folder / "orders.yaml"
    raw = yaml.safe_load(file.read_text())
    del raw["source"]["default_partition_name"]
    file.write_text(yaml.safe_dump(raw))
    refused = CliRunner().invoke(app, ["load", "orders"])
    assert refused.exit_code == 1
    said = " ".join(refused.output.split())
    assert "Set `source.default_partition_name: __HIVE_DEFAULT_PARTITION__`" in said

    if remedy == "key":
        raw["source"]["default_partition_name"] = "__HIVE_DEFAULT_PARTITION__"
        file.write_text(yaml.safe_dump(raw))
    else:
        null = folder / "orders" / "region=__HIVE_DEFAULT_PARTITION__"
        null.rename(null.with_name("region=__DEFAULT_PARTITION__"))
    tidegate("tidegate load orders")
    tidegate("tidegate publish orders --final -m all dt=2026-02-01")

    rows = read_committed(str(folder / "out")).to_table().to_pylist()
    assert {(row["region"], row["id"]) for row in rows} == {("eu", 1), ("US/East", 2), (None, 3)}


def test_check_notes_columns_of_the_path_that_are_not_read(folder: Path) -> None:
    file = folder / "orders.yaml"
    raw = yaml.safe_load(file.read_text())
    del raw["source"]["partition_by"]
    file.write_text(yaml.safe_dump(raw))

    said = tidegate("tidegate check orders")

    assert "region=" in said
    assert "`source.partition_by: {region: string}`" in said


def by_pyarrow(rows: pl.DataFrame, root: Path) -> None:
    kind = pa.schema([pa.field("city", pa.string())])
    partitioning = ds.partitioning(kind, flavor="hive")
    ds.write_dataset(rows.to_arrow(), root, format="parquet", partitioning=partitioning)


def by_duckdb(rows: pl.DataFrame, root: Path) -> None:
    found = rows.to_arrow()
    assert len(found)
    duckdb.sql(f"COPY found TO '{root}' (FORMAT parquet, PARTITION_BY (city))")


def by_polars(rows: pl.DataFrame, root: Path) -> None:
    rows.write_parquet(pl.PartitionBy(root, key="city"), mkdir=True)


@pytest.mark.parametrize("write", [by_pyarrow, by_duckdb, by_polars])
def test_values_are_those_that_the_writer_of_the_folder_meant(
    write: Callable[[pl.DataFrame, Path], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TIDEGATE_PIPELINES", str(tmp_path))
    monkeypatch.setenv("TIDEGATE_LEDGER", f"sqlite:///{tmp_path}/ledger.db")
    cities = ["Köln", "São Paulo", "東京", "a=b/c ü", "50%", "plain"]
    write(pl.DataFrame({"id": range(len(cities)), "city": cities}), tmp_path / "orders")
    out = tmp_path / "out"
    tidegate(f"tidegate init --from {tmp_path}/orders --target {out}")

    raw = yaml.safe_load((tmp_path / "orders.yaml").read_text())
    raw["target"]["partition_by"] = {"city": "city"}
    raw["commit"] = {"trigger": "process-time"}
    raw.pop("event_time", None)
    (tmp_path / "orders.yaml").write_text(yaml.safe_dump(raw))
    tidegate("tidegate load orders")
    tidegate("tidegate publish orders")

    rows = read_committed(str(out)).to_table().to_pylist()
    assert {row["id"]: row["city"] for row in rows} == dict(enumerate(cities))
