"""A listed file that cannot be opened: what passes by itself is no damage."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from refusing import without_descriptors
from tidegate.errors import SourceFileDamaged, StorageSilent
from tidegate.source.files.reader import open_listed

if TYPE_CHECKING:
    from pathlib import Path


def test_file_on_a_busy_machine_is_not_called_damaged(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": [1]}), path)
    found = path.stat()

    with without_descriptors(), pytest.raises(StorageSilent, match=r"a\.parquet: no answer"):
        open_listed(str(path), found.st_size, found.st_mtime_ns)

    with open_listed(str(path), found.st_size, found.st_mtime_ns) as file:
        assert file.rows == 1


def test_file_that_is_a_directory_is_called_damaged(tmp_path: Path) -> None:
    with pytest.raises(SourceFileDamaged, match="directory"):
        open_listed(str(tmp_path), 0, 0)
