"""Decide whether a pending partition is complete: every condition of `commit.require` (PC-C01).

The trigger and the counts decide whether a revision is proposed. Gate and approval judge what was
proposed, and are listed here as still to come.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from tidegate.commit.triggers import evaluate
from tidegate.model.watermark import ConditionResult, Evaluation, Reason
from tidegate.model.wire import instant_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from tidegate.commit.partition_time import PartitionClock
    from tidegate.commit.triggers import Tide
    from tidegate.config import PipelineConfig
    from tidegate.config.completeness import CountsConfig
    from tidegate.model.partition import Partition
    from tidegate.model.upstream import UpstreamCounts


@dataclass(frozen=True)
class Waiting:
    """A partition that waits to be committed."""

    partition: Partition
    first_seen: datetime
    rows: int
    """The rows that it would have."""
    end: datetime | None = None
    """As for `evaluate`."""


def evaluate_conditions(
    config: PipelineConfig,
    waiting: Waiting,
    tide: Tide,
    upstream: UpstreamCounts | None,
    clock: PartitionClock | None = None,
) -> Evaluation:
    """Evaluate every condition of one pending partition.

    Args:
        config: its pipeline.
        waiting: the partition.
        tide: watermark and clock.
        upstream: the counts as they were read for this round; None if none are configured.
        clock: as for `evaluate`.

    Returns:
        Committable if trigger and counts hold, as far as they are required.
    """
    commit = config.commit
    found = evaluate(
        config,
        waiting.partition,
        first_seen=waiting.first_seen,
        tide=tide,
        clock=clock,
        end=waiting.end,
    )
    if found.reason is Reason.NO_POLICY:
        return found
    if not commit.requires("trigger"):
        detail = "`commit.require` does not name the trigger"
        found = Evaluation(True, None, detail, tide.now)
    if commit.require is None and commit.counts is None:
        return found
    return _joined(found, tuple(_results(config, waiting, tide, found, upstream)))


def counts_hold(said: CountsConfig, waiting: Waiting, upstream: UpstreamCounts) -> ConditionResult:
    """Compare the rows that a partition would have with those that it has upstream (PC-C03).

    Counts that could not be read say nothing, whatever `complete_on_no_counts` says.
    """
    inputs: dict[str, Any] = {"rows": waiting.rows, "threshold": said.threshold}
    if upstream.problem is not None:
        return _counted(False, Reason.COUNT_UNKNOWN, upstream.problem, inputs)
    expected = upstream.of(waiting.partition)
    if expected is None:
        none = f"{upstream.place} does not mention it"
        remedy = "a row with 0 says that it has none, and `complete_on_no_counts` waits for none"
        if said.complete_on_no_counts:
            detail = f"{none}, and `complete_on_no_counts` is set"
            return _counted(True, None, detail, inputs)
        return _counted(False, Reason.COUNT_UNKNOWN, f"{none}; {remedy}", inputs)
    inputs["upstream"] = expected
    # Exact: 999 of 1000 rows are 0.999 of them.
    needed = Decimal(str(said.threshold)) * expected
    share = "" if expected == 0 else f", {_percent(waiting.rows, expected)}"
    found = f"{waiting.rows:,} of {expected:,} rows upstream{share}"
    if waiting.rows >= needed:
        return _counted(True, None, found, inputs)
    detail = f"{found}; {_percent(said.threshold, 1)} are needed"
    return _counted(False, Reason.COUNT_SHORT, detail, inputs)


def _results(
    config: PipelineConfig,
    waiting: Waiting,
    tide: Tide,
    trigger: Evaluation,
    upstream: UpstreamCounts | None,
) -> Iterator[ConditionResult]:
    commit = config.commit
    if commit.requires("trigger"):
        inputs: dict[str, Any] = {"trigger": commit.trigger}
        if commit.waits_for_watermark:
            inputs["watermark"] = instant_text(tide.watermark) if tide.watermark else None
        if trigger.due is not None:
            inputs["due"] = instant_text(trigger.due)
        yield ConditionResult(
            "trigger", trigger.committable, trigger.reason, trigger.detail, inputs
        )
    if commit.counts is not None and upstream is not None and commit.requires("counts"):
        yield counts_hold(commit.counts, waiting, upstream)
    if config.gate is not None:
        yield ConditionResult("gate", None, None, "judges it once it is complete", {})
    if commit.requires("approval"):
        yield ConditionResult("approval", None, None, "is asked for after the gate", {})


def _joined(trigger: Evaluation, results: tuple[ConditionResult, ...]) -> Evaluation:
    failing = next((item for item in results if item.holds is False), None)
    if failing is None:
        return replace(trigger, conditions=results)
    return replace(
        trigger,
        committable=False,
        reason=failing.reason,
        detail=failing.detail,
        conditions=results,
    )


def _counted(
    holds: bool, reason: Reason | None, detail: str, inputs: dict[str, Any]
) -> ConditionResult:
    return ConditionResult("counts", holds, reason, detail, inputs)


def _percent(part: float, whole: int) -> str:
    """Return a share, with so many digits that less than all is never shown as all."""
    share = Decimal(str(part)) * 100 / whole
    shown = f"{share:.1f}"
    if shown == "100.0" and share != 100:
        shown = f"{share:.6f}".rstrip("0")
    return f"{shown} %"
