"""Commands that bring partitions out, and the decisions on those that are held."""

import getpass
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Annotated

import typer

from tidegate.cli.arguments import (
    AsJson,
    Comment,
    PartitionText,
    PipelineName,
    TakeOver,
    judging,
    utc_now,
)
from tidegate.cli.output import FAILED, NOTHING, Output, reporting
from tidegate.cli.status_view import outcome_table
from tidegate.model.run import PublishOutcome
from tidegate.pipeline import Pipeline, open_pipeline
from tidegate.pipeline.holders import process_owner


def publish(
    pipeline: PipelineName,
    partitions: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PARTITION…]", help="Only these; all pending ones by default."),
    ] = None,
    take_over: TakeOver = False,
    as_json: AsJson = False,
) -> None:
    """Commit the partitions that are complete and good; hold the others back. Never asks.

    Ends with 3 if a partition is held, or none could be committed; with 1 if one failed.
    """
    with reporting(as_json=as_json) as output:
        now = utc_now()
        opened = open_pipeline(pipeline, life_of=judging(take_over=take_over))
        owner = process_owner("cli")
        outcomes = []
        with output.progress() as progress:
            task = progress.add_task("publishing", total=None)
            for outcome in _published(opened, partitions, owner, now):
                outcomes.append(outcome)
                progress.update(task, description=f"{outcome.partition}: {outcome.state}")
        raw = {"outcomes": [item.to_json() for item in outcomes]}
        output.show(raw, outcome_table(outcomes) if outcomes else "No partition is pending.")
        _advise(pipeline, outcomes, output)
        raise typer.Exit(exit_of(outcomes))


def approve(
    pipeline: PipelineName,
    partition: PartitionText,
    comment: Comment = "",
    as_json: AsJson = False,
) -> None:
    """Let a held partition out as it was checked; the approval lapses if its content changes."""
    _decide(pipeline, partition, comment, approved=True, as_json=as_json)


def reject(
    pipeline: PipelineName,
    partition: PartitionText,
    comment: Comment = "",
    as_json: AsJson = False,
) -> None:
    """Keep a held partition back, and say why."""
    _decide(pipeline, partition, comment, approved=False, as_json=as_json)


def reopen(pipeline: PipelineName, partition: PartitionText, as_json: AsJson = False) -> None:
    """Let the next publish check a held partition again, for example after the suite was mended."""
    with reporting(as_json=as_json) as output:
        opened = open_pipeline(pipeline)
        named = opened.parse_partition(partition)
        opened.reopen(named)
        output.show({"partition": str(named), "state": "pending"}, f"{named} is pending again.")
        output.next(f"tidegate publish {pipeline} {named}")


def exit_of(outcomes: Sequence[PublishOutcome]) -> int:
    """Say how a publish ended: 1 something failed, 3 something is held or nothing came out, 0."""
    states = {item.state for item in outcomes}
    if "failed" in states:
        return FAILED
    return 0 if "committed" in states and "held" not in states else NOTHING


def _decide(pipeline: str, text: str, comment: str, *, approved: bool, as_json: bool) -> None:
    with reporting(as_json=as_json) as output:
        now = utc_now()
        opened: Pipeline = open_pipeline(pipeline)
        partition = opened.parse_partition(text)
        by = getpass.getuser()
        publication = opened.decide(partition, approved=approved, by=by, comment=comment, now=now)
        decision = "approved" if approved else "rejected"
        raw = {"partition": str(partition), "decision": decision, "by": by, "digest": publication}
        output.show(raw, f"{partition} is {decision} by {by}, as publication {publication}.")
        follow = f"publish {pipeline} {partition}" if approved else f"reopen {pipeline} {partition}"
        output.next(f"tidegate {follow}")


def _advise(pipeline: str, outcomes: Sequence[PublishOutcome], output: Output) -> None:
    """Name the commands that help with what did not come out."""
    held = [item.partition for item in outcomes if item.state == "held"]
    rest = [item.partition for item in outcomes if item.state in {"failed", "pending"}]
    for partition in held:
        output.next(
            f"tidegate explain {pipeline} {partition}",
            f"tidegate approve {pipeline} {partition}",
            f"tidegate reject {pipeline} {partition}",
        )
    if rest and not held:
        output.next(f"tidegate explain {pipeline} {rest[0]}")


def _published(
    opened: Pipeline, partitions: Sequence[str] | None, owner: str, now: datetime
) -> Iterator[PublishOutcome]:
    if not partitions:
        yield from opened.publish_all(owner, now)
        return
    for partition in [opened.parse_partition(text) for text in partitions]:
        yield opened.publish(partition, owner, now, by_command=True)
