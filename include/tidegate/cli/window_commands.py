"""Commands on a window that blocks its pipeline: abandon it, or release it from its run."""

import getpass
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.cli import wording
from tidegate.cli.arguments import AsJson, Comment, PipelineName, TakeOver, Yes, utc_now
from tidegate.cli.opening import open_pipeline, this_process
from tidegate.cli.output import NOTHING, Output, reporting
from tidegate.errors.commands import command

if TYPE_CHECKING:
    from tidegate.model.ledger_rows import WindowState
    from tidegate.model.plan import Window
    from tidegate.pipeline.load.abandoning import Dropped

OneWindow = Annotated[
    int | None, typer.Argument(help="Number of the window; without it, the one that is open.")
]


def abandon(
    pipeline: PipelineName,
    window: OneWindow = None,
    yes: Yes = False,
    comment: Comment = "",
    take_over: TakeOver = False,
    as_json: AsJson = False,
) -> None:
    """Give up a window that was taken and cannot be finished; the next load begins where it began.

    Nothing of it was announced or published. Refused if it was announced, or if the run that works
    on it is alive. What it staged is left to `gc`.
    """
    with reporting(pipeline, as_json=as_json) as output:
        opened = open_pipeline(pipeline, take_over=take_over)
        held = opened.open_window()
        if window is None and held is None:
            output.show({"abandoned": None}, "No window is open, so there is nothing to give up.")
            raise typer.Exit(NOTHING)
        number = held.window.sequence if window is None and held is not None else window or 0
        if opened.was_abandoned(number):
            output.show({"abandoned": None}, f"Window {number} was given up already.")
            raise typer.Exit(NOTHING)
        if held is not None and held.window.sequence == number:
            output.confirm("Give it up?", _taken(held), yes=yes)
        dropped = opened.abandon(
            number, this_process(), utc_now(), by=getpass.getuser(), comment=comment
        )
        _show(opened.config.name, dropped, output)


def release(
    pipeline: PipelineName,
    window: OneWindow = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Take a window from a run that is gone for good, so that the next run goes on with it.

    For runs of which nothing shows that they ended, such as one of Airflow that waits between two
    tasks. Refused as long as the run renews what it holds. What it staged counts.
    """
    with reporting(pipeline, as_json=as_json) as output:
        opened = open_pipeline(pipeline, take_over=True)
        held = opened.open_window()
        state = held if window is None else opened.ledger.windows.get(window)
        if state is None or state.owner is None:
            output.show({"released": None}, "No run holds such a window: the next one takes it on.")
            raise typer.Exit(NOTHING)
        output.confirm(f"Is {state.owner} gone for good?", _taken(state), yes=yes)
        opened.release(state.window.sequence, this_process(), utc_now())
        raw = {"released": state.window.to_json(), "run": state.owner}
        output.show(raw, f"Window {state.window.sequence} is released from {state.owner}.")
        words = ("replay", pipeline, state.window.sequence) if state.sealed else ("load", pipeline)
        output.next(command(*words))


def _show(name: str, dropped: "Dropped", output: Output) -> None:
    window = dropped.window
    staged = wording.plural(dropped.staged, "sub-split")
    start = window.range.start_exclusive
    begins = f"after {start.id}" if start else "at the beginning"
    told = [
        f"{_told(window)} It is given up: {staged} had been staged, and nothing was announced or "
        "published."
    ]
    if not window.partitions:
        told.append(f"The next one begins where it began, {begins}.")
    output.show({"abandoned": window.to_json(), "staged": dropped.staged}, *told)
    again = ("rebuild", name, *window.partitions) if window.partitions else ("load", name)
    output.next(command(*again))


def _taken(held: "WindowState") -> str:
    return (
        f"{_told(held.window)} It was taken by {held.window.run} at "
        f"{held.taken_at:%Y-%m-%d %H:%M}Z."
    )


def _told(window: "Window") -> str:
    partitions = f" of {wording.plural(len(window.partitions), 'partition')}"
    return (
        f"Window {window.sequence} is a {window.kind.value}"
        f"{partitions if window.partitions else ''} with the instants {window.range}."
    )
