"""The plan of a window as it stands in the work directory; light, because every task reads it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tidegate.model.plan import ScanPlan, Split
from tidegate.stage import layout

if TYPE_CHECKING:
    from tidegate.storage import Storage


def read_plan(storage: Storage, uri: str) -> ScanPlan:
    """Read the plan that stands in a plan directory."""
    return ScanPlan.from_text(storage.read_bytes(layout.plan_file(uri)))


def read_splits(storage: Storage, uri: str) -> tuple[Split, ...]:
    """Read the splits that stand in a plan directory, in plan order."""
    lines = storage.read_bytes(layout.splits_file(uri)).splitlines()
    return tuple(Split.from_json(json.loads(line)) for line in lines)


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
