"""The announce of a window, written to a file just before it takes effect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tidegate.model.instant import Instant
from tidegate.model.message import Contribution, RunSummary
from tidegate.model.plan import Window
from tidegate.model.watermark import WatermarkStep
from tidegate.model.wire import SPARSE, Value


@dataclass(frozen=True)
class SealedWindow(Value):
    """The content of `sealed.json`; a lost ledger is restored from these files (design §4)."""

    pipeline: str
    ledger_id: str
    window: Window
    plan_digest: str
    contributions: tuple[Contribution, ...]
    watermark: WatermarkStep
    summary: RunSummary
    announced_at: datetime
    """The time of announce, which becomes the first-seen time of a new partition."""
    first_start: Instant | None
    """Where the pipeline's first window began."""
    source_identity: str
    fingerprint: Mapping[str, Any]
    number: int = 0
    """The number that orders it among all records; 0: written before there were numbers."""
    late_data: str | None = field(default=None, metadata={SPARSE: True})
    """What becomes of late rows, a word of `commit.late_data`; None: they count."""
