"""Files of a table on this machine have a descriptor, however the metadata spells their paths."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tidegate.errors import SourceFileGone
from tidegate.source.iceberg.table.paths import REWRITE_PROPERTY, RewritingFileIO, open_location

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
def test_file_of_this_machine_has_a_descriptor(scheme: str, tmp_path: Path) -> None:
    path = tmp_path / "a #1?.parquet"
    path.write_bytes(b"content")

    with open_location(RewritingFileIO(), f"{scheme}{path}", "lake.t") as file:
        assert file.fileno() >= 0
        assert file.read() == b"content"


def test_file_that_was_moved_is_opened_where_it_stands_now(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"content")
    files = RewritingFileIO({REWRITE_PROPERTY: f'{{"s3://lake/t": "{tmp_path}"}}'})

    with open_location(files, "s3://lake/t/a.parquet", "lake.t") as file:
        assert file.fileno() >= 0


def test_file_that_is_gone_is_named_as_the_metadata_spells_it(tmp_path: Path) -> None:
    location = f"file://{tmp_path}/gone.parquet"

    with pytest.raises(SourceFileGone, match=location):
        open_location(RewritingFileIO(), location, "lake.t")
