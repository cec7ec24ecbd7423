"""What a piece of a change read says about the commit that it belongs to.

`Piece.details["change"]` holds the commit's ordinal and snapshot, and which deletes apply to the
file before it and after it; None stands for a state that the file is no part of (ICE-3.9). `net`
marks the difference of two states that are not parent and child (ICE-3.18).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tidegate.model.row_kind import RowKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tidegate.model.plan import Piece

CHANGE = "change"
"""Key of `Piece.details`."""

STATE = "state"
"""Key of `Piece.details` of a file that is read to check changes, see `CheckedState`."""

_Key = tuple[str, int | None]


@dataclass(frozen=True)
class CheckedState:
    """The state that a piece belongs to which is read to check the changes of a commit."""

    commit: str
    """The commit's snapshot."""
    is_before: bool
    """The state before the commit, else the one after it."""

    @classmethod
    def of(cls, piece: Piece) -> CheckedState:
        """Read it from the details of a piece that `is_check`."""
        raw = piece.details[STATE]
        return cls(str(raw["snapshot"]), bool(raw["before"]))


def is_check(pieces: Sequence[Piece]) -> bool:
    """Return whether pieces are read for a check, and not for their rows."""
    return any(STATE in piece.details for piece in pieces)


def change_ordinal(piece: Piece) -> int | None:
    """Return the number of the commit that a piece belongs to; None for a piece of a plain read."""
    change = piece.details.get(CHANGE)
    return change["ordinal"] if change else None


def is_net(pieces: Iterable[Piece]) -> bool:
    """Return whether pieces belong to a difference of two states, whose updates are not paired."""
    return any((piece.details.get(CHANGE) or {}).get("net") for piece in pieces)


def can_cancel(pieces: Iterable[Piece]) -> bool:
    """Return whether the pieces of one commit can hold rows of both kinds, which may cancel."""
    kinds: set[RowKind] = set()
    for piece in pieces:
        kinds |= _kinds(piece.details.get(CHANGE) or {"before": None, "after": ()})
        if len(kinds) > 1:
            return True
    return False


def _kinds(change: Mapping[str, Any]) -> set[RowKind]:
    before, after = change["before"], change["after"]
    if before is None:
        return {RowKind.INSERT}
    if after is None:
        return {RowKind.DELETE}
    kinds = {RowKind.DELETE} if _keys(after) - _keys(before) else set()
    # A delete that no longer applies brings rows back.
    return kinds | ({RowKind.INSERT} if _keys(before) - _keys(after) else set())


def _keys(deletes: Sequence[Mapping[str, Any]]) -> set[_Key]:
    return {(delete["path"], delete["offset"]) for delete in deletes}
