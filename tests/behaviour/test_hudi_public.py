"""Public tables of the hudi-rs project have the rows that it publishes as Hudi's own answers.

They are not part of this repository: they stand beside the folder that `TIDEGATE_PUBLIC_GOLDEN`
names.
"""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from golden_hudi import Golden, canonical, texts
from tidegate.errors import HudiLogUnsupported, HudiPropertyUnsupported

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Mapping

VARIABLE = "TIDEGATE_PUBLIC_GOLDEN"
FOLDER = os.environ.get(VARIABLE)
ROOT = Path(FOLDER).parent / "hudi-public" if FOLDER else None
FOUND = sorted(ROOT.rglob("*.zip")) if ROOT else []
ZIPS = {path.relative_to(path.parents[2]).as_posix(): path for path in FOUND}
REFUSED = {"lance": HudiPropertyUnsupported, "hfile_log_block": HudiLogUnsupported}
MERGED_BY_POSITION = "table_duplicate_keys"
"""All rows of a repeated key are updated in that answer (HUDI-M14)."""


@pytest.mark.skipif(FOLDER is None, reason=f"{VARIABLE} names no folder")
def test_public_tables_are_there() -> None:
    assert len(ZIPS) == 49


def unpacked(case: str, root: Path) -> tuple[Path, Path]:
    """Unpack a table; the folder with the answers, and the table in it."""
    zipfile.ZipFile(ZIPS[case]).extractall(root)
    return root, next(path.parent for path in root.glob("*/.hoodie"))


def answer(folder: Path) -> Counter[str]:
    """The rows of an answer; several files have no order."""
    files = [path for path in folder.glob("*.parquet") if not path.name.startswith(".")]
    tables = [pq.read_table(path, partitioning=None) for path in files]
    table = pa.concat_tables(tables, promote_options="permissive")
    return texts(alike(canonical(table.to_pylist(maps_as_pydicts="strict"))))


def alike(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows without columns of the writer; empty lists and maps are the same."""
    return [
        {key: [] if value == {} else value for key, value in row.items() if key[:8] != "_hoodie_"}
        for row in rows
    ]


def rows_of(table: Path, mode: str, window: Mapping[str, str] | None = None) -> Counter[str]:
    golden = Golden("public", mode, table)
    if window is None:
        return texts(alike(golden.rows()))
    asked = golden.window(window["start_timestamp"], window["end_timestamp"])
    return texts(alike(golden.rows(asked) if asked else []))


@pytest.mark.parametrize("case", ZIPS)
def test_head_and_windows_of_a_public_table_are_the_published_ones(
    case: str, tmp_path: Path
) -> None:
    root, table = unpacked(case, tmp_path)
    for word, error in REFUSED.items():
        if word in case:
            with pytest.raises(error):
                rows_of(table, "snapshot")
            return

    head = rows_of(table, "snapshot")
    if not (root / "gold_data").exists():
        assert not head
        return
    expected = answer(root / "gold_data")
    if MERGED_BY_POSITION in case:
        assert head.total() == 5
        return
    assert head == expected
    manifest = root / "gold_options" / "manifest.json"
    cases = json.loads(manifest.read_text())["cases"] if manifest.exists() else []
    for asked in cases:
        if "start_timestamp" in asked and "no_metafields" not in case:
            found = rows_of(table, "latest_state", asked)
            assert found == answer(root / "gold_options" / asked["name"]), asked["name"]
