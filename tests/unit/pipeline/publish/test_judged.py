"""Windows are new in a proposal by the rows that it brings, or by what it only takes away."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tidegate.model.partition import Partition
from tidegate.model.publication import Publication, PublishedFile
from tidegate.pipeline.publish.judged import new_windows

if TYPE_CHECKING:
    from collections.abc import Mapping

DAY = Partition((("dt", "2026-02-01"),))
STOOD = {"1": "p1", "2": "p2"}


def file(window: int, *merged: int) -> PublishedFile:
    return PublishedFile(f"f{window}", 1, "", 1, window, f"p{window}", "", merged=merged)


@pytest.mark.parametrize(
    ("adds", "told", "new"),
    [
        pytest.param([file(3)], {**STOOD, "3": "p3"}, {3}, id="rows"),
        pytest.param([file(3)], {**STOOD, "3": "p3", "4": "p4"}, {3}, id="rows of one of two"),
        pytest.param([file(4, 3, 4)], {**STOOD, "3": "p3", "4": "p4"}, {3, 4}, id="merged rows"),
        pytest.param([file(2), file(3)], {**STOOD, "3": "p3"}, {3}, id="rows that stood"),
        pytest.param([file(2)], {"1": "p1", "2": "replayed"}, {2}, id="replayed"),
        pytest.param([], {**STOOD, "3": "p3"}, {3}, id="deletes alone"),
        pytest.param([], STOOD, set(), id="nothing"),
    ],
)
def test_windows_are_new_that_bring_rows_or_only_deletes(
    adds: list[PublishedFile], told: Mapping[str, str], new: set[int]
) -> None:
    proposed = Publication(DAY, 1, tuple(adds), (), (), told)

    assert new_windows(proposed, STOOD) == new
