"""One pipeline with every part wired: what the command line, the jobs and Airflow call."""

from __future__ import annotations

import contextlib
import functools
import logging
import time
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tidegate.config import (
    PipelineConfig,
    find_pipeline,
    ledger_url,
    load_pipeline,
)
from tidegate.errors import (
    NotApproved,
    NotCommittable,
    PlanMissing,
    PublicationLapsed,
    SnapshotLogMissing,
    SnapshotNotFound,
    StartNotAncestor,
    TidegateError,
)
from tidegate.errors.commands import naming
from tidegate.ledger import Ledger, open_engine
from tidegate.ledger.holder import Holder, Life
from tidegate.model.partition_value import time_fields
from tidegate.model.publication import Approval, Outcome, Verdict
from tidegate.model.report import CheckpointState
from tidegate.model.run import (
    Announced,
    Committed,
    Look,
    PlannedWindow,
    Proposal,
    PublishOutcome,
    Run,
)
from tidegate.pipeline.executors import ExecutorFactory, part_files_in_spark
from tidegate.pipeline.load.announce import Announcer
from tidegate.pipeline.load.loader import Loader, Preview
from tidegate.pipeline.load.rebuilding import LedgerRebuilding
from tidegate.pipeline.load.staging import stage_split
from tidegate.pipeline.publish.content import Contents
from tidegate.pipeline.publish.evaluating import Evaluator
from tidegate.pipeline.publish.finishing import Finisher
from tidegate.pipeline.publish.gating import Gatekeeper
from tidegate.pipeline.publish.publisher import Committer
from tidegate.pipeline.state.behind import Watch
from tidegate.pipeline.state.holders import life_of
from tidegate.pipeline.state.plan_files import has_plan, pending_stages, read_plan, read_splits
from tidegate.pipeline.state.reading import filter_columns
from tidegate.pipeline.state.renewing import Renewing, renewing_windows
from tidegate.pipeline.state.work import Roots, adopt, check_identity, check_owner
from tidegate.pipeline.upkeep.findings import Findings
from tidegate.pipeline.upkeep.forgotten import Forgotten
from tidegate.pipeline.upkeep.history import SourceInstant, source_instants
from tidegate.pipeline.upkeep.lost_announces import LostAnnounces
from tidegate.pipeline.upkeep.report import Reporter
from tidegate.pipeline.upkeep.restore import Restored, Restorer
from tidegate.pipeline.upkeep.sweeping import Garbage, Sweeper
from tidegate.source import open_source
from tidegate.stage import layout
from tidegate.storage import LocalStorage, Scratch, Storage
from tidegate.target.partitioning import Partitioning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime, timedelta

    from tidegate.config import SourceConfig
    from tidegate.execute import Executor
    from tidegate.gate import SparkFrame
    from tidegate.model.ledger_rows import PartitionState
    from tidegate.model.partition import Partition
    from tidegate.model.plan import ScanPlan, Split
    from tidegate.model.publication import Override
    from tidegate.model.report import PartitionExplanation, PipelineReport
    from tidegate.model.watermark import Evaluation
    from tidegate.source.protocol import Source

_ATTEMPTS_ON_NEW_CONTENT = 5

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Pipeline:
    """One pipeline: its configuration, its ledger, its storage, and what can be done with them.

    Every method may be called again after it failed or was interrupted.
    """

    config: PipelineConfig
    roots: Roots
    ledger: Ledger
    storage: Storage
    spark_frame: SparkFrame | None = None
    life_of: Callable[[str], Life] = life_of
    """Finds out what became of another holder of a window or partition."""

    @cached_property
    def source(self) -> Source:
        """Where the pipeline's changes come from."""
        return self._opened(self.config.source)

    def _opened(self, source: SourceConfig) -> Source:
        return open_source(
            source,
            self.storage,
            layout.listings_root(self.roots.work),
            filter_columns(source.read),
            LedgerRebuilding(self.ledger, by_event_time=self._is_partitioned_by_event_time),
        )

    @property
    def _is_partitioned_by_event_time(self) -> bool:
        column = self.config.event_time.column if self.config.event_time else None
        made = time_fields(self.config.target.partition_by, column)
        return bool(made) and made[0].column == column

    @cached_property
    def _loader(self) -> Loader:
        return Loader(
            config=self.config,
            roots=self.roots,
            ledger=self.ledger,
            storage=self.storage,
            source=self.source,
            life_of=self.life_of,
            watch=self._watch,
        )

    @cached_property
    def _announcer(self) -> Announcer:
        return Announcer(self.config, self.ledger, self.storage, self._loader)

    @cached_property
    def _committer(self) -> Committer:
        return Committer(
            config=self.config,
            roots=self.roots,
            ledger=self.ledger,
            storage=self.storage,
            contents=self._contents,
            gatekeeper=self._gatekeeper,
            evaluator=self._evaluator,
            finisher=self._finisher,
            watch=self._watch,
        )

    @cached_property
    def _finisher(self) -> Finisher:
        return Finisher(
            config=self.config,
            roots=self.roots,
            ledger=self.ledger,
            storage=self.storage,
            contents=self._contents,
            watch=self._watch,
            life_of=self.life_of,
        )

    @cached_property
    def _evaluator(self) -> Evaluator:
        return Evaluator(self.config, self.ledger)

    @cached_property
    def _watch(self) -> Watch:
        return Watch(self.config, self.roots, self.ledger, self.storage)

    @cached_property
    def _contents(self) -> Contents:
        return Contents(self.config.name, self.roots, self.ledger, self.storage)

    @cached_property
    def _gatekeeper(self) -> Gatekeeper:
        return Gatekeeper(
            self.config, self.roots, self.ledger, self.storage, self._contents, self.spark_frame
        )

    @property
    def _forgotten(self) -> Forgotten:
        announces = LostAnnounces(self.roots, self.ledger, self.storage)
        return Forgotten(announces, lambda window: self.source.has_lost(window))

    @cached_property
    def _sweeper(self) -> Sweeper:
        return Sweeper(
            self.config, self.roots, self.ledger, self.storage, self._watch, self.life_of
        )

    @cached_property
    def _reporter(self) -> Reporter:
        return Reporter(self.config, self.roots, self.ledger, self.storage, self._evaluator)

    def looking(self) -> Pipeline:
        """Return the same pipeline for questions only: listings that it takes stay in memory."""
        return replace(self, storage=Scratch())

    def adopt(self, now: datetime) -> None:
        """Register the pipeline, or check that ledger and target are its own.

        The first step of a load.

        Raises:
            PipelineChanged, TargetOwned, WorkUnfit, WorkOwned, LedgerLost, WorkElsewhere,
                PlacesOverlap: they are not.
        """
        adopt(self.config, self.roots, self.ledger, self.storage, now, self.source)

    def look(self, run: Run, now: datetime) -> Look:
        """Return what a run would find, from the source's metadata alone."""
        self.adopt(now)
        with self._forgotten.naming():
            return self._loader.look(run, now)

    def plan(self, run: Run, now: datetime) -> tuple[PlannedWindow, ...]:
        """Take the run's window or those it replays, and write their plans."""
        self.adopt(now)
        started = time.monotonic()
        with self._forgotten.naming():
            planned = self._loader.plan(run, now)
        self._note(planned, "plan", started)
        for item in planned:
            _log.info(
                "planned window %d: %d of %d splits to read",
                item.sequence,
                item.pending,
                item.splits,
                extra=self._facts(run=run.id, window=item.sequence, plan=item.digest),
            )
        return planned

    def stored_plan(self, sequence: int) -> tuple[ScanPlan, Sequence[Split]]:
        """Read the plan that a window was last planned with.

        Raises:
            WindowNotFound: there is no such window.
            PlanMissing: it has no plan, or that was swept.
            LedgerLost: the ledger has lost the pipeline.
        """
        self._check_known()
        uri = self.ledger.windows.plan_uri(sequence)
        if uri is None or not has_plan(self.storage, uri):
            raise PlanMissing(path=uri or f"{self.config.name}, window {sequence}")
        return read_plan(self.storage, uri), read_splits(self.storage, uri)

    def replay(self, sequence: int, run: Run, now: datetime) -> tuple[PlannedWindow, ...]:
        """Plan a window that was taken before with the configuration as it is now."""
        self.adopt(now)
        with self._forgotten.naming():
            return self._loader.replay(sequence, run, now)

    def rebuild(
        self, partitions: Sequence[Partition], run: Run, now: datetime
    ) -> tuple[PlannedWindow, ...]:
        """Plan to read whole partitions again, as of the checkpoint.

        One that the ledger does not know comes to be if the source has rows for it.
        """
        self.adopt(now)
        with self._forgotten.naming():
            return self._loader.rebuild(partitions, run, now)

    def check_rebuilt(self, partitions: Sequence[Partition]) -> None:
        """Make sure that the partitions of a rebuild are there, once it was announced.

        Raises:
            PartitionNotFound: no window ever touched some of them, nor has the source rows.
        """
        unknown = [item for item in partitions if self.ledger.partitions.find(item) is None]
        if unknown:
            looked = ", and the source was read: it has no rows for it either"
            if len(unknown) < len(partitions):
                looked += "; what else was named is rebuilt"
            raise self.ledger.partitions.not_found(*unknown, looked=looked)

    def engine_for(self, planned: Sequence[PlannedWindow]) -> str:
        """Choose where to read: `none` when all is staged, else `local` or `spark` (design §6)."""
        open_windows = [item for item in planned if item.pending]
        if not open_windows:
            return "none"
        engine = self.config.execute.engine
        if engine != "auto":
            return engine
        total = sum(item.pending_bytes for item in open_windows)
        return "local" if total < self.config.execute.local_below else "spark"

    def stage(
        self,
        planned: PlannedWindow,
        executor: Executor,
        progress: Callable[[int], None] | None = None,
        *,
        beside: Sequence[PlannedWindow] = (),
    ) -> int:
        """Read and stage what a plan still lacks.

        Args:
            planned: the window; it is renewed meanwhile.
            executor: where the splits are read.
            progress: told how many sub-splits are finished.
            beside: windows of the same run that wait for their turn; they are renewed, too.

        Returns:
            How many sub-splits were finished.

        Raises:
            FenceLost: a successor took a window over; what was staged stays for it.
        """
        started = time.monotonic()
        finished = 0
        task = functools.partial(stage_split, self.storage)
        with self.renewing((planned, *beside)) as held:
            # One stage after the other: the rows that one spreads are what the next one gathers.
            for indexes in pending_stages(self.storage, planned.uri):
                for _ in executor.run(task, planned.uri, indexes, f"w{planned.attempt}"):
                    held.check()
                    finished += 1
                    if progress is not None:
                        progress(finished)
        self._note([planned], "stage", started)
        _log.info(
            "staged %d sub-splits of window %d",
            finished,
            planned.sequence,
            extra=self._facts(window=planned.sequence, plan=planned.digest),
        )
        return finished

    @contextlib.contextmanager
    def renewing(
        self, planned: Sequence[PlannedWindow], on_loss: Callable[[], None] = lambda: None
    ) -> Iterator[Renewing]:
        """Keep the windows of a run while one of its steps lasts.

        Args:
            planned: the windows; they are renewed at once and from then on.
            on_loss: called from another thread once a successor took one over.

        Raises:
            FenceLost: a successor took one over, before or meanwhile.
        """
        attempts = {item.sequence: item.attempt for item in planned}
        timeout = self.config.execute.claim_timeout
        with renewing_windows(self.ledger, attempts, timeout, on_loss) as held:
            # A stale step must not find out at its end, after it has read for an hour.
            held.renew()
            yield held

    def take_over(self, sequence: int, run: Run, now: datetime) -> None:
        """Take a window for a run without planning it, so that its next step may go on with it.

        Raises:
            WindowOpen: its holder is not known to be dead (Transient).
        """
        self.ledger.windows.resume(sequence, self._holder(run.owner, now), None)

    def window_is_free(self, sequence: int, owner: str, now: datetime) -> bool:
        """Return whether no other living run works on a window."""
        return self.ledger.windows.is_free(sequence, self._holder(owner, now))

    def partition_is_free(self, partition: Partition, owner: str, now: datetime) -> bool:
        """Return whether no other living run has claimed a partition."""
        return self.ledger.partitions.is_free(partition, self._holder(owner, now))

    def announce(self, planned: Sequence[PlannedWindow], now: datetime) -> Announced:
        """Seal the windows of a run; with none, let an idle source move the watermark.

        Raises:
            PipelineChanged: the pipeline file says something else than when they were planned.
        """
        self._check_identity()
        with self.renewing(planned) as held:
            announced = self._announcer.announce(planned, now, held)
        _log.info(
            "announced windows %s: %d rows read, %d kept, %d late, %d put aside",
            list(announced.windows),
            announced.summary.rows_read,
            announced.summary.rows_kept,
            announced.summary.rows_late,
            announced.summary.rows_quarantined,
            extra=self._facts(
                windows=list(announced.windows), partitions=len(announced.partitions)
            ),
        )
        return announced

    def load(self, run: Run, now: datetime, executors: ExecutorFactory) -> Announced:
        """Do a whole load in this process: plan, stage, announce.

        A run that finds the window of a dead one finishes that first, and then takes its own.
        """
        planned = self.plan(run, now)
        announced = self.finish_load(planned, now, executors)
        if any(item.taken_over for item in planned):
            return announced.joined(self.load(run, now, executors))
        return announced

    def finish_load(
        self, planned: Sequence[PlannedWindow], now: datetime, executors: ExecutorFactory
    ) -> Announced:
        """Stage and announce what was planned."""
        engine = self.engine_for(planned)
        if engine != "none":
            with executors(engine) as executor:
                for item in planned:
                    self.stage(item, executor, beside=planned)
        return self.announce(planned, now)

    def own(self, now: datetime) -> None:
        """Check, as a load does, that ledger and target are the pipeline's own.

        The first step of everything that publishes. A target of the version before is adopted; a
        pipeline that never loaded has nothing to publish, and owns nothing by asking.

        Raises:
            PipelineChanged, TargetOwned, WorkUnfit, WorkOwned, LedgerLost: they are not.
        """
        self._check_identity()
        settled = check_owner(self.roots, self.ledger, self.storage)
        if not settled and self.ledger.pipeline.find() is not None:
            self.adopt(now)
        self._watch.check_newest_window()

    def evaluate(self, partition: Partition, now: datetime) -> Evaluation | None:
        """Look whether a partition may be committed; None when nothing is pending.

        Raises:
            PipelineChanged: the pipeline file is not the one that was registered.
        """
        self._check_identity()
        return self._evaluator.evaluate(partition, now)

    def propose(self, partition: Partition, owner: str, now: datetime) -> Proposal | None:
        """Work out the next revision; None when there is none, or a person has to decide first.

        Where a predecessor's commit was finished, that revision: what came since is proposed next.

        Raises:
            NotCommittable: the partition's turn has not come.
        """
        self.own(now)
        with self._forgotten.naming():
            return self._committer.propose(partition, owner, now)

    def gate(self, partition: Partition, publication: str, owner: str, now: datetime) -> Verdict:
        """Check the partition as it would stand.

        Raises:
            PipelineChanged: the pipeline file is not the one that was registered.
        """
        self._check_identity()
        with self._forgotten.naming():
            return self._committer.gate(partition, publication, owner, now)

    def decide(
        self,
        partition: Partition,
        *,
        publication: str,
        approved: bool,
        by: str,
        comment: str,
        now: datetime,
    ) -> None:
        """Store a person's decision on the publication that was shown to them.

        Raises:
            PipelineChanged: the pipeline file is not the one that was registered.
            LedgerLost: the ledger has lost the pipeline.
            PartitionNotFound: no window ever touched the partition.
            DecisionRefused: the publication was replaced, or its commit has begun.
            NotHeld: it waits for no decision.
            PublicationLapsed: it can no longer be committed as it was shown.
            LedgerBehind: the files know more than the ledger; nothing was changed.
        """
        self._check_identity()
        self.ledger.partitions.get(partition)
        self._watch.check_records(partition)
        self._gatekeeper.decide(partition, publication, Approval(approved, by, now, comment))

    def reopen(self, partition: Partition, now: datetime) -> None:
        """Let a held partition be checked again by the next publish.

        Raises:
            PipelineChanged: the pipeline file is not the one that was registered.
            LedgerLost: the ledger has lost the pipeline.
            PartitionNotFound: no window ever touched the partition.
            NotHeld: it waits for no decision.
            LedgerBehind: the files know more than the ledger; nothing was changed.
        """
        self._check_identity()
        self.ledger.partitions.get(partition)
        self._watch.check_records(partition)
        self._gatekeeper.reopen(partition, now)

    def commit(
        self,
        partition: Partition,
        publication: str,
        owner: str,
        now: datetime,
        *,
        by_command: bool = False,
    ) -> Committed:
        """Make a checked publication stand."""
        self.own(now)
        with self._forgotten.naming():
            committed = self._committer.commit(
                partition, publication, owner, now, by_command=by_command
            )
        _log.info(
            "committed %s revision %d: %d rows",
            partition,
            committed.revision,
            committed.rows,
            extra=self._facts(run=owner, partition=str(partition), windows=list(committed.windows)),
        )
        return committed

    def publish(
        self,
        partition: Partition,
        owner: str,
        now: datetime,
        override: Override | None = None,
        *,
        by_command: bool = False,
    ) -> PublishOutcome:
        """Do for one partition what its publish run does: evaluate, propose, gate, commit.

        Content that arrives between gate and commit is proposed and checked again (design §2,
        commit).

        Args:
            partition: the partition.
            owner: who claims it.
            now: clock of the command.
            override: a person's word that the partition is complete; it overrules the trigger,
                never the gate.
            by_command: a person named the partition, so that one whose turn never comes by time is
                published, too (design §8).
        """
        self.own(now)
        looked = self._evaluator.evaluate(partition, now)
        if looked is None:
            # A person's word stands in the revision that comes of it: here none does.
            return self._outcome(partition, None, state="unchanged" if override else None)
        with contextlib.suppress(NotCommittable):
            # Before anything is claimed: a look holds nobody up.
            self._evaluator.check(partition, looked, override, by_command=by_command)
            for _ in range(_ATTEMPTS_ON_NEW_CONTENT):
                with contextlib.suppress(PublicationLapsed):
                    return self._publish_once(
                        partition, owner, now, override, by_command=by_command
                    )
            raise PublicationLapsed(
                pipeline=self.config.name,
                partition=str(partition),
                change="new rows keep arriving",
            )
        return self._outcome(partition, None)

    def _publish_once(
        self,
        partition: Partition,
        owner: str,
        now: datetime,
        override: Override | None,
        *,
        by_command: bool,
    ) -> PublishOutcome:
        with self._forgotten.naming():
            proposal = self._committer.propose(
                partition, owner, now, override, by_command=by_command
            )
        if proposal is None:
            return self._outcome(partition, None)
        if proposal.stands:
            # What came since makes a revision of its own.
            after = self.publish(partition, owner, now, override, by_command=by_command)
            needs_somebody = after.state in {"held", "failed"}
            return after if needs_somebody else replace(after, state="committed")
        verdict = self.gate(partition, proposal.digest, owner, now)
        if verdict.outcome is Outcome.FAIL:
            return self._outcome(partition, None, gate=verdict.outcome, state="failed")
        state = None
        with contextlib.suppress(NotApproved):
            self.commit(partition, proposal.digest, owner, now, by_command=by_command)
            # Also where something came since, which waits for the next revision.
            state = "committed"
        return self._outcome(partition, None, gate=verdict.outcome, state=state)

    def publish_all(self, owner: str, now: datetime) -> Iterator[PublishOutcome]:
        """Publish every pending partition, in order of partition time.

        One failure stops no other (PC-T05); a target that is another's is no failure of one.
        """
        self.own(now)
        for state in self.ledger.partitions.all():
            if state.pending == "none":
                continue
            try:
                yield self.publish(state.partition, owner, now)
            except TidegateError as failure:
                yield self._outcome(state.partition, None, state="failed", error=str(failure))

    def pending(self, now: datetime) -> tuple[Partition, ...]:
        """Return the partitions that reconcile announces again: pending, and claimed by nobody.

        One that is held waits for a person, unless its commit has begun: that has to be finished.

        Raises:
            LedgerLost: the ledger has lost the pipeline.
        """
        self._check_known()
        return tuple(
            state.partition
            for state in self.ledger.partitions.all()
            if self._is_to_be_published(state)
            and (state.owner is None or self.partition_is_free(state.partition, "", now))
        )

    def _is_to_be_published(self, state: PartitionState) -> bool:
        if state.pending == "held":
            return self.ledger.publications.unrecorded(state.partition) is not None
        return state.pending == "pending"

    def status(self, now: datetime) -> PipelineReport | None:
        """Report on the pipeline; None if it never ran.

        Raises:
            TargetOwned, WorkUnfit, WorkOwned, LedgerLost: the ledger does not know it, and it is
                not its own target or its own ledger.
        """
        self._check_known()
        report = self._reporter.status(now)
        if report is None:
            return None
        waiting = [item.state.partition for item in report.partitions if item.rows_pending]
        return replace(report, notes=(*report.notes, *self._refusals(waiting)))

    def _refusals(self, waiting: Sequence[Partition]) -> Iterator[str]:
        """Yield why commands that write would be refused, and partitions not be published."""
        try:
            self._check_identity()
            check_owner(self.roots, self.ledger, self.storage)
            self._watch.check_newest_window()
            for partition in waiting:
                self._watch.check_partition(partition)
        except TidegateError as refused:
            yield self._naming(str(refused))

    def explain(self, partition: Partition, now: datetime) -> PartitionExplanation:
        """Report on one partition.

        Raises:
            PartitionNotFound: no window ever touched it.
            LedgerLost: the ledger has lost the pipeline.
        """
        self._check_known()
        return self._reporter.explain(partition, now)

    def restore_ledger(self) -> Restored:
        """Write the pipeline's part of the ledger again from work directory and markers."""
        with self._forgotten.naming():
            return Restorer(
                self.config, self.roots, self.ledger, self.storage, self._contents, self._watch
            ).restore()

    def findings(self) -> Iterator[str]:
        """Return where files, markers and ledger disagree, each with what helps."""
        return Findings(
            self.config,
            self.roots,
            self.ledger,
            self.storage,
            self._contents,
            self._watch,
            self._forgotten,
        ).all()

    def garbage(self, now: datetime, older_than: timedelta) -> tuple[Garbage, ...]:
        """Find files of the work directory that nobody needs any more."""
        return self._sweeper.garbage(now, older_than)

    def sweep(self, garbage: tuple[Garbage, ...]) -> tuple[Garbage, ...]:
        """Delete what `garbage` found and nobody has begun to need since; what was deleted."""
        return self._sweeper.sweep(garbage)

    def instants(self, now: datetime) -> tuple[SourceInstant, ...]:
        """Return what the source's commits did and which windows took them in, oldest first.

        Where the pipeline file names a snapshot that is not there, those of the whole branch: who
        corrects the file chooses from this list.

        Raises:
            LedgerLost: the ledger has lost the pipeline, and does not tell what was taken in.
        """
        self._check_known()
        try:
            return source_instants(self.source, self.ledger, now)
        except (SnapshotLogMissing, SnapshotNotFound, StartNotAncestor):
            return source_instants(self._opened(self.config.source.whole_branch), self.ledger, now)

    def checkpoint_state(self, now: datetime) -> CheckpointState | None:
        """Return how the checkpoint stands to the source's head; None before the first load.

        Changes nothing, and is no error where the source does not tell.
        """
        state = self.ledger.pipeline.find()
        if state is None or state.checkpoint is None:
            return None
        source = self.looking().source
        try:
            pin = source.pin(now, state.source_identity, after=state.checkpoint)
            found = source.checkpoint_state(pin, state.checkpoint)
        except TidegateError as refused:
            found = CheckpointState("unknown", str(refused), state.checkpoint.id)
        forgotten = self._forgotten.find() if found.state == "unknown" else None
        if forgotten is not None:
            found = replace(found, detail=str(forgotten), ways_out=())
        ways_out = tuple(map(self._naming, found.ways_out))
        return replace(found, detail=self._naming(found.detail), ways_out=ways_out)

    def preview(self, run: Run, now: datetime) -> Preview:
        """Return what a load would read; of `looking()` it changes nothing (PC-C08).

        Raises:
            TargetOwned, WorkUnfit, WorkOwned, LedgerLost: target and work directory are not the
                pipeline's own.
            WorkGone, WorkBehind: the work directory has not what the ledger knows.
        """
        check_owner(self.roots, self.ledger, self.storage)
        with self._forgotten.naming():
            return self._loader.preview(run, now)

    def parse_partition(self, text: str) -> Partition:
        """Read a partition as people write it.

        A path such as `dt=2013-02-09`, or the key `2013-02-09`.

        Raises:
            PartitionPathInvalid: it names no partition of this pipeline.
        """
        return Partitioning.of(self.config.target).read(text)

    def _outcome(
        self,
        partition: Partition,
        looked: Evaluation | None,
        *,
        gate: Outcome | None = None,
        state: str | None = None,
        error: str | None = None,
    ) -> PublishOutcome:
        found = self.ledger.partitions.get(partition)
        held = self.ledger.publications.proposed(partition) if found.pending == "held" else None
        return PublishOutcome(
            partition=partition,
            state=state or _outcome_state(found),
            revision=found.revision,
            rows=found.rows,
            why=looked or found.why,
            gate=gate,
            error=error,
            digest=held.publication.digest if held else None,
        )

    def _naming(self, message: str) -> str:
        """Return a message whose commands name this pipeline."""
        return naming(message, self.config.name)

    def _check_identity(self) -> None:
        self._check_known()
        check_identity(self.config, self.ledger, self.storage)

    def _check_known(self) -> None:
        """Check that a ledger that does not know the pipeline is not one that has lost it.

        Raises:
            TargetOwned, WorkUnfit, WorkOwned, LedgerLost: the ledger does not know it, and it is
                not its own target or its own ledger.
        """
        if self.ledger.pipeline.find() is None:
            check_owner(self.roots, self.ledger, self.storage)

    def _holder(self, owner: str, now: datetime) -> Holder:
        return Holder(owner, now, self.config.execute.claim_timeout, self.life_of)

    def _facts(self, **facts: object) -> dict[str, object]:
        """Return what a log line carries beside its text, for those who search logs."""
        return {"pipeline": self.config.name, **facts}

    def _note(self, planned: Sequence[PlannedWindow], stage: str, started: float) -> None:
        for item in planned:
            self.ledger.windows.note_seconds(
                item.sequence, item.attempt, stage, time.monotonic() - started
            )


def open_pipeline(
    name_or_path: str | Path,
    *,
    ledger: str | None = None,
    storage: Storage | None = None,
    spark_frame: SparkFrame = part_files_in_spark,
    life_of: Callable[[str], Life] = life_of,
) -> Pipeline:
    """Wire a pipeline from its file.

    Args:
        name_or_path: a pipeline's name, looked up in `TIDEGATE_PIPELINES`, or the path of its file.
        ledger: SQLAlchemy URL; by default `TIDEGATE_LEDGER`, else SQLite in `TIDEGATE_HOME`.
        storage: where it writes; the local file system by default.
        spark_frame: gives the gate a Spark frame of part files that are too large for pandas; by
            default of the session that this process has, or opens then.
        life_of: finds out what became of another holder of a window or partition; by default as far
            as a process can tell that cannot ask Airflow.

    Raises:
        ConfigInvalid, PipelineNotFound: there is no usable file.
        LedgerUnreachable: the ledger does not answer (Transient).
    """
    path = Path(name_or_path)
    is_file = path.suffix in {".yaml", ".yml"}
    config = load_pipeline(path if is_file else find_pipeline(str(name_or_path)))
    engine = open_engine(ledger or ledger_url())
    return Pipeline(
        config=config,
        roots=Roots.of(config),
        ledger=Ledger(engine, config.name),
        storage=storage or LocalStorage(),
        spark_frame=spark_frame,
        life_of=life_of,
    )


def _outcome_state(found: PartitionState) -> str:
    if found.pending == "none":
        return "committed" if found.revision else "unchanged"
    return found.pending
