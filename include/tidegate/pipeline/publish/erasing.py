"""Take erased rows out of what stands: a new revision without them (design §4a)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tidegate.model.counting import plans_of
from tidegate.model.erasure import ErasedFile
from tidegate.model.publication import Outcome, Publication, PublishedFile, Verdict
from tidegate.model.wire import digest
from tidegate.stage.erased_in import erased_in, tells
from tidegate.target.compaction import apart
from tidegate.target.content import difference

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    import pyarrow as pa

    from tidegate.config import PipelineConfig
    from tidegate.ledger import Ledger
    from tidegate.model.erasure import Erasure
    from tidegate.model.part_format import PartFormat
    from tidegate.model.partition import Partition
    from tidegate.model.publication import Approval
    from tidegate.pipeline.publish.committer import Committer
    from tidegate.pipeline.publish.content import Contents
    from tidegate.pipeline.publish.finishing import Finisher
    from tidegate.pipeline.publish.units import Units
    from tidegate.pipeline.state.behind import Watch
    from tidegate.pipeline.state.places import Roots

WITHOUT = "written anew without them"


@dataclass(frozen=True)
class StandingRows:
    """Takes erased rows out of one pipeline's partitions.

    Runs on: one process per partition, under its claim. Called: by a person, again until nothing
    is left.
    Failure: before the revision is stored, files of units may be made. From then on it is an
    approved publication, which this call or the next publish commits.
    """

    config: PipelineConfig
    roots: Roots
    ledger: Ledger
    contents: Contents
    finisher: Finisher
    watch: Watch
    units: Units
    committer: Committer

    def found(self, partition: Partition, erasures: Sequence[Erasure]) -> tuple[ErasedFile, ...]:
        """Return the files of the current revision that have erased rows.

        Raises:
            StandingFileUnreadable: a file is missing or damaged.
        """
        standing = self.contents.standing(partition)
        return () if standing is None else self._files(standing, self._rows(standing, erasures))

    def lacking(self, partition: Partition, erasure: Erasure) -> int:
        """Count the files of the current revision whose columns do not tell the rows of an erasure.

        Raises:
            StandingFileUnreadable: a file is missing or damaged.
        """
        standing = self.contents.standing(partition)
        if standing is None:
            return 0
        folder, columns, lacking = self.roots.revision(standing), self._columns(standing), 0
        for file in standing.content:
            path = f"{folder}/{file.name}"
            lacking += not tells(
                self.units.storage, path, self._form(file), columns[file.name], erasure
            )
        return lacking

    def erase(
        self,
        partition: Partition,
        erasures: Sequence[Erasure],
        said: Approval,
        owner: str,
        now: datetime,
    ) -> tuple[ErasedFile, ...]:
        """Publish the current content without erased rows; what waits to be published stays so.

        The revision is not checked: it has no row that was not checked before.

        Args:
            partition: the partition.
            erasures: that name the rows.
            said: who erases them.
            owner: the run.
            now: its clock.

        Returns:
            The files that had such rows; none if no revision was needed.

        Raises:
            ApprovedFirst: an approved revision goes first.
            PublicationLapsed: rows were read again since.
            ClaimHeld, PartitionBusy: another run works on the partition (Transient).
            LedgerBehind: the files are ahead of the ledger; nothing was changed.
            StandingFileUnreadable: a file is missing or damaged.
        """
        self.watch.check_newest_window()
        self.watch.check_partition(partition)
        claim = self.finisher.claim_with_nothing_begun(partition, owner, now).claim
        try:
            with self.finisher.renewing(partition, claim):
                standing = self.contents.standing(partition)
                rows = {} if standing is None else self._rows(standing, erasures)
                if standing is None or not rows:
                    return ()
                following = self._worked_out(standing, rows, erasures)
            said = replace(said, erases=erasures[-1].number)
            verdict = Verdict(Outcome.PASS, (), following.rows, "none", now)
            self.ledger.publications.propose_decided(following, verdict, said, claim, now)
        finally:
            self.ledger.partitions.release(partition, claim)
        self.committer.commit(partition, following.digest, owner, now, by_command=True)
        return self._files(standing, rows)

    def _files(self, standing: Publication, rows: Mapping[str, int]) -> tuple[ErasedFile, ...]:
        partition = standing.partition
        folder = self.roots.revision(standing)
        return tuple(
            ErasedFile(f"{folder}/{name}", found, WITHOUT, str(partition), is_published=True)
            for name, found in rows.items()
        )

    def _rows(self, standing: Publication, erasures: Sequence[Erasure]) -> Mapping[str, int]:
        """Return name → erased rows of the files that have some."""
        folder = self.roots.revision(standing)
        columns = self._columns(standing)
        rows = {
            file.name: erased_in(
                self.units.storage,
                f"{folder}/{file.name}",
                self._form(file),
                erasures,
                columns[file.name],
            )
            for file in standing.content
        }
        return {name: found for name, found in rows.items() if found}

    def _worked_out(
        self, standing: Publication, rows: Mapping[str, int], erasures: Sequence[Erasure]
    ) -> Publication:
        """Return the next revision, with its files made; the names of files with rows are given."""
        joined, parts = apart(standing.content, rows)
        partition, columns = standing.partition, self._columns(standing)
        folder = self.roots.revision(standing)
        made: list[PublishedFile] = []
        plain = [file for file in standing.content if file.name in rows and not file.made_of]
        for file in plain:
            path = f"{folder}/{file.name}"
            made += self._made(partition, file, path, columns[file.name], erasures)
        for part in parts:
            path = f"{self.roots.work}/{part.staged}"
            has_rows = erased_in(self.units.storage, path, self._form(part), erasures)
            made += self._made(partition, part, path, None, erasures) if has_rows else [part]
        following = Publication(
            partition=partition,
            base_revision=standing.revision,
            adds=tuple(made),
            removes=(*plain, *joined),
            content=(),
            contributions=self._known(standing),
        )
        return difference(following, standing.content)

    def _known(self, standing: Publication) -> Mapping[str, str]:
        """Return the contributions of the current revision, as they are known now.

        A window that was read again with equal rows has another plan.
        """
        partition = standing.partition
        # Before it is known that nothing waits: what a load announces later has to wait.
        brought = self.ledger.contributions.to(partition)
        if self.ledger.partitions.get(partition).pending != "none":
            return dict(standing.contributions)
        return plans_of(brought)

    def _made(
        self,
        partition: Partition,
        file: PublishedFile,
        path: str,
        columns: pa.Schema | None,
        erasures: Sequence[Erasure],
    ) -> list[PublishedFile]:
        unit = digest(
            {
                "partition": partition.path,
                "erased": [item.number for item in erasures],
                "file": [file.name, file.sha256],
                **self.units.inputs,
            }
        )
        parts = self.units.without(partition, unit, file, path, erasures, columns)
        return [
            # It still stands for what its plan wrote, as far as that is not erased.
            replace(
                self.units.published(partition, unit, part, file.window),
                plan_digest=file.plan_digest,
                merged=file.merged,
            )
            for part in parts
        ]

    def _columns(self, standing: Publication) -> Mapping[str, pa.Schema | None]:
        """Return the columns of each file whose format does not say them."""
        if self.config.target.part_format.kind.has_columns:
            return dict.fromkeys(file.name for file in standing.content)
        told = self.contents.columns_of(standing)
        return {file.name: it for file, it in zip(standing.content, told, strict=True)}

    def _form(self, file: PublishedFile) -> PartFormat:
        return self.config.target.part_format.of_file(file.name)
