"""Erase rows for good: of what stands, what waits, what is kept of earlier, and what comes."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.errors import TidegateError
from tidegate.model.erasure import ErasedFile, Erasure, ErasureLook, ErasureReport
from tidegate.model.wire import pretty
from tidegate.stage import layout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tidegate.ledger import Ledger
    from tidegate.model.partition import Partition
    from tidegate.model.publication import Approval
    from tidegate.pipeline.publish.erasing import StandingRows
    from tidegate.pipeline.state.places import Roots
    from tidegate.pipeline.upkeep.erasing.held import HeldRows
    from tidegate.pipeline.upkeep.erasing.kept import KeptRows
    from tidegate.pipeline.upkeep.erasing.waiting import ReadAgain, WaitingRows
    from tidegate.pipeline.upkeep.fsck.strays import Strays
    from tidegate.storage import Storage


@dataclass(frozen=True)
class Eraser:
    """Erases rows in one pipeline's target and work directory.

    Runs on: one process. Called: by a person, again until nothing is left.
    Failure: rows are left somewhere, and the next call goes on.

    Other runs go on meanwhile, and nothing keeps one from reading rows, or looking an earlier
    revision through, just before they are erased. Two steps let a later revision have rows: the
    announce of a window, and the approval of an undo. Each checks, in the transaction that does it
    and with the pipeline's row locked, that nothing was erased since its rows were looked through.
    An erasure is written down first; then `erase` waits for that lock, and only then reads the
    ledger. So each of these steps ends before that, and is found here, or begins after it, and
    finds the erasure. What was found may be committed by anybody at any time: it is read again, or
    named, before what stands is looked through for the last time, so that a commit that was too
    fast for the former is found by the latter.
    """

    roots: Roots
    ledger: Ledger
    storage: Storage
    standing: StandingRows
    waiting: WaitingRows
    held: HeldRows
    kept: KeptRows
    strays: Strays

    def look(self, named: Sequence[Erasure]) -> ErasureLook:
        """Find the published files that have erased rows, and the staged ones."""
        known = self.ledger.known_partitions()
        found: list[ErasedFile] = []
        unread: list[ErasedFile] = []
        for item in known:
            try:
                found += self.standing.found(item.state.partition, named)
            except TidegateError as refused:
                unread.append(self._whole(item.state.partition, refused))
        found += self.waiting.found(known, named, unread)
        approved = self.waiting.approved(known, named, unread)
        # Those of them whose windows can be read again have been found.
        told = {file.path for file in found}
        found += [file for file in approved if file.path not in told]
        return ErasureLook(tuple(found), tuple(unread))

    def lacking(self, erasure: Erasure) -> dict[str, int]:
        """Return partition → its files whose columns do not tell the rows of an erasure.

        They may have such rows, under another name of a column. They are published, or wait for it.
        """
        found: dict[str, int] = {}
        for item in self.ledger.known_partitions():
            # A file that cannot be read is told by `look`.
            with contextlib.suppress(TidegateError):
                partition = item.state.partition
                found[str(partition)] = self.standing.lacking(partition, erasure)
                found[str(partition)] += self.waiting.lacking(item, erasure)
        return {name: files for name, files in found.items() if files}

    def erase(
        self,
        named: Sequence[Erasure],
        said: Approval,
        owner: str,
        read_again: ReadAgain,
        told: Callable[[str], None],
    ) -> ErasureReport:
        """Erase rows everywhere, as far as that is possible now.

        Args:
            named: all erasures that are written down.
            said: who erases them.
            owner: the run.
            read_again: reads a window again.
            told: called with what is being done.

        Returns:
            What was erased, and what was not.
        """
        self.ledger.pipeline.let_recording_end()
        left: list[ErasedFile] = []
        files: list[ErasedFile] = []
        files += self._from_standing(named, said, owner, told, left)
        files += self.waiting.read_again(named, read_again, left, owner, said.at)
        left += [*self.waiting.approved(self.ledger.known_partitions(), named, left)]
        # A commit may have begun before its windows were read again; none can from now on.
        files += self._from_standing(named, said, owner, told, left)
        files += self.held.erase(named, left)
        told("looking through files that are kept")
        files += self.kept.erase(named, left, owner, said.at)
        left += self._unknown()
        numbers = tuple(item.number for item in named)
        report = ErasureReport(numbers, tuple(files), tuple(left), said.at)
        if not left:
            at = f"{said.at:%Y%m%dT%H%M%S%f}"
            path = layout.erasure_report(self.roots.work, numbers[-1], at)
            self.storage.write_once(path, pretty(report.to_json()))
        return report

    def _from_standing(
        self,
        named: Sequence[Erasure],
        said: Approval,
        owner: str,
        told: Callable[[str], None],
        left: list[ErasedFile],
    ) -> Iterator[ErasedFile]:
        """Take erased rows out of every current revision."""
        failed = {file.partition for file in left}
        for item in self.ledger.known_partitions():
            partition = item.state.partition
            if str(partition) in failed:
                continue
            told(f"looking through {partition}")
            try:
                # Without a claim, which would stop a run that publishes other rows.
                if item.begun is not None or self.standing.found(partition, named):
                    yield from self.standing.erase(partition, named, said, owner, said.at)
            except TidegateError as refused:
                left.append(self._whole(partition, refused))

    def _unknown(self) -> Iterator[ErasedFile]:
        """Yield part files in the table that no revision names, as a restored copy brings them."""
        for name in filter(layout.is_part_file, self.strays.found(set())):
            finding = self.strays.finding(name)
            yield ErasedFile(finding.where, 0, finding.text)

    def _whole(self, partition: Partition, refused: TidegateError) -> ErasedFile:
        return ErasedFile(self.roots.partition(partition), 0, str(refused), str(partition))
