"""Work out from its commit messages what a window announces. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.commit.watermark import advance, commit_times
from tidegate.config import PipelineConfig
from tidegate.model.aside import OF_POLICY
from tidegate.model.message import EventTimes
from tidegate.model.sealed import SealedWindow
from tidegate.stage.contributions import contributions_of, emptied, summary_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime

    from tidegate.model.ledger_rows import PipelineState
    from tidegate.model.message import CommitMessage
    from tidegate.model.partition import Partition
    from tidegate.model.plan import ScanPlan
    from tidegate.model.watermark import WatermarkStep


def drafted(
    scan: ScanPlan,
    messages: Sequence[CommitMessage],
    before: PipelineState,
    now: datetime,
    *,
    known: Callable[[], Iterable[Partition]],
    is_unread: Callable[[], bool],
) -> SealedWindow:
    """Return the announcement of a window, without a number.

    Args:
        scan: the plan.
        messages: one per sub-split, in plan order.
        before: the pipeline before the announce.
        now: aware UTC clock of the announce.
        known: lists the partitions that exist, and can be emptied.
        is_unread: tells whether the source has changes that neither the window nor one before it
            took in.
    """
    brought = contributions_of(messages, scan)
    return SealedWindow(
        pipeline=scan.pipeline,
        ledger_id=before.ledger_id,
        window=scan.window,
        plan_digest=scan.digest,
        contributions=(*brought, *emptied(messages, scan, known)),
        watermark=_step(scan, messages, before.watermark_step, now, is_unread),
        summary=summary_of(messages, scan),
        announced_at=now,
        first_start=before.first_start,
        source_identity=scan.pin.identity,
        fingerprint=scan.fingerprint,
        late_data=_late_data(scan),
    )


def _late_data(scan: ScanPlan) -> str | None:
    """Return the policy for late rows, if it keeps them apart."""
    policy = PipelineConfig.from_resolved(scan.config).commit.late_data.policy
    return policy if policy in OF_POLICY else None


def _step(
    scan: ScanPlan,
    messages: Sequence[CommitMessage],
    previous: WatermarkStep | None,
    now: datetime,
    is_unread: Callable[[], bool],
) -> WatermarkStep:
    event_times = EventTimes()
    for message in messages:
        event_times = event_times.merged(message.staged.event_times)
    said = PipelineConfig.from_resolved(scan.config).event_time
    if said is not None and said.watermark_from == "commit_time":
        event_times = commit_times(scan.window.range.end_inclusive.time, said, now)
    rows_read = sum(message.staged.rows_read for message in messages)
    return advance(said, previous, event_times, rows_read=rows_read, now=now, is_unread=is_unread)
