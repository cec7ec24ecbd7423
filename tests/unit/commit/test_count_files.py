"""Files of counts: read as a whole, and refused with their place (PC-C03)."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidegate.commit.count_files import read_count_file
from tidegate.errors import CountsUnreadable
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from pathlib import Path

TEXTS = {
    "csv": '\ufeffdt,rows\n2026-02-01,3\n"2026-02-02",4\n\n',
    "json": '[{"dt": "2026-02-01", "rows": "3"}, {"dt": "2026-02-02", "rows": "4"}]',
    "jsonl": '{"dt": "2026-02-01", "rows": "3"}\n\n{"rows": "4", "dt": "2026-02-02"}\n',
}


@pytest.mark.parametrize("ending", [*TEXTS, "parquet"])
def test_every_form_has_the_same_columns(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"counts.{ending}"
    if ending == "parquet":
        pq.write_table(pa.table({"dt": ["2026-02-01", "2026-02-02"], "rows": ["3", "4"]}), path)
    else:
        path.write_text(TEXTS[ending])

    found = read_count_file(LocalStorage(), str(path))

    assert {name: list(items) for name, items in found.items()} == {
        "dt": ["2026-02-01", "2026-02-02"],
        "rows": ["3", "4"],
    }


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.csv", "", "it has no header"),
        ("a.csv", "dt,rows\nx\n", "row 2 has 1 values, and the header 2"),
        ("a.csv", 'dt,rows\n"x,1\n', "line 2"),
        ("a.json", "{}", "expected a list of objects"),
        ("a.json", "[1]", "expected a list of objects"),
        pytest.param("a.json", "[" * 200_000, "recursion", id="lists in lists"),
        pytest.param("a.json", "9" * 5_000, "digits", id="number of 5,000 digits"),
        ("a.jsonl", "nonsense", "Expecting value"),
        ("a.parquet", "nonsense", "arquet"),
    ],
)
def test_damaged_file_is_told_with_its_place(
    tmp_path: Path, name: str, text: str, said: str
) -> None:
    (tmp_path / name).write_text(text)

    with pytest.raises(CountsUnreadable, match=said) as refused:
        read_count_file(LocalStorage(), str(tmp_path / name))

    assert refused.value.place == str(tmp_path / name)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_absent_file_is_no_empty_one(tmp_path: Path, ending: str) -> None:
    with pytest.raises(CountsUnreadable, match="there is no such file"):
        read_count_file(LocalStorage(), str(tmp_path / f"counts.{ending}"))


def test_text_is_read_without_loading_arrow(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(TEXTS["csv"])
    code = (
        "import sys, tidegate.pipeline.control; from tidegate.storage import LocalStorage; "
        "from tidegate.commit.count_files import read_count_file; "
        f"read_count_file(LocalStorage(), {str(tmp_path / 'a.csv')!r}); "
        "sys.exit('pyarrow' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
