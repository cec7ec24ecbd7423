"""Tell which partitions a rebuild has to read if files changed after they were taken in.

Reads of the source only the changed files, and of these only the columns that decide the partition.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.errors import RebuildTooNarrow, SourceChanged, TidegateError
from tidegate.errors.commands import command
from tidegate.pipeline.load.rebuilding import rebuild_of
from tidegate.pipeline.load.row_partitions import deciding_columns, partitions_of_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from collections.abc import Set as AbstractSet
    from datetime import datetime

    from tidegate.config import PipelineConfig
    from tidegate.ledger import Ledger
    from tidegate.model.partition import Partition
    from tidegate.model.plan import Pin, Window
    from tidegate.pipeline.load.file_rows import FileRows
    from tidegate.source.protocol import Source
    from tidegate.source.timeline import ChangedFiles

_MOST_NAMED = 500
"""More partitions than these are not typed in one command if there is a shorter one."""


@dataclass(frozen=True)
class ChangedRows:
    """Finds the partitions that files had rows of when they were read, and have rows of now."""

    config: PipelineConfig
    source: Source
    ledger: Ledger
    files: FileRows

    @contextmanager
    def naming(self, now: datetime) -> Iterator[None]:
        """Add the partitions of all changed files to an error of some.

        Raises:
            SourceChanged: with the command that reads these partitions again.
        """
        try:
            yield
        except SourceChanged as refused:
            changed = self._since_checkpoint(now)
            if changed is None or not changed.paths:
                raise
            concerned = set(self._before(changed))
            # Whatever stands in the way now is named by the rebuild.
            with suppress(TidegateError):
                concerned |= self._now(changed)
            known = [state.partition for state in self.ledger.partitions.all()]
            may_stay = refused.rows_may_stay
            remedy = self._remedy(changed, concerned, known, may_stay=may_stay)
            raise refused.with_remedy(remedy) from refused

    def _remedy(
        self,
        changed: ChangedFiles,
        concerned: AbstractSet[Partition],
        known: Sequence[Partition],
        *,
        may_stay: bool,
    ) -> str:
        if self.config.target.write == "overwrite":
            anew = (
                f"`{command('reset', self.ledger.name)}`, after which each partition has the rows "
                "of all files together"
            )
            if not may_stay:
                return anew
            return (
                f"{anew}; or bring the rows of now in another file, whose window replaces their "
                "partitions, and let those of before stay as said below"
            )
        them = f"these {len(changed.paths)} files" if len(changed.paths) > 1 else "it"
        if not concerned and not known:
            return f"`{command('reset', self.ledger.name)}`: no partition has rows of {them} yet"
        # A rebuild of any partition takes files without rows as they stand.
        again = self._again(concerned or known[:1])
        may = "they may have" if concerned else "any partition will do, as none has"
        return f"{again}: {may} rows of {them}, as before or as now"

    def check(self, draft: Window, pin: Pin) -> None:
        """Check that a rebuild reads every partition that changed files have or had rows of.

        The checkpoint moves over these files with it, so that no load would name them again.

        Args:
            draft: the rebuild, of which nothing is taken yet.
            pin: the source as it reads it.

        Raises:
            RebuildTooNarrow: it reads only some of them.
        """
        changed = self._changed(pin, draft)
        if changed is None or not changed.paths:
            return
        concerned = {*self._before(changed), *self._now(changed)}
        missed = sorted(str(item) for item in concerned.difference(draft.partitions))
        if missed:
            raise RebuildTooNarrow(
                source=self.source.name,
                files=changed.said,
                missed=", ".join(missed),
                remedy=self._again({*concerned, *draft.partitions}),
            )

    def _since_checkpoint(self, now: datetime) -> ChangedFiles | None:
        state = self.ledger.pipeline.find()
        if state is None or state.checkpoint is None or self.source.kept is None:
            return None
        pin = self.source.timeline.pin(now, state.source_identity, after=state.checkpoint)
        return self.source.kept.changed(pin, state.checkpoint, deciding_columns(self.config))

    def _changed(self, pin: Pin, draft: Window) -> ChangedFiles | None:
        kept, checkpoint = self.source.kept, draft.range.end_inclusive
        return (
            kept.changed(pin, checkpoint, deciding_columns(self.config))
            if kept is not None
            else None
        )

    def _before(self, changed: ChangedFiles) -> Iterable[Partition]:
        """Return the partitions that had rows of the files; all of them if that is not known."""
        found = self.files.partitions(changed.paths)
        if found is None:
            return [state.partition for state in self.ledger.partitions.all()]
        return found

    def _now(self, changed: ChangedFiles) -> set[Partition]:
        return partitions_of_rows(self.config, self.source, changed.pin, changed.standing)

    def _again(self, partitions: Iterable[Partition]) -> str:
        ordered = sorted(partitions, key=lambda item: item.path)
        if len(ordered) > _MOST_NAMED and self.config.source.start.kind == "full":
            return (
                f"`{command('reset', self.ledger.name)}`, as {len(ordered)} partitions may have "
                "rows of them"
            )
        return rebuild_of(self.ledger.name, ordered)
