"""Write the plan of one commit before anything changes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from tidegate.config import PipelineConfig, PolicyConfig, SuccessFilePolicy
from tidegate.model.ledger_rows import PublicationEntry, RevisionEntry
from tidegate.model.publication import CommitPlan, Outcome, Publication, Verdict
from tidegate.model.wire import instant_text, pretty
from tidegate.stage import layout
from tidegate.target.marker import MarkerFacts, write_marker
from tidegate.target.schema import unified
from tidegate.target.told_columns import tell

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from tidegate.ledger import Ledger
    from tidegate.pipeline.publish.content import Contents, Seen
    from tidegate.pipeline.state.places import Roots
    from tidegate.storage import Storage


@dataclass(frozen=True)
class CommitPlans:
    """Writes the commit plans of one pipeline.

    Runs on: one process per partition, under its claim. Called: before each commit is prepared.
    Failure: a plan that was written but never prepared stays in its directory and is not used.
    """

    config: PipelineConfig
    roots: Roots
    ledger: Ledger
    storage: Storage
    contents: Contents

    def write(
        self, entry: PublicationEntry, seen: Seen, owner: str, now: datetime, number: int
    ) -> tuple[str, CommitPlan]:
        """Write the plan that commits a publication; return its path in the work directory, and it.

        Args:
            entry: the publication.
            seen: what it was made from, read under the claim.
            owner: the run.
            now: its clock.
            number: distinguishes attempts: the verdict, the decision and the policies may have
                changed since an attempt that died before it was prepared.
        """
        publication = entry.publication
        plan = self._plan(entry, seen, owner, now, number)
        name = f"{publication.digest}-{number}"
        path = layout.publication_file(
            self.roots.work, publication.partition, publication.revision, name
        )
        relative = layout.relative_to_work(self.roots.work, path)
        if not self.storage.write_once(path, pretty(plan.to_json())):
            # A ledger from a backup gives a number again: what is written is carried out.
            plan = self.contents.commit_plan(relative)
        return relative, plan

    def _plan(
        self, entry: PublicationEntry, seen: Seen, owner: str, now: datetime, number: int
    ) -> CommitPlan:
        publication = entry.publication
        with self.ledger.reading_together():
            pipeline = self.ledger.pipeline.find()
            source_range = self._source_range(publication)
        basis = self.config.watermark_basis
        watermark = pipeline.watermark_in(basis) if pipeline else None
        verdict = entry.verdict or Verdict(Outcome.PASS, (), publication.rows, "none", now)
        facts = MarkerFacts(
            pipeline=self.config.name,
            watermark=watermark,
            partition_end=seen.state.end,
            trigger=self.config.commit.trigger,
            source_range=source_range,
            verdict=verdict,
            approval=entry.approval,
            owner=owner,
            prepared_at=now,
            override=entry.override,
            told=told_to_readers(publication, self.config, self.contents),
        )
        return CommitPlan(
            pipeline=self.config.name,
            publication=publication,
            policies=tuple(policy.spec for policy in self.config.commit.policies),
            marker_name=self.config.commit.marker.name,
            marker=write_marker(publication, facts),
            watermark=watermark,
            source_range=source_range,
            verdict=verdict,
            approval=entry.approval,
            owner=owner,
            prepared_at=now,
            override=entry.override,
            number=number,
            former_marker=self._former_marker(seen.standing),
            watermark_basis=basis,
        )

    def _former_marker(self, standing: CommitPlan | None) -> str | None:
        """Return the name of the current marker if the pipeline's marker was renamed since."""
        if standing is None or standing.marker_name == self.config.commit.marker.name:
            return None
        return standing.marker_name

    def _source_range(self, publication: Publication) -> dict[str, Any]:
        """Return the source instants of a revision: window by window, ends included."""
        windows = [
            self.ledger.windows.get(int(sequence))
            for sequence in sorted(publication.contributions, key=int)
        ]
        return {
            str(item.window.sequence): {
                "after": item.window.range.start_exclusive.id
                if item.window.range.start_exclusive and not item.window.kind.reads_whole
                else None,
                "to": item.window.range.end_inclusive.id,
                "to_time": instant_text(item.window.range.end_inclusive.time),
            }
            for item in windows
        }


def told_to_readers(
    publication: Publication, config: PipelineConfig, contents: Contents
) -> Mapping[str, Any] | None:
    """Return what the marker of a revision tells of its files, unless these say it themselves.

    A revision without files has the columns that were planned last.
    """
    form = config.target.part_format
    if form.kind.has_columns:
        return None
    columns = contents.columns_of(publication)
    pairs = zip(publication.content, columns, strict=True)
    known = [(file.name, schema) for file, schema in pairs if schema is not None]
    if not known:
        planned = contents.planned_columns(publication.partition)
        known = [(publication.digest, schema) for schema in islice(planned, 1)]
    return tell(form, unified(known))


def writes_marker(plan: CommitPlan) -> bool:
    """Return whether a commit ends with a marker, which its policies may leave out."""
    return any(policy.name == SuccessFilePolicy.word for policy in plan.policies)


def policies_to_finish(plan: CommitPlan, config: PipelineConfig) -> tuple[PolicyConfig, ...]:
    """Return the policies with which a begun commit is finished (PC-A05).

    These are the policies of the pipeline file, so that one that always fails can be corrected or
    removed. The marker is also written if only the plan has it, because the ledger is restored from
    the markers that plans have.
    """
    return with_marker(config.commit.policies) if writes_marker(plan) else config.commit.policies


def with_marker(policies: tuple[PolicyConfig, ...]) -> tuple[PolicyConfig, ...]:
    """Return policies that end with a marker, whether the given ones do or not."""
    has_marker = any(policy.writes_marker for policy in policies)
    return policies if has_marker else (*policies, SuccessFilePolicy())


def revision_of(plan: CommitPlan, commit_plan: str, owner: str, now: datetime) -> RevisionEntry:
    """Return the ledger's entry for a commit plan that was carried out."""
    publication = plan.publication
    return RevisionEntry(
        partition=publication.partition,
        revision=publication.revision,
        digest=publication.digest,
        contributions=publication.contributions,
        rows=publication.rows,
        files=len(publication.content),
        watermark=plan.watermark,
        source_range=plan.source_range,
        commit_plan=commit_plan,
        owner=owner,
        committed_at=now,
        override=plan.override,
        approval=plan.approval,
    )
