"""Judge a partition as it would stand, keep what was seen, and take a person's decision."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tidegate.errors import NotHeld
from tidegate.gate import GateInput, check, load_suite
from tidegate.model.publication import (
    Approval,
    CheckResult,
    DecisionRecord,
    GateRecord,
    Outcome,
)
from tidegate.model.watermark import Evaluation, Reason
from tidegate.model.wire import digest, pretty
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
    from tidegate.pipeline.content import Contents
    from tidegate.pipeline.work import Roots
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
        """Judge the partition as it would stand: the suite's checks, and row rules that hold it."""
        publication = entry.publication
        suite = load_suite(self.config.gate.suite) if self.config.gate else None
        content = GateInput(partition, tuple(self.contents.files_of(publication)), unified)
        verdict, report = check(suite, content, self.config.gate, now, self.spark_frame)
        rules = self._holding_rules(partition, publication)
        if rules:
            verdict = replace(verdict, outcome=Outcome.HOLD, checks=(*rules, *verdict.checks))
        return verdict, report

    def keep(self, record: GateRecord) -> None:
        """Keep what the gate saw beside the publication.

        The name tells one verdict on it from another.
        """
        checks = [check.to_json() for check in record.verdict.checks]
        name = f"{record.publication.digest}-{digest([record.verdict.outcome.value, *checks], 8)}"
        partition, revision = record.publication.partition, record.publication.revision
        path = layout.gate_file(self.roots.work, partition, revision, name)
        self.storage.write_once(path, pretty(record.to_json()))

    def decide(
        self, partition: Partition, *, approved: bool, by: str, comment: str, now: datetime
    ) -> str:
        """Store a person's decision on a held partition; the digest it is bound to.

        Raises:
            NotHeld: the partition waits for no decision.
            PublicationLapsed: its content changed since it was held (PC-C06).
        """
        state = self.ledger.partitions.get(partition)
        entry = self.ledger.publications.proposed(partition)
        if entry is None or state.pending != "held":
            raise NotHeld(pipeline=self.config.name, partition=str(partition), state=state.name)
        before = state.why.detail if state.why else ""
        words = f"{'approved' if approved else 'rejected'} by {by}" + (
            f": {comment}" if comment else ""
        )
        why = Evaluation(False, Reason.GATE_FAILED, f"{before.split(' — ')[0]} — {words}", now)
        held = entry.publication
        decision = DecisionRecord(partition, held.digest, Approval(approved, by, now, comment), why)
        self.ledger.publications.decide(partition, held.digest, decision.approval, why)
        name = f"{held.digest}-{digest(decision.to_json(), 8)}"
        path = layout.decision_file(self.roots.work, partition, held.revision, name)
        self.storage.write_once(path, pretty(decision.to_json()))
        return held.digest

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
    """Say which critical checks failed."""
    critical = [check for check in verdict.failures if check.severity == "critical"]
    return Evaluation(False, Reason.GATE_FAILED, "; ".join(map(_in_words, critical)), now)


def _in_words(check: CheckResult) -> str:
    return f"{check.name}: observed {check.observed}, expected {check.expected}"
