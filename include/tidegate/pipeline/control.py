"""The control plane of one pipeline: everything that needs only its ledger and work directory.

Sensors, triggers, approvals and pages use it, many at a time, and a look costs one or two queries.
Nothing here reads rows or asks a source, and neither pyarrow nor polars is imported.
"""

from __future__ import annotations

import contextlib
import logging
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tidegate.config import (
    CompactionConfig,
    PipelineConfig,
    find_pipeline,
    ledger_url,
    load_pipeline,
)
from tidegate.errors import PlanMissing, TidegateError
from tidegate.errors.commands import naming
from tidegate.ledger import Ledger, open_engine
from tidegate.ledger.holder import Holder, Life
from tidegate.model.publication import Approval, Outcome
from tidegate.pipeline.publish.counting import UpstreamReader
from tidegate.pipeline.publish.deciding import Decisions
from tidegate.pipeline.publish.evaluating import Evaluator
from tidegate.pipeline.publish.expecting import Reviewer
from tidegate.pipeline.state.behind import Watch
from tidegate.pipeline.state.holders import life_of
from tidegate.pipeline.state.kept_ledger import keeping_ledger_open
from tidegate.pipeline.state.load_failure import LoadFailure
from tidegate.pipeline.state.passed_over import brought_partitions
from tidegate.pipeline.state.places import Roots
from tidegate.pipeline.state.plan_files import has_plan, read_plan, read_splits
from tidegate.pipeline.state.renewing import Renewing, renewing_windows
from tidegate.pipeline.state.work import check_identity, check_owner
from tidegate.pipeline.upkeep.report import Reporter
from tidegate.storage import Storage, Stores
from tidegate.target.partitioning import Partitioning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from tidegate.model.expected import Review
    from tidegate.model.file_sizes import FileSizes
    from tidegate.model.ledger_rows import PartitionState
    from tidegate.model.message import Contribution
    from tidegate.model.partition import Partition
    from tidegate.model.plan import ScanPlan, Split
    from tidegate.model.report import PartitionExplanation, PipelineReport
    from tidegate.model.run import PlannedWindow, Run
    from tidegate.model.watermark import Evaluation


_log = logging.getLogger(__name__)


@dataclass(frozen=True, repr=False)
class PipelineControl:
    """One pipeline as its ledger and files describe it, and what can be decided on it.

    Every method may be called again after it failed or was interrupted.
    """

    config: PipelineConfig
    roots: Roots
    ledger: Ledger
    storage: Storage
    life_of: Callable[[str], Life] = life_of
    """Finds out whether another holder of a window or partition is alive."""

    def __repr__(self) -> str:
        """Name the pipeline and its file; what it consists of would fill a page."""
        return f"{type(self).__name__}({self.config.name!r}, {self.config.file!r})"

    @cached_property
    def _evaluator(self) -> Evaluator:
        return Evaluator(self.config, self.ledger, self.upstream.at)

    @cached_property
    def _reviewer(self) -> Reviewer:
        return Reviewer(self.config, self.ledger, self._evaluator)

    @cached_property
    def upstream(self) -> UpstreamReader:
        """Reads the upstream counts of its partitions, if it has any."""
        return UpstreamReader(self.config, self.storage)

    @cached_property
    def _watch(self) -> Watch:
        return Watch(self.config, self.roots, self.ledger, self.storage)

    @cached_property
    def _decisions(self) -> Decisions:
        return Decisions(self.roots, self.ledger, self.storage)

    @cached_property
    def _reporter(self) -> Reporter:
        return Reporter(
            config=self.config,
            roots=self.roots,
            ledger=self.ledger,
            storage=self.storage,
            evaluator=self._evaluator,
            failure=self._failure,
            life_of=self.life_of,
        )

    @property
    def _failure(self) -> LoadFailure:
        return LoadFailure(self.roots, self.ledger, self.storage)

    def stored_plan(self, sequence: int) -> tuple[ScanPlan, Sequence[Split]]:
        """Read the plan that a window was last planned with.

        Raises:
            WindowNotFound: there is no such window.
            PlanMissing: it has no plan, or that was swept.
            LedgerLost: the ledger has lost the pipeline.
        """
        self._check_known()
        uri = self.ledger.plans.uri(sequence)
        if uri is None or not has_plan(self.storage, uri):
            path = uri or f"{self.config.name}, window {sequence}"
            raise PlanMissing(path=path, window=sequence)
        return read_plan(self.storage, uri), read_splits(self.storage, uri)

    def check_rebuilt(self, partitions: Sequence[Partition]) -> list[Partition]:
        """Check that the partitions of a rebuild exist, after it was announced.

        Those that were named because commits that were passed over may have rows of them may turn
        out to have none.

        Returns:
            The partitions that exist.

        Raises:
            PartitionNotFound: no window ever touched some of the others, and the source has no rows
                for them.
        """
        known = [item for item in partitions if self.ledger.partitions.find(item) is not None]
        if len(known) == len(partitions):
            return known
        told = brought_partitions(self.ledger.windows.all())
        unknown = [item for item in partitions if item not in known and item not in told]
        if unknown:
            looked = ", and the source was read: it has no rows for it either"
            if len(unknown) < len(partitions):
                looked += "; the other partitions are rebuilt"
            raise self.ledger.partitions.not_found(*unknown, looked=looked)
        return known

    def engine_for(self, planned: Sequence[PlannedWindow]) -> str:
        """Return where to read: `none` if all is staged, else `local` or `spark` (design §6)."""
        open_windows = [item for item in planned if item.pending]
        if not open_windows:
            return "none"
        engine = self.config.execute.engine
        if engine != "auto":
            return engine
        total = sum(item.pending_bytes for item in open_windows)
        return "local" if total < self.config.execute.local_below else "spark"

    @contextlib.contextmanager
    def renewing(
        self, planned: Sequence[PlannedWindow], on_loss: Callable[[], None] = lambda: None
    ) -> Iterator[Renewing]:
        """Renew the windows of a run while one of its steps lasts.

        Args:
            planned: the windows; they are renewed at once and from then on.
            on_loss: called from another thread once a successor took one over.

        Raises:
            FenceLost: a successor took one over, before or meanwhile.
        """
        attempts = {item.sequence: item.attempt for item in planned}
        timeout = self.config.execute.claim_timeout
        with renewing_windows(self.ledger, attempts, timeout, on_loss) as held:
            # A stale step must not find this out only after it has read for an hour.
            held.renew()
            yield held

    def take_over(self, sequence: int, run: Run, now: datetime) -> None:
        """Take a window for a run without planning it, so that its next step can continue.

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

    @keeping_ledger_open
    def asking(self, partition: Partition) -> str | None:
        """Return the run that said that it asks a person about a partition; it may have ended.

        None if nobody has to decide any more: it was approved, or what was shown was replaced.
        """
        shown = self.ledger.publications.proposed(partition)
        if shown is None or shown.verdict is None or shown.is_approved:
            return None
        # After a rejection, which is kept, a run may ask again.
        if shown.verdict.outcome is not Outcome.HOLD:
            return None
        if self.ledger.publications.is_replaced(partition, shown.publication.digest):
            return None
        why = self.ledger.partitions.get(partition).why
        return why.waiting if why is not None else None

    @keeping_ledger_open
    def evaluate(
        self, partition: Partition, now: datetime, waiting: str | None = None
    ) -> Evaluation | None:
        """Evaluate whether a partition may be committed; None if nothing is pending.

        Args:
            partition: the partition.
            now: clock of the look.
            waiting: the run that waits if it may not; by default the one that said so before.

        Raises:
            PipelineChanged: the pipeline file is not the one that was registered.
        """
        self._check_identity()
        return self._evaluator.evaluate(partition, now, waiting)

    @keeping_ledger_open
    def review(self, now: datetime) -> Review:
        """Evaluate all pending partitions, go on with the calendar, and raise each alarm once.

        Raises:
            LedgerLost: the ledger has lost the pipeline.
        """
        self._check_known()
        return self._reviewer.review(now)

    @keeping_ledger_open
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
        self._check_touched(partition)
        self._watch.check_records(partition)
        self._decisions.decide(partition, publication, Approval(approved, by, now, comment))
        if not approved:
            self._drop_held(partition)

    def _drop_held(self, partition: Partition) -> None:
        """Take a rejected revision away from readers who could look at it while it was held."""
        # What a web page needs loads no library of a format.
        from tidegate.commit.policies import shown_table

        table = shown_table(self.config.target)
        try:
            if table is not None:
                table.drop(self.config.name, partition)
        except TidegateError as failed:
            # The decision stands; the branch goes with the next one, or with the next commit.
            _log.warning("the held branch of %s stays for now: %s", partition, failed)

    @keeping_ledger_open
    def reopen(self, partition: Partition, now: datetime) -> Sequence[Contribution]:
        """Let a held partition be checked again by the next publish, and count what is set aside.

        Returns:
            What was set aside: late rows, and those of revisions that were undone.

        Raises:
            PipelineChanged: the pipeline file is not the one that was registered.
            LedgerLost: the ledger has lost the pipeline.
            PartitionNotFound: no window ever touched the partition.
            NotHeld: it waits for no decision, and nothing is set aside.
            LedgerBehind: the files know more than the ledger; nothing was changed.
        """
        self._check_identity()
        self._check_touched(partition)
        self._watch.check_records(partition)
        return self._decisions.reopen(partition, now)

    def is_held(self, partition: Partition) -> bool:
        """Return whether a partition waits for a person's decision."""
        found = self.ledger.partitions.find(partition)
        return found is not None and found.pending == "held"

    def unpublished(self) -> tuple[Partition, ...]:
        """Return the partitions with rows that are not published, in order of partition time."""
        states = self.ledger.partitions.all()
        return tuple(state.partition for state in states if state.pending != "none")

    @keeping_ledger_open
    def pending(self, now: datetime) -> tuple[Partition, ...]:
        """Return the partitions that reconcile announces again: pending, and claimed by nobody.

        A held partition waits for a person, unless its commit has begun, which has to be finished.

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

    @keeping_ledger_open
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

    def file_sizes(self, small_below: int | None = None) -> tuple[FileSizes, ...]:
        """Count the files of every published partition.

        Args:
            small_below: a file with fewer bytes is small; by default as `target.compaction` says.
        """
        rule = self.config.target.compaction or CompactionConfig()
        return self._reporter.file_sizes(
            rule.small_file if small_below is None else small_below,
            rule.target_size or self.config.target.rolling.file_size,
        )

    def to_rebuild(self) -> tuple[Partition, ...]:
        """Return the partitions to rebuild before they are published.

        They may have, or lack, rows of commits that a load passed over.
        """
        return self._reporter.to_rebuild()

    def _refusals(self, waiting: Sequence[Partition]) -> Iterator[str]:
        """Yield the errors that commands that write, or that publish a partition, would meet."""
        try:
            self._check_identity()
            check_owner(self.roots, self.ledger, self.storage)
            self._watch.check_newest_window()
            self._watch.check_pending(waiting)
        except TidegateError as refused:
            yield self._naming(str(refused))

    @keeping_ledger_open
    def explain(self, partition: Partition, now: datetime) -> PartitionExplanation:
        """Report on one partition.

        Raises:
            PartitionNotFound: no window ever touched it.
            LedgerLost: the ledger has lost the pipeline.
            LedgerBehind: the ledger does not know it, and its files do.
        """
        self._check_known()
        self._check_touched(partition)
        return self._reporter.explain(partition, now)

    def parse_partition(self, text: str) -> Partition:
        """Read a partition as people write it.

        A path such as `dt=2013-02-09`, or the key `2013-02-09`.

        Raises:
            PartitionPathInvalid: it names no partition of this pipeline.
        """
        return Partitioning.of(self.config.target).read(text)

    def _naming(self, message: str) -> str:
        """Return a message whose commands name this pipeline."""
        return naming(message, self.config.name)

    def _check_identity(self) -> None:
        self._check_known()
        check_identity(self.config, self.roots, self.ledger, self.storage)

    def _check_known(self) -> None:
        """If the ledger does not know the pipeline, check that it has not lost it.

        Raises:
            TargetOwned, WorkUnfit, WorkOwned, LedgerLost: the ledger does not know it, and it is
                not its own target or its own ledger.
        """
        if self.ledger.pipeline.find() is None:
            check_owner(self.roots, self.ledger, self.storage)

    def _check_touched(self, partition: Partition) -> None:
        """Check that a window touched a partition.

        Raises:
            PartitionNotFound: none ever did.
            LedgerBehind: the ledger does not know it, and its files do.
        """
        if self.ledger.partitions.find(partition) is None:
            self._watch.check_newest_window()
            self._watch.check_partition(partition)
            raise self.ledger.partitions.not_found(partition)

    def _holder(self, owner: str, now: datetime) -> Holder:
        return Holder(owner, now, self.config.execute.claim_timeout, self.life_of)

    def _facts(self, **facts: object) -> dict[str, object]:
        """Return the extra fields of a log line, for searching logs."""
        return {"pipeline": self.config.name, **facts}


def open_control(
    name_or_path: str | Path,
    *,
    ledger: str | None = None,
    storage: Storage | None = None,
    life_of: Callable[[str], Life] = life_of,
) -> PipelineControl:
    """Wire the control plane of a pipeline from its file.

    Args:
        name_or_path: a pipeline's name, looked up in `TIDEGATE_PIPELINES`, or the path of its file.
        ledger: SQLAlchemy URL; by default `TIDEGATE_LEDGER`, else that of the home that
            `TIDEGATE_HOME` names or that is found from the folder of the file.
        storage: where it writes; by default what the addresses of the file name.
        life_of: finds out whether another holder of a window or partition is alive; by default as
            far as this is possible without asking Airflow.

    Raises:
        ConfigInvalid, PipelineNotFound: there is no usable file.
        LedgerUnreachable: the ledger does not answer (Transient).
    """
    path = Path(name_or_path)
    is_file = path.suffix in {".yaml", ".yml"}
    config = load_pipeline(path if is_file else find_pipeline(str(name_or_path)))
    engine = open_engine(ledger or ledger_url(Path(config.file).parent))
    return PipelineControl(
        config=config,
        roots=Roots.of(config),
        ledger=Ledger(engine, config.name),
        storage=storage or Stores.of(config.s3),
        life_of=life_of,
    )
