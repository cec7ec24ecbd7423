"""The newest metadata file of a directory is found, also where its hint is behind (ICE-2.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.io.pyarrow import PyArrowFileIO

from tidegate.source.iceberg.table.version_hint import is_metadata_file, newest_metadata

if TYPE_CHECKING:
    from pathlib import Path

PLAIN, PACKED = ".metadata.json", ".gz.metadata.json"


def _newest(folder: Path, hint: str | bytes | None, *names: str) -> str:
    root = folder / "metadata"
    root.mkdir(parents=True, exist_ok=True)
    for old in root.iterdir():
        old.unlink()
    for name in names:
        (root / name).write_text("{}")
    if hint is not None:
        content = hint if isinstance(hint, bytes) else hint.encode()
        (root / "version-hint.text").write_bytes(content)
    return newest_metadata(PyArrowFileIO(), f"{folder}/").removeprefix(f"{root}/")


@given(first=st.integers(1, 5), more=st.integers(0, 4), packed=st.sets(st.integers(1, 9)))
def test_hint_that_is_behind_is_stepped_on_from(
    first: int, more: int, packed: set[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Writers put the metadata file first and the hint second, and may die in between."""
    names = [
        f"v{number}{PACKED if number in packed else PLAIN}"
        for number in range(first, first + more + 1)
    ]

    assert _newest(tmp_path_factory.mktemp("t"), f"{first}\n", *names) == names[-1]


def test_steps_end_at_the_first_gap(tmp_path: Path) -> None:
    """What lies behind a gap may be left from a table that stood here before."""
    assert _newest(tmp_path, "1", f"v1{PLAIN}", f"v3{PLAIN}") == f"v1{PLAIN}"


def test_hint_whose_file_went_is_stepped_on_from(tmp_path: Path) -> None:
    assert _newest(tmp_path, "1", f"v2{PLAIN}") == f"v2{PLAIN}"


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        (f"00004-abc{PLAIN}", f"00004-abc{PLAIN}"),
        ("00004-abc", f"00004-abc{PLAIN}"),
        ("00005-def", f"00005-def{PACKED}"),
        ("not-there", f"not-there{PLAIN}"),
    ],
    ids=["whole-name", "stem", "packed", "absent"],
)
def test_hint_that_is_a_name_is_followed(tmp_path: Path, hint: str, expected: str) -> None:
    assert _newest(tmp_path, hint, f"00004-abc{PLAIN}", f"00005-def{PACKED}") == expected


def test_hint_without_its_metadata_file_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="says 7"):
        _newest(tmp_path, "7", f"v5{PLAIN}")


def test_directory_without_a_hint_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        _newest(tmp_path, None, f"v1{PLAIN}")


def test_hint_that_is_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="utf-8"):
        _newest(tmp_path, b"\xff\xfe", f"v1{PLAIN}")


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        (f"s3://lake/t/metadata/v1{PLAIN}", True),
        (f"/t/metadata/v1{PACKED}", True),
        ("/t", False),
        ("/t/metadata/version-hint.text", False),
    ],
)
def test_location_of_one_metadata_file_is_told_from_a_directory(
    location: str, expected: bool
) -> None:
    assert is_metadata_file(location) is expected
