"""Commands that read the source: load, plan, replay, rebuild."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from tidegate.cli import wording
from tidegate.cli.arguments import (
    AsJson,
    From,
    PipelineName,
    TakeOver,
    Until,
    utc_now,
)
from tidegate.cli.loading import finish, load_up_to_now, run_for, told
from tidegate.cli.opening import open_pipeline
from tidegate.cli.output import NOTHING, Output, reporting
from tidegate.cli.plan_view import (
    preview_facts,
    replay_facts,
    stored_facts,
)
from tidegate.cli.publish_commands import Published, advise, exit_of, publish_with_progress
from tidegate.errors.commands import command
from tidegate.model.partition import Partition
from tidegate.model.run import Announced, PlannedWindow, Run

if TYPE_CHECKING:
    from tidegate.pipeline import Pipeline

Partitions = Annotated[
    list[str], typer.Argument(metavar="PARTITION…", help="As for `explain`, one or more.")
]


def load(
    pipeline: PipelineName,
    begin: From = None,
    until: Until = None,
    take_over: TakeOver = False,
    as_json: AsJson = False,
) -> None:
    """Read and stage the source's new changes: window, plan, stage, announce.

    With --from and --until, do what Airflow does for that data interval: an interval that was
    loaded before is replayed, which changes nothing if its plan is the same. The window of a dead
    run is finished first.
    """
    with reporting(pipeline, as_json=as_json) as output:
        now = utc_now()
        opened = open_pipeline(pipeline, take_over=take_over)
        run = run_for(opened, now, begin, until)
        planned = opened.plan(run, now)
        if not planned:
            _idle(opened, run, now, output)
        _show(opened, *finish(opened, run, planned, now, output), output)


def _idle(opened: "Pipeline", run: Run, now: datetime, output: Output) -> NoReturn:
    """Say that there is nothing to load; an idle source may move the watermark all the same."""
    detail = opened.look(run, now).detail
    before = opened.ledger.pipeline.get().watermark
    announced = opened.announce((), now)
    has_moved = announced.watermark is not None and announced.watermark != before
    reached = wording.moment(announced.watermark, opened.config.timezone)
    moved = f" The source is idle, which moved the watermark to {reached}." if has_moved else ""
    output.show(announced.to_json(), f"Nothing to load: {detail}.{moved}")
    if has_moved:
        output.next(command("publish", opened.config.name))
    raise typer.Exit(NOTHING)


def plan(
    pipeline: PipelineName,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help=("Only show what would be read: take no window, write no plan.")
        ),
    ] = False,
    window: Annotated[
        int | None,
        typer.Option(help="Only explain the plan of this window, which was taken before."),
    ] = None,
    begin: From = None,
    until: Until = None,
    as_json: AsJson = False,
) -> None:
    """Take the next window and plan its splits; with --dry-run, show what a load would read."""
    with reporting(pipeline, as_json=as_json) as output:
        now = utc_now()
        opened = open_pipeline(pipeline)
        if window is not None:
            scan, splits = opened.stored_plan(window)
            from tidegate.commit.deferral import ways_of_files
            from tidegate.config import PipelineConfig

            ways = ways_of_files(PipelineConfig.from_resolved(scan.config))
            said = stored_facts(scan, splits, opened.config.timezone, ways)
            output.show(scan.to_json(), said)
            return
        run = run_for(opened, now, begin, until)
        if dry_run:
            _preview(opened, run, now, output)
            options = (("--from", begin), ("--until", until))
            interval = [word for option in options if option[1] for word in option]
            output.next(command("load", pipeline, *interval))
            return
        planned = opened.plan(run, now)
        lines = [
            f"window {item.sequence}: {item.pending} of {item.splits} splits to read; {item.uri}"
            for item in planned
        ]
        raw = {"planned": [item.to_json() for item in planned]}
        output.show(raw, *(lines or ["Nothing to load."]))
        if not planned:
            raise typer.Exit(NOTHING)
        output.next(command("load", pipeline))


def replay(
    pipeline: PipelineName,
    window: Annotated[int, typer.Argument(help="Number of a window that was taken before.")],
    take_over: TakeOver = False,
    as_json: AsJson = False,
) -> None:
    """Read a window again with the configuration as it is now; its rows are replaced."""
    with reporting(pipeline, as_json=as_json) as output:
        now = utc_now()
        opened = open_pipeline(pipeline, take_over=take_over)
        run = run_for(opened, now, None, None)
        planned = opened.replay(window, run, now)
        _show(opened, *finish(opened, run, planned, now, output), output)


def rebuild(
    pipeline: PipelineName,
    partitions: Partitions,
    as_json: AsJson = False,
) -> None:
    """Read whole partitions again as of the checkpoint, and replace their content.

    A partition that was never loaded is created if the source has rows for it.
    """
    with reporting(pipeline, as_json=as_json) as output:
        now = utc_now()
        opened = open_pipeline(pipeline)
        named = [opened.parse_partition(text) for text in partitions]
        run = run_for(opened, now, None, None)
        planned = opened.rebuild(named, run, now)
        if not planned:
            output.show({"planned": []}, "Nothing was loaded yet, so there is nothing to rebuild.")
            raise typer.Exit(NOTHING)
        finished = finish(opened, run, planned, now, output)
        _show(opened, *finished, output, _never_due(opened, opened.check_rebuilt(named), now))


def _preview(opened: "Pipeline", run: Run, now: datetime, output: Output) -> None:
    """Show what a load would read and touch."""
    looking = opened.looking()
    found = looking.preview(run, now)
    plan = found.plan
    raw: dict[str, Any] = {"plan": None, "replays": [item.to_json() for item in found.replays]}
    if plan is None and not found.replays:
        nothing = (
            f"Nothing to load: {found.waits}." if found.waits else "A load would find nothing new."
        )
        output.show(raw, nothing)
        raise typer.Exit(NOTHING)
    again = replay_facts(found.replays)
    if plan is None:
        output.show(raw, again)
        return
    from tidegate.commit.deferral import PART_FILES, ways_of_files
    from tidegate.pipeline.partition_preview import touched_partitions

    touched = touched_partitions(looking, plan.window, now)
    raw |= {
        "plan": plan.to_json(),
        "partitions": {str(partition): rows for partition, rows in touched.items()},
    }
    ways = ways_of_files(opened.config)
    raw["part_files"] = ways.get(PART_FILES)
    metastore = opened.config.target.metastore
    if metastore is not None:
        ways["would list in"] = raw["lists_in"] = metastore.place
    fresh = preview_facts(plan, found.splits, touched, opened.config.timezone, ways)
    output.show(raw, fresh, *([again] if found.replays else ()))


def refresh(
    pipeline: PipelineName,
    partitions: Partitions,
    take_over: TakeOver = False,
    as_json: AsJson = False,
) -> None:
    """Publish whole partitions as the source has them now: load, rebuild and publish them.

    Ends with an exit code as `publish`. Partitions that only the load touched stay pending.
    """
    with reporting(pipeline, as_json=as_json) as output:
        now = utc_now()
        opened = open_pipeline(pipeline, take_over=take_over)
        named = [opened.parse_partition(text) for text in partitions]
        run = run_for(opened, now, None, None)
        loaded = load_up_to_now(opened, run, now, output)
        planned = opened.rebuild(named, run, now)
        if not planned:
            output.show({"planned": []}, "Nothing was loaded yet, so there is nothing to refresh.")
            raise typer.Exit(NOTHING)
        rebuilt = finish(opened, run, planned, now, output)
        standing = opened.check_rebuilt(named)
        published = (
            publish_with_progress(opened, standing, now, output) if standing else Published((), ())
        )
        parts = {
            name: told(opened, *found)
            for name, found in (("load", loaded), ("rebuild", rebuilt))
            if found is not None
        }
        raw: dict[str, Any] = {name: said.raw for name, said in parts.items()}
        facts = (said.facts for said in parts.values())
        output.show(raw | published.raw, *facts, *published.facts)
        advise(pipeline, published.outcomes, output)
        raise typer.Exit(exit_of(published.outcomes))


def _never_due(opened: "Pipeline", named: Sequence[Partition], now: datetime) -> list[Partition]:
    """Return the partitions that are pending, and that only a command with their name publishes."""
    from tidegate.pipeline.publish.evaluating import ONLY_BY_COMMAND

    looked = ((partition, opened.evaluate(partition, now)) for partition in named)
    return [partition for partition, found in looked if found and found.reason in ONLY_BY_COMMAND]


def _show(
    opened: "Pipeline",
    planned: Sequence[PlannedWindow],
    announced: Announced,
    output: Output,
    by_name: Sequence[Partition] = (),
) -> None:
    """Show what a load, replay or rebuild changed.

    Args:
        opened: the pipeline.
        planned: the windows.
        announced: what announcing them changed.
        output: where it is shown.
        by_name: those of the partitions that have to be named to be published.
    """
    said = told(opened, planned, announced)
    output.show(said.raw, said.facts)
    if said.was_limited:
        output.next(command("load", opened.config.name))
    if others := opened.to_rebuild():
        output.next(command("rebuild", opened.config.name, *others))
        return
    due = set(announced.partitions).difference(by_name)
    asked = [*([()] if due else []), *([by_name] if by_name else [])]
    output.next(*(command("publish", opened.config.name, *named) for named in asked))
