"""Decide whether part files are sent to where they are published, and completed by the commit.

Otherwise they are staged, and copied inside the store (PC-F36, F38). Reads nothing.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from tidegate.commit.partition_time import NoPartitionTime, PartitionClock
from tidegate.config.words import duration_text

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from tidegate.config import PipelineConfig
    from tidegate.model.partition import Partition

PART_FILES = "part files"
"""Label of the sentence that says which way they go."""


def copied_because(config: PipelineConfig) -> str | None:
    """Return why the part files of a pipeline are staged, all of them; None if they need not be.

    A file that was only sent can be read by nobody, and its store may give it up.
    """
    target, commit, age = config.target, config.commit, config.target.upload_age
    partition_time = commit.partition_time
    reasons = (
        (not target.is_in_store, "`target.path` is not the address of a store"),
        (not age, "`target.multipart_max_age` is 0s"),
        (target.layout != "in_place", f"`target.layout: {target.layout}` names directories later"),
        (target.write == "upsert", "an upsert merges them by key"),
        (target.compaction is not None, "`target.compaction` joins them"),
        (config.gate is not None, "the gate reads them"),
        (not commit.policies, "`commit.policies` is empty, so that they wait for a command"),
        (commit.late_data.policy != "revise", "late rows may have to wait, or go elsewhere"),
        (commit.requires("approval"), "a person approves each revision"),
        (commit.counts is not None, "they wait for counts of the source"),
        (
            commit.trigger == "process-time" and commit.delay >= age,
            "`commit.delay` is not below `target.multipart_max_age`",
        ),
        (
            any(rule.on_failure == "hold" for rule in config.rows),
            "a row rule may hold them for a person",
        ),
        (
            partition_time is not None and partition_time.extractor is not None,
            "a class of its own tells the time of a partition",
        ),
    )
    return next((said for applies, said in reasons if applies), None)


def deferrable(config: PipelineConfig, now: datetime) -> Callable[[Partition], bool] | None:
    """Return the function that tells whether a partition can be committed before uploads expire.

    Args:
        config: of the plan.
        now: its clock.

    Returns:
        None if the files of no partition are only sent.
    """
    if copied_because(config) is not None:
        return None
    if not config.commit.waits_for_watermark:
        return lambda _: True
    lateness = config.event_time.lateness if config.event_time else timedelta(0)
    clock, wait = PartitionClock.of(config), config.commit.delay + lateness

    def can_be(partition: Partition) -> bool:
        if not partition.values:
            return True
        try:
            return clock.time(partition).boundary + wait - now < config.target.upload_age
        except (NoPartitionTime, OverflowError):
            return False

    return can_be


def ways_of_files(config: PipelineConfig) -> dict[str, str]:
    """Return in words how part files come to their target, where that is not the usual way.

    Returns:
        Label → sentence.
    """
    said = {}
    if config.target.layout != "in_place":
        said["layout"] = "a directory for each revision, to which readers are sent"
    if not config.target.is_in_store:
        return said
    reason = copied_because(config)
    if reason is not None:
        return {**said, PART_FILES: f"staged, then copied inside the store: {reason}"}
    sent = "sent to where they are published, and completed by the commit"
    if config.commit.waits_for_watermark:
        age = duration_text(config.target.upload_age)
        sent += f", of partitions that can be complete within {age}; others are staged and copied"
    return {**said, PART_FILES: sent}
