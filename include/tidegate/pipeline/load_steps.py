"""The steps of a load: look, plan, stage, announce, and all of them in one process."""

from __future__ import annotations

import contextlib
import logging
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tidegate.commit.policies import shown_table
from tidegate.errors import TidegateError
from tidegate.ledger.holder import Holder, Way
from tidegate.pipeline.load.abandoning import Abandoner, Dropped
from tidegate.pipeline.load.staging import StageSplits
from tidegate.pipeline.parts import PipelineParts
from tidegate.pipeline.state.abandoned import abandoned_plans
from tidegate.pipeline.state.kept_ledger import keeping_ledger_open
from tidegate.pipeline.state.plan_files import pending_stages
from tidegate.pipeline.state.vanished import naming_vanished
from tidegate.pipeline.state.work import check_owner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from tidegate.execute import Executor
    from tidegate.model.ledger_rows import WindowState
    from tidegate.model.partition import Partition
    from tidegate.model.run import Announced, Look, PlannedWindow, Run
    from tidegate.pipeline.executors import ExecutorFactory
    from tidegate.pipeline.load.loader import Preview

_log = logging.getLogger(__name__)


@dataclass(frozen=True, repr=False)
class LoadSteps(PipelineParts):
    """The part of a pipeline that reads the source; it publishes nothing."""

    @keeping_ledger_open
    def look(self, run: Run, now: datetime) -> Look:
        """Return what a run would find, from the source's metadata alone."""
        with self._keeping_failure():
            self.adopt(now)
            with self._forgotten.naming(), self._changed_rows.naming(now):
                return self._loader.look(run, now)

    @keeping_ledger_open
    def plan(self, run: Run, now: datetime) -> tuple[PlannedWindow, ...]:
        """Take the run's window or those it replays, and write their plans."""
        started = time.monotonic()
        with self._keeping_failure():
            self.adopt(now)
            with self._forgotten.naming(), self._changed_rows.naming(now):
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
        """Plan a window that was taken before, with the configuration as it is now."""
        with self._keeping_failure():
            self.adopt(now)
            with self._forgotten.naming():
                return self._loader.replay(sequence, run, now)

    @keeping_ledger_open
    def rebuild(
        self, partitions: Sequence[Partition], run: Run, now: datetime
    ) -> tuple[PlannedWindow, ...]:
        """Plan to read whole partitions again, as of the checkpoint.

        A partition that the ledger does not know is created if the source has rows for it.
        """
        with self._keeping_failure():
            self.adopt(now)
            with self._forgotten.naming():
                return self._loader.rebuild(partitions, run, now)

    @keeping_ledger_open
    def reset(self, run: Run, now: datetime) -> tuple[PlannedWindow, ...]:
        """Plan to read the source again from `source.start`, in place of all windows before."""
        with self._keeping_failure():
            self.adopt(now)
            with self._forgotten.naming():
                planned = self._loader.reset(run, now)
        if planned:
            self._release_held()
        return planned

    def _release_held(self) -> None:
        """Take what is held away from readers: rows that are read again take its place."""
        table = shown_table(self.config.target)
        try:
            if table is not None:
                table.release(self.config.name)
        except TidegateError as failed:
            # The window is taken; each branch goes with the next revision of its partition.
            _log.warning("the branches of what was held stay for now: %s", failed)

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
            progress: called with the number of finished sub-splits.
            beside: windows of the same run that are staged later; they are renewed, too.

        Returns:
            The number of sub-splits that were finished.

        Raises:
            FenceLost: a successor took a window over; what was staged stays for it.
        """
        started = time.monotonic()
        finished = 0
        task = StageSplits.of(self.storage, planned.uri)
        with self._keeping_failure(), self.renewing((planned, *beside)) as held:
            # One stage after the other: each gathers the rows that the one before has spread.
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

        Afterwards every pending partition is evaluated, touched or not (PC-T01).

        Raises:
            PipelineChanged: the pipeline file is not the one that was registered.
        """
        self._check_identity()
        with self._keeping_failure(), self.renewing(planned) as held:
            announced = self._announcer.announce(planned, now, held)
            reviewed = self._reviewer.review(now)
        self._failure.forget()
        aside = (announced.summary.rows_aside or {}).items()
        _log.info(
            "announced windows %s: %d rows read, %d kept, %d late%s, %d put aside",
            list(announced.windows),
            announced.summary.rows_read,
            announced.summary.rows_kept,
            announced.summary.rows_late,
            "".join(f" ({rows} {why})" for why, rows in aside),
            announced.summary.rows_quarantined,
            extra=self._facts(
                windows=list(announced.windows), partitions=len(announced.partitions)
            ),
        )
        return replace(announced, expected=reviewed.marked or None)

    def load(self, run: Run, now: datetime, executors: ExecutorFactory) -> Announced:
        """Do a whole load in this process: plan, stage, announce.

        If it finds the open window of a dead run, it finishes that first, and then takes its own.
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
    def abandon(
        self, sequence: int, owner: str, now: datetime, *, by: str, comment: str = ""
    ) -> Dropped:
        """Give up an open window: the next load begins where it began.

        Args:
            sequence: the window.
            owner: the name of this process; the run that holds the window must be gone.
            now: clock of the command.
            by: the person who decided it.
            comment: the reason.

        Raises:
            TargetOwned, WorkUnfit, WorkOwned, LedgerLost, WorkGone, LedgerBehind: the ledger does
                not know what became of the window.
            WindowNotFound: it was never taken, or was dropped.
            AbandonRefused: it was announced.
            WindowOpen: a run works on it (Transient).
        """
        check_owner(self.roots, self.ledger, self.storage)
        self._watch.check_newest_window()
        way = self._asked("abandon", sequence, "gives it up")
        holder = replace(self._holder(owner, now), asked=way)
        abandoner = Abandoner(self.roots, self.ledger, self.storage)
        dropped = abandoner.abandon(sequence, holder, by, comment, now)
        _log.info("abandoned window %d", sequence, extra=self._facts(window=sequence))
        return dropped

    @keeping_ledger_open
    def release(self, sequence: int, owner: str, now: datetime) -> None:
        """Take a window from its run and hold it no longer: the next run goes on with it.

        Its run can no longer announce it. A window without a plan is dropped.

        Raises:
            TargetOwned, WorkUnfit, WorkOwned, LedgerLost, WorkGone: the files are not the
                pipeline's own.
            WindowNotFound: it was never taken, or was dropped.
            WindowOpen: the run is alive, or may be (Transient).
        """
        check_owner(self.roots, self.ledger, self.storage)
        way = self._asked("release", sequence, "takes it from its run")
        holder = replace(self._holder(owner, now), asked=replace(way, takes_over=False))
        taken = self.ledger.windows.resume(sequence, holder, None)
        self.ledger.windows.give_back(sequence, taken.attempt)
        _log.info("released window %d", sequence, extra=self._facts(window=sequence))

    def _asked(self, verb: str, sequence: int, does: str) -> Way:
        """Return what a person asked to be done with a window."""
        name = self.config.name
        return Way((verb, name, sequence), does, ("release", name, sequence))

    def _holder(self, owner: str, now: datetime) -> Holder:
        return Holder(owner, now, self.config.execute.claim_timeout, self.life_of)

    @keeping_ledger_open
    def open_window(self) -> WindowState | None:
        """Return the window that was taken and not announced.

        Raises:
            TargetOwned, WorkUnfit, WorkOwned, LedgerLost, WorkGone, LedgerBehind: the ledger does
                not know what is open.
        """
        check_owner(self.roots, self.ledger, self.storage)
        self._watch.check_newest_window()
        return self.ledger.windows.open()

    def was_abandoned(self, sequence: int) -> bool:
        """Return whether a window was given up, and the ledger dropped it."""
        plans = abandoned_plans(self.storage, self.roots.work, sequence)
        return self.ledger.windows.find(sequence) is None and any(plans)

    @keeping_ledger_open
    def preview(self, run: Run, now: datetime) -> Preview:
        """Return what a load would read; called on `looking()`, it changes nothing (PC-C08).

        Raises:
            TargetOwned, WorkUnfit, WorkOwned, LedgerLost: target and work directory are not the
                pipeline's own.
            WorkGone, WorkBehind: the work directory lacks windows that the ledger knows.
        """
        check_owner(self.roots, self.ledger, self.storage)
        with self._forgotten.naming(), self._changed_rows.naming(now):
            return self._loader.preview(run, now)

    @contextlib.contextmanager
    def _keeping_failure(self) -> Iterator[None]:
        """Keep an error that ends a step of a load, for status and explain."""
        with self._failure.noting(), naming_vanished(self.ledger):
            yield

    def _note(self, planned: Sequence[PlannedWindow], stage: str, started: float) -> None:
        for item in planned:
            self.ledger.windows.note_seconds(
                item.sequence, item.attempt, stage, time.monotonic() - started
            )
