"""Run the steps of a load for a command, with progress."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import typer
from rich.progress import Progress, TaskID

from tidegate.cli.arguments import read_moment
from tidegate.cli.opening import this_process
from tidegate.cli.output import Output
from tidegate.cli.plan_view import announced_facts
from tidegate.errors.commands import naming
from tidegate.model.instant import DataInterval
from tidegate.model.plan import ScanPlan
from tidegate.model.run import Announced, PlannedWindow, Run

if TYPE_CHECKING:
    from rich.console import RenderableType

    from tidegate.pipeline import Pipeline


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


def finish(
    opened: "Pipeline", run: Run, planned: Sequence[PlannedWindow], now: datetime, output: Output
) -> tuple[Sequence[PlannedWindow], Announced]:
    """Stage and announce what was planned, and return all that was planned and announced.

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


def load_up_to_now(
    opened: "Pipeline", run: Run, now: datetime, output: Output
) -> tuple[Sequence[PlannedWindow], Announced] | None:
    """Load window after window until nothing is left; None if there was nothing to load."""
    found = None
    while planned := opened.plan(run, now):
        windows, announced = finish(opened, run, planned, now, output)
        found = (windows, announced) if found is None else _joined(found, windows, announced)
    return found


def _joined(
    before: tuple[Sequence[PlannedWindow], Announced],
    windows: Sequence[PlannedWindow],
    announced: Announced,
) -> tuple[Sequence[PlannedWindow], Announced]:
    return (*before[0], *windows), before[1].joined(announced)


@dataclass(frozen=True)
class Told:
    """What a load, replay or rebuild changed."""

    planned: Sequence[PlannedWindow]
    plans: Sequence[ScanPlan]
    announced: Announced
    zone: str
    doubt: str | None = None
    """Why the unit of the event times may be wrong."""

    @property
    def was_limited(self) -> bool:
        """Whether a window was ended early by a limit, so that more can be loaded."""
        return any(plan.record and plan.record.limit for plan in self.plans)

    @property
    def raw(self) -> dict[str, Any]:
        """The same for machines."""
        return {
            "planned": [item.to_json() for item in self.planned],
            "records": {
                str(plan.window.sequence): plan.record and plan.record.to_json()
                for plan in self.plans
            },
            "notes": self._notes,
            **self.announced.to_json(),
        }

    @property
    def facts(self) -> "RenderableType":
        """The same for people."""
        return announced_facts(self.planned, self.announced, self._notes, self.zone)

    @property
    def _notes(self) -> list[str]:
        said = [naming(note, plan.pipeline) for plan in self.plans for note in plan.notes]
        return list(dict.fromkeys([*said, *([self.doubt] if self.doubt else [])]))


def told(opened: "Pipeline", planned: Sequence[PlannedWindow], announced: Announced) -> Told:
    """Read the plans of windows, and tell what announcing them changed."""
    from tidegate.pipeline.load.event_units import unit_doubt_of_watermark

    plans = [opened.stored_plan(item.sequence)[0] for item in planned]
    doubt = None
    if plans and opened.config.event_time and announced.watermark:
        largest = announced.watermark + opened.config.event_time.lateness
        doubt = unit_doubt_of_watermark(opened.config, opened.source, plans[-1].pin, largest)
    return Told(planned, plans, announced, opened.config.timezone, doubt)
