"""Judge the proposed revision of a partition, and keep a record of it."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tidegate.gate import GateInput, check, load_suite
from tidegate.model.publication import (
    CheckResult,
    GateRecord,
    Outcome,
)
from tidegate.model.watermark import Evaluation, Reason
from tidegate.model.wire import pretty
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
    Failure: a record without the ledger's verdict is written again unchanged.
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
        """Judge the proposed revision: the suite's checks, and row rules that hold the partition.

        If the suite fails it, that verdict wins: nobody can approve it.
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
        """Keep the gate's record beside the publication."""
        partition, revision = record.publication.partition, record.publication.revision
        name = f"{record.publication.digest}-{record.number}"
        path = layout.gate_file(self.roots.work, partition, revision, name)
        self.storage.write_once(path, pretty(record.to_json()))

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
            for item in self.ledger.contributions.to(partition)
            if item.held_rule is not None and item.window in added
        )


def failed_why(verdict: Verdict, now: datetime) -> Evaluation:
    """Return the critical checks that failed."""
    return Evaluation(False, Reason.GATE_FAILED, verdict.critical_text, now)
