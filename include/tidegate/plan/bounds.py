"""Complete the event-time bounds of a window's files, and decide what to do about missing ones.

Bounds are used for order and reports (ICE-5.9, 5.10); the watermark follows what is measured while
reading (PC-W02). A file without bounds therefore fails a plan only if they are needed: if splits
are ordered by event time, or the pipeline file has `on_missing_bounds`.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

from tidegate.errors import StatsMissing
from tidegate.model.event_column import EventColumn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tidegate.config import PipelineConfig
    from tidegate.model.plan import Piece
    from tidegate.model.time_bounds import TimeBounds

    FooterBounds = Callable[[Piece, EventColumn], TimeBounds | None]

_THREADS = 8


def event_column(config: PipelineConfig) -> EventColumn | None:
    """Return the column whose bounds the plan needs; None without an event time."""
    said = config.event_time
    if said is None or said.column is None:
        return None
    return EventColumn(said.column, config.timezone, said.unit)


def with_bounds(
    pieces: Sequence[Piece], footer_bounds: FooterBounds | None, config: PipelineConfig
) -> tuple[Piece, ...]:
    """Complete the bounds that a source's metadata does not have, according to `on_missing_bounds`.

    Args:
        pieces: whole files.
        footer_bounds: reads them from a footer; None: no footer has more.
        config: of the pipeline.

    Raises:
        StatsMissing: bounds are needed, and a file has none.
    """
    column, policy = event_column(config), _policy(config)
    if column is None or policy == "null":
        return tuple(pieces)
    found = tuple(pieces)
    if policy == "read_footer" and footer_bounds is not None:
        found = _from_footers(found, footer_bounds, column)
    missing = next((piece for piece in found if piece.event_times is None), None)
    if missing is not None and (policy == "fail" or config.source.split.order == "event_time"):
        raise StatsMissing(
            path=missing.path,
            missing=f"bounds of '{column.name}'",
            remedy=_REMEDY[policy],
        )
    return found


_REMEDY = {
    "fail": (
        "Set `event_time.on_missing_bounds: read_footer` or `null`, or let the table's writer "
        "collect metrics of the column"
    ),
    "read_footer": "Nor has the file's footer; order by `file_sequence` or `path`",
}


def _policy(config: PipelineConfig) -> str:
    said = config.event_time
    if said is None:
        return "null"
    wanted = config.source.split.order == "event_time"
    asked = "on_missing_bounds" in said.model_fields_set
    return said.on_missing_bounds if wanted or asked else "null"


def _from_footers(
    pieces: Sequence[Piece], footer_bounds: FooterBounds, column: EventColumn
) -> tuple[Piece, ...]:
    missing = [piece for piece in pieces if piece.event_times is None]
    with ThreadPoolExecutor(_THREADS) as pool:
        bounds = pool.map(lambda piece: footer_bounds(piece, column), missing)
        read = {id(piece): found for piece, found in zip(missing, bounds, strict=True)}
    return tuple(
        replace(piece, event_times=read[id(piece)]) if id(piece) in read else piece
        for piece in pieces
    )
