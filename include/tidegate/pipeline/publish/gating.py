"""Judge the proposed revision of a partition, and keep a record of it."""

from __future__ import annotations

import functools
import logging
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tidegate.config.late_data import LateDataConfig
from tidegate.errors import ContentUnreadable
from tidegate.gate import GateInput, check, load_suite, prepare
from tidegate.model.publication import (
    CheckResult,
    GateRecord,
    Outcome,
)
from tidegate.model.wire import pretty
from tidegate.physical.parts import PartFiles
from tidegate.pipeline.publish.judged import LATE_CHECK, asking, is_news, new_windows
from tidegate.pipeline.state.late_root import planned_late_data
from tidegate.stage import layout
from tidegate.target.schema import unified

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from tidegate.config import PipelineConfig
    from tidegate.gate import SparkFrame
    from tidegate.model.ledger_rows import PublicationEntry
    from tidegate.model.message import Contribution
    from tidegate.model.publication import Verdict
    from tidegate.pipeline.publish.content import Contents, Seen
    from tidegate.pipeline.state.places import Roots
    from tidegate.storage import Storage

_log = logging.getLogger(__name__)

_NOTED_FROM = 10.0
"""Seconds; a shorter check disturbs nobody, however few rows it has."""
_JUDGED_FROM = 10_000
"""Rows; with fewer, what every validation costs once hides what a row costs."""
_SLOW = 60.0
"""Seconds for a million rows. Expectations on whole columns take one or two each."""


@dataclass(frozen=True)
class Gatekeeper:
    """All checks on proposed revisions of one pipeline.

    Runs on: one process per partition. Called: at least once per proposal.
    Failure: a record without the ledger's verdict is written again unchanged.
    """

    config: PipelineConfig
    roots: Roots
    storage: Storage
    contents: Contents
    spark_frame: SparkFrame | None

    def judge(
        self, entry: PublicationEntry, seen: Seen, now: datetime
    ) -> tuple[Verdict, Mapping[str, Any]]:
        """Judge the proposed revision: the suite's checks, and row rules that hold the partition.

        If the suite fails it, that verdict wins: nobody can approve it.

        Args:
            entry: the proposal.
            seen: what it was made from, read under the claim.
            now: clock of the run.

        Raises:
            ContentUnreadable: a file cannot be read.
        """
        publication = entry.publication
        partition = publication.partition
        suite = load_suite(self.config.gate.suite) if self.config.gate else None
        # What was only sent is judged by nobody, and is whole once it is there (PC-F36).
        sent = {file for file in publication.adds if file.upload} if suite is None else set()
        looked = replace(
            publication, content=tuple(file for file in publication.content if file not in sent)
        )
        files = tuple(self.contents.files_of(looked))
        planned = functools.partial(self.contents.planned_columns, partition)
        form = self.config.target.part_format
        told = () if form.kind.has_columns else self.contents.columns_of(looked)
        parts = PartFiles(form, dict(zip(files, told, strict=False)), self.storage)
        content = GateInput(partition, files, unified, planned, parts)
        if suite is not None:
            # Not counted: it says nothing of the suite.
            prepare()
        started = time.monotonic()
        try:
            verdict, report = check(suite, content, self.config.gate, now, self.spark_frame)
        except ContentUnreadable as broken:
            pairs = zip(files, looked.content, strict=True)
            windows = {path: str(file.window) for path, file in pairs}
            raise ContentUnreadable(**{**broken.values, "window": windows[broken.path]}) from broken
        verdict = replace(verdict, rows=verdict.rows + sum(file.rows for file in sent))
        report = {**report, "rows": verdict.rows, "files": len(publication.content)}
        slow = slowness(time.monotonic() - started, verdict.rows)
        if slow is not None and self.config.gate is not None:
            _log.warning("the suite %s took %s of %s", self.config.gate.suite, slow, partition)
        added = new_windows(publication, seen.stood)
        news = [item for item in seen.contributions if item.window in added]
        rules = (*_holding_rules(news, publication.rows), *self._late_rows(news))
        if rules:
            failed = verdict.outcome is Outcome.FAIL
            outcome = Outcome.FAIL if failed else Outcome.HOLD
            verdict = replace(verdict, outcome=outcome, checks=(*rules, *verdict.checks))
        if self.config.commit.requires("approval"):
            verdict = asking(verdict)
        return verdict, report

    def keep(self, record: GateRecord) -> None:
        """Keep the gate's record beside the publication."""
        partition, revision = record.publication.partition, record.publication.revision
        name = f"{record.publication.digest}-{record.number}"
        path = layout.gate_file(self.roots.work, partition, revision, name)
        self.storage.write_once(path, pretty(record.to_json()))

    def _late_rows(self, added: Sequence[Contribution]) -> Iterator[CheckResult]:
        """Ask a person about late rows whose windows were planned to ask (PC-L05)."""
        news = filter(is_news, added)
        late = [item for item in news if self._late_policy(item) == "propose"]
        if late:
            windows = ", ".join(str(item.window) for item in late)
            rows = sum(item.rows for item in late)
            observed = f"{rows:,} late rows of {'windows' if late[1:] else 'window'} {windows}"
            yield CheckResult(LATE_CHECK, "critical", False, observed, "a person's approval")

    def _late_policy(self, item: Contribution) -> str:
        """Return what its window's plan says about late rows; that of now if the plan is lost."""
        uri = layout.plan_root(self.roots.work, item.window, item.plan_digest)
        planned = planned_late_data(self.storage, uri)
        if planned is None:
            return self.config.commit.late_data.policy
        return LateDataConfig.model_validate(planned).policy


def _holding_rules(added: Sequence[Contribution], rows: int) -> tuple[CheckResult, ...]:
    return tuple(
        CheckResult(f"row rule {rule}", "critical", False, observed, "no row fails it")
        for item in added
        for rule, observed in failed_rules(item, rows)
    )


def failed_rules(contribution: Contribution, partition_rows: int) -> Iterator[tuple[str, str]]:
    """Yield the rules that hold a partition because of one window, and how many rows fail them.

    Args:
        contribution: what the window adds to the partition.
        partition_rows: rows of the partition as it would be published.
    """
    of_window = f"of window {contribution.window}"
    if contribution.held_rule is not None and contribution.held_rows is None:
        yield contribution.held_rule, f"rows {of_window} fail it, not counted by the version then"
        return
    for rule, failed in (contribution.held_rows or {}).items():
        fail = f"row {of_window} fails it" if failed == 1 else f"rows {of_window} fail it"
        share = 100 * failed / max(partition_rows, failed)
        said = f"{share:.1f} %" if share >= 0.1 else "< 0.1 %"
        yield rule, f"{failed:,} {fail} ({said} of the partition)"


def slowness(seconds: float, rows: int) -> str | None:
    """Return how slow the checks of a partition were, for a warning; None if they were not.

    Args:
        seconds: that all of them took.
        rows: of the partition.
    """
    if seconds < _NOTED_FROM or rows < _JUDGED_FROM:
        return None
    rate = seconds / rows * 1_000_000
    if rate < _SLOW:
        return None
    return f"{seconds:.0f} s for {rows:,} rows, {rate:,.0f} s per million,"
