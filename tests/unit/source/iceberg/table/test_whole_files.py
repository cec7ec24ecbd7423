"""A file is read only with all the rows that its manifest says (ICE-10.4)."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from pyiceberg.io.pyarrow import PyArrowFileIO

from tidegate.errors import (
    SourceFileDamaged,
    SourceFileGone,
    SourceUnreachable,
    StorageSilent,
    UnsupportedFeature,
)
from tidegate.source.iceberg.table.whole_files import ManifestSays, open_whole

if TYPE_CHECKING:
    from pathlib import Path

ROWS = 5
WRITERS = {"parquet": pq.write_table, "orc": orc.write_table}


def _written(folder: Path, file_format: str = "parquet") -> Path:
    place = folder / f"data.{file_format}"
    WRITERS[file_format](pa.table({"id": list(range(ROWS))}), place)
    return place


def _open(place: Path, rows: int = ROWS, length: int | None = None, **keys: Any) -> int:
    file_format = keys.get("file_format", place.suffix[1:])
    size = place.stat().st_size if length is None and place.exists() else length or 0
    said = ManifestSays(str(place), file_format, rows, size)
    with open_whole(PyArrowFileIO(), said, "lake.t") as found:
        return found.rows


@pytest.mark.parametrize("file_format", WRITERS)
def test_file_with_all_its_rows_is_opened(tmp_path: Path, file_format: str) -> None:
    assert _open(_written(tmp_path, file_format)) == ROWS


def test_wrong_length_of_a_whole_file_does_not_matter(tmp_path: Path) -> None:
    """Writers and tools are known to leave wrong lengths in manifests."""
    assert _open(_written(tmp_path), length=7) == ROWS


@pytest.mark.parametrize("file_format", WRITERS)
@pytest.mark.parametrize("rows", [ROWS - 1, ROWS + 1, 0])
def test_file_with_other_rows_is_damaged(tmp_path: Path, file_format: str, rows: int) -> None:
    with pytest.raises(SourceFileDamaged, match=f"expected {rows} rows, found {ROWS}") as damaged:
        _open(_written(tmp_path, file_format), rows)

    assert "bytes" not in str(damaged.value.values["problem"])


@pytest.mark.parametrize("file_format", WRITERS)
@pytest.mark.parametrize("kept", [0, 3, 20, -1])
def test_file_that_was_cut_is_damaged_and_both_lengths_named(
    tmp_path: Path, file_format: str, kept: int
) -> None:
    place = _written(tmp_path, file_format)
    whole = place.read_bytes()
    place.write_bytes(whole[:kept])

    with pytest.raises(SourceFileDamaged) as damaged:
        _open(place, length=len(whole))

    cut = len(whole[:kept])
    assert f"(expected {len(whole)} bytes, found {cut})" in str(damaged.value)


def test_file_that_was_deleted_is_gone(tmp_path: Path) -> None:
    with pytest.raises(SourceFileGone):
        _open(tmp_path / "none.parquet", length=1)


def test_store_that_does_not_answer_is_not_called_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = _written(tmp_path)

    def refuse(*_: object) -> None:
        raise OSError(errno.ETIMEDOUT, "timed out", str(place))

    monkeypatch.setattr("tidegate.physical.open_rows", refuse)

    with pytest.raises(StorageSilent, match="timed out"):
        _open(place)


def test_file_of_a_feature_that_is_not_known_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        problem = "lz77"
        raise pa.ArrowNotImplementedError(problem)

    monkeypatch.setattr("tidegate.physical.open_rows", refuse)

    with pytest.raises(UnsupportedFeature, match="lz77"):
        _open(_written(tmp_path))


def test_store_that_cannot_tell_the_length_is_unreachable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Silent:
        def size(self) -> int:
            raise OSError

    monkeypatch.setattr(
        "tidegate.source.iceberg.table.whole_files.open_location", lambda *_: Silent()
    )

    with pytest.raises(SourceUnreachable, match="data"):
        _open(_written(tmp_path))
