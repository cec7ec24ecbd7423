"""Record a person's decision on a publication that waits for one."""

from __future__ import annotations

import functools
import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.errors import DecisionRefused, NotHeld, NumberPassed, PublicationLapsed
from tidegate.model.counting import set_aside
from tidegate.model.publication import Approval, DecisionRecord
from tidegate.model.watermark import Evaluation, Reason
from tidegate.model.wire import pretty
from tidegate.pipeline.publish.judged import LATE_CHECK, decided_why, is_news, new_windows
from tidegate.pipeline.state.again import again_if
from tidegate.stage import layout

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from tidegate.ledger import Ledger
    from tidegate.model.ledger_rows import PublicationEntry
    from tidegate.model.message import Contribution
    from tidegate.model.partition import Partition
    from tidegate.pipeline.state.places import Roots
    from tidegate.storage import Storage


_NO_PUBLICATION = "rows"
"""In the names of decisions on rows that are in no publication."""


@dataclass(frozen=True)
class Decisions:
    """Decisions on held partitions of one pipeline, in the ledger and beside the publication.

    Runs on: one process per decision. Called: at least once.
    Failure: a process that dies may leave a file of a decision that the ledger does not have; such
    a decision publishes nothing. It may also leave an approval that is only in the ledger and has
    to be repeated if the ledger is lost.
    """

    roots: Roots
    ledger: Ledger
    storage: Storage

    def decide(self, partition: Partition, publication: str, approval: Approval) -> None:
        """Store a person's decision on the publication that was shown to them.

        Args:
            partition: the partition of the publication.
            publication: its digest; a decision applies to no other content (PC-C06).
            approval: the decision.

        Raises:
            DecisionRefused: the publication was replaced, or its commit has begun.
            NotHeld: it is not waiting for a decision.
            PublicationLapsed: it can no longer be committed as it was shown.
            NumberPassed: others recorded something newer at each attempt (Transient).
        """
        again_if(NumberPassed, functools.partial(self._decide, partition, publication, approval))

    def reopen(self, partition: Partition, now: datetime) -> Sequence[Contribution]:
        """Allow a held partition to be checked again, and let count what is set aside.

        Returns:
            What was set aside.

        Raises:
            NotHeld: it is not held and nothing is set aside, or its commit has begun.
            NumberPassed: others recorded something newer at each attempt (Transient).
        """
        return again_if(NumberPassed, functools.partial(self._reopen, partition, now))

    def release(self, partition: Partition, windows: Sequence[int], why: Evaluation) -> None:
        """Let late rows count that were held (PC-L03).

        Raises:
            NumberPassed: others recorded something newer at each attempt (Transient).
        """

        def release() -> None:
            number = self.ledger.publications.reserve(partition, None)
            decision = DecisionRecord(partition, "", None, why, number, released=tuple(windows))
            revision = self.ledger.partitions.get(partition).revision + 1
            self._keep_unless_refused(
                decision, revision, functools.partial(self.ledger.publications.release, decision)
            )

        again_if(NumberPassed, release)

    def _decide(self, partition: Partition, publication: str, approval: Approval) -> None:
        entry = self.ledger.publications.find(partition, publication)
        why = _decided_why(entry, approval)
        number = self.ledger.publications.reserve(partition, None)
        late = self._late_windows(entry)
        decision = DecisionRecord(
            partition,
            publication,
            approval,
            why,
            number,
            set_aside=None if approval.approved else late,
            # They may have been rejected before.
            released=late if approval.approved else None,
        )
        decide = functools.partial(self.ledger.publications.decide, decision, approval)
        # A file that the ledger refused, or one that is missing, must never publish rows.
        if entry is None:
            decide()
        elif approval.approved:
            decide()
            self._keep_decision(decision, entry.publication.revision)
        else:
            self._keep_unless_refused(decision, entry.publication.revision, decide)

    def _late_windows(self, entry: PublicationEntry | None) -> tuple[int, ...] | None:
        """Return the windows whose late rows a person is asked about; None if there are none."""
        checks = entry.verdict.checks if entry is not None and entry.verdict is not None else ()
        if entry is None or not any(check.name == LATE_CHECK for check in checks):
            return None
        partition = entry.publication.partition
        revisions = self.ledger.publications.revisions(partition)
        stood = revisions[-1].contributions if revisions else {}
        added = new_windows(entry.publication, stood)
        known = self.ledger.contributions.to(partition)
        return tuple(item.window for item in known if item.window in added and is_news(item))

    def _reopen(self, partition: Partition, now: datetime) -> Sequence[Contribution]:
        entry = self.ledger.publications.proposed(partition)
        aside = set_aside(self.ledger.contributions.to(partition))
        number = self.ledger.publications.reserve(partition, None)
        why = Evaluation(False, Reason.GATE_FAILED, "reopened", now)
        decision = DecisionRecord(
            partition,
            entry.publication.digest if entry is not None else "",
            None,
            why,
            number,
            released=tuple(item.window for item in aside) or None,
        )
        reopen = functools.partial(self.ledger.publications.reopen, decision)
        if entry is None and not aside:
            reopen()
        else:
            revision = self.ledger.partitions.get(partition).revision + 1
            self._keep_unless_refused(decision, revision, reopen)
        return aside

    def _keep_unless_refused(
        self, decision: DecisionRecord, revision: int, tell: Callable[[], None]
    ) -> None:
        """Write a decision that publishes nothing, then record it in the ledger.

        A restoration would trust a file that the ledger refused, so the file is deleted, but only
        if the ledger did refuse: a lost answer may have been an acceptance.
        """
        path = self._keep_decision(decision, revision)
        try:
            tell()
        except (DecisionRefused, NotHeld, NumberPassed, PublicationLapsed):
            self.storage.delete(path)
            self.storage.sync(posixpath.dirname(path))
            raise

    def _keep_decision(self, decision: DecisionRecord, revision: int) -> str:
        name = f"{decision.publication or _NO_PUBLICATION}-{decision.number}"
        path = layout.decision_file(self.roots.work, decision.partition, revision, name)
        self.storage.write_once(path, pretty(decision.to_json()))
        return path


def _decided_why(entry: PublicationEntry | None, approval: Approval) -> Evaluation:
    """Return the checks that failed, and the person's answer to them.

    An earlier answer that this one takes back is named, because somebody else may have given it.
    """
    words = f"{'approved' if approval.approved else 'rejected'} by {approval.by}"
    comment = f": {approval.comment}" if approval.comment else ""
    before = entry.approval if entry else None
    if before is not None and before.approved != approval.approved:
        comment += f" (before: {'approved' if before.approved else 'rejected'} by {before.by})"
    return decided_why(entry.verdict if entry else None, f"{words}{comment}", approval.at)
