"""Count deletes that hit nothing while pieces are read (ICE-4.10)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from tidegate.model.ignored_deletes import IgnoredDeletes
from tidegate.read.positions import past_end

if TYPE_CHECKING:
    from tidegate.model.plan import Piece
    from tidegate.read.removed import FileStates, Removed

_LOG = logging.getLogger(__name__)


def ignored_deletes(states: FileStates, piece: Piece, file_rows: int) -> IgnoredDeletes:
    """Count the deletes of a file that delete nothing; those of a file in several pieces once.

    Between two states only what the later one added counts: the rest was told when it came.

    Args:
        states: what is gone from the file.
        piece: a range of its rows.
        file_rows: how many it has.
    """
    before, after = states.before, states.after
    if after is None:
        return IgnoredDeletes()
    past = 0
    if piece.rows and piece.row_start == 0:
        past = max(0, _past_end(after, file_rows) - _past_end(before, file_rows))
    known = before.unaddressed if before is not None else {}
    new = {path: rows for path, rows in after.unaddressed.items() if path not in known}
    if past:
        _LOG.info("%s: %s deleted positions past its end delete nothing", piece.path, past)
    return IgnoredDeletes(past, new)


def _past_end(removed: Removed | None, file_rows: int) -> int:
    return past_end(removed.positions, file_rows) if removed is not None else 0
