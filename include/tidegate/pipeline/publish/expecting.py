"""Review what waits: the calendar's next partitions, and alarms about those that are stuck.

Publishes nothing. A partition that the calendar expects becomes known to the ledger once the
watermark has passed it, so that everything else treats it as any other (PC-C04).
"""

from __future__ import annotations

import itertools
import logging
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from tidegate.commit.calendar import Calendar
from tidegate.model.expected import FAILING, MISSING, Alarm, Position, Review
from tidegate.model.watermark import Reason

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tidegate.config import PipelineConfig
    from tidegate.ledger import Ledger
    from tidegate.model.expected import DuePartition
    from tidegate.model.ledger_rows import KnownPartition
    from tidegate.model.partition import Partition
    from tidegate.model.watermark import Evaluation
    from tidegate.pipeline.publish.evaluating import Evaluator

_AT_ONCE = 1000
"""Partitions that become known in one transaction."""
_TOLD = 5
"""Partitions that a line of a log names."""
_EMPTY = "expected, and no row came for it"

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Reviewer:
    """Evaluates everything that waits, and goes on with the calendar of one pipeline.

    Runs on: any process, after a load and before a publish. Called: as often as somebody looks.
    Failure: a process that dies has done some of it; the next review goes on. An alarm is stored
    before it is logged: one that dies in between shows it in `status` only.
    """

    config: PipelineConfig
    ledger: Ledger
    evaluator: Evaluator

    def review(self, now: datetime, *, is_final: bool = False) -> Review:
        """Evaluate all pending partitions (PC-T01) and raise each alarm once.

        Args:
            now: clock of the look.
            is_final: the source is closed, so that the calendar is read to its end, or to the last
                partition with rows where it has none.
        """
        calendar = Calendar.of(self.config)
        state = self.ledger.pipeline.find()
        if state is None:
            return Review()
        watermark = state.watermark_in(self.config.watermark_basis)
        reached = self._end(calendar, watermark) if is_final and calendar else watermark
        marked: tuple[Partition, ...] = ()
        missing: tuple[Partition, ...] = ()
        if calendar is not None and reached is not None:
            known = tuple(self._known(calendar, reached, now))
            is_marking = calendar.said.on_empty == "mark"
            marked, missing = (known, ()) if is_marking else ((), known)
        waiting = self.ledger.known_partitions(waiting_only=True)
        found = self.evaluator.evaluate_pending(waiting, now)
        alarms = [f"{_named(missing)}: {_EMPTY}"] if missing else []
        if calendar is not None:
            alarms += self._failing(calendar, waiting, found, now)
        for alarm in alarms:
            _log.warning("%s: %s", self.config.name, alarm)
        return Review(marked, tuple(alarms), found)

    def _end(self, calendar: Calendar, watermark: datetime | None) -> datetime | None:
        """Return a watermark that has passed every partition that comes before the last row."""
        if calendar.said.end is not None:
            return datetime.max.replace(tzinfo=UTC)
        begins = [state.start for state in self.ledger.partitions.all() if state.start is not None]
        last = max(begins, default=None)
        passed = None if last is None else last + calendar.delay + timedelta(microseconds=1)
        return max((it for it in (watermark, passed) if it is not None), default=None)

    def is_marked_empty(self, partition: Partition) -> bool:
        """Return whether a partition without rows is published all the same."""
        calendar = Calendar.of(self.config)
        if calendar is None or calendar.said.on_empty != "mark":
            return False
        return calendar.expects(partition)

    def _known(self, calendar: Calendar, watermark: datetime, now: datetime) -> Iterator[Partition]:
        """Make the next partitions of the calendar known; yield those that have no rows."""
        if calendar.said.on_empty == "ignore":
            return
        alarm = Alarm(now, 0, MISSING, _EMPTY) if calendar.said.on_empty == "alarm" else None
        seen = self.ledger.expected.position()
        before = seen.intervals if seen and seen.calendar == calendar.digest else 0
        for reached, due in _in_parts(calendar.due(before, watermark)):
            position = Position(calendar.digest, reached)
            yield from self.ledger.expected.know(due, now, seen, position, alarm)
            before, seen = reached, position
        for partition, told in self.ledger.expected.without_rows():
            is_told = alarm is not None and told is not None and told.covers(alarm)
            if is_told or not calendar.has_passed(partition, before):
                continue
            if self.ledger.expected.revive(partition, now, alarm):
                yield partition

    def _failing(
        self,
        calendar: Calendar,
        waiting: Sequence[KnownPartition],
        found: Mapping[Partition, Evaluation],
        now: datetime,
    ) -> Iterator[str]:
        """Raise an alarm for each partition whose turn has come while a condition fails."""
        for item in waiting:
            state = item.state
            is_held = state.pending == "held"
            why = _held(item) if is_held else _failing(found.get(state.partition))
            if why is None or not calendar.expects(state.partition):
                continue
            alarm = Alarm(now, state.revision, FAILING, why)
            if self.ledger.expected.raise_alarm(state.partition, alarm):
                yield f"{state.partition}: expected and due, and not published: {why}"


def _in_parts(
    due: Iterator[tuple[int, tuple[DuePartition, ...]]],
) -> Iterator[tuple[int, list[DuePartition]]]:
    """Yield intervals in parts that fit a transaction, with the last interval of each part."""
    part: list[DuePartition] = []
    reached = None
    for reached, partitions in due:
        part += partitions
        if len(part) >= _AT_ONCE:
            yield reached, part
            part, reached = [], None
    if reached is not None:
        yield reached, part


def _failing(looked: Evaluation | None) -> str | None:
    """Return the conditions that fail although the trigger holds; None if it does not."""
    if looked is None or looked.committable:
        return None
    results = looked.conditions or ()
    is_due = any(it.name == "trigger" and it.holds for it in results)
    return looked.failing if is_due else None


def _held(item: KnownPartition) -> str | None:
    """Return why a partition is held; None if nothing failed, and only a person is waited for."""
    why = item.state.why
    return why.failing if why is not None and why.reason is Reason.GATE_FAILED else None


def _named(partitions: Sequence[Partition]) -> str:
    shown = ", ".join(map(str, itertools.islice(partitions, _TOLD)))
    more = len(partitions) - _TOLD
    return f"{shown} and {more:,} more" if more > 0 else shown
