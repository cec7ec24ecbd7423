"""What one task does: read a split of a plan, stage it, and leave a commit message per sub-split.

Everything a task needs stands in the plan directory; it looks at no ledger and at no pipeline file.
"""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING

from tidegate.config import PipelineConfig
from tidegate.model.message import CommitMessage
from tidegate.model.wire import pretty
from tidegate.pipeline.plan_files import read_plan, read_splits
from tidegate.pipeline.reading import Reading
from tidegate.source import open_source
from tidegate.stage import layout
from tidegate.stage.sub_split import AttemptPlace, StageSpec, stage_sub_split

if TYPE_CHECKING:
    from tidegate.model.plan import ScanPlan, Split, SubSplit
    from tidegate.storage import Storage


def stage_split(
    storage: Storage, plan_uri: str, index: int, attempt: str
) -> tuple[CommitMessage, ...]:
    """Stage what one split of a plan still lacks.

    *Runs on:* a Spark task or a local thread. *Called:* at least once per split, also twice at the
    same
    time. *Failure:* sub-splits with a message are done; the others are staged again under another
    attempt's name, with the same file names and bytes.

    Args:
        storage: where plans, parts and messages stand; bound before the function goes to a task.
        plan_uri: directory of the plan.
        index: position of the split in the plan.
        attempt: names this execution; completed by a random word.

    Returns:
        The messages of the split's sub-splits that this call finished.
    """
    scan, splits = _plan(storage, plan_uri)
    named = f"{attempt}.{os.urandom(4).hex()}"
    return tuple(
        _stage_one(storage, scan, plan_uri, sub_split, named)
        for sub_split in splits[index].sub_splits
        if not storage.exists(layout.message_file(plan_uri, sub_split.id))
    )


def _stage_one(
    storage: Storage, scan: ScanPlan, plan_uri: str, sub_split: SubSplit, attempt: str
) -> CommitMessage:
    config = PipelineConfig.from_resolved(scan.config)
    rows = Reading.of(config.source, open_source(config.source, storage), scan.pin)
    try:
        message = stage_sub_split(
            rows.batches(sub_split.pieces),
            rows.schema,
            StageSpec.of(config, scan.planned_at, scan.window.partitions),
            AttemptPlace(plan_uri, scan.digest, sub_split.id, attempt),
            storage,
        )
    except Exception:
        # Retries on a full disk must not keep it full with what they left.
        _discard(storage, plan_uri, sub_split, attempt)
        raise
    path = layout.message_file(plan_uri, sub_split.id)
    if storage.write_once(path, pretty(message.to_json())):
        return message
    # Another attempt was first: its message counts, this one's files are garbage.
    _discard(storage, plan_uri, sub_split, attempt)
    return CommitMessage.from_text(storage.read_bytes(path))


def _discard(storage: Storage, plan_uri: str, sub_split: SubSplit, attempt: str) -> None:
    storage.delete_tree(f"{plan_uri}/{layout.attempt_staged(sub_split.id, attempt)}")
    storage.delete_tree(f"{plan_uri}/{layout.attempt_quarantine(sub_split.id, attempt)}")


@functools.lru_cache(maxsize=4)
def _plan(storage: Storage, plan_uri: str) -> tuple[ScanPlan, tuple[Split, ...]]:
    """Read a plan once per process; it never changes."""
    return read_plan(storage, plan_uri), read_splits(storage, plan_uri)
