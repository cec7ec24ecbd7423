"""The amount of data of an instant."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Volume:
    """What one instant adds to a window, as far as the source's summaries tell (ICE-5.11)."""

    files: int
    bytes: int
    rows: int
