"""Where the files of a revision are, in each layout of a target."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, get_args

from tidegate.config.target import TargetLayout
from tidegate.storage import LocalStorage
from tidegate.target.layouts import LAYOUTS

if TYPE_CHECKING:
    from pathlib import Path


class Made(NamedTuple):
    revision: int
    digest: str


def test_every_word_of_the_pipeline_file_is_a_layout() -> None:
    assert tuple(LAYOUTS) == get_args(TargetLayout)


def test_in_place_all_revisions_share_the_directory_of_the_partition(tmp_path: Path) -> None:
    layout, root = LAYOUTS["in_place"], str(tmp_path)

    assert layout.is_shared
    assert layout.folder(root, Made(1, "a")) == layout.folder(root, Made(2, "b")) == root
    assert layout.folders(LocalStorage(), root) == [root]


def test_directories_of_revisions_are_found_newest_first(tmp_path: Path) -> None:
    layout, root = LAYOUTS["revisions"], str(tmp_path)
    made = [layout.folder(root, Made(number, "ab")) for number in (1, 2, 1_000_000)]
    assert layout.folders(LocalStorage(), root) == []
    for folder in (*made, f"{root}/_revisions/of-somebody-else", f"{root}/dt=1"):
        LocalStorage().make_dirs(folder)

    assert not layout.is_shared
    assert layout.folders(LocalStorage(), root) == made[::-1]
    assert layout.folders(LocalStorage(), f"{root}/dt=1") == []
