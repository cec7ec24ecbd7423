from __future__ import annotations

import json
from datetime import date
from typing import TYPE_CHECKING

import pytest

from tidegate.demo.proof import DayProof, published_files

if TYPE_CHECKING:
    from pathlib import Path


def test_published_files_are_those_that_the_marker_names(tmp_path: Path) -> None:
    (tmp_path / "other.parquet").touch()
    (tmp_path / "_SUCCESS").write_text(json.dumps({"files": [{"name": "a.parquet"}]}))

    assert published_files(tmp_path) == [tmp_path / "a.parquet"]


def test_partition_without_a_marker_has_no_published_files(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").touch()

    assert published_files(tmp_path) == []


@pytest.mark.parametrize(
    ("counts", "exact"),
    [
        pytest.param((10, 10, 10, 0, 0), True, id="every-row-once"),
        pytest.param((10, 10, 0, 10, 0), True, id="not-published"),
        pytest.param((10, 10, 9, 1, 0), False, id="row-missing"),
        pytest.param((10, 10, 11, 0, 1), False, id="row-twice"),
        pytest.param((10, 9, 9, 0, 0), False, id="raw-table-short"),
    ],
)
def test_day_is_exact_when_all_three_counts_agree(
    counts: tuple[int, int, int, int, int], exact: bool
) -> None:
    assert DayProof(date(2013, 2, 5), *counts).is_exact is exact
