"""Mistakes that the race walk has to see. Each is made in the process that calls it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from race.doubles import RacingSource
from tidegate.ledger.pipelines import Pipelines
from tidegate.ledger.windows import Windows
from tidegate.model.plan import WindowKind
from tidegate.pipeline import Pipeline

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegate.model.partition import Partition


def rebuild_compares_nothing() -> None:
    """Take a rebuild's window whatever came since it was decided on."""
    take = Windows.take

    def wrong(self: Windows, draft: Any, seen: Any, holder: Any) -> Any:
        if draft.kind is WindowKind.REBUILD:
            seen = Pipelines(self.engine, self.name).find()
        return take(self, draft, seen, holder)

    Windows.take = wrong  # type: ignore[method-assign]


def pinned_before_the_ledger_was_read() -> None:
    """Look at the source when a command begins, and never again."""
    begin = RacingSource.__init__
    look = RacingSource.__getattr__

    def pinning(self: RacingSource, *arguments: Any) -> None:
        begin(self, *arguments)
        self._pinned = None  # type: ignore[attr-defined]

    def wrong(self: RacingSource, name: str) -> Any:
        found = look(self, name)
        if name != "pin":
            return found

        def once(*arguments: Any) -> Any:
            if self._pinned is None:  # type: ignore[has-type]
                self._pinned = found(*arguments)  # type: ignore[attr-defined]
            return self._pinned

        return once

    RacingSource.__init__ = pinning  # type: ignore[method-assign]
    RacingSource.__getattr__ = wrong  # type: ignore[method-assign]


def approved_unseen() -> None:
    """Decide on what is proposed now, whatever the person was shown."""
    decide = Pipeline.decide

    def wrong(self: Pipeline, partition: Partition, *, publication: str, **keys: Any) -> None:
        proposed = self.ledger.publications.proposed(partition)
        now = proposed.publication.digest if proposed else publication
        decide(self, partition, publication=now, **keys)

    Pipeline.decide = wrong  # type: ignore[method-assign]


MISTAKES: dict[str, Callable[[], None]] = {
    "rebuild-compares-nothing": rebuild_compares_nothing,
    "pinned-before-the-ledger-was-read": pinned_before_the_ledger_was_read,
    "approved-unseen": approved_unseen,
}
