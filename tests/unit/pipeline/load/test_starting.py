"""Where the first window begins is fixed by whoever wrote it first, once for each source."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from tidegate.errors import StateFileDamaged
from tidegate.model.instant import Instant
from tidegate.model.start import FixedStart
from tidegate.pipeline.load.starting import fix_start
from tidegate.storage import LocalStorage

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def _fixed(work: Path, boundary: str | None, identity: str = "uuid-1") -> FixedStart:
    found = FixedStart(Instant(boundary, NOW) if boundary else None, identity)
    return fix_start(LocalStorage(), str(work), found)


def test_start_that_was_written_first_stands(tmp_path: Path) -> None:
    first = _fixed(tmp_path, "s3")

    assert _fixed(tmp_path, "s9") == _fixed(tmp_path, None) == first
    assert first.boundary == Instant("s3", NOW)


def test_beginning_is_a_start_too(tmp_path: Path) -> None:
    _fixed(tmp_path, None)

    assert _fixed(tmp_path, "s9").boundary is None


def test_table_that_was_made_anew_has_a_start_of_its_own(tmp_path: Path) -> None:
    _fixed(tmp_path, "s3")

    assert _fixed(tmp_path, "s1", "uuid-2") == FixedStart(Instant("s1", NOW), "uuid-2")


def test_start_that_was_cut_is_damaged(tmp_path: Path) -> None:
    _fixed(tmp_path, "s3")
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:-9])

    with pytest.raises(StateFileDamaged):
        _fixed(tmp_path, "s3")
