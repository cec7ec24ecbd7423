"""The arguments and options that several commands share, and how their text is read."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from tidegate.cli.opening import pipeline_names
from tidegate.errors import TidegateError
from tidegate.model.instant import time_in_zone


def complete_name(incomplete: str) -> list[str]:
    """Return the names of pipelines that begin with a text, for the completion of a shell."""
    try:
        return sorted(name for name in pipeline_names() if name.startswith(incomplete))
    except (TidegateError, OSError):
        # An error would stand in the line that is being typed.
        return []


PipelineName = Annotated[
    str,
    typer.Argument(
        metavar="PIPELINE",
        help="Name of a pipeline, or its file.",
        autocompletion=complete_name,
    ),
]
PartitionText = Annotated[
    str,
    typer.Argument(metavar="PARTITION", help="`dt=2013-02-09`, or its key `2013-02-09`."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object, for machines.")]
Comment = Annotated[
    str, typer.Option("--comment", "-m", help=("The reason; stored with the decision."))
]
TakeOver = Annotated[
    bool,
    typer.Option(
        "--take-over",
        help=(
            "Also take over from an Airflow run that is gone for good and no longer renews what "
            "it holds."
        ),
    ),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask; required without a terminal.")]
From = Annotated[
    str | None,
    typer.Option("--from", metavar="TIME", help="Start of a data interval, inclusive."),
]
Until = Annotated[
    str | None,
    typer.Option(
        "--until",
        metavar="TIME",
        help=(
            "Take source commits before this time (ISO; without an offset, in the pipeline's "
            "time zone)."
        ),
    ),
]


def utc_now() -> datetime:
    """Return the time of the clock; called once per command."""
    return datetime.now(UTC)


def read_moment(text: str, option: str, zone: str) -> datetime:
    """Read an ISO date or time; without an offset it is wall clock time in the pipeline's zone.

    Raises:
        BadParameter: the text is neither.
    """
    moment = time_in_zone(text, zone)
    if moment is None:
        problem = f"expected an ISO date or time such as 2013-02-09T06:00, found '{text}'"
        raise typer.BadParameter(problem, param_hint=option)
    return moment
