"""What kind of table a text means, and the file drafted for it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidegate.cli.first_file import draft_pipeline
from tidegate.config import load_pipeline, source_meant_by
from tidegate.errors import TableNotFound

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2024, 5, 3, tzinfo=UTC)


def test_table_by_three_names_is_iceberg() -> None:
    assert source_meant_by("lake.raw.orders") == {"kind": "iceberg", "table": "lake.raw.orders"}


def test_table_directory_with_metadata_is_iceberg(tmp_path: Path) -> None:
    (tmp_path / "metadata").mkdir()

    assert source_meant_by(str(tmp_path)) == {"kind": "iceberg", "metadata": str(tmp_path)}


def test_metadata_file_is_iceberg() -> None:
    found = source_meant_by("/lake/orders/metadata/00001.metadata.json")

    assert found == {"kind": "iceberg", "metadata": "/lake/orders/metadata/00001.metadata.json"}


def test_other_directory_is_plain_files(tmp_path: Path) -> None:
    assert source_meant_by(str(tmp_path)) == {"kind": "files", "path": str(tmp_path)}


@pytest.mark.parametrize("name", [None, "sales"], ids=["named-by-table", "named"])
def test_draft_for_plain_files_is_a_valid_pipeline(name: str | None, tmp_path: Path) -> None:
    root = tmp_path / "orders"
    root.mkdir()
    table = pa.table({"id": [1], "ordered_at": pa.array([NOW], pa.timestamp("us", "UTC"))})
    pq.write_table(table, root / "a.parquet")

    draft = draft_pipeline(str(root), NOW, name=name, target=str(tmp_path / "out"))

    file = tmp_path / "pipeline.yaml"
    file.write_text(draft.text)
    config = load_pipeline(file)
    assert config.name == draft.name == (name or "orders")
    assert draft.event_time == "ordered_at"
    assert config.event_time is not None
    assert config.event_time.column == "ordered_at"
    assert config.target.path == str(tmp_path / "out")


def test_draft_for_an_empty_folder_says_that_columns_are_not_known(tmp_path: Path) -> None:
    draft = draft_pipeline(str(tmp_path), NOW, name="a", target="/nowhere/out")

    assert "There is no file yet" in draft.text
    assert "No column holds a time" not in draft.text


@pytest.mark.follows("TableNotFound")
@pytest.mark.parametrize("wrong", ["ordres", "ordres/metadata/v1.metadata.json"])
def test_draft_for_an_unknown_table_names_the_argument_to_correct(
    tmp_path: Path, wrong: str
) -> None:
    root = tmp_path / "orders"
    root.mkdir()
    pq.write_table(pa.table({"id": [1]}), root / "a.parquet")

    with pytest.raises(TableNotFound, match="after `--from`") as refused:
        draft_pipeline(str(tmp_path / wrong), NOW, name=None, target=None)

    assert "pipeline file" not in str(refused.value)
    assert draft_pipeline(str(root), NOW, name=None, target=None).name == "orders"


def test_draft_for_a_folder_that_spark_partitioned_reads_the_columns_of_its_paths(
    tmp_path: Path,
) -> None:
    root = tmp_path / "orders"
    for day, region in (("2024-05-01", "US%2FEast"), ("2024-05-02", "__HIVE_DEFAULT_PARTITION__")):
        folder = root / f"day={day}" / "shop=7" / f"region={region}"
        folder.mkdir(parents=True)
        times = pa.array([NOW], pa.timestamp("us", "UTC"))
        pq.write_table(pa.table({"id": [1], "ordered_at": times}), folder / "a.parquet")

    draft = draft_pipeline(str(root), NOW, name=None, target=str(tmp_path / "out"))

    file = tmp_path / "pipeline.yaml"
    file.write_text(draft.text)
    source = load_pipeline(file).source
    assert list(source.partition_by.items()) == [
        ("day", "date"),
        ("shop", "long"),
        ("region", "string"),
    ]
    assert source.default_partition_name == "__HIVE_DEFAULT_PARTITION__"
    assert draft.event_time == "ordered_at"


def test_draft_publishes_to_the_store_that_it_is_given(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1]}), tmp_path / "a.parquet")

    draft = draft_pipeline(str(tmp_path), NOW, name=None, target="s3://lake/published/orders")

    file = tmp_path / "pipeline.yaml"
    file.write_text(draft.text)
    assert load_pipeline(file).target.path == draft.target == "s3://lake/published/orders"
