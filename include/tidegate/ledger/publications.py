"""Publications and revisions: from proposed to recorded, one compare-and-set at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from tidegate.errors import NotHeld, PublicationLapsed
from tidegate.ledger import rows
from tidegate.ledger.connect import READS_ONLY
from tidegate.ledger.partitions import check_fence, effective_contributions
from tidegate.ledger.schema import contribution, partition, publication, revision
from tidegate.model.publication import Approval, Publication, PublicationState, Verdict

if TYPE_CHECKING:
    from datetime import datetime

    from tidegate.model.ledger_rows import Claim, PublicationEntry, RevisionEntry
    from tidegate.model.partition import Partition
    from tidegate.model.watermark import Evaluation

_OPEN = (
    PublicationState.PREPARED.value,
    PublicationState.MOVED.value,
    PublicationState.MARKED.value,
)


@dataclass(frozen=True)
class Publications:
    """The publications and revisions of one pipeline.

    Failure: every method is one transaction; it happened or it did not. All may be repeated.
    """

    engine: sa.Engine
    name: str

    def unrecorded(self, target: Partition) -> PublicationEntry | None:
        """Give the publication whose commit began and did not end, if there is one."""
        return self._find(target, publication.c.state.in_(_OPEN))

    def proposed(self, target: Partition) -> PublicationEntry | None:
        """Give the publication that waits for gate, approval or commit, if there is one."""
        return self._find(target, publication.c.state == PublicationState.PROPOSED.value)

    def find(self, target: Partition, digest: str) -> PublicationEntry | None:
        """Give one publication by its digest."""
        return self._find(target, publication.c.digest == digest)

    def propose(self, proposal: Publication, claim: Claim, now: datetime) -> PublicationEntry:
        """Store what the next revision would be; another proposal for the partition is dropped.

        The same content proposed again keeps its verdict and its approval.

        Raises:
            FenceLost: the claim was taken over.
        """
        key = self._key(proposal.partition, proposal.digest)
        with self.engine.begin() as connection:
            check_fence(connection, self.name, proposal.partition, claim)
            connection.execute(
                sa.update(publication)
                .where(
                    *self._of(proposal.partition),
                    publication.c.state == PublicationState.PROPOSED.value,
                    publication.c.digest != proposal.digest,
                )
                .values(state=PublicationState.DROPPED.value)
            )
            known = connection.scalar(sa.select(publication.c.state).where(*key))
            if known is None:
                connection.execute(sa.insert(publication).values(**self._values(proposal, now)))
            elif known == PublicationState.DROPPED.value:
                connection.execute(
                    sa.update(publication)
                    .where(*key)
                    .values(state=PublicationState.PROPOSED.value, verdict=None, approval=None)
                )
            row = connection.execute(sa.select(publication).where(*key)).mappings().one()
            return rows.read_publication(row, proposal.partition)

    def record_verdict(
        self,
        target: Partition,
        digest: str,
        verdict: Verdict,
        claim: Claim,
        held: Evaluation | None,
    ) -> None:
        """Store what the gate said.

        With `held` the partition waits for a person and the claim ends.

        Raises:
            FenceLost: the claim was taken over.
            PublicationLapsed: it would be held for content that is no longer all.
        """
        with self.engine.begin() as connection:
            check_fence(connection, self.name, target, claim)
            if held is not None:
                # Nobody looks at a held partition again by itself: the new rows would wait unseen.
                self._check_current(connection, target, self._row(connection, target, digest))
            connection.execute(
                sa.update(publication)
                .where(*self._key(target, digest))
                .values(verdict=verdict.to_json())
            )
            if held is not None:
                connection.execute(
                    sa.update(partition)
                    .where(*self._partition(target))
                    .values(
                        pending="held", why=held.to_json(), claim_owner=None, claim_expires=None
                    )
                )

    def decide(self, target: Partition, digest: str, approval: Approval, why: Evaluation) -> None:
        """Store a person's decision on a held partition.

        Raises:
            NotHeld: the partition does not wait for one.
            PublicationLapsed: the content is no longer the one that was held (PC-C06).
        """
        with self.engine.begin() as connection:
            self._check_held(connection, target)
            self._check_current(connection, target, self._row(connection, target, digest))
            connection.execute(
                sa.update(publication)
                .where(*self._key(target, digest))
                .values(approval=approval.to_json())
            )
            connection.execute(
                sa.update(partition).where(*self._partition(target)).values(why=why.to_json())
            )

    def restore_approval(self, target: Partition, digest: str, approval: Approval | None) -> None:
        """Give a publication its approval back when a lost ledger is restored."""
        with self.engine.begin() as connection:
            connection.execute(
                sa.update(publication)
                .where(*self._key(target, digest))
                .values(approval=rows.json_or_none(approval))
            )

    def reopen(self, target: Partition) -> None:
        """Let a held partition be checked again.

        Raises:
            NotHeld: the partition is not held.
        """
        with self.engine.begin() as connection:
            self._check_held(connection, target)
            connection.execute(
                sa.update(publication)
                .where(*self._of(target), publication.c.state == PublicationState.PROPOSED.value)
                .values(verdict=None, approval=None)
            )
            connection.execute(
                sa.update(partition)
                .where(*self._partition(target))
                .values(pending="pending", why=None)
            )

    def prepare(self, target: Partition, digest: str, claim: Claim) -> None:
        """Begin a commit: from here on it is finished by its written plan, whoever does it.

        Raises:
            FenceLost: the claim was taken over.
            PublicationLapsed: a contribution came or changed since it was proposed.
        """
        with self.engine.begin() as connection:
            check_fence(connection, self.name, target, claim)
            self._check_current(connection, target, self._row(connection, target, digest))
            connection.execute(
                sa.update(publication)
                .where(*self._key(target, digest))
                .values(state=PublicationState.PREPARED.value)
            )

    def advance(self, target: Partition, digest: str, to: PublicationState, claim: Claim) -> None:
        """Note the next step of a commit; noting it again changes nothing.

        Raises:
            FenceLost: the claim was taken over.
        """
        with self.engine.begin() as connection:
            check_fence(connection, self.name, target, claim)
            connection.execute(
                sa.update(publication).where(*self._key(target, digest)).values(state=to.value)
            )

    def record(self, entry: RevisionEntry, claim: Claim) -> None:
        """End a commit: the revision counts.

        And nothing is pending unless something came meanwhile.

        Raises:
            FenceLost: the claim was taken over.
        """
        target = entry.partition
        with self.engine.begin() as connection:
            check_fence(connection, self.name, target, claim)
            connection.execute(
                sa.update(publication)
                .where(*self._key(target, entry.digest))
                .values(state=PublicationState.RECORDED.value)
            )
            now_effective = effective_contributions(connection, self.name, target)
            complete = now_effective == dict(entry.contributions)
            values: dict[str, Any] = {
                "revision": entry.revision,
                "rows": entry.rows,
                "claim_owner": None,
                "claim_expires": None,
                "why": None,
            }
            values |= (
                {"pending": "none", "first_seen": None} if complete else {"pending": "pending"}
            )
            connection.execute(
                sa.update(partition).where(*self._partition(target)).values(**values)
            )
            connection.execute(
                sa.insert(revision).values(
                    pipeline=self.name,
                    partition=target.path,
                    revision=entry.revision,
                    digest=entry.digest,
                    contributions=dict(entry.contributions),
                    rows=entry.rows,
                    files=entry.files,
                    watermark=entry.watermark,
                    source_range=dict(entry.source_range),
                    commit_plan=entry.commit_plan,
                    owner=entry.owner,
                    committed_at=entry.committed_at,
                )
            )

    def revisions(self, target: Partition) -> tuple[RevisionEntry, ...]:
        """Give a partition's revisions, oldest first: lineage from partition to source (PC-C09)."""
        query = (
            sa.select(revision)
            .where(revision.c.pipeline == self.name, revision.c.partition == target.path)
            .order_by(revision.c.revision)
        )
        with self.engine.connect().execution_options(**{READS_ONLY: True}) as connection:
            return tuple(
                rows.read_revision(row, target) for row in connection.execute(query).mappings()
            )

    def _find(
        self, target: Partition, *conditions: sa.ColumnElement[bool]
    ) -> PublicationEntry | None:
        query = sa.select(publication).where(*self._of(target), *conditions)
        with self.engine.connect().execution_options(**{READS_ONLY: True}) as connection:
            row = connection.execute(query).mappings().first()
        return None if row is None else rows.read_publication(row, target)

    def _check_held(self, connection: sa.Connection, target: Partition) -> None:
        query = sa.select(partition).where(*self._partition(target))
        state = rows.read_partition_state(connection.execute(query).mappings().one())
        if state.pending != "held":
            raise NotHeld(pipeline=self.name, partition=str(target), state=state.name)

    def _row(self, connection: sa.Connection, target: Partition, digest: str) -> rows.Row | None:
        query = sa.select(publication).where(*self._key(target, digest))
        return connection.execute(query).mappings().first()

    def _check_current(
        self, connection: sa.Connection, target: Partition, row: rows.Row | None
    ) -> None:
        now_effective = effective_contributions(connection, self.name, target)
        if row is None or row["state"] != PublicationState.PROPOSED.value:
            state = "unknown" if row is None else row["state"]
            raise PublicationLapsed(
                pipeline=self.name, partition=str(target), change=f"the proposal is {state}"
            )
        if row["contributions"] != now_effective:
            new = sorted(set(now_effective.items()) - set(row["contributions"].items()))
            total = connection.scalar(
                sa.select(sa.func.coalesce(sa.func.sum(contribution.c.rows), 0)).where(
                    contribution.c.pipeline == self.name,
                    contribution.c.partition == target.path,
                    contribution.c.window.in_([int(window) for window, _ in new]),
                )
            )
            raise PublicationLapsed(
                pipeline=self.name,
                partition=str(target),
                change=f"+{total} rows since, from window {', '.join(window for window, _ in new)}",
            )

    def _values(self, proposal: Publication, now: datetime) -> dict[str, Any]:
        return {
            "pipeline": self.name,
            "partition": proposal.partition.path,
            "digest": proposal.digest,
            "base_revision": proposal.base_revision,
            "adds": [item.to_json() for item in proposal.adds],
            "removes": [item.to_json() for item in proposal.removes],
            "contributions": dict(proposal.contributions),
            "rows": proposal.rows,
            "state": PublicationState.PROPOSED.value,
            "proposed_at": now,
        }

    def _of(self, target: Partition) -> tuple[sa.ColumnElement[bool], ...]:
        return (publication.c.pipeline == self.name, publication.c.partition == target.path)

    def _key(self, target: Partition, digest: str) -> tuple[sa.ColumnElement[bool], ...]:
        return (*self._of(target), publication.c.digest == digest)

    def _partition(self, target: Partition) -> tuple[sa.ColumnElement[bool], ...]:
        return (partition.c.pipeline == self.name, partition.c.partition == target.path)
