"""Take a partition back to the content that it had before its current revision (design §4a)."""

from __future__ import annotations

import posixpath
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tidegate.errors import (
    ErasureUnfinished,
    NothingToUndo,
    PublicationLapsed,
    UndoImpossible,
)
from tidegate.model.publication import Outcome, Publication, Undo, Verdict
from tidegate.pipeline.state.erasures import erasures, newest_erasure
from tidegate.stage import layout
from tidegate.stage.erased_in import erased_in
from tidegate.target.content import counted, with_content

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from tidegate.config import PipelineConfig
    from tidegate.ledger import Ledger
    from tidegate.model.ledger_rows import RevisionEntry
    from tidegate.model.message import Contribution
    from tidegate.model.partition import Partition
    from tidegate.model.publication import Approval, CommitPlan, PublishedFile
    from tidegate.model.run import Committed
    from tidegate.pipeline.publish.committer import Committer
    from tidegate.pipeline.publish.content import Contents
    from tidegate.pipeline.publish.finishing import Finisher
    from tidegate.pipeline.state.behind import Watch
    from tidegate.pipeline.state.places import Roots
    from tidegate.storage import Storage


@dataclass(frozen=True)
class Undoer:
    """Makes a new revision with the content of an earlier one.

    Runs on: one process per partition. Called: by a person.
    Failure: before the undo is stored, at most staged files have their old names back. From then on
    it is an approved publication, which this call or the next publish commits.
    """

    config: PipelineConfig
    roots: Roots
    ledger: Ledger
    storage: Storage
    contents: Contents
    finisher: Finisher
    watch: Watch
    committer: Committer

    def next_revision(self, partition: Partition) -> Publication:
        """Return the way back, without changing anything.

        Raises:
            NothingToUndo: the partition has no revision, or none before it.
        """
        if self.config.target.write != "append":
            problem = f"`target.write: {self.config.target.write}` mixes the rows of windows"
            raise self._nothing(partition, problem)
        revisions = self.ledger.publications.revisions(partition)
        if not revisions:
            raise self._nothing(partition, "it has no revision")
        current, before = self._plan(revisions, -1), self._before(partition, revisions)
        standing, wanted = current.publication.content, before.publication.content
        contributions = self.ledger.contributions.to(partition)
        following = Publication(
            partition=partition,
            base_revision=current.publication.revision,
            adds=_without(wanted, standing),
            removes=_without(standing, wanted),
            content=(),
            contributions=dict(before.publication.contributions),
            undone=_undo(before.publication, current.publication, contributions),
        )
        return with_content(following, standing)

    def undo(
        self, partition: Partition, revision: int, said: Approval, owner: str, now: datetime
    ) -> Committed:
        """Go back to the content before a revision, as a new revision.

        What the revisions since have brought is set aside until `tidegate reopen`.

        Args:
            partition: the partition.
            revision: the current one, as the person saw it.
            said: who undoes it, and why.
            owner: the run.
            now: its clock.

        Raises:
            NothingToUndo: there is no revision before it.
            UndoImpossible: a file of the earlier content is gone.
            ErasureUnfinished: one still has rows that were erased.
            PublicationLapsed: another revision stands by now, or its rows were read again since.
            ClaimHeld, PartitionBusy: another run works on the partition (Transient).
            LedgerBehind: the files are ahead of the ledger; nothing was changed.
        """
        self.watch.check_newest_window()
        self.watch.check_partition(partition)
        claim = self.finisher.claim_with_nothing_begun(partition, owner, now).claim
        try:
            following = self.next_revision(partition)
            if following.base_revision != revision:
                change = f"revision {following.base_revision} stands since"
                raise PublicationLapsed(
                    pipeline=self.ledger.name, partition=str(partition), change=change
                )
            with self.finisher.renewing(partition, claim):
                checked = newest_erasure(self.storage, self.roots.work)
                for file, path in self._without_erased(following).items():
                    self._bring_back(file, path)
            verdict = self._verdict(partition, following, now)

            def check() -> None:
                # More may have been erased meanwhile, by a process that knows nothing of this undo
                # until it is stored (see `Eraser`).
                if newest_erasure(self.storage, self.roots.work) != checked:
                    self._without_erased(following)

            self.ledger.publications.propose_decided(following, verdict, said, claim, now, check)
        finally:
            self.ledger.partitions.release(partition, claim)
        return self.committer.commit(partition, following.digest, owner, now, by_command=True)

    def _verdict(self, partition: Partition, following: Publication, now: datetime) -> Verdict:
        """Return the verdict on the content when it was committed before."""
        revisions = self.ledger.publications.revisions(partition)
        made = next(item for item in revisions if item.revision == _restored(following))
        entry = self.ledger.publications.find(partition, made.digest)
        if entry is not None and entry.verdict is not None:
            return entry.verdict
        return Verdict(Outcome.PASS, (), following.rows, "none", now)

    def _before(self, partition: Partition, revisions: Sequence[RevisionEntry]) -> CommitPlan:
        """Return the commit plan of the last revision before the current one with other content.

        A revision that restored an earlier one is passed over with all that it undid.

        Raises:
            NothingToUndo: there is none.
        """
        plans = {item.revision: place for place, item in enumerate(revisions)}
        standing = plan = self._plan(revisions, -1)
        while True:
            while plan.publication.undone is not None:
                plan = self._plan(revisions, plans[plan.publication.undone.restores])
            before = plan.publication.base_revision
            if before not in plans:
                problem = f"its content is that of revision {plan.publication.revision}, the first"
                raise self._nothing(partition, problem)
            plan = self._plan(revisions, plans[before])
            if _names(plan.publication.content) != _names(standing.publication.content):
                return plan

    def _plan(self, revisions: Sequence[RevisionEntry], place: int) -> CommitPlan:
        return self.contents.commit_plan(revisions[place].commit_plan)

    def _kept_at(self, following: Publication, file: PublishedFile) -> str:
        """Return where a file is that was retired: under its staged name, or as it was retired.

        Raises:
            UndoImpossible: it is gone.
        """
        partition = following.partition
        places = [
            f"{self.roots.work}/{file.staged}",
            *(
                layout.retired_part(self.roots.work, partition, revision, file.name)
                for revision in range(following.base_revision, 0, -1)
            ),
        ]
        found = next((path for path in places if self.storage.length(path) == file.length), None)
        if found is None:
            raise UndoImpossible(
                pipeline=self.ledger.name,
                partition=str(partition),
                revision=_restored(following),
                path=file.name,
            )
        return found

    def _without_erased(self, following: Publication) -> Mapping[PublishedFile, str]:
        """Return where the files to be brought back are; none has rows that were erased since.

        An erasure deletes such files, but may have died before, or one was put back from a copy.

        Raises:
            UndoImpossible: one is gone.
            ErasureUnfinished: one has such rows.
        """
        found = {file: self._kept_at(following, file) for file in following.adds}
        named = erasures(self.storage, self.roots.work)
        if not named:
            return found
        form = self.config.target.part_format
        # Only formats whose files do not say their columns need those that were planned.
        planned = not form.kind.has_columns
        adds = replace(following, content=following.adds)
        columns = self.contents.columns_of(adds) if planned else [None] * len(following.adds)
        for file, told in zip(following.adds, columns, strict=True):
            rows = erased_in(self.storage, found[file], form.of_file(file.name), named, told)
            if rows:
                raise ErasureUnfinished(
                    pipeline=self.ledger.name,
                    partition=str(following.partition),
                    revision=_restored(following),
                    path=found[file],
                    rows=rows,
                )
        return found

    def _bring_back(self, file: PublishedFile, found: str) -> None:
        """Give a file that was retired its staged name again, from where a commit takes it."""
        staged = f"{self.roots.work}/{file.staged}"
        if found == staged:
            return
        folder = posixpath.dirname(staged)
        self.storage.make_dirs(folder)
        # A file of another length was half written: nothing that was sealed is lost with it.
        self.storage.delete(staged)
        self.storage.link_new(found, staged)
        self.storage.sync(folder)

    def _nothing(self, partition: Partition, problem: str) -> NothingToUndo:
        return NothingToUndo(pipeline=self.ledger.name, partition=str(partition), problem=problem)


def _restored(following: Publication) -> int:
    """Return the revision whose content comes back."""
    return following.undone.restores if following.undone is not None else 0


def _undo(before: Publication, current: Publication, contributions: Sequence[Contribution]) -> Undo:
    """Return what stops to count: windows that came since, and replays of windows from before."""
    there = {str(window) for file in before.content for window in file.windows}
    empty = {str(window) for window in counted(before.contributions, contributions)} - there
    going: dict[str, str] = {}
    instead: dict[str, str] = {}
    for item in contributions:
        window = str(item.window)
        wanted, stands = before.contributions.get(window), current.contributions.get(window)
        if item.counted_digest is None or stands in {None, wanted}:
            # It is set aside already, or waits for a later revision.
            continue
        if wanted is None:
            going[window] = item.plan_digest
        elif item.counted_digest != wanted:
            going[window] = item.plan_digest
            if window not in empty:
                instead[window] = wanted
    return Undo(before.revision, going, instead)


def _names(files: Sequence[PublishedFile]) -> Counter[str]:
    return Counter(file.name for file in files)


def _without(
    files: Sequence[PublishedFile], others: Sequence[PublishedFile]
) -> tuple[PublishedFile, ...]:
    names = _names(others)
    return tuple(file for file in files if file.name not in names)
