"""One pipeline with all that can be done with it: the entry of command line, jobs and Airflow."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tidegate.errors import ListsNothing, NothingErased, PointNotFound, TidegateError
from tidegate.model.report import CheckpointState
from tidegate.pipeline.control import open_control
from tidegate.pipeline.executors import part_files_in_spark
from tidegate.pipeline.load_steps import LoadSteps
from tidegate.pipeline.publish_steps import PublishSteps
from tidegate.pipeline.state.erasures import erasures, unfinished_erasures
from tidegate.pipeline.state.holders import life_of
from tidegate.pipeline.state.kept_ledger import keeping_ledger_open
from tidegate.pipeline.upkeep.differing import Differ, RevisionDifference
from tidegate.pipeline.upkeep.fsck.findings import Findings
from tidegate.pipeline.upkeep.history import SourceInstant, source_instants
from tidegate.pipeline.upkeep.resetting import Resetter, Standing
from tidegate.pipeline.upkeep.restore import Restorer
from tidegate.pipeline.upkeep.retiring import Retirer
from tidegate.pipeline.upkeep.revision_files import RevisionFiles
from tidegate.storage.temporary_folder import remove_left_folders

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime, timedelta
    from pathlib import Path

    from tidegate.gate import SparkFrame
    from tidegate.ledger.holder import Life
    from tidegate.model.erasure import Erasure, ErasureLook, ErasureReport
    from tidegate.model.finding import Finding
    from tidegate.model.instant import Instant
    from tidegate.model.partition import Partition
    from tidegate.model.publication import Approval
    from tidegate.model.run import Run
    from tidegate.pipeline.executors import ExecutorFactory
    from tidegate.pipeline.upkeep.repeating import Restored
    from tidegate.pipeline.upkeep.sweeping import Garbage
    from tidegate.storage import Storage


@dataclass(frozen=True, repr=False)
class Pipeline(LoadSteps, PublishSteps):
    """One pipeline with its source, its executors and its gate: all that can be done with it.

    Every method may be called again after it failed or was interrupted.
    """

    @keeping_ledger_open
    def restore_ledger(self) -> Restored:
        """Restore the pipeline's part of the ledger from work directory and markers."""
        with self._forgotten.naming():
            return Restorer(
                self.config, self.roots, self.ledger, self.storage, self._contents, self._watch
            ).restore()

    @property
    def _resetter(self) -> Resetter:
        return Resetter(self.config, self.roots, self.ledger, self.storage, self.life_of)

    def standing(self) -> Standing | None:
        """Return what `drop` would drop; None if the ledger does not know the pipeline.

        Raises:
            TargetOwned, WorkUnfit, WorkOwned, LedgerLost: target and work directory are not the
                pipeline's own.
        """
        return self._resetter.standing()

    @keeping_ledger_open
    def drop(self, owner: str, now: datetime) -> None:
        """Drop all that the pipeline published and staged, and register it anew.

        Raises:
            TargetOwned, WorkUnfit, WorkOwned, LedgerLost: target and work directory are not the
                pipeline's own; nothing was dropped.
            WindowOpen, PartitionBusy: a run is at work (Transient).
        """
        self._resetter.drop(owner, now)

    def has_ended(self) -> bool:
        """Return whether the pipeline was retired, and only the ledger does not know it."""
        return self._resetter.has_ended()

    @keeping_ledger_open
    def retire(self, by: str, owner: str, now: datetime) -> None:
        """End the pipeline: what it published stays, and its target may get a new owner.

        Raises:
            TargetOwned, WorkUnfit, WorkOwned, LedgerLost: target and work directory are not the
                pipeline's own; nothing was changed.
            CommitUnfinished: a commit has begun and not ended; nothing was changed.
            WindowOpen, PartitionBusy: a run is at work (Transient).
        """
        Retirer(self._resetter).retire(by, owner, now)

    def findings(self) -> Iterator[str]:
        """Return where files, markers and ledger disagree, each with a remedy."""
        return map(str, self.inspect())

    def inspect(self, *, reads_content: bool = True) -> Iterator[Finding]:
        """Return where files, markers and ledger disagree, with place, reason and remedy.

        Args:
            reads_content: compare the bytes of published files, not only their lengths.
        """
        return Findings(
            self.config,
            self.roots,
            self.ledger,
            self.storage,
            self._contents,
            self._watch,
            self._forgotten,
            self._strays,
            self._came_back,
            self._missing_of_source,
            self._finisher.differences if self._finisher.lists else None,
            reads_content,
        ).all()

    def _missing_of_source(
        self, checkpoint: Instant, start: Instant | None
    ) -> Iterator[TidegateError]:
        kept = self.source.kept
        return iter(()) if kept is None else kept.missing(checkpoint, start)

    @keeping_ledger_open
    def list_again(self, partition: Partition, owner: str, now: datetime) -> tuple[str, ...]:
        """List the current revision of a partition again, without publishing anything.

        Returns:
            How it was listed before, for each list that was changed.

        Raises:
            ListsNothing: no policy of the pipeline file keeps a list.
            CommitUnfinished: a commit has begun, which lists the partition when it ends.
            ClaimHeld, PartitionBusy: another run works on the partition (Transient).
        """
        self.own(now)
        self.check_lists()
        self._check_touched(partition)
        return self._finisher.list_again(partition, owner, now)

    def check_lists(self) -> None:
        """Check that a policy of the pipeline file keeps a list.

        Raises:
            ListsNothing: none does.
        """
        if not self._finisher.lists:
            found = ", ".join(policy.title for policy in self.config.commit.policies) or "none"
            raise ListsNothing(pipeline=self.config.name, found=found)

    @keeping_ledger_open
    def garbage(self, now: datetime, older_than: timedelta) -> tuple[Garbage, ...]:
        """Find files of the work directory that nobody needs any more."""
        return self._sweeper.garbage(now, older_than)

    @keeping_ledger_open
    def sweep(self, garbage: tuple[Garbage, ...]) -> tuple[Garbage, ...]:
        """Delete what `garbage` found, unless it is needed by now, and return what was deleted."""
        return self._sweeper.sweep(garbage)

    def erasure(
        self,
        where: str | None,
        by: str,
        now: datetime,
        comment: str = "",
        instead: Sequence[int] = (),
    ) -> Erasure:
        """Return the erasure that a condition describes, which may have been written down before.

        Raises:
            ErasureInvalid: it does not name values of columns of the published files, or an
                earlier erasure that it replaces does not exist.
            TargetOwned, WorkUnfit, WorkOwned, LedgerLost, PipelineChanged: target and work
                directory are not the pipeline's own.
        """
        self.own(now)
        comes = functools.partial(self.looking().coming_columns, now)
        return self._named_rows.named(where, by, now, comment, instead, comes)

    def is_erasing(self, published: Iterable[Partition]) -> bool:
        """Return whether an erasure is not done everywhere, or not any more.

        Args:
            published: partitions that may have been put back as they were before an erasure.
        """
        if unfinished_erasures(self.storage, self.roots.work):
            return True
        came_back = self._came_back
        try:
            return any(came_back.found(partition) for partition in published)
        except TidegateError:
            # What cannot be looked through may have such rows: the next erasure says what is wrong.
            return True

    @keeping_ledger_open
    def to_erase(self, erasure: Erasure) -> ErasureLook:
        """Return the published and staged files that have rows of an erasure. Changes nothing."""
        with self._forgotten.naming():
            return self._eraser.look([erasure])

    @keeping_ledger_open
    def lacking(self, erasure: Erasure) -> Mapping[str, int]:
        """Return partition → its files that do not tell the rows of an erasure."""
        return self._eraser.lacking(erasure)

    @keeping_ledger_open
    def erase(
        self,
        erasure: Erasure | None,
        run: Run,
        said: Approval,
        executors: ExecutorFactory,
        told: Callable[[str], None] = lambda _: None,
    ) -> ErasureReport:
        """Erase rows for good: from every file that is kept, and from every load that comes.

        Args:
            erasure: from `erasure`; it is written down first. None: all that were, once more.
            run: who does it.
            said: who asked for it, and when.
            executors: read windows again whose staged rows somebody may still publish.
            told: called with what is being done.

        Returns:
            What was erased, and what is left for now, with the reason.

        Raises:
            NothingErased: nothing was ever erased.
        """
        self.own(said.at)
        remove_left_folders()
        if erasure is not None:
            self._named_rows.record(erasure)
        named = erasures(self.storage, self.roots.work)
        if not named:
            raise NothingErased(pipeline=self.config.name)

        def read_again(window: int) -> None:
            told(f"reading window {window} again")
            self.finish_load(self.replay(window, run, said.at), said.at, executors)

        return self._eraser.erase(named, said, run.owner, read_again, told)

    @keeping_ledger_open
    def difference(
        self,
        partition: Partition,
        one: int | None = None,
        other: int | None = None,
        *,
        keys: Sequence[str] = (),
    ) -> RevisionDifference:
        """Compare two revisions of a partition.

        Args:
            partition: the partition.
            one: the number of a revision, 0 for the partition before it was published; by default
                the one before `other`.
            other: the same; by default the newest.
            keys: columns that tell which row became which; by default a row that changed is one
                that was removed, and one that was added.

        Raises:
            PartitionNotFound: no window ever touched it.
            LedgerLost: the ledger has lost the pipeline.
            RevisionUnknown: there is no such revision.
            RevisionFileGone: a file of one of them was deleted.
            KeyUnknown: no file has a column of this name.
            ColumnTypesDiffer: a column has two types with no common one.
        """
        self._check_known()
        self._check_touched(partition)
        erased = erasures(self.storage, self.roots.work)
        files = RevisionFiles(self.roots, self.ledger, self.storage, self._contents, erased)
        return Differ(files).compare(partition, one, other, keys)

    @keeping_ledger_open
    def instants(self, now: datetime) -> tuple[SourceInstant, ...]:
        """Return the source's commits with the windows that took them in, oldest first.

        If the pipeline file names a snapshot that does not exist, all commits of the branch are
        returned, so that the file can be corrected.

        Raises:
            LedgerLost: the ledger has lost the pipeline.
        """
        self._check_known()
        try:
            return source_instants(self.source, self.ledger, now)
        except PointNotFound:
            return source_instants(self._opened(self.config.source.whole_history), self.ledger, now)

    def checkpoint_state(self, now: datetime) -> CheckpointState | None:
        """Return how the checkpoint relates to the source's head; None before the first load.

        Changes nothing, and raises no error if the source does not answer.
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
        spark_frame: opens part files that are too large for pandas as a Spark frame, for the gate;
            by default in the session of this process, which is started if needed.
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
