"""The plan of a window as it stands in the work directory; light, because every task reads it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, overload

from tidegate.model.plan import ScanPlan, Split
from tidegate.stage import layout

if TYPE_CHECKING:
    from tidegate.storage import Storage


def read_plan(storage: Storage, uri: str) -> ScanPlan:
    """Read the plan that stands in a plan directory."""
    return ScanPlan.from_text(storage.read_bytes(layout.plan_file(uri)))


class StoredSplits(Sequence[Split]):
    """The splits of a plan, each read when it is asked for: a task wants one of many thousands."""

    def __init__(self, lines: Sequence[bytes]) -> None:
        self._lines = lines

    def __len__(self) -> int:
        """Count them."""
        return len(self._lines)

    @overload
    def __getitem__(self, index: int) -> Split: ...
    @overload
    def __getitem__(self, index: slice) -> StoredSplits: ...
    def __getitem__(self, index: int | slice) -> Split | StoredSplits:
        """Read one; a slice reads none."""
        if isinstance(index, slice):
            return StoredSplits(self._lines[index])
        return Split.from_json(json.loads(self._lines[index]))


def read_splits(storage: Storage, uri: str) -> StoredSplits:
    """Read the splits that stand in a plan directory, in plan order."""
    return StoredSplits(storage.read_bytes(layout.splits_file(uri)).splitlines())


def pending_stages(storage: Storage, uri: str) -> list[list[int]]:
    """Give the positions of splits that have a sub-split without a message, by stage.

    Returns:
        Those of the first stage, which wait for no others, then those that wait for them, and so
        on; no stage is empty.
    """
    done = {
        layout.sub_split_of_message(name) for name in storage.list_files(layout.messages_root(uri))
    }
    stages: dict[int, list[int]] = {}
    for index, split in enumerate(read_splits(storage, uri)):
        if any(part.id not in done for part in split.sub_splits):
            stages.setdefault(split.stage, []).append(index)
    return [stages[stage] for stage in sorted(stages)]
