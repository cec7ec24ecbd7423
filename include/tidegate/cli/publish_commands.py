"""The command that publishes partitions."""

import contextlib
import getpass
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.cli import wording
from tidegate.cli.airflow_events import AirflowConsumers
from tidegate.cli.arguments import AsJson, PipelineName, TakeOver, utc_now
from tidegate.cli.decision_commands import decision_commands
from tidegate.cli.opening import open_pipeline, this_process
from tidegate.cli.output import FAILED, NOTHING, Output, reporting
from tidegate.cli.status_view import outcome_table
from tidegate.errors import TidegateError
from tidegate.errors.commands import command
from tidegate.model.partition import Partition
from tidegate.model.publication import Override
from tidegate.model.run import PublishOutcome

if TYPE_CHECKING:
    from rich.console import RenderableType

    from tidegate.pipeline import Pipeline


def publish(
    pipeline: PipelineName,
    partitions: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PARTITION…]", help="Only these; by default all pending ones."),
    ] = None,
    take_over: TakeOver = False,
    final: Annotated[
        bool,
        typer.Option(
            "--final",
            help=(
                "Declare the named partitions complete, whatever trigger and counts say; requires "
                "-m. Without names, declare that the source is closed: every partition is "
                "published as if the watermark had passed it. The gate still applies."
            ),
        ),
    ] = False,
    comment: Annotated[
        str, typer.Option("--comment", "-m", help="The reason for --final; stored in the marker.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Commit the partitions that are complete and good. Never asks.

    Ends with exit code 3 if a partition is held or none could be committed, with 1 if one failed.
    """
    with reporting(pipeline, as_json=as_json) as output:
        now = utc_now()
        override = _override(partitions, comment, now) if final else None
        opened = open_pipeline(pipeline, take_over=take_over)
        named = [opened.parse_partition(text) for text in partitions or ()]
        published = publish_with_progress(opened, named, now, output, override)
        output.show(published.raw, *published.facts)
        advise(pipeline, published.outcomes, output)
        if opened.is_erasing(item.partition for item in published.outcomes):
            # What was published just now may have rows that were to be erased.
            output.next(command("erase", pipeline, "--again"))
        raise typer.Exit(exit_of(published.outcomes))


@dataclass(frozen=True)
class Published:
    """What became of partitions."""

    outcomes: Sequence[PublishOutcome]
    told: Sequence[str]
    """Lines about what Airflow was told."""

    @property
    def raw(self) -> dict[str, object]:
        """The same for machines."""
        raw: dict[str, object] = {"outcomes": [item.to_json() for item in self.outcomes]}
        return raw | ({"airflow": list(self.told)} if self.told else {})

    @property
    def facts(self) -> "Iterator[RenderableType]":
        """The same for people."""
        yield outcome_table(self.outcomes) if self.outcomes else "No partition is pending."
        yield from _errors(self.outcomes)
        yield from _unchanged(self.outcomes)
        yield from self.told


def publish_with_progress(
    opened: "Pipeline",
    partitions: Sequence[Partition],
    now: datetime,
    output: Output,
    override: Override | None = None,
) -> Published:
    """Publish partitions, by default all that are pending, and show how far it is."""
    outcomes: list[PublishOutcome] = []
    owner = this_process()
    consumers = AirflowConsumers(opened, owner)
    with output.progress() as progress:
        total = len(partitions or opened.unpublished())
        task = progress.add_task(f"publishing {wording.plural(total, 'partition')}", total=None)
        try:
            one_by_one = consumers.is_told
            for outcome in _published(opened, partitions, owner, now, override, one_by_one):
                outcomes.append(outcome)
                consumers.tell(outcome.partition)
                done = f"{wording.count(len(outcomes))} of {wording.count(total)}"
                progress.update(task, description=f"{done}: {outcome.partition} {outcome.state}")
        except BaseException:
            # It may follow the commit of a revision, which nobody else would tell of.
            with contextlib.suppress(TidegateError):
                for partition in partitions:
                    consumers.tell(partition)
            for line in consumers.said:
                typer.echo(line, err=True)
            raise
    return Published(outcomes, consumers.said)


def _errors(outcomes: Sequence[PublishOutcome]) -> list[str]:
    return [f"{item.partition}: {item.error}" for item in outcomes if item.error]


def _unchanged(outcomes: Sequence[PublishOutcome]) -> list[str]:
    return [
        f"{item.partition}: nothing is pending, so nothing was committed."
        for item in outcomes
        if item.state == "unchanged"
    ]


def exit_of(outcomes: Sequence[PublishOutcome]) -> int:
    """Return the exit code: 1 if one failed, 3 if one is held or none was committed, else 0."""
    states = {item.state for item in outcomes}
    if "failed" in states:
        return FAILED
    return 0 if "committed" in states and "held" not in states else NOTHING


def advise(pipeline: str, outcomes: Sequence[PublishOutcome], output: Output) -> None:
    """Return the commands that help with partitions that were not committed."""
    held = [item for item in outcomes if item.state == "held"]
    rest = [item.partition for item in outcomes if item.state in {"failed", "pending"}]
    for item in held:
        named = (pipeline, item.partition)
        decisions = decision_commands(*named, item.digest, item.approval) if item.digest else ()
        output.next(command("explain", *named), *decisions)
    ways_out = [item.way_out for item in outcomes if item.way_out]
    if ways_out:
        output.next(ways_out[0])
        if len(ways_out) > 1:
            more = wording.plural(len(ways_out) - 1, "more partition")
            output.note(f"The same for {more}, whose directories are named above.")
    elif rest and not held:
        output.next(command("explain", pipeline, rest[0]))


def _override(partitions: Sequence[str] | None, comment: str, now: datetime) -> Override:
    """Read a person's declaration, which the markers of what it publishes store.

    Raises:
        BadParameter: partitions are named, and no reason.
    """
    if partitions and not comment:
        problem = "--final requires a reason, which is stored in the marker: -m WHY"
        raise typer.BadParameter(problem, param_hint="--comment")
    return Override(getpass.getuser(), now, comment or "the source is closed")


def _published(
    opened: "Pipeline",
    partitions: Sequence[Partition],
    owner: str,
    now: datetime,
    override: Override | None,
    one_by_one: bool,
) -> Iterator[PublishOutcome]:
    if not partitions and override is not None:
        yield from opened.publish_final(owner, now, override, one_by_one=one_by_one)
    elif not partitions:
        yield from opened.publish_all(owner, now, one_by_one=one_by_one)
    elif len(partitions) == 1:
        yield opened.publish(partitions[0], owner, now, override, by_command=True)
    else:
        # A mistyped one is found before others are published.
        for partition in partitions:
            opened.ledger.partitions.get(partition)
        yield from opened.publish_each(
            partitions, owner, now, override, by_command=True, one_by_one=one_by_one
        )
