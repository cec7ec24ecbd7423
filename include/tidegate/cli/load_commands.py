"""Commands that read the source: load, plan, replay, rebuild."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import Progress, TaskID

from tidegate.cli.arguments import (
    AsJson,
    From,
    PipelineName,
    TakeOver,
    Until,
    read_moment,
    utc_now,
)
from tidegate.cli.opening import open_pipeline, this_process
from tidegate.cli.output import NOTHING, Output, reporting
from tidegate.cli.plan_view import (
    announced_facts,
    preview_facts,
    replay_facts,
    stored_facts,
)
from tidegate.errors.commands import command, naming
from tidegate.model.instant import DataInterval
from tidegate.model.run import Announced, PlannedWindow, Run

if TYPE_CHECKING:
    from tidegate.pipeline import Pipeline


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
            detail = opened.look(run, now).detail
            announced = opened.announce((), now)
            output.show(announced.to_json(), f"Nothing to load: {detail}.")
            raise typer.Exit(NOTHING)
        _show(opened, *_finish(opened, run, planned, now, output), output)


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
            output.show(scan.to_json(), stored_facts(scan, splits, opened.config.timezone))
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
        _show(opened, *_finish(opened, run, planned, now, output), output)


def rebuild(
    pipeline: PipelineName,
    partitions: Annotated[
        list[str], typer.Argument(metavar="PARTITION…", help="As for `explain`, one or more.")
    ],
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
        finished = _finish(opened, run, planned, now, output)
        opened.check_rebuilt(named)
        _show(opened, *finished, output)


def run_for(opened: "Pipeline", now: datetime, begin: str | None, until: str | None) -> Run:
    """Return the run of one command.

    Raises:
        BadParameter: a time is invalid, or --from is used without a later --until.
    """
    zone = opened.config.timezone
    end = read_moment(until, "--until", zone) if until else None
    interval = None
    if begin is not None:
        start = read_moment(begin, "--from", zone)
        if end is None or end <= start:
            problem = "requires a later --until"
            raise typer.BadParameter(problem, param_hint="--from")
        interval = DataInterval(start, end)
    name = f"cli-{now:%Y%m%dT%H%M%S.%f}"
    return Run(name, this_process(), interval, None if interval else end)


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
    from tidegate.pipeline.partition_preview import touched_partitions

    touched = touched_partitions(looking, plan.window, now)
    raw |= {
        "plan": plan.to_json(),
        "partitions": {str(partition): rows for partition, rows in touched.items()},
    }
    fresh = preview_facts(plan, found.splits, touched, opened.config.timezone)
    output.show(raw, fresh, *([again] if found.replays else ()))


def _finish(
    opened: "Pipeline", run: Run, planned: Sequence[PlannedWindow], now: datetime, output: Output
) -> tuple[Sequence[PlannedWindow], Announced]:
    """Stage and announce what was planned, and return all that was announced.

    If the window of a dead run was finished, this run's own window follows.
    """
    with output.progress() as progress:
        announced = _stage_and_announce(opened, planned, now, progress)
        latest = planned
        while any(item.taken_over for item in latest):
            latest = opened.plan(run, now)
            planned = (*planned, *latest)
            announced = announced.joined(_stage_and_announce(opened, latest, now, progress))
    return planned, announced


def _show(
    opened: "Pipeline", planned: Sequence[PlannedWindow], announced: Announced, output: Output
) -> None:
    """Show what a load, replay or rebuild changed."""
    plans = [opened.stored_plan(item.sequence)[0] for item in planned]
    said = (naming(note, plan.pipeline) for plan in plans for note in plan.notes)
    notes = list(dict.fromkeys(said))
    raw = {
        "planned": [item.to_json() for item in planned],
        "records": {
            str(plan.window.sequence): plan.record and plan.record.to_json() for plan in plans
        },
        "notes": notes,
        **announced.to_json(),
    }
    output.show(raw, announced_facts(planned, announced, notes, opened.config.timezone))
    if any(plan.record and plan.record.limit for plan in plans):
        output.next(command("load", opened.config.name))
    if announced.partitions:
        output.next(command("publish", opened.config.name))


def _stage_and_announce(
    opened: "Pipeline", planned: Sequence[PlannedWindow], now: datetime, progress: Progress
) -> Announced:
    from tidegate.pipeline.executors import executors_for

    engine = opened.engine_for(planned)
    if engine != "none":
        starting = progress.add_task(f"starting engine {engine}", total=None)
        with executors_for(opened.config)(engine) as executor:
            progress.remove_task(starting)
            for item in planned:
                label = f"window {item.sequence}: {item.pending} of {item.splits} splits to read"
                task = progress.add_task(label, total=None)

                counting = _counting(progress, task, label)
                opened.stage(item, executor, counting, beside=planned)
    progress.add_task("announcing", total=None)
    return opened.announce(planned, now)


def _counting(progress: Progress, task: TaskID, label: str) -> Callable[[int], None]:
    """Show how many sub-splits are finished."""

    def show(finished: int) -> None:
        progress.update(task, description=f"{label}; {finished} sub-splits staged")

    return show
