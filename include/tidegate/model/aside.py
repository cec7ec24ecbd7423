"""Why a contribution is set aside: its rows are staged, and do not count until it is released."""

from __future__ import annotations

from enum import Enum


class Aside(Enum):
    """A reason; the words are stored in the ledger."""

    LATE_HELD = "late-held"
    """Late, and held until a threshold is reached (PC-L03)."""
    SIDE = "side"
    """Late, and published below the late root (PC-L04)."""
    LATE_PROPOSED = "late-proposed"
    """Late, proposed to a person, and rejected (PC-L05)."""
    LATE_REJECTED = "late-rejected"
    """Late, and put into quarantine (PC-L06)."""
    UNDONE = "undone"
    """In a revision that was undone (design §4a)."""

    @property
    def is_settled(self) -> bool:
        """Whether nothing is left to do with such rows until a person decides."""
        return self in {Aside.LATE_PROPOSED, Aside.UNDONE}


OF_POLICY = {
    "hold": Aside.LATE_HELD,
    "side": Aside.SIDE,
    "reject": Aside.LATE_REJECTED,
}
"""Word of `commit.late_data` → what becomes of late rows at their announce; else they count."""
