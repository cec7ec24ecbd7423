"""Publications and revisions: from proposed to recorded, one compare-and-set at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from tidegate.errors import ApprovedFirst, PublicationLapsed
from tidegate.ledger import numbers, rows
from tidegate.ledger.connect import reading
from tidegate.ledger.deciding import Deciding
from tidegate.ledger.lapsing import check_current, is_approved, lapse
from tidegate.ledger.partitions import change_partition, check_fence
from tidegate.ledger.recording import Recording
from tidegate.ledger.schema import BEGUN, UtcText, partition, publication, revision
from tidegate.ledger.setting_aside import (
    release,
    release_published,
    set_aside,
    take_back,
    undo,
)
from tidegate.model.aside import Aside
from tidegate.model.ledger_rows import PublicationEntry
from tidegate.model.publication import (
    Approval,
    Override,
    Publication,
    PublicationState,
    Undo,
    Verdict,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from tidegate.model.ledger_rows import Claim, RevisionEntry
    from tidegate.model.partition import Partition
    from tidegate.model.publication import DecisionRecord
    from tidegate.model.watermark import Evaluation


_OF_ONE = tuple(publication.c[key] == sa.bindparam(key) for key in ("pipeline", "partition"))
# Made once: to put a query together takes longer than to carry it out.
_BEGUN = sa.select(publication).where(*_OF_ONE, publication.c.state.in_(BEGUN))
_PROPOSED = sa.select(publication).where(
    *_OF_ONE, publication.c.state == PublicationState.PROPOSED.value
)
_ONE = sa.select(publication).where(*_OF_ONE, publication.c.digest == sa.bindparam("digest"))
_PROPOSED_OR_ONE = sa.select(publication).where(
    *_OF_ONE,
    sa.or_(
        publication.c.state == PublicationState.PROPOSED.value,
        publication.c.digest == sa.bindparam("digest"),
    ),
)
_CHANGE = sa.update(publication).where(
    *(publication.c[key] == sa.bindparam(f"of_{key}") for key in ("pipeline", "partition")),
    publication.c.digest == sa.bindparam("of_digest"),
)
_ADVANCE = _CHANGE.where(publication.c.state.in_(BEGUN))
_ADD = sa.insert(publication)
_REVISIONS = (
    rows.select_revisions(sa.bindparam("pipeline"))
    .where(revision.c.partition == sa.bindparam("partition"))
    .order_by(revision.c.revision)
)


@dataclass(frozen=True)
class Publications:
    """The publications and revisions of one pipeline.

    Failure: every method is one transaction; it happened or it did not. All may be repeated.
    """

    engine: sa.Engine
    name: str

    def unrecorded(self, target: Partition) -> PublicationEntry | None:
        """Return the publication whose commit has begun but not ended, if there is one."""
        return self._find(_BEGUN, target)

    def proposed(self, target: Partition) -> PublicationEntry | None:
        """Return the publication that waits for gate, approval or commit, if there is one."""
        return self._find(_PROPOSED, target)

    def find(self, target: Partition, digest: str) -> PublicationEntry | None:
        """Return one publication by its digest."""
        return self._find(_ONE, target, digest=digest)

    def approved(self, target: Partition) -> PublicationEntry | None:
        """Return the publication that a person approved, if it can still be committed as shown."""
        with reading(self.engine) as connection:
            return self._approved(connection, target)

    def propose(
        self,
        proposal: Publication,
        claim: Claim,
        now: datetime,
        override: Override | None = None,
    ) -> PublicationEntry:
        """Store a proposal for the next revision; any other proposal for the partition is dropped.

        If the same content is proposed again, it keeps its verdict, approval and override.

        Returns:
            The proposal; or the one that a person has approved by now, which goes first.

        Raises:
            FenceLost: the claim was taken over.
        """
        target, digest = proposal.partition, proposal.digest
        mine = {"pipeline": self.name, "partition": target.path, "digest": digest}
        with self.engine.begin() as connection:
            stands = check_fence(connection, self.name, target, claim)["revision"]
            found = connection.execute(_PROPOSED_OR_ONE, mine).mappings().all()
            for row in found:
                if row["state"] == PublicationState.PROPOSED.value and _stays(
                    connection, row, stands
                ):
                    return rows.read_publication(row, target)
            for row in found:
                if row["digest"] != digest:
                    self._change(
                        connection, target, row["digest"], state=PublicationState.DROPPED.value
                    )
            known = next((row["state"] for row in found if row["digest"] == digest), None)
            said = {} if override is None else {"override": override.to_json()}
            if known is None:
                values = self._values(proposal, now)
                connection.execute(_ADD, {**values, **said})
                return _proposed(proposal, override)
            if known == PublicationState.DROPPED.value:
                fresh = {"verdict": None, "approval": None, "override": None, **said}
                self._change(
                    connection, target, digest, state=PublicationState.PROPOSED.value, **fresh
                )
            else:
                # The same files, which may have been made again elsewhere.
                adds = [item.to_json() for item in proposal.adds]
                self._change(connection, target, digest, adds=adds, **said)
            kept = connection.execute(_ONE, mine).mappings().one()
            return rows.read_publication(kept, target)

    def propose_decided(
        self,
        proposal: Publication,
        verdict: Verdict,
        said: Approval,
        claim: Claim,
        now: datetime,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """Store a revision that a person asked for; the partition is pending until it is committed.

        Args:
            proposal: the revision.
            verdict: on its content.
            said: who asked for it, and why.
            claim: the caller's.
            now: its clock.
            check: called before it is approved, while nothing else is recorded for the pipeline;
                what it raises leaves the revision without approval.

        Raises:
            FenceLost: the claim was taken over.
            ApprovedFirst: content that a person approved goes first.
            PublicationLapsed: something that this revision does not know has changed.
        """
        target = proposal.partition
        stored = self.propose(proposal, claim, now)
        if stored.publication.digest != proposal.digest:
            shown = stored.publication.digest
            raise ApprovedFirst(pipeline=self.name, partition=str(target), publication=shown)
        with self.engine.begin() as connection:
            numbers.lock(connection, self.name)
            check_fence(connection, self.name, target, claim)
            check()
            connection.execute(
                sa.update(publication)
                .where(*self._key(target, proposal.digest))
                .values(verdict=verdict.to_json(), approval=said.to_json())
            )
            row = self._row(connection, target, proposal.digest)
            check_current(connection, self.name, target, row)
            connection.execute(
                sa.update(partition)
                .where(*self._partition(target))
                .values(
                    pending="pending",
                    first_seen=sa.func.coalesce(partition.c.first_seen, sa.literal(now, UtcText)),
                )
            )

    def record_verdict(
        self,
        target: Partition,
        digest: str,
        verdict: Verdict,
        claim: Claim,
        held: Evaluation | None,
    ) -> None:
        """Store the verdict of the gate.

        If it is held, the partition waits for a person and the claim ends.

        Raises:
            FenceLost: the claim was taken over.
            PublicationLapsed: it would be held for content that is no longer complete.
        """
        with self.engine.begin() as connection:
            stands = check_fence(connection, self.name, target, claim)["revision"]
            if held is not None:
                # A held partition is not looked at again automatically: the new rows would wait
                # unseen.
                row = self._row(connection, target, digest)
                check_current(connection, self.name, target, row, stands)
            self._change(connection, target, digest, verdict=verdict.to_json())
            if held is not None:
                change_partition(
                    connection,
                    self.name,
                    target,
                    pending="held",
                    why=held.to_json(),
                    claim_owner=None,
                    claim_expires=None,
                )

    def reserve(self, target: Partition, claim: Claim | None, count: int = 1) -> int:
        """Reserve the number of a verdict, a commit or a decision; return the first of several.

        Args:
            target: the partition.
            claim: the caller's; None for a person's decision, which needs no claim.
            count: how many numbers.

        Raises:
            FenceLost: the claim was taken over.
        """
        with self.engine.begin() as connection:
            locked = numbers.lock(connection, self.name)
            if claim is not None:
                check_fence(connection, self.name, target, claim)
            return numbers.reserve_for_partition(connection, locked, target.path, count)

    def decide(self, decision: DecisionRecord, approval: Approval) -> None:
        """Store a person's decision on the publication that was shown.

        Raises:
            DecisionRefused: it was replaced, or its commit has begun.
            NotHeld: it waits for no decision.
            PublicationLapsed: it can no longer be committed as it was shown (PC-C06).
            NumberPassed: something newer was recorded for the partition (Transient).
        """
        target, digest, why = decision.partition, decision.publication, decision.why
        with self.engine.begin() as connection:
            numbers.lock(connection, self.name)
            numbers.record_for_partition(connection, self.name, target.path, decision.number)
            Deciding(connection, self.name, target).check(digest, approved=approval.approved)
            connection.execute(
                sa.update(publication)
                .where(*self._key(target, digest))
                .values(approval=approval.to_json())
            )
            connection.execute(
                sa.update(partition)
                .where(*self._partition(target), partition.c.pending == "held")
                .values(why=why.to_json())
            )
            self._set_aside(connection, decision)

    def restore(self, entry: PublicationEntry, at: datetime) -> None:
        """Insert a publication as described by files, in place of one with the same content.

        Another proposal for the partition is dropped. Rows of a commit that has begun count, though
        no decision may tell that they were released.
        """
        target, digest = entry.publication.partition, entry.publication.digest
        values = self._values(entry.publication, at) | {
            "rows": entry.rows,
            "verdict": rows.json_or_none(entry.verdict),
            "approval": rows.json_or_none(entry.approval),
            "override": rows.json_or_none(entry.override),
            "state": entry.state.value,
            "commit_plan": entry.commit_plan,
        }
        said = entry.publication.undone
        with self.engine.begin() as connection:
            connection.execute(sa.delete(publication).where(*self._key(target, digest)))
            connection.execute(
                sa.update(publication)
                .where(*self._of(target), publication.c.state == PublicationState.PROPOSED.value)
                .values(state=PublicationState.DROPPED.value)
            )
            connection.execute(sa.insert(publication).values(**values))
            if entry.state.value in BEGUN:
                self._make_found(connection, target)
                published = entry.publication.contributions
                release_published(connection, self.name, target, published, at)
            if said is not None:
                undo(connection, self.name, target, said)

    def restore_aside(self, decision: DecisionRecord) -> None:
        """Set aside and release what a decision in a file says."""
        with self.engine.begin() as connection:
            self._set_aside(connection, decision)

    def release(self, decision: DecisionRecord) -> None:
        """Let rows count that were held until now.

        Raises:
            NumberPassed: something newer was recorded for the partition (Transient).
        """
        target = decision.partition
        with self.engine.begin() as connection:
            numbers.lock(connection, self.name)
            numbers.record_for_partition(connection, self.name, target.path, decision.number)
            self._set_aside(connection, decision)

    def reopen(self, decision: DecisionRecord) -> None:
        """Let a held partition be checked again, and let count what is set aside.

        Raises:
            NotHeld: the partition is not held, and nothing is set aside.
            NumberPassed: something newer was recorded for the partition (Transient).
        """
        target, released = decision.partition, decision.released or ()
        with self.engine.begin() as connection:
            numbers.lock(connection, self.name)
            numbers.record_for_partition(connection, self.name, target.path, decision.number)
            Deciding(connection, self.name, target).check_reopened(released)
            self._set_aside(connection, decision)
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

    def prepare(
        self, expected: PublicationEntry, commit_plan: str, claim: Claim, number: int
    ) -> None:
        """Begin a commit: from here on its written plan is carried out, by whatever process.

        Args:
            expected: the publication with the verdict and the decision of its plan.
            commit_plan: path of that plan, relative to the work directory.
            claim: the caller's.
            number: the plan's.

        Raises:
            FenceLost: the claim was taken over.
            NumberPassed: something newer was recorded for the partition (Transient).
            PublicationLapsed: a contribution was added or changed since it was proposed, or it was
                checked or decided on again.
        """
        target, digest = expected.publication.partition, expected.publication.digest
        with self.engine.begin() as connection:
            locked = numbers.lock(connection, self.name)
            held = check_fence(connection, self.name, target, claim)
            row = self._row(connection, target, digest)
            check_current(connection, self.name, target, row, held["revision"])
            said = expected.publication.undone
            numbers.check_newest(self.name, target.path, held["number"], number)
            numbers.pass_over(connection, locked, number)
            if row is None or _decided(rows.read_publication(row, target)) != _decided(expected):
                raise PublicationLapsed(
                    pipeline=self.name,
                    partition=str(target),
                    change="another verdict or decision was recorded since",
                )
            state = PublicationState.PREPARED.value
            self._change(connection, target, digest, state=state, commit_plan=commit_plan)
            # Whoever looks for what has to be published finds a commit that may die.
            pending = "pending" if held["pending"] == "none" else held["pending"]
            change_partition(connection, self.name, target, number=number, pending=pending)
            if said is not None:
                undo(connection, self.name, target, said)

    def _make_found(self, connection: sa.Connection, target: Partition) -> None:
        """Let whoever looks for what has to be published find a commit that may die."""
        connection.execute(
            sa.update(partition)
            .where(*self._partition(target), partition.c.pending == "none")
            .values(pending="pending")
        )

    def advance(self, target: Partition, digest: str, to: PublicationState, claim: Claim) -> None:
        """Record the next step of a commit; recording it again changes nothing.

        Raises:
            FenceLost: the claim was taken over.
            PublicationLapsed: no such commit is under way.
        """
        with self.engine.begin() as connection:
            check_fence(connection, self.name, target, claim)
            mine = {"of_pipeline": self.name, "of_partition": target.path, "of_digest": digest}
            advanced = connection.execute(_ADVANCE, {**mine, "state": to.value})
            if advanced.rowcount == 0:
                raise PublicationLapsed(
                    pipeline=self.name,
                    partition=str(target),
                    change="the ledger knows of no such commit under way",
                )

    def is_replaced(self, target: Partition, digest: str) -> bool:
        """Return whether something arrived since that replaces content of a publication."""
        with reading(self.engine) as connection:
            row = self._row(connection, target, digest)
            return row is not None and lapse(connection, row, as_shown=True) is not None

    def withdraw(self, target: Partition, digest: str, claim: Claim) -> None:
        """Drop a publication whose commit had begun and was undone.

        Raises:
            FenceLost: the claim was taken over.
        """
        with self.engine.begin() as connection:
            check_fence(connection, self.name, target, claim)
            row = self._row(connection, target, digest)
            said = rows.optional(Undo, row["undone"]) if row is not None else None
            connection.execute(
                sa.update(publication)
                .where(*self._key(target, digest), publication.c.state.in_(BEGUN))
                .values(state=PublicationState.DROPPED.value)
            )
            if said is not None:
                take_back(connection, self.name, target, said)

    def record(self, entry: RevisionEntry, claim: Claim) -> None:
        """End a commit: its revision counts, and only what arrived meanwhile is pending.

        Raises:
            FenceLost: the claim was taken over.
        """
        with self.engine.begin() as connection:
            check_fence(connection, self.name, entry.partition, claim)
            Recording(connection, self.name).record(entry)

    def revisions(self, target: Partition) -> tuple[RevisionEntry, ...]:
        """Return a partition's revisions, oldest first: its lineage to the source (PC-C09)."""
        mine = {"pipeline": self.name, "partition": target.path}
        with reading(self.engine) as connection:
            found = connection.execute(_REVISIONS, mine).mappings()
            return tuple(rows.read_revision(row, target) for row in found)

    def _set_aside(self, connection: sa.Connection, decision: DecisionRecord) -> None:
        """Set aside, or release, the rows that a decision names."""
        target, late = decision.partition, decision.set_aside
        if late:
            set_aside(connection, self.name, target, late, Aside.LATE_PROPOSED)
        if decision.released:
            at = decision.why.evaluated_at
            release(connection, self.name, target, decision.released, at)

    def _find(
        self, query: sa.Select[Any], target: Partition, **asked: str
    ) -> PublicationEntry | None:
        mine = {"pipeline": self.name, "partition": target.path, **asked}
        with reading(self.engine) as connection:
            row = connection.execute(query, mine).mappings().first()
        return None if row is None else rows.read_publication(row, target)

    def _approved(self, connection: sa.Connection, target: Partition) -> PublicationEntry | None:
        mine = {"pipeline": self.name, "partition": target.path}
        row = connection.execute(_PROPOSED, mine).mappings().first()
        if row is None or not _stays(connection, row):
            return None
        return rows.read_publication(row, target)

    def _change(
        self, connection: sa.Connection, target: Partition, digest: str, **changed: object
    ) -> None:
        mine = {"of_pipeline": self.name, "of_partition": target.path, "of_digest": digest}
        connection.execute(_CHANGE, {**mine, **changed})

    def _row(self, connection: sa.Connection, target: Partition, digest: str) -> rows.Row | None:
        mine = {"pipeline": self.name, "partition": target.path, "digest": digest}
        return connection.execute(_ONE, mine).mappings().first()

    def _values(self, proposal: Publication, now: datetime) -> dict[str, Any]:
        return {
            "pipeline": self.name,
            "partition": proposal.partition.path,
            "digest": proposal.digest,
            "base_revision": proposal.base_revision,
            "adds": [item.to_json() for item in proposal.adds],
            "removes": [item.to_json() for item in proposal.removes],
            "contributions": dict(proposal.contributions),
            "undone": rows.json_or_none(proposal.undone),
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


def _stays(connection: sa.Connection, row: rows.Row, stands: int | None = None) -> bool:
    """Return whether a person approved a proposal, and it can still be committed as shown."""
    return is_approved(row) and lapse(connection, row, as_shown=True, stands=stands) is None


def _proposed(proposal: Publication, override: Override | None) -> PublicationEntry:
    """Return the entry of a publication that was not known before."""
    return PublicationEntry(
        publication=replace(proposal, content=()),
        rows=proposal.rows,
        verdict=None,
        approval=None,
        state=PublicationState.PROPOSED,
        override=override,
    )


def _decided(
    entry: PublicationEntry,
) -> tuple[Verdict | None, Approval | None, Override | None]:
    """Return the content of a commit plan apart from its files."""
    return entry.verdict, entry.approval, entry.override
