"""Judge a partition as it would stand, keep what was seen, and take a person's decision."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tidegate.errors import NumberPassed
from tidegate.gate import GateInput, check, load_suite
from tidegate.model.publication import (
    Approval,
    CheckResult,
    DecisionRecord,
    GateRecord,
    Outcome,
)
from tidegate.model.watermark import Evaluation, Reason
from tidegate.model.wire import pretty
from tidegate.pipeline.state.again import again_if
from tidegate.stage import layout
from tidegate.target.schema import unified

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from tidegate.config import PipelineConfig
    from tidegate.gate import SparkFrame
    from tidegate.ledger import Ledger
    from tidegate.model.ledger_rows import PublicationEntry
    from tidegate.model.partition import Partition
    from tidegate.model.publication import Publication, Verdict
    from tidegate.pipeline.publish.content import Contents
    from tidegate.pipeline.state.work import Roots
    from tidegate.storage import Storage


@dataclass(frozen=True)
class Gatekeeper:
    """All checks on proposed revisions of one pipeline.

    Runs on: one process per partition. Called: at least once per proposal.
    Failure: a record that stands without the ledger's verdict is written again as it is.
    """

    config: PipelineConfig
    roots: Roots
    ledger: Ledger
    storage: Storage
    contents: Contents
    spark_frame: SparkFrame | None

    def judge(
        self, partition: Partition, entry: PublicationEntry, now: datetime
    ) -> tuple[Verdict, Mapping[str, Any]]:
        """Judge the partition as it would stand: the suite's checks, and row rules that hold it.

        A suite that fails it wins: nobody can let that out.
        """
        publication = entry.publication
        suite = load_suite(self.config.gate.suite) if self.config.gate else None
        files = tuple(self.contents.files_of(publication))
        planned = functools.partial(self.contents.planned_columns, partition)
        content = GateInput(partition, files, unified, planned)
        verdict, report = check(suite, content, self.config.gate, now, self.spark_frame)
        rules = self._holding_rules(partition, publication)
        if rules:
            failed = verdict.outcome is Outcome.FAIL
            outcome = Outcome.FAIL if failed else Outcome.HOLD
            verdict = replace(verdict, outcome=outcome, checks=(*rules, *verdict.checks))
        return verdict, report

    def keep(self, record: GateRecord) -> None:
        """Keep what the gate saw beside the publication."""
        partition, revision = record.publication.partition, record.publication.revision
        name = f"{record.publication.digest}-{record.number}"
        path = layout.gate_file(self.roots.work, partition, revision, name)
        self.storage.write_once(path, pretty(record.to_json()))

    def decide(self, partition: Partition, publication: str, approval: Approval) -> None:
        """Store a person's decision on the publication that was shown to them.

        Args:
            partition: of the publication.
            publication: its digest; a decision counts for no other content (PC-C06).
            approval: the decision.

        Raises:
            DecisionRefused: the publication was replaced, or its commit has begun.
            NotHeld: it waits for no decision.
            PublicationLapsed: it can no longer be committed as it was shown.
            NumberPassed: others recorded something newer each time (Transient).
        """
        again_if(NumberPassed, functools.partial(self._decide, partition, publication, approval))

    def reopen(self, partition: Partition, now: datetime) -> None:
        """Let a held partition be checked again.

        Raises:
            NotHeld: it is not held, or its commit has begun.
            NumberPassed: others recorded something newer each time (Transient).
        """
        again_if(NumberPassed, functools.partial(self._reopen, partition, now))

    def _decide(self, partition: Partition, publication: str, approval: Approval) -> None:
        entry = self.ledger.publications.find(partition, publication)
        why = _decided_why(entry.verdict if entry else None, approval)
        number = self.ledger.publications.reserve(partition, None)
        decision = DecisionRecord(partition, publication, approval, why, number)
        # A file that the ledger refused, or one that is missing, must never let rows out.
        if entry is not None and not approval.approved:
            self._keep_decision(decision, entry)
        self.ledger.publications.decide(decision, approval)
        if entry is not None and approval.approved:
            self._keep_decision(decision, entry)

    def _reopen(self, partition: Partition, now: datetime) -> None:
        entry = self.ledger.publications.proposed(partition)
        number = self.ledger.publications.reserve(partition, None)
        if entry is not None:
            why = Evaluation(False, Reason.GATE_FAILED, "reopened", now)
            digest = entry.publication.digest
            self._keep_decision(DecisionRecord(partition, digest, None, why, number), entry)
        self.ledger.publications.reopen(partition, number)

    def _keep_decision(self, decision: DecisionRecord, entry: PublicationEntry) -> None:
        name = f"{decision.publication}-{decision.number}"
        revision = entry.publication.revision
        path = layout.decision_file(self.roots.work, decision.partition, revision, name)
        self.storage.write_once(path, pretty(decision.to_json()))

    def _holding_rules(
        self, partition: Partition, publication: Publication
    ) -> tuple[CheckResult, ...]:
        added = {file.window for file in publication.adds}
        return tuple(
            CheckResult(
                name=f"row rule {item.held_rule}",
                severity="critical",
                success=False,
                observed=f"rows of window {item.window} fail it",
                expected="no row fails it",
            )
            for item in self.ledger.windows.contributions(partition)
            if item.held_rule is not None and item.window in added
        )


def failed_why(verdict: Verdict, now: datetime) -> Evaluation:
    """Return which critical checks failed."""
    return Evaluation(False, Reason.GATE_FAILED, verdict.critical_text, now)


def _decided_why(verdict: Verdict | None, approval: Approval) -> Evaluation:
    """Return which checks failed, and what a person said to that."""
    failed = verdict.critical_text if verdict else ""
    words = f"{'approved' if approval.approved else 'rejected'} by {approval.by}"
    comment = f": {approval.comment}" if approval.comment else ""
    return Evaluation(False, Reason.GATE_FAILED, f"{failed} — {words}{comment}", approval.at)
