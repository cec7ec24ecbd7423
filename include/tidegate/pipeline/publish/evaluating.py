"""Evaluate whether a partition may be committed now: on ledger, clock and counts (PC-C01)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from tidegate.commit.completeness import Waiting, evaluate_conditions
from tidegate.commit.late_rows import has_news, look_at_held
from tidegate.commit.partition_time import PartitionClock
from tidegate.commit.triggers import Tide
from tidegate.commit.watermark import is_idle
from tidegate.errors import NotCommittable, PolicyFailed
from tidegate.errors.commands import naming
from tidegate.model.counting import counting
from tidegate.model.watermark import Evaluation, Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime

    from tidegate.commit.late_rows import LateLook
    from tidegate.config import PipelineConfig
    from tidegate.errors import TidegateError
    from tidegate.ledger import Ledger
    from tidegate.model.ledger_rows import (
        KnownPartition,
        PartitionState,
        PipelineState,
        RevisionEntry,
    )
    from tidegate.model.message import Contribution
    from tidegate.model.partition import Partition
    from tidegate.model.publication import Approval, Override
    from tidegate.model.upstream import UpstreamCounts

ONLY_BY_COMMAND = {Reason.DEFAULT_PARTITION, Reason.TIME_UNPARSABLE, Reason.NO_POLICY}
"""Never due by time: these partitions wait until a person names them (design §8)."""


@dataclass(frozen=True)
class Evaluator:
    """Evaluates the partitions of one pipeline.

    Every step that relies on the trigger evaluates it itself: a step before it may have been
    skipped, or marked as done by hand.
    """

    config: PipelineConfig
    ledger: Ledger
    upstream: Callable[[datetime], UpstreamCounts | None] = lambda _now: None
    """Returns the upstream counts of all partitions, read once for those looked at together."""

    @cached_property
    def _clock(self) -> PartitionClock:
        return PartitionClock.of(self.config)

    def evaluate(
        self, partition: Partition, now: datetime, waiting: str | None = None
    ) -> Evaluation | None:
        """Evaluate whether a partition may be committed, and keep the answer in the ledger.

        Args:
            partition: the partition.
            now: clock of the look.
            waiting: the run that waits if it may not; by default the one that said so before.

        Returns:
            None if nothing is pending, or a person has to decide first.
        """
        with self.ledger.reading_together():
            known = self.ledger.known_partition(partition)
            pipeline = self.ledger.pipeline.find()
        return None if known is None else self.evaluate_known(known, pipeline, now, waiting)

    def evaluate_known(
        self,
        known: KnownPartition,
        pipeline: PipelineState | None,
        now: datetime,
        waiting: str | None = None,
    ) -> Evaluation | None:
        """Evaluate a partition of which all is known; see `evaluate`."""
        found = self._judge(known, now, lambda: self._tide(pipeline, now))
        if found is None or known.begun is not None or known.approved is not None:
            return found
        found = replace(found, waiting=waiting or found.waiting)
        if _is_news(known.state, found):
            self.ledger.partitions.record_why(known.state.partition, found)
        return found

    def _judge(
        self, known: KnownPartition, now: datetime, tide: Callable[[], Tide]
    ) -> Evaluation | None:
        state = known.state
        if known.begun is not None:
            return _begun(state, now)
        if known.approved is not None and known.approved.approval is not None:
            return _approved(known.approved.approval, now)
        if state.pending != "pending":
            return None
        found = self._look(state, tide(), known.contributions)
        if not found.committable:
            return found
        stands = (known.newest,) if known.newest else ()
        return self._with_late(found, state, known.contributions, stands, now)

    def evaluate_pending(
        self, known: Iterable[KnownPartition], now: datetime
    ) -> Mapping[Partition, Evaluation]:
        """Evaluate every pending partition as `evaluate` would, and keep the answers.

        The ledger is not asked for each of them.
        """
        tide = self._tide(self.ledger.pipeline.find(), now)
        found, news = {}, {}
        for item in known:
            state = item.state
            looked = self._judge(item, now, lambda: tide) if state.pending == "pending" else None
            if looked is None:
                continue
            found[state.partition] = looked
            is_judged = item.begun is None and item.approved is None
            if is_judged and _is_news(state, looked):
                news[state.partition] = looked
        self.ledger.partitions.record_whys(news)
        return found

    def at_end(self, partition: Partition, now: datetime) -> Evaluation | None:
        """Evaluate a pending partition as if the source were closed (PC-M09). Keeps nothing.

        Returns:
            None if nothing is pending, or a person has to decide first.
        """
        state = self.ledger.partitions.find(partition)
        if state is None or state.pending != "pending":
            return None
        return self._found(
            state, replace(self._tide(self.ledger.pipeline.find(), now), is_final=True)
        )

    def _found(self, state: PartitionState, tide: Tide) -> Evaluation:
        counts = self.config.commit.counts
        brought = self.ledger.contributions.to(state.partition) if counts else ()
        return self._look(state, tide, brought)

    def _look(
        self, state: PartitionState, tide: Tide, brought: Sequence[Contribution]
    ) -> Evaluation:
        rows = sum(item.rows for item in counting(brought))
        waiting = Waiting(state.partition, state.first_seen or tide.now, rows, state.end)
        upstream = self.upstream(tide.now)
        found = evaluate_conditions(self.config, waiting, tide, upstream, self._clock)
        before = state.why
        if before is None or (before.waiting, before.failed) == (None, None):
            return found
        return replace(found, waiting=before.waiting, failed=before.failed)

    def _with_late(
        self,
        found: Evaluation,
        state: PartitionState,
        contributions: Sequence[Contribution],
        stands: Sequence[RevisionEntry],
        now: datetime,
    ) -> Evaluation:
        """Wait if nothing is new but late rows that are held (PC-L03)."""
        late = self.look_at_held(state, contributions, now)
        if late is None:
            return found
        if late.released is not None:
            return replace(found, detail=f"{late.detail} were held, and count: {late.released}")
        stood = stands[0].contributions if stands else {}
        if has_news(contributions, stood):
            return replace(found, detail=f"{found.detail}; {late.detail}")
        return replace(found, committable=False, reason=Reason.LATE_HELD, detail=late.detail)

    def look_at_held(
        self, state: PartitionState, contributions: Sequence[Contribution], now: datetime
    ) -> LateLook | None:
        """Decide whether late rows of a partition that are held count; None if none are held."""
        return look_at_held(
            self.config,
            contributions,
            revision=state.revision,
            published_rows=state.rows,
            now=now,
        )

    def note_failure(self, partition: Partition, failure: TidegateError, now: datetime) -> None:
        """Keep the error of an attempt to publish a pending partition, for status and explain."""
        state = self.ledger.partitions.find(partition)
        if state is None or state.pending != "pending":
            return
        why = state.why or self._found(state, self._tide(self.ledger.pipeline.find(), now))
        if isinstance(failure, PolicyFailed):
            # The next publish goes on with the commit, so that nothing else decides (PC-A05).
            detail = f"policy '{failure.policy}' failed: {failure.problem}"
            why = replace(why, committable=True, reason=Reason.POLICY_FAILED, detail=detail)
        said = naming(str(failure), self.config.name, partition)
        failed = f"{now:%Y-%m-%d %H:%M}Z, {failure.code}: {said}"
        self.ledger.partitions.record_why(partition, replace(why, failed=failed))

    def check(
        self,
        partition: Partition,
        looked: Evaluation,
        override: Override | None = None,
        *,
        by_command: bool = False,
    ) -> Override | None:
        """Check that a partition is due, or that a person commits it by name.

        Args:
            partition: the partition.
            looked: the result of `evaluate`.
            override: a person's statement that the partition is complete, which overrules trigger
                and counts.
            by_command: a person named the partition.

        Returns:
            The override with the reason that it overruled; None if none was needed.

        Raises:
            NotCommittable: it is neither due nor overridden.
        """
        named = by_command and ONLY_BY_COMMAND.issuperset(looked.reasons)
        if looked.committable or named:
            return None
        why = looked.to_line()
        if override is None:
            raise NotCommittable(pipeline=self.config.name, partition=str(partition), why=why)
        return replace(override, overruled=why)

    def _tide(self, pipeline: PipelineState | None, now: datetime) -> Tide:
        said = self.config.event_time
        step = pipeline.watermark_step if pipeline else None
        basis = self.config.watermark_basis
        return Tide(
            now,
            watermark=pipeline.watermark_in(basis) if pipeline else None,
            idle=is_idle(said, step.last_data_at if step else None, now),
            former=step.basis if step and step.value and not step.counts_for(basis) else None,
        )


def _begun(state: PartitionState, now: datetime) -> Evaluation:
    """Return that a begun commit is finished first, and the policy that it failed by, if any."""
    why = state.why if state.pending == "pending" else None
    if why is not None and why.reason is Reason.POLICY_FAILED:
        return replace(why, evaluated_at=now)
    return Evaluation(True, None, "a commit was begun and is finished first", now)


def _approved(approval: Approval, now: datetime) -> Evaluation:
    return Evaluation(True, None, f"approved by {approval.by}", now)


def _is_news(state: PartitionState, found: Evaluation) -> bool:
    """Return whether the ledger has another answer than the one that was found now."""
    why = state.why
    # The text has the values that were compared, and nearly always tells.
    if why is None or why.detail != found.detail:
        return True
    return replace(why, evaluated_at=found.evaluated_at) != found
