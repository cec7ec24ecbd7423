"""Erase rows of what is held on branches of a table: the branches go, and with them the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.commit.policies import shown_table
from tidegate.errors import StandingFileUnreadable, TidegateError
from tidegate.model.erasure import ErasedFile
from tidegate.stage.erased_in import erased_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tidegate.config import PipelineConfig
    from tidegate.model.erasure import Erasure
    from tidegate.pipeline.upkeep.erasing.staged_forms import StagedForms
    from tidegate.storage import Storage


@dataclass(frozen=True)
class HeldRows:
    """Drops the branches of a table that keep snapshots with erased rows from being expired.

    What they have is read from the table, because the ledger forgets what was held once its windows
    are read again. A branch of one partition may begin before rows of another were erased.

    Runs on: one process. Called: by a person, again until nothing is left.
    Failure: branches are left, and the next call drops them.
    """

    config: PipelineConfig
    storage: Storage
    forms: StagedForms

    def erase(self, named: Sequence[Erasure], left: list[ErasedFile]) -> Iterator[ErasedFile]:
        """Drop each branch that has erased rows, or files that cannot be looked through.

        A held revision stays held; approved, it is committed anew.
        """
        table = shown_table(self.config.target)
        if table is None:
            return
        try:
            for branch, paths in table.held_files(self.config.name).items():
                found = [(path, self._rows(path, named)) for path in sorted(paths)]
                if all(rows == 0 for _, rows in found):
                    continue
                table.drop_branch(self.config.name, branch)
                for path, rows in found:
                    if rows != 0:
                        yield ErasedFile(path, rows or 0, f"the branch {branch} was dropped")
        except TidegateError as refused:
            place = f"branches of {self.config.target.table}"
            left.append(ErasedFile(place, 0, str(refused)))

    def _rows(self, path: str, named: Sequence[Erasure]) -> int | None:
        """Count the erased rows of a file; None if it cannot be read."""
        form, columns = self.forms.of(path)
        try:
            return erased_in(self.storage, path, form, named, columns)
        except StandingFileUnreadable:
            return None
