"""Where the first window of a pipeline begins, as the work directory keeps it."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.model.instant import Instant
from tidegate.model.wire import Value


@dataclass(frozen=True)
class FixedStart(Value):
    """The boundary that `source.start` stood for when the source was first looked at."""

    boundary: Instant | None
    """The first window begins after it; None: at the beginning of the source."""
    source_identity: str
