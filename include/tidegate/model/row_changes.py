"""Find out which changes the pieces of a commit can have, as far as their plan tells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.model.row_kind import RowKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidegate.model.file_slice import Change
    from tidegate.model.plan import Piece


def change_ordinal(piece: Piece) -> int | None:
    """Return the number of the commit that a piece belongs to; None for a piece of a plain read."""
    change = piece.slice.change
    return change.ordinal if change is not None else None


def is_net(pieces: Iterable[Piece]) -> bool:
    """Return whether pieces belong to a difference of two states, whose updates are not paired."""
    return any(piece.slice.change is not None and piece.slice.change.net for piece in pieces)


def can_cancel(pieces: Iterable[Piece]) -> bool:
    """Return whether the pieces of one commit can have rows of both kinds, which may cancel."""
    kinds: set[RowKind] = set()
    for piece in pieces:
        kinds |= _kinds(piece.slice.change)
        if len(kinds) > 1:
            return True
    return False


def _kinds(change: Change | None) -> set[RowKind]:
    if change is None or change.before is None:
        return {RowKind.INSERT}
    if change.after is None:
        return {RowKind.DELETE}
    before, after = ({delta.key for delta in state} for state in (change.before, change.after))
    kinds = {RowKind.DELETE} if after - before else set()
    # A delete that no longer applies brings rows back.
    return kinds | ({RowKind.INSERT} if before - after else set())
