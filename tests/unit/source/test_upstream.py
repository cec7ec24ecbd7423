"""Tables of counts are read as a whole, and told with their place if they cannot be (PC-C03)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from small_lake import SmallLake
from tidegate.config import IcebergSourceConfig
from tidegate.errors import CountsUnreadable
from tidegate.source.upstream import read_folder, read_iceberg

if TYPE_CHECKING:
    from pathlib import Path


def test_folder_of_files_is_one_table_without_what_is_hidden(tmp_path: Path) -> None:
    for day, rows in (("2026-02-01", 3), ("2026-02-02", 4)):
        (tmp_path / f"dt={day}").mkdir()
        pq.write_table(pa.table({"rows": [rows]}), tmp_path / f"dt={day}" / "a.parquet")
    (tmp_path / "_started").write_text("x")

    found = read_folder(str(tmp_path))

    assert dict(zip(map(str, found["dt"]), found["rows"], strict=True)) == {
        "2026-02-01": 3,
        "2026-02-02": 4,
    }


def test_iceberg_table_is_read_as_it_is_now(tmp_path: Path) -> None:
    lake = SmallLake(tmp_path / "lake")
    lake.commit({1: 2})
    lake.commit({2: 1})

    found = read_iceberg(IcebergSourceConfig.model_validate(lake.source))

    assert sorted(found["id"]) == [1, 2, 3]


@pytest.mark.parametrize("place", ["nothing", "damaged"])
def test_folder_that_cannot_be_read_is_told(tmp_path: Path, place: str) -> None:
    if place == "damaged":
        (tmp_path / place).mkdir()
        (tmp_path / place / "a.parquet").write_text("nonsense")

    with pytest.raises(CountsUnreadable) as refused:
        read_folder(str(tmp_path / place))

    assert refused.value.place == str(tmp_path / place)


def test_times_beyond_those_of_python_are_told(tmp_path: Path) -> None:
    never = pa.array([2**62], pa.timestamp("us"))
    pq.write_table(pa.table({"dt": never, "rows": [1]}), tmp_path / "a.parquet")

    with pytest.raises(CountsUnreadable, match="out of range"):
        read_folder(str(tmp_path))


def test_iceberg_table_that_is_not_there_is_told(tmp_path: Path) -> None:
    lake = SmallLake(tmp_path / "lake")

    with pytest.raises(CountsUnreadable):
        read_iceberg(IcebergSourceConfig.model_validate({**lake.source, "table": "raw.other"}))
