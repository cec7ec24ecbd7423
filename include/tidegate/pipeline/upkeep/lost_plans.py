"""Reconstruct lost commit plans from ledger and marker. Changes nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tidegate.errors import MarkerInvalid, SourceFileGone
from tidegate.model.publication import CommitPlan, Outcome, PolicySpec, Verdict
from tidegate.pipeline.publish.commit_plans import told_to_readers, with_marker
from tidegate.pipeline.state.records import CommitFile
from tidegate.stage import layout
from tidegate.stage.stored import read_stored
from tidegate.target.content import with_content
from tidegate.target.marker import MarkerFacts, read_marker, write_marker

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tidegate.config import PipelineConfig
    from tidegate.ledger import Ledger
    from tidegate.model.ledger_rows import PartitionState, PublicationEntry, RevisionEntry
    from tidegate.model.publication import Publication, PublishedFile
    from tidegate.pipeline.publish.content import Contents
    from tidegate.pipeline.state.behind import Watch
    from tidegate.pipeline.state.places import Roots
    from tidegate.storage import Storage


@dataclass(frozen=True)
class _Marker:
    """A current marker and its content."""

    name: str
    text: str
    says: dict[str, Any]


@dataclass(frozen=True)
class LostPlans:
    """Reconstructs the plans of revisions that the ledger in use has recorded.

    The ledger has the files that a commit added and removed, its verdict and its decision; the
    files before it are in the plan before. The marker is the current one, and is written anew if
    there is none.
    """

    config: PipelineConfig
    roots: Roots
    ledger: Ledger
    storage: Storage
    contents: Contents
    watch: Watch

    def told(self) -> tuple[CommitFile, ...]:
        """Return every lost plan, except those that do not match the current files."""
        return tuple(
            item for state in self.ledger.partitions.all() for item in self._of_partition(state)
        )

    def _of_partition(self, state: PartitionState) -> Iterator[CommitFile]:
        revisions = self.ledger.publications.revisions(state.partition)
        if all(self.storage.exists(self._path(entry)) for entry in revisions):
            return
        before: Publication | None = None
        for entry in revisions:
            if self.storage.exists(self._path(entry)):
                before = read_stored(self.storage, self._path(entry), CommitPlan).publication
                continue
            known = self._known(entry, before)
            plan = self._plan(known, entry, state) if known else None
            if plan is None:
                return
            yield CommitFile(entry.commit_plan, plan)
            before = plan.publication

    def _known(self, entry: RevisionEntry, before: Publication | None) -> PublicationEntry | None:
        """Return the publication of a revision, with its content; None if it is not fully known."""
        known = self.ledger.publications.find(entry.partition, entry.digest)
        base = before.revision if before else 0
        if known is None or known.publication.base_revision != base:
            return None
        made = with_content(known.publication, before.content if before else ())
        found = (made.digest, made.rows, len(made.content))
        if found != (entry.digest, entry.rows, entry.files):
            return None
        return replace(known, publication=made)

    def _plan(
        self, known: PublicationEntry, entry: RevisionEntry, state: PartitionState
    ) -> CommitPlan | None:
        """Return the plan of a revision; None if its marker has other files."""
        publication = known.publication
        marker = self._marker_of(publication)
        if marker is not None and _listed(marker.says["files"]) != _content(publication.content):
            return None
        nothing = Verdict(Outcome.PASS, (), entry.rows, "none", entry.committed_at)
        plan = CommitPlan(
            pipeline=self.config.name,
            publication=publication,
            policies=self._policies(marker),
            marker_name=marker.name if marker else self.config.commit.marker.name,
            marker=marker.text if marker else "",
            watermark=entry.watermark,
            source_range=entry.source_range,
            verdict=known.verdict or nothing,
            approval=known.approval,
            owner=entry.owner,
            prepared_at=entry.committed_at,
            override=entry.override,
            number=layout.order_of_record(entry.commit_plan)[1],
        )
        return plan if marker else replace(plan, marker=self._written(plan, state))

    def _policies(self, marker: _Marker | None) -> tuple[PolicySpec, ...]:
        """Return the policies of the pipeline file, with that of an existing marker."""
        named = self.config.commit.policies
        return tuple(
            policy.spec for policy in (with_marker(named) if marker is not None else named)
        )

    def _written(self, plan: CommitPlan, state: PartitionState) -> str:
        facts = MarkerFacts(
            pipeline=plan.pipeline,
            watermark=plan.watermark,
            partition_end=state.end,
            trigger=self.config.commit.trigger,
            source_range=plan.source_range,
            verdict=plan.verdict,
            approval=plan.approval,
            owner=plan.owner,
            prepared_at=plan.prepared_at,
            override=plan.override,
            told=told_to_readers(plan.publication, self.config, self.contents),
        )
        return write_marker(plan.publication, facts)

    def _marker_of(self, publication: Publication) -> _Marker | None:
        """Read the current marker if it belongs to a revision."""
        folder = self.roots.revision(publication)
        for name in sorted(self.watch.marker_names(publication.partition)):
            path = f"{folder}/{name}"
            try:
                content = self.storage.read_bytes(path)
                says = read_marker(path, content)
            except (SourceFileGone, MarkerInvalid):
                continue
            if says["revision"] == publication.revision:
                return _Marker(name, content.decode(), says)
        return None

    def _path(self, entry: RevisionEntry) -> str:
        return f"{self.roots.work}/{entry.commit_plan}"


def _content(files: Iterable[PublishedFile]) -> list[tuple[str, int, str]]:
    return [(file.name, file.length, file.sha256) for file in files]


def _listed(files: Sequence[dict[str, Any]]) -> list[tuple[str, int, str]]:
    return [(file["name"], file["length"], file["sha256"]) for file in files]
