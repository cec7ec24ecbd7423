"""Sort the files of a window according to `source.split.order` (ICE-5.9)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tidegate.errors import StatsMissing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tidegate.model.plan import Piece

_BEFORE_ALL = datetime.min.replace(tzinfo=UTC)


def ordered(pieces: Iterable[Piece], order: str) -> list[Piece]:
    """Sort pieces; the same pieces always have the same order, however they were listed.

    Args:
        pieces: whole files, or parts of them.
        order: `none` keeps their order; `file_sequence` sorts by the commit that added the file,
            `event_time` by the smallest event time, `path` by path.

    Raises:
        StatsMissing: a file has no file sequence number, as in tables of format v1.
    """
    if order == "none":
        return list(pieces)
    return sorted(pieces, key=_KEYS[order])


def by_age(pieces: Iterable[Piece]) -> list[Piece]:
    """Sort pieces by the commits or times that they came with, those of one commit by path."""
    return sorted(pieces, key=_age)


def _age(piece: Piece) -> tuple[Any, ...]:
    change, modified = piece.slice.change, str(piece.slice.details.get("modified", ""))
    ordinal = change.ordinal if change else 0
    return (ordinal, piece.slice.sequence or 0, modified, piece.path, *_place(piece))


def _by_path(piece: Piece) -> tuple[Any, ...]:
    return (piece.path, *_place(piece))


def _by_file_sequence(piece: Piece) -> tuple[Any, ...]:
    sequence = piece.slice.sequence
    # Format v1 reads as 0, so that all files would have the same age.
    if not sequence:
        raise StatsMissing(
            path=piece.path,
            missing="a file sequence number",
            remedy="order by `path` or `event_time`, or upgrade the table to format v2",
        )
    return (sequence, piece.path, *_place(piece))


def _by_event_time(piece: Piece) -> tuple[Any, ...]:
    # A file without bounds comes first: it may have the earliest row.
    bounds = piece.event_times
    smallest = bounds.smallest if bounds else None
    return (smallest or _BEFORE_ALL, piece.path, *_place(piece))


def _place(piece: Piece) -> tuple[int, int]:
    return piece.row_start, piece.byte_range[0] if piece.byte_range else 0


_KEYS: Mapping[str, Callable[[Piece], tuple[Any, ...]]] = {
    "path": _by_path,
    "file_sequence": _by_file_sequence,
    "event_time": _by_event_time,
}
