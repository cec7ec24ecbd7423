"""Tell which sealed windows a run would read again, and how their plan differs from today's.

Takes no window and plans none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.model.wire import Value
from tidegate.pipeline.state.erasures import newest_erasure
from tidegate.pipeline.state.fingerprint import library_fingerprint
from tidegate.pipeline.state.plan_files import has_plan, read_plan
from tidegate.stage import layout

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tidegate.model.ledger_rows import WindowState
    from tidegate.model.plan import Pin, ScanPlan
    from tidegate.pipeline.load.pins import Pins
    from tidegate.storage import Storage


@dataclass(frozen=True)
class Replay(Value):
    """A sealed window that a run would go through again."""

    window: int
    differs: str | None
    """How its plan differs from the one that it was loaded with; None: it would stay unchanged."""


@dataclass(frozen=True)
class Replays:
    """Compares the plans of sealed windows with those that they would have now."""

    work: str
    storage: Storage
    pins: Pins

    def of(self, sealed: WindowState, pin: Pin) -> Replay:
        """Return what a run that replays a window would do to it.

        Raises:
            StateGone: the source no longer keeps what the window reads; a load refuses that, too.
        """
        sequence = sealed.window.sequence
        pinned = self.pins.of(sealed, pin)
        if self.pins.digest(sealed, pinned) == sealed.plan_digest:
            return Replay(sequence, None)
        uri = layout.plan_root(self.work, sequence, str(sealed.plan_digest))
        if not has_plan(self.storage, uri):
            return Replay(sequence, "the plan that it was loaded with is gone")
        return Replay(sequence, "; ".join(self._differences(read_plan(self.storage, uri), pinned)))

    def _differences(self, plan: ScanPlan, pinned: Pin) -> Iterator[str]:
        keys = [f"`{key}`" for key in self.pins.changed_keys(plan.config)]
        if keys:
            yield f"{', '.join(keys)} changed in the pipeline file"
        fingerprint = library_fingerprint()
        for name in sorted({*plan.fingerprint, *fingerprint}):
            before, now = plan.fingerprint.get(name), fingerprint.get(name)
            if before != now:
                yield f"{name} was {before}, now it is {now}"
        erased = newest_erasure(self.storage, self.work)
        if plan.erased != erased:
            yield f"rows were erased since, up to erasure {erased}"
        if (plan.pin.identity, plan.pin.schema) != (pinned.identity, pinned.schema):
            yield "the columns that are read of the source changed"
        elif not keys and (plan.fingerprint, plan.erased) == (fingerprint, erased):
            yield "staged files of it are gone, or it was planned by another version of Tidegate"
