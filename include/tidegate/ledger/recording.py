"""The transaction that ends a commit: the revision counts, and the rest stays pending."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import sqlalchemy as sa

from tidegate.ledger import rows
from tidegate.ledger.partitions import change_partition
from tidegate.ledger.schema import publication, revision
from tidegate.ledger.setting_aside import contributions_to
from tidegate.model.counting import effective, set_aside
from tidegate.model.publication import PublicationState

if TYPE_CHECKING:
    from datetime import datetime

    from tidegate.model.ledger_rows import RevisionEntry


# Made once: to put a query together takes longer than to carry it out.
_RECORDED = (
    sa.update(publication)
    .where(
        *(
            publication.c[key] == sa.bindparam(f"of_{key}")
            for key in ("pipeline", "partition", "digest")
        )
    )
    .values(state=PublicationState.RECORDED.value)
)
_ADD = sa.insert(revision)


@dataclass(frozen=True)
class Recording:
    """The changes of one recorded revision, inside its caller's transaction."""

    connection: sa.Connection
    name: str

    def record(self, entry: RevisionEntry) -> None:
        """Store the revision; nothing stays pending unless something arrived that it lacks."""
        path = entry.partition.path
        mine = {"of_pipeline": self.name, "of_partition": path}
        self.connection.execute(_RECORDED, {**mine, "of_digest": entry.digest})
        first_seen = self._first_left_out(entry)
        change_partition(
            self.connection,
            self.name,
            entry.partition,
            revision=entry.revision,
            rows=entry.rows,
            claim_owner=None,
            claim_expires=None,
            why=None,
            pending="none" if first_seen is None else "pending",
            first_seen=first_seen,
        )
        values = {
            "pipeline": self.name,
            "partition": path,
            "revision": entry.revision,
            "digest": entry.digest,
            "contributions": dict(entry.contributions),
            "rows": entry.rows,
            "files": entry.files,
            "watermark": entry.watermark,
            "source_range": dict(entry.source_range),
            "commit_plan": entry.commit_plan,
            "owner": entry.owner,
            "committed_at": entry.committed_at,
            "override": rows.json_or_none(entry.override),
        }
        self.connection.execute(_ADD, values)

    def _first_left_out(self, entry: RevisionEntry) -> datetime | None:
        """Return when the first content was announced that the revision does not have (PC-T03)."""
        known = contributions_to(self.connection, self.name, entry.partition.path)
        left_out = [
            item
            for item in effective(known)
            if entry.contributions.get(str(item.window)) != item.plan_digest
        ]
        # What is set aside by a policy is looked at again, because it may be released by now.
        left_out += [item for item in set_aside(known) if item.aside and not item.aside.is_settled]
        return min((item.announced_at for item in left_out if item.announced_at), default=None)
