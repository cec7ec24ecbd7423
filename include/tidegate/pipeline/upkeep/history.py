"""List the source's commits beside the windows that took them in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.model.plan import WindowKind

if TYPE_CHECKING:
    from datetime import datetime

    from tidegate.ledger import Ledger
    from tidegate.model.instant import Instant
    from tidegate.model.ledger_rows import WindowState
    from tidegate.source.protocol import Source
    from tidegate.source.timeline import InstantReport


@dataclass(frozen=True)
class SourceInstant:
    """One commit of the source."""

    report: InstantReport
    window: int | None
    """Sequence of the window that took it in; None if none did."""


def source_instants(source: Source, ledger: Ledger, now: datetime) -> tuple[SourceInstant, ...]:
    """Return all retained commits up to the head, oldest first."""
    state = ledger.pipeline.find()
    identity, checkpoint = (state.source_identity, state.checkpoint) if state else (None, None)
    pin = source.timeline.pin(now, identity, after=checkpoint)
    instants = source.timeline.retained(pin)
    taken = _taken(instants, ledger.windows.all() if state else ())
    return tuple(
        SourceInstant(report, taken.get(report.instant.id))
        for report in source.timeline.describe(pin, instants)
    )


def _taken(instants: tuple[Instant, ...], windows: tuple[WindowState, ...]) -> dict[str, int]:
    """Map instant ids to window sequences.

    A rebuild takes in nothing, because it reads again, but for an instant of its own at its end.

    A window that replaces everything took in all instants up to its end; another window whose start
    is no longer among the instants took in only what no window before it had.
    """
    position = {item.id: number for number, item in enumerate(instants)}
    found: dict[str, int] = {}
    for state in windows:
        window = state.window
        if window.kind is WindowKind.REBUILD:
            if window.moves_checkpoint:
                found[window.range.end_inclusive.id] = window.sequence
            continue
        start = window.range.start_exclusive
        first = position.get(start.id, -1) + 1 if start else 0
        last = position.get(window.range.end_inclusive.id, -1)
        taken = {item.id: window.sequence for item in instants[first : last + 1]}
        found = found | taken if window.kind.replaces_everything else taken | found
    return found
