"""What the directories of a folder name, and of which types."""

from __future__ import annotations

from typing import Any

import pytest

from tidegate.source.files.directory_keys import guess_keys, named_directory
from tidegate.source.files.listing import ListedFile, Listing

HIVE = "__HIVE_DEFAULT_PARTITION__"
OURS = "__DEFAULT_PARTITION__"


def listing(*directories: str) -> Listing:
    return Listing(tuple(ListedFile(f"{name}/a.parquet".lstrip("/"), 1, 1) for name in directories))


def keys(default_name: str = HIVE, /, **types: str) -> dict[str, Any]:
    return {"partition_by": types, "default_partition_name": default_name}


@pytest.mark.parametrize(
    ("directories", "expected"),
    [
        pytest.param(["region=eu", "region=1"], keys(region="string"), id="text"),
        pytest.param(["year=2024", "year=-1"], keys(year="long"), id="whole numbers"),
        pytest.param(["month=01", "month=10"], keys(month="string"), id="leading zero"),
        pytest.param(["n=9223372036854775808"], keys(n="string"), id="too long a number"),
        pytest.param(["dt=2024-02-29"], keys(dt="date"), id="dates"),
        pytest.param(["dt=2023-02-29"], keys(dt="string"), id="no date"),
        pytest.param([f"n={HIVE}", "n=1"], keys(n="long"), id="null of Hive"),
        pytest.param([f"n={OURS}", "n=1"], keys(OURS, n="long"), id="null of Tidegate"),
        pytest.param([f"n={HIVE}"], keys(n="string"), id="nothing but null"),
        pytest.param(["a%3Db=x%2Fy/c=1"], keys(**{"a=b": "string", "c": "long"}), id="escaped"),
        pytest.param(["", "region=eu"], {}, id="files beside directories"),
        pytest.param(["region=eu", "area=eu"], {}, id="several names"),
        pytest.param(["region=eu", "region=eu/day=1"], {}, id="several depths"),
        pytest.param(["new/region=eu"], {}, id="below a plain directory"),
        pytest.param([""], {}, id="no directories"),
        pytest.param([], {}, id="no files"),
    ],
)
def test_keys_are_guessed_from_all_paths(directories: list[str], expected: dict[str, Any]) -> None:
    assert guess_keys(listing(*directories)) == expected


def test_directory_that_names_a_column_is_found_also_where_no_keys_fit_all_files() -> None:
    assert named_directory(listing("", "new/region=eu")) == "region=eu"
    assert named_directory(listing("", "new", "=eu", "region=")) is None
