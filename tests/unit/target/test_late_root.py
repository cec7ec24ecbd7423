"""A late root belongs to the late rows of one pipeline of one ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tidegate.config import OWNER_FILE
from tidegate.errors import LateRootUnfit
from tidegate.storage import LocalStorage
from tidegate.target.late_root import check_late_root, claim_late_root, late_files

if TYPE_CHECKING:
    from pathlib import Path


def claim(folder: Path, pipeline: str = "orders", ledger: str = "L1", root: str = "late") -> None:
    scratch = str(folder / "work" / "scratch")
    claim_late_root(LocalStorage(), str(folder / root), pipeline, ledger, scratch)


def test_root_is_made_and_claimed_once_and_again(tmp_path: Path) -> None:
    claim(tmp_path)
    before = (tmp_path / "late" / OWNER_FILE).read_bytes()

    claim(tmp_path)

    assert (tmp_path / "late" / OWNER_FILE).read_bytes() == before
    assert [path.name for path in (tmp_path / "late").iterdir()] == [OWNER_FILE]


@pytest.mark.parametrize(("pipeline", "ledger"), [("other", "L1"), ("orders", "L2")])
def test_root_of_another_is_refused(tmp_path: Path, pipeline: str, ledger: str) -> None:
    claim(tmp_path)

    with pytest.raises(LateRootUnfit, match="it belongs to pipeline 'orders'"):
        claim(tmp_path, pipeline, ledger)


@pytest.mark.parametrize(
    "content",
    [
        "no json",
        "[]",
        "{}",
        '{"format": 2, "pipeline": "orders", "ledger": "L1", "late_rows": true}',
        '{"format": 1, "pipeline": "orders", "ledger": "L1", "work": "."}',
    ],
    ids=["text", "list", "empty", "of a later version", "a target's own file"],
)
def test_root_that_is_something_else_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "late").mkdir()
    (tmp_path / "late" / OWNER_FILE).write_text(content)

    with pytest.raises(LateRootUnfit):
        claim(tmp_path)


def test_root_with_files_of_others_is_refused(tmp_path: Path) -> None:
    (tmp_path / "late" / "dt=1").mkdir(parents=True)
    (tmp_path / "late" / "dt=1" / "part.csv").write_text("1")

    with pytest.raises(LateRootUnfit, match="it has files already"):
        claim(tmp_path)


def test_root_inside_the_table_of_a_pipeline_is_refused(tmp_path: Path) -> None:
    claim(tmp_path)

    with pytest.raises(LateRootUnfit, match=r"it is inside .*/late, which belongs to"):
        claim(tmp_path, root="late/inner")


def test_check_of_a_root_writes_nothing(tmp_path: Path) -> None:
    storage, root = LocalStorage(), str(tmp_path / "late")

    assert not check_late_root(storage, root, "orders", None)
    assert not (tmp_path / "late").exists()
    claim(tmp_path)
    assert check_late_root(storage, root, "orders", "L1")
    with pytest.raises(LateRootUnfit):
        check_late_root(storage, root, "other", None)


def test_files_of_its_own_late_root_are_listed(tmp_path: Path) -> None:
    claim(tmp_path)
    (tmp_path / "late" / "dt=1").mkdir()
    (tmp_path / "late" / "dt=1" / "part.csv").write_text("1")

    assert late_files(LocalStorage(), str(tmp_path / "late"), "orders") == ["dt=1/part.csv"]
    assert late_files(LocalStorage(), str(tmp_path / "late"), "other") == []


def test_files_of_its_own_table_are_no_late_rows(tmp_path: Path) -> None:
    (tmp_path / OWNER_FILE).write_text('{"format": 1, "pipeline": "orders", "ledger": "L1"}')
    (tmp_path / "part.csv").write_text("1")

    assert late_files(LocalStorage(), str(tmp_path), "orders") == []
