"""Mistakes that the race walk has to see. Each is made in the process that calls it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import sqlalchemy as sa

from race.doubles import RacingPart
from tidegate.ledger import schema as tables
from tidegate.ledger.pipelines import Pipelines
from tidegate.ledger.windows import Windows
from tidegate.model.plan import WindowKind
from tidegate.pipeline import Pipeline
from tidegate.pipeline.state.behind import Watch
from tidegate.pipeline.upkeep import repeating, restore
from tidegate.source.hudi.files import TableFiles
from tidegate.target.owner import Grounds

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from tidegate.ledger import Ledger
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
    begin = RacingPart.__init__
    look = RacingPart.__getattr__

    def pinning(self: RacingPart, *arguments: Any) -> None:
        begin(self, *arguments)
        self._pinned = None  # type: ignore[attr-defined]

    def wrong(self: RacingPart, name: str) -> Any:
        found = look(self, name)
        if name != "pin":
            return found

        def once(*arguments: Any, **keys: Any) -> Any:
            if self._pinned is None:  # type: ignore[has-type]
                self._pinned = found(*arguments, **keys)  # type: ignore[attr-defined]
            return self._pinned

        return once

    RacingPart.__init__ = pinning  # type: ignore[method-assign]
    RacingPart.__getattr__ = wrong  # type: ignore[method-assign]


def approved_unseen() -> None:
    """Decide on what is proposed now, whatever the person was shown."""
    decide = Pipeline.decide

    def wrong(self: Pipeline, partition: Partition, *, publication: str, **keys: Any) -> None:
        proposed = self.ledger.publications.proposed(partition)
        now = proposed.publication.digest if proposed else publication
        decide(self, partition, publication=now, **keys)

    Pipeline.decide = wrong  # type: ignore[method-assign]


def restored_in_steps() -> None:
    """Write a ledger again table by table, the pipeline first, unless it knows the pipeline."""

    def wrong(ledger: Ledger, restored: Ledger, before: Any, newest: int) -> None:
        if before is not None:
            return
        fences = {"next_number": newest + 1, "first_fence": newest + 1}
        with restored.engine.begin() as made:
            made.execute(sa.update(tables.pipeline).values(**fences))
            for table in tables.metadata.sorted_tables:
                copied = [dict(row) for row in made.execute(sa.select(table)).mappings()]
                with ledger.engine.begin() as connection:
                    if copied:
                        connection.execute(sa.insert(table), copied)

    restore.replace_rows = wrong  # type: ignore[attr-defined]


def backup_believed() -> None:
    """Do not compare the ledger with the files."""

    def wrong(self: Watch) -> Any:
        return self.ledger.pipeline.find()

    Watch.check_newest_window = wrong  # type: ignore[method-assign]
    for check in ("check_windows", "check_partition", "check_records", "check_commit"):
        assert hasattr(Watch, check)
        setattr(Watch, check, _nothing)


def restored_by_the_clock() -> None:
    """Put in order what is restored by when its commands began."""
    step = repeating._Step

    def wrong(turn: tuple[int, datetime], act: Callable[[], None]) -> Any:
        return step((0, turn[1]), act)

    repeating._Step = wrong  # type: ignore[misc, assignment]


def gone_logs_are_empty() -> None:
    """Read a log that the cleaner of a Hudi table took away as one without records."""
    look = TableFiles.open

    def wrong(self: TableFiles, below: str) -> Any:
        try:
            return look(self, below)
        except FileNotFoundError:
            if ".log." not in below:
                raise
            return pa.BufferReader(b"")

    TableFiles.open = wrong  # type: ignore[method-assign]


def nobody_owns() -> None:
    """Ask nobody whose a target is."""
    Grounds.check = lambda *_, **__: True  # type: ignore[method-assign]
    Grounds.put = _nothing  # type: ignore[method-assign]


def _nothing(*_arguments: Any) -> None:
    pass


MISTAKES: dict[str, Callable[[], None]] = {
    "rebuild-compares-nothing": rebuild_compares_nothing,
    "pinned-before-the-ledger-was-read": pinned_before_the_ledger_was_read,
    "approved-unseen": approved_unseen,
    "restored-in-steps": restored_in_steps,
    "backup-believed": backup_believed,
    "restored-by-the-clock": restored_by_the_clock,
    "nobody-owns": nobody_owns,
    "gone-logs-are-empty": gone_logs_are_empty,
}
