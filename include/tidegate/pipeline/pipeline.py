"""One pipeline with every part wired: what the command line, the jobs and Airflow call."""

from __future__ import annotations

import contextlib
import functools
import logging
import time
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from tidegate.errors import (
    NotApproved,
    NotCommittable,
    PointNotFound,
    PublicationLapsed,
    TidegateError,
)
from tidegate.errors.commands import naming
from tidegate.model.partition_value import time_fields
from tidegate.model.publication import Outcome, Verdict
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
from tidegate.pipeline.control import PipelineControl, open_control
from tidegate.pipeline.executors import ExecutorFactory, part_files_in_spark
from tidegate.pipeline.load.announce import Announcer
from tidegate.pipeline.load.loader import Loader, Preview
from tidegate.pipeline.load.rebuilding import LedgerRebuilding
from tidegate.pipeline.load.staging import stage_split
from tidegate.pipeline.publish.content import Contents
from tidegate.pipeline.publish.finishing import Finisher
from tidegate.pipeline.publish.gating import Gatekeeper
from tidegate.pipeline.publish.publisher import Committer
from tidegate.pipeline.state.holders import life_of
from tidegate.pipeline.state.kept_ledger import keeping_ledger_open
from tidegate.pipeline.state.plan_files import pending_stages
from tidegate.pipeline.state.reading import filter_columns
from tidegate.pipeline.state.work import adopt, check_owner
from tidegate.pipeline.upkeep.findings import Findings
from tidegate.pipeline.upkeep.forgotten import Forgotten
from tidegate.pipeline.upkeep.history import SourceInstant, source_instants
from tidegate.pipeline.upkeep.lost_announces import LostAnnounces
from tidegate.pipeline.upkeep.restore import Restored, Restorer
from tidegate.pipeline.upkeep.sweeping import Garbage, Sweeper
from tidegate.source import open_source
from tidegate.stage import layout
from tidegate.storage import Scratch, Storage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime, timedelta
    from pathlib import Path

    from tidegate.config import SourceConfig
    from tidegate.execute import Executor
    from tidegate.gate import SparkFrame
    from tidegate.ledger.holder import Life
    from tidegate.model.instant import Instant, InstantRange
    from tidegate.model.ledger_rows import PartitionState
    from tidegate.model.partition import Partition
    from tidegate.model.publication import Override
    from tidegate.model.watermark import Evaluation
    from tidegate.source.protocol import Source

_ATTEMPTS_ON_NEW_CONTENT = 5

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Pipeline(PipelineControl):
    """One pipeline with its source, its executors and its gate: all that can be done with it.

    Every method may be called again after it failed or was interrupted.
    """

    spark_frame: SparkFrame | None = None
    """Gives the gate a Spark frame of part files that are too large for pandas."""

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
        return Forgotten(announces, self._can_never_be_read)

    def _can_never_be_read(self, window: InstantRange) -> bool:
        kept = self.source.kept
        return kept is not None and kept.has_lost(window)

    @cached_property
    def _sweeper(self) -> Sweeper:
        return Sweeper(
            self.config, self.roots, self.ledger, self.storage, self._watch, self.life_of
        )

    def looking(self) -> Pipeline:
        """Return the same pipeline for questions only: listings that it takes stay in memory."""
        return replace(self, storage=Scratch())

    @keeping_ledger_open
    def adopt(self, now: datetime) -> None:
        """Register the pipeline, or check that ledger and target are its own.

        The first step of a load.

        Raises:
            PipelineChanged, TargetOwned, WorkUnfit, WorkOwned, LedgerLost, WorkElsewhere,
                PlacesOverlap: they are not.
        """
        adopt(self.config, self.roots, self.ledger, self.storage, now, self.source)

    @keeping_ledger_open
    def look(self, run: Run, now: datetime) -> Look:
        """Return what a run would find, from the source's metadata alone."""
        self.adopt(now)
        with self._forgotten.naming():
            return self._loader.look(run, now)

    @keeping_ledger_open
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

    @keeping_ledger_open
    def replay(self, sequence: int, run: Run, now: datetime) -> tuple[PlannedWindow, ...]:
        """Plan a window that was taken before with the configuration as it is now."""
        self.adopt(now)
        with self._forgotten.naming():
            return self._loader.replay(sequence, run, now)

    @keeping_ledger_open
    def rebuild(
        self, partitions: Sequence[Partition], run: Run, now: datetime
    ) -> tuple[PlannedWindow, ...]:
        """Plan to read whole partitions again, as of the checkpoint.

        One that the ledger does not know comes to be if the source has rows for it.
        """
        self.adopt(now)
        with self._forgotten.naming():
            return self._loader.rebuild(partitions, run, now)

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

    @keeping_ledger_open
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

    @keeping_ledger_open
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

    @keeping_ledger_open
    def propose(self, partition: Partition, owner: str, now: datetime) -> Proposal | None:
        """Work out the next revision; None when there is none, or a person has to decide first.

        Where a predecessor's commit was finished, that revision: what came since is proposed next.

        Raises:
            NotCommittable: the partition's turn has not come.
        """
        self.own(now)
        with self._forgotten.naming():
            return self._committer.propose(partition, owner, now)

    @keeping_ledger_open
    def gate(self, partition: Partition, publication: str, owner: str, now: datetime) -> Verdict:
        """Check the partition as it would stand.

        Raises:
            PipelineChanged: the pipeline file is not the one that was registered.
        """
        self._check_identity()
        with self._forgotten.naming():
            return self._committer.gate(partition, publication, owner, now)

    @keeping_ledger_open
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

    @keeping_ledger_open
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
            return self._outcome(partition, None, gate=Outcome.FAIL, state="failed")
        state = None
        with contextlib.suppress(NotApproved):
            self.commit(partition, proposal.digest, owner, now, by_command=by_command)
            # Also where something came since, which waits for the next revision.
            state = "committed"
        gate = verdict.outcome if verdict.checks else None
        return self._outcome(partition, None, gate=gate, state=state)

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
                said = naming(str(failure), self.config.name, state.partition)
                yield self._outcome(state.partition, None, state="failed", error=said)

    @keeping_ledger_open
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
            self._missing_of_source,
        ).all()

    def _missing_of_source(
        self, checkpoint: Instant, start: Instant | None
    ) -> Iterator[TidegateError]:
        kept = self.source.kept
        return iter(()) if kept is None else kept.missing(checkpoint, start)

    @keeping_ledger_open
    def garbage(self, now: datetime, older_than: timedelta) -> tuple[Garbage, ...]:
        """Find files of the work directory that nobody needs any more."""
        return self._sweeper.garbage(now, older_than)

    @keeping_ledger_open
    def sweep(self, garbage: tuple[Garbage, ...]) -> tuple[Garbage, ...]:
        """Delete what `garbage` found and nobody has begun to need since; what was deleted."""
        return self._sweeper.sweep(garbage)

    @keeping_ledger_open
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
        except PointNotFound:
            return source_instants(self._opened(self.config.source.whole_history), self.ledger, now)

    def checkpoint_state(self, now: datetime) -> CheckpointState | None:
        """Return how the checkpoint stands to the source's head; None before the first load.

        Changes nothing, and is no error where the source does not tell.
        """
        state = self.ledger.pipeline.find()
        if state is None or state.checkpoint is None:
            return None
        source = self.looking().source
        try:
            pin = source.timeline.pin(now, state.source_identity, after=state.checkpoint)
            found = source.timeline.checkpoint_state(pin, state.checkpoint)
        except TidegateError as refused:
            found = CheckpointState("unknown", str(refused), state.checkpoint.id)
        forgotten = self._forgotten.find() if found.state == "unknown" else None
        if forgotten is not None:
            found = replace(found, detail=str(forgotten), ways_out=())
        ways_out = tuple(map(self._naming, found.ways_out))
        return replace(found, detail=self._naming(found.detail), ways_out=ways_out)

    @keeping_ledger_open
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
        name_or_path: as for `open_control`.
        ledger: as for `open_control`.
        storage: as for `open_control`.
        spark_frame: gives the gate a Spark frame of part files that are too large for pandas; by
            default of the session that this process has, or opens then.
        life_of: as for `open_control`.

    Raises:
        ConfigInvalid, PipelineNotFound: there is no usable file.
        LedgerUnreachable: the ledger does not answer (Transient).
    """
    control = open_control(name_or_path, ledger=ledger, storage=storage, life_of=life_of)
    return Pipeline(
        config=control.config,
        roots=control.roots,
        ledger=control.ledger,
        storage=control.storage,
        life_of=control.life_of,
        spark_frame=spark_frame,
    )


def _outcome_state(found: PartitionState) -> str:
    if found.pending == "none":
        return "committed" if found.revision else "unchanged"
    return found.pending
