"""Convert rows of the ledger's tables to values of the model, and back."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import sqlalchemy as sa

from tidegate.ledger.schema import publication, revision
from tidegate.model.aside import Aside
from tidegate.model.expected import Alarm
from tidegate.model.instant import DataInterval, Instant, InstantRange
from tidegate.model.ledger_rows import (
    PartitionState,
    PipelineState,
    PublicationEntry,
    RevisionEntry,
    WindowState,
)
from tidegate.model.message import Contribution, EventTimes, RunSummary
from tidegate.model.partition import Partition
from tidegate.model.plan import Window, WindowKind
from tidegate.model.publication import (
    Approval,
    Override,
    Publication,
    PublicationState,
    PublishedFile,
    Undo,
    Verdict,
)
from tidegate.model.watermark import Evaluation, WatermarkStep
from tidegate.model.wire import Value

if TYPE_CHECKING:
    from collections.abc import Mapping

Row = sa.RowMapping
V = TypeVar("V", bound=Value)


def optional(kind: type[V], raw: Mapping[str, Any] | None) -> V | None:
    """Read a value that may be absent."""
    return None if raw is None else kind.from_json(raw)


def json_or_none(value: Value | None) -> dict[str, Any] | None:
    """Write a value that may be absent."""
    return None if value is None else value.to_json()


def read_pipeline(row: Row) -> PipelineState:
    """Read a row of `pipeline`."""
    return PipelineState(
        name=row["name"],
        ledger_id=row["ledger_id"],
        target=row["target"],
        source_identity=row["source_identity"],
        started=row["started"],
        first_start=optional(Instant, row["first_start"]),
        checkpoint=optional(Instant, row["checkpoint"]),
        watermark=row["watermark"],
        watermark_step=optional(WatermarkStep, row["watermark_step"]),
        next_sequence=row["next_sequence"],
        next_number=row["next_number"],
        first_fence=row["first_fence"],
    )


def read_window(row: Row) -> WindowState:
    """Read a row of `window`."""
    start, end = row["interval_start"], row["interval_end"]
    return WindowState(
        window=Window(
            sequence=row["sequence"],
            range=InstantRange.from_json(row["range"]),
            kind=WindowKind(row["kind"]),
            interval=DataInterval(start, end) if start is not None else None,
            run=row["run"],
            partitions=tuple(read_partition(values) for values in row["partitions"]),
        ),
        sealed=row["state"] == "sealed",
        attempt=row["attempt"],
        owner=row["owner"],
        expires=row["expires"],
        plan_digest=row["plan_digest"],
        summary=optional(RunSummary, row["summary"]),
        taken_at=row["taken_at"],
        sealed_at=row["sealed_at"],
        number=row["number"],
        reserved=row["reserved"],
    )


def read_partition(values: list[list[str | None]]) -> Partition:
    """Read partition values as the ledger stores them."""
    named = next((value[2] for value in values if len(value) > 2), None)
    return Partition(tuple((str(value[0]), value[1]) for value in values), named)


def write_partition(partition: Partition) -> list[list[str | None]]:
    """Write partition values as the ledger stores them.

    If the directory of a missing value does not have the usual name, the name is stored as well.
    """
    named = [] if partition.default_name is None else [partition.default_name]
    return [[name, value, *(named if value is None else [])] for name, value in partition.values]


def read_partition_state(row: Row) -> PartitionState:
    """Read a row of `partition`."""
    return PartitionState(
        partition=read_partition(row["values"]),
        start=row["start"],
        end=row["end"],
        first_seen=row["first_seen"],
        revision=row["revision"],
        rows=row["rows"],
        pending=row["pending"],
        why=optional(Evaluation, row["why"]),
        owner=row["claim_owner"],
        expires=row["claim_expires"],
        reserved=row["reserved"],
        alarm=optional(Alarm, row["alarm"]),
    )


def read_contribution(row: Row, partition: Partition) -> Contribution:
    """Read a row of `contribution`."""
    return Contribution(
        window=row["window"],
        partition=partition,
        plan_digest=row["plan_digest"],
        messages=tuple(row["messages"]),
        rows=row["rows"],
        bytes=row["bytes"],
        event_times=EventTimes.from_json(row["event_times"]),
        late=row["late"],
        held_rule=row["held_rule"],
        held_rows=row["held_rows"],
        kind=WindowKind(row["kind"]),
        overwrites=row["overwrites"],
        as_of=row["as_of"],
        aside=None if row["aside"] is None else Aside(row["aside"]),
        counts_as=row["counts_as"],
        announced_at=row["announced_at"],
    )


def read_publication(row: Row, partition: Partition) -> PublicationEntry:
    """Read a row of `publication`."""
    return PublicationEntry(
        publication=Publication(
            partition=partition,
            base_revision=row["base_revision"],
            adds=tuple(PublishedFile.from_json(item) for item in row["adds"]),
            removes=tuple(PublishedFile.from_json(item) for item in row["removes"]),
            content=(),
            contributions=row["contributions"],
            undone=optional(Undo, row["undone"]),
        ),
        rows=row["rows"],
        verdict=optional(Verdict, row["verdict"]),
        approval=optional(Approval, row["approval"]),
        state=PublicationState(row["state"]),
        override=optional(Override, row["override"]),
        commit_plan=row["commit_plan"],
    )


def select_revisions(name: str | sa.BindParameter[str]) -> sa.Select[Any]:
    """Return the query for the revisions of a pipeline, as `read_revision` reads them."""
    of_publication = sa.and_(
        *(publication.c[key] == revision.c[key] for key in ("pipeline", "partition", "digest"))
    )
    return (
        sa.select(revision, publication.c.approval)
        .join_from(revision, publication, of_publication, isouter=True)
        .where(revision.c.pipeline == name)
    )


def read_revision(row: Row, partition: Partition) -> RevisionEntry:
    """Read a row of `select_revisions`."""
    return RevisionEntry(
        partition=partition,
        revision=row["revision"],
        digest=row["digest"],
        contributions=row["contributions"],
        rows=row["rows"],
        files=row["files"],
        watermark=row["watermark"],
        source_range=row["source_range"],
        commit_plan=row["commit_plan"],
        owner=row["owner"],
        committed_at=row["committed_at"],
        override=optional(Override, row["override"]),
        approval=optional(Approval, row["approval"]),
    )


def with_late(contribution: Contribution, *, late: bool, aside: Aside | None) -> Contribution:
    """Return the contribution with what its announce decides (design §2, late)."""
    return replace(contribution, late=late, aside=aside)
