"""The source's commits side by side with the windows that took them in. Changes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.model.plan import WindowKind
from tidegate.model.wire import Value
from tidegate.source.protocol import InstantReport

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from tidegate.model.instant import Instant
    from tidegate.model.ledger_rows import WindowState
    from tidegate.pipeline.pipeline import Pipeline


@dataclass(frozen=True)
class TimelineEntry(Value):
    """One source commit: what it did, and whether it is taken in."""

    report: InstantReport
    window: int | None
    """The window that took it; None: it waits, or lies before the first window."""
    sealed: bool
    """Whether that window is announced."""


def timeline(pipeline: Pipeline, now: datetime) -> tuple[TimelineEntry, ...]:
    """List the retained commits of a pipeline's source, oldest first.

    Raises:
        TidegateError: the source cannot be reached or read.
    """
    source = pipeline.source
    pin = source.pin(now)
    if pin.head is None:
        return ()
    retained = source.history(pin, pin.head)
    taken = windows_of(retained, pipeline.ledger.windows.all())
    return tuple(
        TimelineEntry(
            report=report,
            window=window.window.sequence if window else None,
            sealed=window.sealed if window else False,
        )
        for report in source.describe(pin, retained)
        for window in [taken.get(report.instant.id)]
    )


def windows_of(
    retained: Sequence[Instant], windows: Sequence[WindowState]
) -> dict[str, WindowState]:
    """Tell which window took each instant; a rebuild reads again and takes nothing.

    Args:
        retained: instants in the source's order, oldest first.
        windows: all windows of the pipeline.

    Returns:
        Instant id → window, without instants that no window took.
    """
    places = {instant.id: place for place, instant in enumerate(retained)}
    taken: dict[str, WindowState] = {}
    for state in windows:
        bounds = state.window.range
        end = places.get(bounds.end_inclusive.id)
        if end is None or state.window.kind not in {WindowKind.LOAD, WindowKind.HISTORY}:
            continue
        # An expired start lies before everything that is retained.
        start = places.get(bounds.start_exclusive.id, -1) if bounds.start_exclusive else -1
        taken |= {instant.id: state for instant in retained[start + 1 : end + 1]}
    return taken
