"""The transaction that seals a window: contributions replaced, partitions made pending."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import sqlalchemy as sa

from tidegate.ledger import numbers, rows
from tidegate.ledger.identity import check_partitions
from tidegate.ledger.schema import (
    BEGUN,
    UtcText,
    contribution,
    partition,
    pipeline,
    plan,
    publication,
    window,
)
from tidegate.model.aside import OF_POLICY, Aside
from tidegate.model.counting import counting
from tidegate.model.message import Contribution, EventTimes, RunSummary
from tidegate.model.partition import Partition
from tidegate.model.plan import WindowKind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from tidegate.model.watermark import WatermarkStep


@dataclass(frozen=True)
class Announcement:
    """The announce of one window, worked out before the transaction."""

    sequence: int
    attempt: int
    number: int
    """The number that was reserved for it, which orders it among all records."""
    plan_digest: str
    messages_uri: str
    contributions: Sequence[Contribution]
    times: Mapping[Partition, tuple[datetime | None, datetime | None]]
    """Partition → its start and end as instants, None where they are not known."""
    watermark: WatermarkStep
    summary: RunSummary
    late_data: str | None = None
    """The policy for late rows, a word of `commit.late_data`; None: they count."""


@dataclass(frozen=True)
class _Before:
    """What was known of a partition before an announce."""

    is_out: bool
    """Whether it has a revision, or one is being committed."""
    is_held: bool
    """Whether it waits for a person."""


@dataclass(frozen=True)
class Announcing:
    """The changes of an announce, inside its caller's transaction."""

    connection: sa.Connection
    name: str

    def seal(self, announced: Announcement, summary: RunSummary, now: datetime) -> None:
        """Mark the window as sealed, and its plan as staged."""
        self.connection.execute(
            sa.update(window)
            .where(window.c.pipeline == self.name, window.c.sequence == announced.sequence)
            .values(
                state="sealed",
                owner=None,
                expires=None,
                plan_digest=announced.plan_digest,
                summary=summary.to_json(),
                sealed_at=now,
            )
        )
        self.connection.execute(
            sa.update(plan)
            .where(
                plan.c.pipeline == self.name,
                plan.c.window == announced.sequence,
                plan.c.digest == announced.plan_digest,
            )
            .values(state="staged")
        )

    def replace_contributions(
        self, announced: Announcement, now: datetime
    ) -> tuple[Contribution, ...]:
        """Replace the window's old contributions by the plan's, over the union of both.

        Partitions become pending; whether a contribution is late is kept from the first announce.

        Raises:
            PipelineChanged: a partition is not spelled as the pipeline's identity requires.
        """
        check_partitions(
            self.connection, self.name, (item.partition for item in announced.contributions)
        )
        mine = (contribution.c.pipeline == self.name, contribution.c.window == announced.sequence)
        before = {
            row["partition"]: row
            for row in self.connection.execute(sa.select(contribution).where(*mine)).mappings()
        }
        kind = self.connection.scalar(
            sa.select(window.c.kind).where(
                window.c.pipeline == self.name, window.c.sequence == announced.sequence
            )
        )
        fresh = {item.partition.path: item for item in announced.contributions}
        reset = {*before, *self._to_reset(announced.sequence, str(kind))}
        emptied = [self._emptied(path, announced) for path in sorted(reset - fresh.keys())]
        self.connection.execute(sa.delete(contribution).where(*mine))
        effective = []
        for item in sorted([*fresh.values(), *emptied], key=lambda each: each.partition.path):
            path = item.partition.path
            known = before.get(path)
            before_it = self._touch(item.partition, announced, now)
            late = before_it.is_out if known is None else known["late"]
            aside = _why_aside(item, announced, late=late, known=known)
            # A hold lapses with its content, which rows that do not count leave as it is.
            stays_held = before_it.is_held and aside is not None
            self._make_pending(path, "held" if stays_held else "pending", now)
            self.connection.execute(
                sa.insert(contribution).values(
                    pipeline=self.name,
                    window=announced.sequence,
                    partition=path,
                    kind=kind,
                    plan_digest=item.plan_digest,
                    messages_uri=announced.messages_uri,
                    messages=list(item.messages),
                    rows=item.rows,
                    bytes=item.bytes,
                    event_times=item.event_times.to_json(),
                    late=late,
                    held_rule=item.held_rule,
                    held_rows=item.held_rows and dict(item.held_rows),
                    overwrites=item.overwrites,
                    as_of=item.as_of,
                    aside=aside and aside.value,
                    counts_as=known["counts_as"] if known is not None else None,
                    announced_at=now,
                )
            )
            effective.append(rows.with_late(item, late=late, aside=aside))
        self._reset_again(announced.sequence, [item.partition.path for item in effective], now)
        if before or WindowKind(kind).replaces:
            self._settle_empty(announced.sequence)
        return tuple(effective)

    def _to_reset(self, sequence: int, kind: str) -> set[str]:
        """Return the partitions that a window empties if it has no row for them.

        Looked up in the transaction, because until then a replay may add a partition. A restart at
        the head read nothing that could replace what was published.
        """
        row = self.connection.execute(
            sa.select(window).where(window.c.pipeline == self.name, window.c.sequence == sequence)
        )
        taken = rows.read_window(row.mappings().one()).window
        if not WindowKind(kind).replaces_everything or taken.is_empty:
            return set()
        query = sa.select(contribution.c.partition).where(
            contribution.c.pipeline == self.name, contribution.c.window < sequence
        )
        return set(self.connection.scalars(query))

    def _reset_again(self, sequence: int, paths: Sequence[str], now: datetime) -> None:
        """Extend a later window's reset to partitions that it did not know.

        A replay of an earlier window may have rows for a partition that had none when everything
        was replaced.
        """
        reset = self._newest_reset(sequence)
        if reset is None:
            return
        mine = (contribution.c.pipeline == self.name, contribution.c.window == reset["sequence"])
        known = set(self.connection.scalars(sa.select(contribution.c.partition).where(*mine)))
        empty = {
            "pipeline": self.name,
            "window": reset["sequence"],
            "kind": reset["kind"],
            "plan_digest": reset["plan_digest"],
            "messages_uri": "",
            "messages": [],
            "rows": 0,
            "bytes": 0,
            "event_times": EventTimes().to_json(),
            "late": True,
            "announced_at": now,
        }
        for path in sorted(set(paths) - known):
            self.connection.execute(sa.insert(contribution).values(**empty, partition=path))

    def _newest_reset(self, sequence: int) -> rows.Row | None:
        """Return the newest window after a given one that replaced everything."""
        query = (
            sa.select(window)
            .where(
                window.c.pipeline == self.name,
                window.c.sequence > sequence,
                window.c.state == "sealed",
                window.c.kind.in_([kind.value for kind in WindowKind if kind.replaces_everything]),
            )
            .order_by(window.c.sequence.desc())
        )
        found = self.connection.execute(query).mappings()
        return next((row for row in found if not rows.read_window(row).window.is_empty), None)

    def _settle_empty(self, sequence: int) -> None:
        """Leave nothing pending where a window took all rows of a partition never published.

        Otherwise it would wait for its trigger, which may never allow it, to publish nothing.
        """
        mine = sa.select(contribution.c.partition).where(
            contribution.c.pipeline == self.name, contribution.c.window == sequence
        )
        begun = sa.select(publication.c.partition).where(
            publication.c.pipeline == self.name, publication.c.state.in_(BEGUN)
        )
        unpublished = sa.select(partition.c.partition).where(
            partition.c.pipeline == self.name,
            partition.c.revision == 0,
            partition.c.partition.in_(mine),
            partition.c.partition.not_in(begun),
        )
        query = sa.select(contribution).where(
            contribution.c.pipeline == self.name, contribution.c.partition.in_(unpublished)
        )
        brought: dict[str, list[Contribution]] = {}
        for row in self.connection.execute(query).mappings():
            # Which partition it is does not decide whether it counts.
            item = rows.read_contribution(row, Partition(()))
            brought.setdefault(row["partition"], []).append(item)
        for path, found in sorted(brought.items()):
            # A static partition is complete without rows, too (PC-F31).
            if not any(item.rows or item.overwrites for item in counting(found)):
                self.connection.execute(
                    sa.update(partition)
                    .where(partition.c.pipeline == self.name, partition.c.partition == path)
                    .values(pending="none", first_seen=None, why=None)
                )

    def _emptied(self, path: str, announced: Announcement) -> Contribution:
        values = self.connection.scalar(
            sa.select(partition.c["values"]).where(
                partition.c.pipeline == self.name, partition.c.partition == path
            )
        )
        return Contribution(
            window=announced.sequence,
            partition=rows.read_partition(values or []),
            plan_digest=announced.plan_digest,
            messages=(),
            rows=0,
            bytes=0,
            event_times=EventTimes(),
        )

    def _touch(self, target: Partition, announced: Announcement, now: datetime) -> _Before:
        """Lock a partition, which is made if it is new, and return what was known of it."""
        start, end = announced.times.get(target) or (None, None)
        key = (partition.c.pipeline == self.name, partition.c.partition == target.path)
        # Locked before the contribution is inserted, so that a commit that ends meanwhile sees it.
        row = (
            self.connection.execute(sa.select(partition).where(*key).with_for_update())
            .mappings()
            .first()
        )
        if row is None:
            self.connection.execute(
                sa.insert(partition).values(
                    pipeline=self.name,
                    partition=target.path,
                    values=rows.write_partition(target),
                    start=start,
                    end=end,
                    first_seen=now,
                    revision=0,
                    rows=0,
                    pending="pending",
                    claim_fence=self.connection.scalar(
                        sa.select(pipeline.c.first_fence).where(pipeline.c.name == self.name)
                    ),
                    number=announced.number,
                )
            )
            return _Before(is_out=False, is_held=False)
        numbers.record_for_partition(self.connection, self.name, target.path, announced.number)
        begun = sa.select(publication.c.digest).where(
            publication.c.pipeline == self.name,
            publication.c.partition == target.path,
            publication.c.state.in_(BEGUN),
        )
        is_out = row["revision"] > 0 or self.connection.scalar(begun) is not None
        return _Before(is_out, is_held=row["pending"] == "held")

    def _make_pending(self, path: str, pending: str, now: datetime) -> None:
        """Let a partition wait; first-seen starts again after a commit (PC-T03)."""
        self.connection.execute(
            sa.update(partition)
            .where(partition.c.pipeline == self.name, partition.c.partition == path)
            .values(
                pending=pending,
                first_seen=sa.func.coalesce(partition.c.first_seen, sa.literal(now, UtcText)),
            )
        )


def _why_aside(
    item: Contribution, announced: Announcement, *, late: bool, known: rows.Row | None
) -> Aside | None:
    """Return why a contribution does not count (PC-L03 to L06).

    A replay does not bring back what was set aside: a threshold does, or a person.
    """
    if known is not None:
        return None if known["aside"] is None else Aside(known["aside"])
    if not late or not item.rows or item.kind.replaces:
        return None
    return OF_POLICY.get(announced.late_data or "")
