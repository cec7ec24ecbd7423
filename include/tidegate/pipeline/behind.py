"""Notice a ledger that is older than the files, as after a restored backup (design §4).

What a file tells stands in the ledger before the file does: its window with its plan, or its
publication. So the files are looked at first and the ledger is read afterwards; what the files then
know more than the ledger was recorded in another one. Changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.errors import LedgerBehind, MarkerInvalid, SourceFileGone
from tidegate.pipeline.records import Records
from tidegate.target.marker import read_marker

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from tidegate.config import PipelineConfig
    from tidegate.ledger import Ledger
    from tidegate.model.ledger_rows import PipelineState
    from tidegate.model.partition import Partition
    from tidegate.model.publication import Publication
    from tidegate.pipeline.records import SealedFile
    from tidegate.pipeline.work import Roots
    from tidegate.storage import Storage


@dataclass(frozen=True)
class Watch:
    """Compares one pipeline's files with its ledger."""

    config: PipelineConfig
    roots: Roots
    ledger: Ledger
    storage: Storage

    def check_newest_window(self) -> PipelineState | None:
        """Compare the newest window that was announced.

        Returns:
            The pipeline as the ledger had it when it was compared; None if it does not know it.
            What is decided on this state is decided on a ledger that is not behind.

        Raises:
            LedgerBehind: the ledger does not know the window.
        """
        newest = self._sealed(newest_only=True)
        state = self.ledger.pipeline.find()
        for finding in self._findings(newest, state):
            raise finding
        return state

    def check_all_windows(self) -> None:
        """Compare every window that was announced: costs a look at each.

        Raises:
            LedgerBehind: the ledger does not know one of them.
        """
        for finding in self._all_findings():
            raise finding

    def check_partition(self, partition: Partition) -> None:
        """Compare a partition's marker.

        Raises:
            LedgerBehind: it is of a revision that the ledger neither has nor is committing.
        """
        marker = self._marker(partition)
        if marker is None:
            return
        # In this order: a commit that is recorded in between has its revision then.
        begun = self.ledger.publications.unrecorded(partition)
        state = self.ledger.partitions.find(partition)
        known = state.revision if state else 0
        if begun is not None:
            known = max(known, begun.publication.revision)
        if marker["revision"] > known:
            raise LedgerBehind(
                pipeline=self.config.name,
                found=f"a marker of revision {marker['revision']} in {partition}",
                known=f"revision {known}" if known else "no revision of it",
            )

    def check_commit(self, publication: Publication) -> None:
        """Compare the marker that stands with a commit that is about to change files.

        Raises:
            LedgerBehind: it is of a later revision: the commit comes from an older ledger.
        """
        marker, partition = self._marker(publication.partition), publication.partition
        if marker is not None and marker["revision"] > publication.revision:
            raise LedgerBehind(
                pipeline=self.config.name,
                found=f"a marker of revision {marker['revision']} in {partition}",
                known=f"a commit of revision {publication.revision} under way",
            )

    def window_findings(self) -> Iterator[str]:
        """Say which windows the files know and the ledger does not."""
        for finding in self._all_findings():
            yield str(finding)

    def _all_findings(self) -> Iterator[LedgerBehind]:
        newest = self._sealed(newest_only=False)
        yield from self._findings(newest, self.ledger.pipeline.find())

    def _sealed(self, *, newest_only: bool) -> list[SealedFile]:
        """Read the newest announce of windows; before the ledger is read."""
        records = Records(self.roots, self.storage)
        newest: list[SealedFile] = []
        for sequence in records.sealed_windows():
            newest += records.sealed(sequence)[-1:]
            if newest and newest_only:
                break
        return newest

    def _findings(
        self, newest: Sequence[SealedFile], state: PipelineState | None
    ) -> Iterator[LedgerBehind]:
        for item in newest if state is not None else ():
            if state is not None and not self._is_known(item, state):
                yield LedgerBehind(
                    pipeline=self.config.name,
                    found=(
                        f"window {item.sealed.window.sequence} announced with plan "
                        f"{item.sealed.plan_digest}"
                    ),
                    known=state.progress,
                )

    def _is_known(self, item: SealedFile, state: PipelineState) -> bool:
        sequence, digest = item.sealed.window.sequence, item.sealed.plan_digest
        window = self.ledger.windows.find(sequence)
        if window is None or not self.ledger.windows.has_plan(sequence, digest):
            return False
        # An open window that holds the plan is about to be announced, or is announced once more.
        return not window.sealed or item.sealed.number < state.next_number

    def _marker(self, partition: Partition) -> dict[str, Any] | None:
        path = f"{self.roots.partition(partition)}/{self.config.commit.marker.name}"
        try:
            return read_marker(path, self.storage.read_bytes(path))
        except SourceFileGone:
            return None
        except MarkerInvalid:
            # It tells nothing of a revision; `fsck` names it.
            return None
