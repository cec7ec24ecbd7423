"""How much there is to read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Volume:
    """How much one instant brings to read, as far as the source's summaries tell (ICE-5.11)."""

    files: int
    bytes: int
    rows: int
