"""Where the first window of a pipeline begins, as the work directory keeps it."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.model.instant import Instant
from tidegate.model.wire import Value


@dataclass(frozen=True)
class Start(Value):
    """What `source.start` came to when the source was looked at first."""

    boundary: Instant | None
    """The first window begins after it; None: with all that there is."""
    source_identity: str
