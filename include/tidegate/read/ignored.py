"""Count deletes that match nothing while pieces are read (ICE-4.10)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from tidegate.model.ignored import Ignored
from tidegate.read.positions import past_end

if TYPE_CHECKING:
    from tidegate.model.plan import Piece
    from tidegate.read.removed import FileStates, Removed

_LOG = logging.getLogger(__name__)


def ignored_deletes(states: FileStates, piece: Piece, file_rows: int) -> Ignored:
    """Count the deletes of a file that match nothing, once even if the file has several pieces.

    Between two states only the deletes that the later one added count; the others were counted
    before.

    Args:
        states: what is gone from the file.
        piece: a range of its rows.
        file_rows: the number of its rows.
    """
    before, after = states.before, states.after
    if after is None:
        return Ignored()
    past = 0
    if piece.rows and piece.row_start == 0:
        past = max(0, _past_end(after, file_rows) - _past_end(before, file_rows))
    known = before.unaddressed if before is not None else {}
    new = {path: rows for path, rows in after.unaddressed.items() if path not in known}
    if past:
        _LOG.info("%s: %s deleted positions past its end delete nothing", piece.path, past)
    return Ignored(past, new)


def _past_end(removed: Removed | None, file_rows: int) -> int:
    return past_end(removed.positions, file_rows) if removed is not None else 0
