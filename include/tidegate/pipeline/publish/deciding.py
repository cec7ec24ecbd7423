"""Record a person's decision on a publication that waits for one."""

from __future__ import annotations

import functools
import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.errors import DecisionRefused, NotHeld, NumberPassed, PublicationLapsed
from tidegate.model.publication import Approval, DecisionRecord
from tidegate.model.watermark import Evaluation, Reason
from tidegate.model.wire import pretty
from tidegate.pipeline.publish.judged import decided_why
from tidegate.pipeline.state.again import again_if
from tidegate.stage import layout

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from tidegate.ledger import Ledger
    from tidegate.model.ledger_rows import PublicationEntry
    from tidegate.model.partition import Partition
    from tidegate.pipeline.state.places import Roots
    from tidegate.storage import Storage


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

    def reopen(self, partition: Partition, now: datetime) -> None:
        """Allow a held partition to be checked again.

        Raises:
            NotHeld: it is not held, or its commit has begun.
            NumberPassed: others recorded something newer at each attempt (Transient).
        """
        again_if(NumberPassed, functools.partial(self._reopen, partition, now))

    def _decide(self, partition: Partition, publication: str, approval: Approval) -> None:
        entry = self.ledger.publications.find(partition, publication)
        why = _decided_why(entry, approval)
        number = self.ledger.publications.reserve(partition, None)
        decision = DecisionRecord(partition, publication, approval, why, number)
        decide = functools.partial(self.ledger.publications.decide, decision, approval)
        # A file that the ledger refused, or one that is missing, must never publish rows.
        if entry is None:
            decide()
        elif approval.approved:
            decide()
            self._keep_decision(decision, entry)
        else:
            self._keep_unless_refused(decision, entry, decide)

    def _reopen(self, partition: Partition, now: datetime) -> None:
        entry = self.ledger.publications.proposed(partition)
        number = self.ledger.publications.reserve(partition, None)
        reopen = functools.partial(self.ledger.publications.reopen, partition, number)
        if entry is None:
            reopen()
        else:
            why = Evaluation(False, Reason.GATE_FAILED, "reopened", now)
            decision = DecisionRecord(partition, entry.publication.digest, None, why, number)
            self._keep_unless_refused(decision, entry, reopen)

    def _keep_unless_refused(
        self, decision: DecisionRecord, entry: PublicationEntry, tell: Callable[[], None]
    ) -> None:
        """Write a decision that publishes nothing, then record it in the ledger.

        A restoration would trust a file that the ledger refused, so the file is deleted, but only
        if the ledger did refuse: a lost answer may have been an acceptance.
        """
        path = self._keep_decision(decision, entry)
        try:
            tell()
        except (DecisionRefused, NotHeld, NumberPassed, PublicationLapsed):
            self.storage.delete(path)
            self.storage.sync(posixpath.dirname(path))
            raise

    def _keep_decision(self, decision: DecisionRecord, entry: PublicationEntry) -> str:
        name = f"{decision.publication}-{decision.number}"
        revision = entry.publication.revision
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
