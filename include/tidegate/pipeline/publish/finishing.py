"""Hold a partition while it is published, and end a begun commit: finish it, or take it back."""

from __future__ import annotations

import contextlib
import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.commit.policies import ListingPolicy, open_policy, shown_table
from tidegate.commit.publisher import Publisher
from tidegate.errors import (
    CommitUnfinished,
    FileContentWrong,
    FileLengthWrong,
    PolicyUnknown,
    StagedFileMissing,
    UploadGone,
)
from tidegate.ledger.holder import Holder
from tidegate.model.publication import Publication, PublicationState
from tidegate.pipeline.publish.commit_plans import policies_to_finish, revision_of
from tidegate.pipeline.state.renewing import Renewing, renewing_claim
from tidegate.stage import layout

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from tidegate.commit.policies import CommitPolicy
    from tidegate.config import PipelineConfig, PolicyConfig
    from tidegate.ledger import Ledger
    from tidegate.ledger.holder import Life
    from tidegate.metastore.protocol import SparkCatalog
    from tidegate.model.ledger_rows import (
        Claim,
        KnownPartition,
        PartitionState,
        PipelineState,
        PublicationEntry,
        RevisionEntry,
    )
    from tidegate.model.partition import Partition
    from tidegate.model.publication import CommitPlan
    from tidegate.pipeline.publish.content import Contents
    from tidegate.pipeline.state.behind import Watch
    from tidegate.pipeline.state.places import Roots
    from tidegate.storage import Storage


@dataclass(frozen=True)
class Claimed:
    """A claim of a partition without an unfinished commit, and what was read under it."""

    claim: Claim
    finished: Publication | None
    """The publication that was finished last, if a predecessor had begun one."""
    known: KnownPartition | None
    """None: the ledger was replaced by one that does not know the partition."""
    pipeline: PipelineState | None


@dataclass(frozen=True)
class Finisher:
    """Carries out commit plans, whichever process wrote them.

    Runs on: one process per partition, under its claim. Called: at least once per revision.
    Failure: the next call continues with the same plan.
    """

    config: PipelineConfig
    roots: Roots
    ledger: Ledger
    storage: Storage
    contents: Contents
    watch: Watch
    life_of: Callable[[str], Life]
    """Returns the state of the run that holds a partition."""
    catalog: SparkCatalog
    """Opens tables of Spark's catalog, for policies that ask it."""

    def claim(
        self,
        partition: Partition,
        owner: str,
        now: datetime,
        found: PartitionState | None = None,
    ) -> Claim:
        """Claim the partition; from a predecessor only if it is not moving files.

        A predecessor that is inside its lock continues undisturbed; one that has not entered it
        finds its claim gone.

        Args:
            partition: the partition.
            owner: who claims it.
            now: clock of the command.
            found: the partition as it was read a moment ago; None: it is read here.

        Raises:
            ClaimHeld, PartitionBusy: another run is at work (Transient).
        """
        holder = Holder(owner, now, self.config.execute.claim_timeout, self.life_of)
        held = self.ledger.partitions
        found = found or held.get(partition)
        if found.owner is None or not held.is_free(partition, holder):
            return held.claim(partition, holder, found)
        with self.storage.lock(layout.lock_file(self.roots.work, partition), owner):
            return held.claim(partition, holder)

    def renewing(self, partition: Partition, claim: Claim) -> Renewing:
        """Keep a claim during a long step."""
        timeout = self.config.execute.claim_timeout
        return renewing_claim(self.ledger, partition, claim, timeout)

    def claim_with_nothing_begun(
        self,
        partition: Partition,
        owner: str,
        now: datetime,
        found: PartitionState | None = None,
    ) -> Claimed:
        """Claim the partition and finish every commit that was begun; recording ends a claim.

        A commit that misses a file is taken back instead, if new rows replaced that file.

        Args:
            partition: the partition.
            owner: who claims it.
            now: clock of the command.
            found: the partition as it was read a moment ago; None: it is read here.
        """
        claim = self.claim(partition, owner, now, found)
        finished = None
        while True:
            with self.ledger.reading_together():
                known = self.ledger.known_partition(partition)
                pipeline = self.ledger.pipeline.find()
            begun = known.begun if known else None
            if begun is None:
                return Claimed(claim, finished, known, pipeline)
            try:
                self.finish(partition, claim, owner, now)
            except (StagedFileMissing, UploadGone, FileLengthWrong, FileContentWrong):
                if not self.ledger.publications.is_replaced(partition, begun.publication.digest):
                    raise
                self._take_back(begun, claim, owner)
            else:
                finished = self.contents.commit_plan(str(begun.commit_plan)).publication
            claim = self.claim(partition, owner, now)

    def finish(
        self, partition: Partition, claim: Claim, owner: str, now: datetime, only: str | None = None
    ) -> bool:
        """Carry out an unrecorded publication of a predecessor.

        Returns:
            Whether the wanted publication is committed by that.
        """
        entry = self.ledger.publications.unrecorded(partition)
        if entry is None:
            done = self.ledger.publications.find(partition, only) if only else None
            return done is not None and done.state is PublicationState.RECORDED
        path = str(entry.commit_plan)
        with self.renewing(partition, claim):
            self.carry_out(path, self.contents.commit_plan(path), claim, owner, now)
        return entry.publication.digest == only

    def carry_out(
        self, path: str, plan: CommitPlan, claim: Claim, owner: str, now: datetime
    ) -> None:
        """Publish the revision of a commit plan, and record it; the caller renews the claim.

        Args:
            path: of the plan, in the work directory.
            plan: as it was written there.
            claim: the caller's, which ends with the commit.
            owner: the run.
            now: its clock.
        """
        publication, policies = plan.publication, policies_to_finish(plan, self.config)
        made = revision_of(plan, path, owner, now)
        steps = _Steps(self.ledger, self.watch, publication, claim, plan, made)
        self._publisher(publication, policies).carry_out(plan, owner, steps)

    def examine(
        self,
        publication: Publication,
        policies: Sequence[PolicyConfig],
        *,
        with_files: bool = True,
    ) -> None:
        """Check the requirements of a commit before it begins.

        Args:
            publication: what is to be published.
            policies: those that have to do their part.
            with_files: False: its files were examined a moment ago.

        Raises:
            StagedFileMissing, FileLengthWrong, FileContentWrong: a file was lost or damaged.
            PolicyUnknown: a policy cannot be built.
            PolicyRefused: a policy will not do its part (Transient).
            MetastoreSilent, MetastoreRefused, DatabaseMissing, ListedTableDiffers,
            ColumnsUnknown, ColumnUnlistable, PartitionUnlistable, SparkCatalogUnfit: the partition
                cannot be listed.
            TargetTableMoved and others: see `CommitSnapshot.commit`.
        """
        publisher = self._publisher(publication, policies)
        if with_files:
            publisher.files.examine(publication)
        if policies:
            self._examine_table(publisher, publication)
        publisher.foresee(publication, self.config.name)

    @property
    def lists(self) -> tuple[PolicyConfig, ...]:
        """The policies that keep lists, but for those that are not importable in this process."""
        found = []
        for policy in self.config.commit.policies:
            with contextlib.suppress(PolicyUnknown):
                if isinstance(self._opened(policy), ListingPolicy):
                    found.append(policy)
        return tuple(found)

    def differences(self, partition: Partition) -> tuple[str, ...]:
        """Return how the lists that policies keep differ from the partition's current revision."""
        plan = self.contents.standing_plan(partition)
        if plan is None:
            return ()
        return self._publisher(plan.publication, self.lists).differences(plan)

    def list_again(self, partition: Partition, owner: str, now: datetime) -> tuple[str, ...]:
        """Write the entries of the partition's current revision anew, where they differ.

        Returns:
            How they differed.

        Raises:
            CommitUnfinished: a commit has begun, which will write them.
            ClaimHeld, PartitionBusy: another run is at work (Transient).
            LedgerBehind: the files are ahead of the ledger; nothing was changed.
        """
        self.watch.check_partition(partition)
        claim = self.claim(partition, owner, now)
        try:
            if self.ledger.publications.unrecorded(partition) is not None:
                raise CommitUnfinished(pipeline=self.config.name, partition=str(partition))
            plan = self.contents.standing_plan(partition)
            if plan is None:
                return ()
            steps = _Steps(self.ledger, self.watch, plan.publication, claim)
            publisher = self._publisher(plan.publication, self.config.commit.policies)
            with self.renewing(partition, claim):
                return publisher.list_again(plan, owner, steps)
        finally:
            self.ledger.partitions.release(partition, claim)

    def hold(self, publication: Publication, owner: str) -> None:
        """Let a held revision be read beside the published one; see `Publisher.hold`."""
        publisher = self._publisher(publication, ())
        self._examine_table(publisher, publication)
        publisher.hold(publication, self.config.name, owner)

    def drop_held(self, partition: Partition) -> None:
        """Take a revision away that could be read while it was held."""
        table = shown_table(self.config.target)
        if table is not None:
            table.drop(self.config.name, partition)

    def shows(self, publication: Publication) -> bool:
        """Return whether readers who look into the target's table find a revision."""
        table, partition = shown_table(self.config.target), publication.partition
        if table is None:
            return True
        names = table.names(self.config.name, partition, self.roots.partition(partition))
        return names == frozenset(file.name for file in publication.content)

    def _examine_table(self, publisher: Publisher, publication: Publication) -> None:
        if publisher.table is not None:
            context = publisher.context(publication, self.config.name, "")
            publisher.table.examine(context, self._published)

    def _published(self) -> Partition | None:
        """Return a partition with rows that is published; None if there is none."""
        states = self.ledger.partitions.all()
        return next((it.partition for it in states if it.revision and it.rows), None)

    def _take_back(self, begun: PublicationEntry, claim: Claim, owner: str) -> None:
        """Abandon a commit that was begun: first on disk, then in the ledger."""
        partition, digest = begun.publication.partition, begun.publication.digest
        plan = self.contents.commit_plan(str(begun.commit_plan))
        steps = _Steps(self.ledger, self.watch, plan.publication, claim)
        send_back = functools.partial(self._send_back, begun, claim.owner)
        with self.renewing(partition, claim):
            self._publisher(plan.publication, ()).take_back(plan, owner, steps, send_back)
        self.ledger.publications.withdraw(partition, digest, claim)

    def _send_back(self, begun: PublicationEntry, owner: str) -> None:
        """Send readers back from a revision whose policies may have run."""
        standing = self.contents.standing_plan(begun.publication.partition)
        if standing is not None and begun.state is not PublicationState.PREPARED:
            policies = policies_to_finish(standing, self.config)
            self._publisher(standing.publication, policies).run_policies(standing, owner)

    def _opened(self, policy: PolicyConfig) -> CommitPolicy:
        return open_policy(policy, self.config.target, self.catalog)

    def _publisher(self, publication: Publication, policies: Sequence[PolicyConfig]) -> Publisher:
        places = self.roots.places(publication, self.contents.folder)
        target = self.config.target
        built = [(policy.title, self._opened(policy)) for policy in policies]
        asked = any(policy.needs_columns for policy in policies)
        columns = self.contents.table_columns(publication, self.config) if asked else None
        table = shown_table(target)
        schema = None if table is None else self.contents.table_schema(publication, target)
        return Publisher(self.storage, places, built, columns, table, schema)


@dataclass(frozen=True)
class _Steps:
    """Passes the publisher's progress to the ledger, under one claim."""

    ledger: Ledger
    watch: Watch
    publication: Publication
    claim: Claim
    plan: CommitPlan | None = None
    """That of the commit, if one is carried out."""
    made: RevisionEntry | None = None
    """Recorded once the marker stands; None: nothing is published."""

    def check_right(self) -> None:
        # The file first, then the ledger: see `behind`.
        self.watch.check_commit(self.publication, self.plan)
        self.ledger.partitions.check_fence(self.publication.partition, self.claim)

    def advance(self, to: PublicationState) -> None:
        if to is PublicationState.MARKED and self.made is not None:
            # Nothing is left to do that another process would go on from.
            self.ledger.publications.record(self.made, self.claim)
            return
        target, digest = self.publication.partition, self.publication.digest
        self.ledger.publications.advance(target, digest, to, self.claim)
