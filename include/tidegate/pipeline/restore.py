"""Write a lost ledger again from what stands in the work directory and in the target (design §4).

Every announce left a `sealed.json`, every commit its plan, every verdict and decision a record;
done again in the order of their times they give the ledger that was lost, but for claims.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from tidegate.commit.propose import with_content
from tidegate.errors import LedgerNotLost
from tidegate.ledger.holder import Holder
from tidegate.model.publication import CommitPlan, DecisionRecord, GateRecord, Publication
from tidegate.model.sealed import SealedWindow
from tidegate.pipeline.announce import announcement_of
from tidegate.pipeline.plan_files import read_plan
from tidegate.pipeline.publish import Committer, revision_of
from tidegate.pipeline.work import Roots, owner_to_restore
from tidegate.stage import layout

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tidegate.config import PipelineConfig
    from tidegate.ledger import Ledger
    from tidegate.model.ledger_rows import Claim
    from tidegate.model.partition import Partition
    from tidegate.storage import Storage

_OWNER = "fsck"
_CLAIM = timedelta(hours=1)
_UNKNOWN = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Restored:
    """What was written again."""

    windows: int
    revisions: int
    unfinished: tuple[str, ...]
    """Partitions whose commit was under way; the next publish finishes it."""


@dataclass(frozen=True)
class _Chain:
    """The commits of one partition, as its files and markers tell them."""

    recorded: tuple[tuple[str, CommitPlan], ...]
    """(path relative to the work directory, plan), by revision."""
    unfinished: CommitPlan | None


@dataclass(frozen=True)
class Restorer:
    """Restores one pipeline's ledger.

    Runs on: one process, while nothing else works on the pipeline. Called: by a person.
    Failure: a ledger that is half restored is refused by the next call; remove it and call again.
    """

    config: PipelineConfig
    roots: Roots
    ledger: Ledger
    storage: Storage
    committer: Committer

    def restore(self) -> Restored:
        """Restore the ledger.

        Raises:
            WorkUnknown: there is no work directory of this pipeline.
            TargetOwned, WorkUnfit, WorkOwned: target and work directory are not its own.
            LedgerNotLost: the ledger in use knows the pipeline.
        """
        owner = owner_to_restore(self.roots, self.config.name, self.storage)
        if self.ledger.pipeline.find() is not None:
            raise LedgerNotLost(pipeline=self.config.name)
        sealed = _in_order(self._sealed())
        chains = [self._chain(plans) for plans in self._plans_by_partition()]
        began = sealed[0][1].announced_at if sealed else _UNKNOWN
        self.ledger.pipeline.register(
            self.config.identity(), self.roots.target, began, owner.ledger
        )
        for uri, item in sealed:
            self._announce(uri, item)
            for chain in chains:
                self._commit_what_fits(chain)
        self._settle_unchanged()
        self._restore_proposals()
        return Restored(
            windows=len({item.window.sequence for _, item in sealed}),
            revisions=sum(len(chain.recorded) for chain in chains),
            unfinished=tuple(
                str(chain.unfinished.publication.partition) for chain in chains if chain.unfinished
            ),
        )

    def _sealed(self) -> Iterator[tuple[str, SealedWindow]]:
        root = layout.windows_root(self.roots.work)
        for name in self.storage.list_files(root):
            folder, _, plain = name.rpartition("/")
            if plain.startswith("sealed") and plain.endswith(".json"):
                content = self.storage.read_bytes(f"{root}/{name}")
                yield f"{root}/{folder}", SealedWindow.from_text(content)

    def _announce(self, uri: str, sealed: SealedWindow) -> None:
        now, sequence = sealed.announced_at, sealed.window.sequence
        holder = Holder(_OWNER, now, _CLAIM)
        self.ledger.pipeline.start_at(sealed.first_start, sealed.source_identity)
        state = self.ledger.pipeline.find()
        if sequence in {item.window.sequence for item in self.ledger.windows.all()}:
            taken = self.ledger.windows.resume(sequence, holder)
        else:
            taken = self.ledger.windows.take(
                sealed.window, state.checkpoint if state else None, holder
            )
        self.ledger.windows.record_plan(read_plan(self.storage, uri), uri)
        self.ledger.windows.announce(announcement_of(self.config, sealed, taken.attempt, uri), now)

    def _commit_what_fits(self, chain: _Chain) -> None:
        """Record each revision once the partition has just the contributions it was made of."""
        for path, plan in chain.recorded:
            if self._fits(plan.publication):
                claim = self._prepare(plan)
                entry = revision_of(plan, path, plan.owner, plan.prepared_at)
                self.ledger.publications.record(entry, claim)
        if chain.unfinished is not None and self._fits(chain.unfinished.publication):
            self._prepare(chain.unfinished)

    def _settle_unchanged(self) -> None:
        """Leave nothing pending where a replay gave what stood already.

        That left no trace but this.
        """
        for state in self.ledger.partitions.all():
            begun = self.ledger.publications.unrecorded(state.partition)
            if state.pending == "pending" and state.revision and begun is None:
                claim = self._claim(state.partition, _UNKNOWN)
                if not self.committer.settle_unchanged(state.partition, claim):
                    self.ledger.partitions.release(state.partition, claim)

    def _fits(self, publication: Publication) -> bool:
        state = self.ledger.partitions.find(publication.partition)
        if state is None or state.revision != publication.base_revision:
            return False
        if self.ledger.publications.unrecorded(publication.partition) is not None:
            return False
        return dict(publication.contributions) == {
            str(item.window): item.plan_digest
            for item in self.ledger.windows.contributions(publication.partition)
        }

    def _plans_by_partition(self) -> list[list[tuple[str, CommitPlan]]]:
        grouped: dict[str, list[tuple[str, CommitPlan]]] = {}
        for path in self._records(""):
            plan = CommitPlan.from_text(self.storage.read_bytes(path))
            relative = layout.relative_to_work(self.roots.work, path)
            grouped.setdefault(plan.publication.partition.path, []).append((relative, plan))
        return list(grouped.values())

    def _records(self, kind: str) -> Iterator[str]:
        """Give the paths of commit plans, or of the records beside them: `.gate`, `.decision`."""
        root = f"{self.roots.work}/{layout.PUBLICATIONS}"
        for name in self.storage.list_files(root):
            plain = name.rpartition("/")[2].removesuffix(".json")
            found = plain[plain.rfind(".") :] if "." in plain else ""
            if found == kind and not plain.startswith("."):
                yield f"{root}/{name}"

    def _chain(self, plans: Sequence[tuple[str, CommitPlan]]) -> _Chain:
        """Find which plans became revisions: from the marker that stands down to the first.

        A plan may also have been written and never carried out, because its content lapsed. The
        plan of a revision is the one whose content its successor began from.
        """
        newest_first = sorted(
            plans,
            key=lambda item: (item[1].publication.revision, item[1].prepared_at),
            reverse=True,
        )
        standing = next((plan for _, plan in newest_first if self._stands(plan)), None)
        # Without a marker the newest commit was under way: it retracts the marker first.
        unfinished = newest_first[0][1] if standing is None else None
        if standing is not None:
            wanted, revision = _names(standing.publication), standing.publication.revision
        else:
            begun = newest_first[0][1].publication
            wanted, revision = _before(begun), begun.base_revision
        recorded = []
        for path, plan in newest_first:
            if plan.publication.revision == revision and _names(plan.publication) == wanted:
                recorded.append((path, plan))
                wanted, revision = _before(plan.publication), plan.publication.base_revision
        return _Chain(tuple(reversed(recorded)), unfinished)

    def _stands(self, plan: CommitPlan) -> bool:
        path = f"{self.roots.partition(plan.publication.partition)}/{plan.marker_name}"
        return self.storage.exists(path) and self.storage.read_bytes(path) == plan.marker.encode()

    def _prepare(self, plan: CommitPlan) -> Claim:
        publication = plan.publication
        target, now = publication.partition, plan.prepared_at
        claim = self._claim(target, now)
        self.ledger.publications.propose(publication, claim, now)
        self.ledger.publications.record_verdict(
            target, publication.digest, plan.verdict, claim, None
        )
        self.ledger.publications.restore_approval(target, publication.digest, plan.approval)
        self.ledger.publications.prepare(target, publication.digest, claim)
        return claim

    def _restore_proposals(self) -> None:
        """Give partitions that wait for gate or person their verdicts and decisions back."""
        decisions = [
            DecisionRecord.from_text(self.storage.read_bytes(path))
            for path in self._records(".decision")
        ]
        records = [
            GateRecord.from_text(self.storage.read_bytes(path)) for path in self._records(".gate")
        ]
        for record in sorted(records, key=lambda item: item.verdict.checked_at):
            if self._fits(record.publication):
                self._restore_proposal(record, decisions)

    def _restore_proposal(self, record: GateRecord, decisions: Sequence[DecisionRecord]) -> None:
        publication, target = record.publication, record.publication.partition
        claim = self._claim(target, record.verdict.checked_at)
        self.ledger.publications.propose(publication, claim, record.verdict.checked_at)
        self.ledger.publications.record_verdict(
            target, publication.digest, record.verdict, claim, record.held
        )
        for decision in sorted(decisions, key=lambda item: item.approval.at):
            if (decision.partition, decision.publication) == (target, publication.digest):
                self.ledger.publications.decide(
                    target, publication.digest, decision.approval, decision.why
                )
        if record.held is None:
            self.ledger.partitions.release(target, claim)

    def _claim(self, target: Partition, now: datetime) -> Claim:
        holder = Holder(_OWNER, now, _CLAIM)
        return self.ledger.partitions.claim(target, holder)


def _in_order(
    found: Iterable[tuple[str, SealedWindow]],
) -> list[tuple[str, SealedWindow]]:
    """Sort announces by their times, but no window before one with a lower number.

    Windows are taken one after the other; the clocks of the hosts that announced them may differ.
    """
    listed = list(found)
    first: dict[int, datetime] = {}
    for _, item in listed:
        sequence = item.window.sequence
        first[sequence] = min(first.get(sequence, item.announced_at), item.announced_at)
    sequences = sorted(first)
    latest = itertools.accumulate((first[sequence] for sequence in sequences), max)
    not_before = dict(zip(sequences, latest, strict=True))

    def turn(entry: tuple[str, SealedWindow]) -> tuple[datetime, int, datetime]:
        sequence, announced_at = entry[1].window.sequence, entry[1].announced_at
        return max(announced_at, not_before[sequence]), sequence, announced_at

    return sorted(listed, key=turn)


def _names(publication: Publication) -> frozenset[str]:
    return frozenset(file.name for file in publication.content)


def _before(publication: Publication) -> frozenset[str]:
    """Name the files that stood before a publication."""
    back = with_content(
        Publication(
            partition=publication.partition,
            base_revision=publication.base_revision,
            adds=publication.removes,
            removes=publication.adds,
            content=(),
            contributions=publication.contributions,
        ),
        publication.content,
    )
    return _names(back)
