"""A listed file that cannot be opened: what passes by itself is no damage."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from refusing import without_descriptors
from tidegate.config import read_source
from tidegate.errors import ListedFileChanged, SourceFileDamaged, StorageSilent
from tidegate.source.files.reader import Listed, open_listed
from tidegate.source.files.revision_folders import ListedFiles
from tidegate.source.files.walk import list_directory
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from pathlib import Path

    from tidegate.storage import FileDetails

FILES = ListedFiles(LocalStorage())


def test_file_on_a_busy_machine_is_not_called_damaged(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": [1]}), path)
    found = path.stat()

    with without_descriptors(), pytest.raises(StorageSilent, match=r"a\.parquet: no answer"):
        open_listed(FILES, str(path), Listed(found.st_size, found.st_mtime_ns))

    with open_listed(FILES, str(path), Listed(found.st_size, found.st_mtime_ns)) as file:
        assert file.rows == 1


def test_file_that_is_a_directory_is_called_damaged(tmp_path: Path) -> None:
    with pytest.raises(SourceFileDamaged, match="directory"):
        open_listed(FILES, str(tmp_path), Listed(0, 0))


@pytest.mark.parametrize("year", [1600, 1901, 1970, 2261, 2263, 2400, 11_000])
def test_file_of_any_time_is_the_one_that_was_listed(tmp_path: Path, year: int) -> None:
    """Nanoseconds in 64 bits end in 2262, and clocks that are wrong do not."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": [1]}), path)
    seconds = round((year - 1970) * 365.2425 * 86_400)
    os.utime(path, (seconds, seconds))
    config = read_source({"kind": "files", "path": str(tmp_path)})

    (listed,) = list_directory(config, LocalStorage()).files
    with open_listed(FILES, str(path), Listed(listed.size, listed.modified)) as file:
        assert file.rows == 1
    os.utime(path, (seconds + 1, seconds + 1))
    changed = list_directory(config, LocalStorage()).files != (listed,)

    # Some file systems hold no such time, so that nothing changed.
    if changed:
        with pytest.raises(ListedFileChanged, match="found what was written at"):
            open_listed(FILES, str(path), Listed(listed.size, listed.modified))


@dataclass(frozen=True)
class Tagged(LocalStorage):
    """A disk whose files have a tag, as objects of a store have."""

    tag: str = "now"

    def open_with_details(self, path: str) -> tuple[pa.NativeFile, FileDetails]:
        opened, found = super().open_with_details(path)
        return opened, found._replace(tag=self.tag)


@pytest.mark.parametrize(
    ("tag", "later", "is_same"),
    [
        pytest.param("now", 0, True, id="same"),
        pytest.param("now", 1_000_000_000, True, id="same tag though its time is another"),
        pytest.param("then", 0, False, id="other tag though its time is the same"),
        pytest.param("then", 1_000_000_000, False, id="other"),
    ],
)
def test_object_is_the_one_that_was_listed_if_it_has_its_tag(
    tmp_path: Path, tag: str, later: int, is_same: bool
) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": [1]}), path)
    found = path.stat()
    listed = Listed(found.st_size, found.st_mtime_ns - later, "", tag)
    files = ListedFiles(Tagged())

    if is_same:
        with open_listed(files, str(path), listed) as file:
            assert file.rows == 1
    else:
        with pytest.raises(ListedFileChanged):
            open_listed(files, str(path), listed)
