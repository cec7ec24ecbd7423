"""What a window brought, written down just before it is announced."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tidegate.model.instant import Instant
from tidegate.model.message import Contribution, RunSummary
from tidegate.model.plan import Window
from tidegate.model.watermark import WatermarkStep
from tidegate.model.wire import Value


@dataclass(frozen=True)
class SealedWindow(Value):
    """Stands in `sealed.json`; from these files a lost ledger is restored (design §4)."""

    pipeline: str
    ledger_id: str
    window: Window
    plan_digest: str
    contributions: tuple[Contribution, ...]
    watermark: WatermarkStep
    summary: RunSummary
    announced_at: datetime
    """Clock of announce: what a partition that is new takes as first seen."""
    first_start: Instant | None
    """Where the pipeline's first window began."""
    source_identity: str
    fingerprint: Mapping[str, Any]
    number: int = 0
    """In the order of what was recorded; 0: written before numbers were given."""
