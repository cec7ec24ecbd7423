"""The output and exit code of a command: tables for people, one JSON object for machines."""

from __future__ import annotations

import contextlib
import json
import sys
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from tidegate.errors import (
    BoundsReversed,
    ConfigInvalid,
    ErasureInvalid,
    InstantNotFound,
    KeyUnknown,
    LedgerAddressWrong,
    NameKnown,
    NotHeld,
    PartitionKeyIllegal,
    PartitionNotFound,
    PartitionPathInvalid,
    PipelineNotFound,
    PlacesOverlap,
    PredicateInvalid,
    RevisionUnknown,
    SecretMissing,
    TidegateError,
    TransientError,
    WindowNotFound,
    WorkInsideTarget,
)
from tidegate.errors.commands import naming

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

FAILED = 1
MISUSED = 2
NOTHING = 3
"""Nothing to do, or not committable."""

_MISUSES = (
    BoundsReversed,
    ConfigInvalid,
    ErasureInvalid,
    InstantNotFound,
    KeyUnknown,
    LedgerAddressWrong,
    NameKnown,
    PartitionKeyIllegal,
    PartitionNotFound,
    PartitionPathInvalid,
    PipelineNotFound,
    PlacesOverlap,
    PredicateInvalid,
    RevisionUnknown,
    SecretMissing,
    WindowNotFound,
    WorkInsideTarget,
)
_PLAIN_WIDTH = 160
"""The width, in columns, of output to a file or a pipe."""


def exit_code(error: TidegateError) -> int:
    """Return the exit code of a command that ends with this error."""
    if isinstance(error, NotHeld):
        return NOTHING
    return MISUSED if isinstance(error, _MISUSES) else FAILED


class Output:
    """The output of one command: one JSON object, or text and tables."""

    def __init__(self, pipeline: str | None = None, *, as_json: bool) -> None:
        """Prepare the output.

        Args:
            pipeline: as it was typed; replaces PIPELINE in printed commands.
            as_json: print only one JSON object, at the end.
        """
        self.as_json = as_json
        self._pipeline = pipeline
        self._people = _console(stderr=False)
        self._beside = _console(stderr=True)

    def show(self, raw: Any, *renderables: RenderableType) -> None:
        """Print the result, as JSON-ready objects or for people."""
        if self.as_json:
            typer.echo(json.dumps(raw, indent=2, ensure_ascii=False, default=str))
            return
        for renderable in renderables:
            if isinstance(renderable, str):
                # A line break inside a command would split it when it is pasted.
                self._people.print(self._named(renderable), soft_wrap=True)
            else:
                self._people.print(renderable)

    def next(self, *commands: str) -> None:
        """Print the commands that a person may want to run next."""
        if not self.as_json:
            for number, command in enumerate(commands):
                lead = "Next: " if number == 0 else "  or: "
                said = Text.assemble((lead, "dim"), (command, "bold"))
                self._people.print(said, soft_wrap=True)

    def note(self, text: str) -> None:
        """Print what a person should know besides the commands to run next."""
        if not self.as_json:
            self._people.print(Text(text, "dim"), soft_wrap=True)

    def confirm(self, question: str, *facts: RenderableType, yes: bool) -> None:
        """Show a person what is about to happen, and ask; end the command if they say no.

        Args:
            question: what is asked.
            facts: what is shown before.
            yes: whether they said so beforehand; nothing is shown or asked then.

        Raises:
            BadParameter: this is not a terminal.
        """
        if yes:
            return
        if self.as_json or not at_terminal():
            problem = "required without a terminal"
            raise typer.BadParameter(problem, param_hint="--yes")
        self.show(None, *facts)
        if not typer.confirm(question):
            self.show(None, "Nothing was changed.")
            raise typer.Exit(NOTHING)

    def fail(self, error: TidegateError) -> NoReturn:
        """Print an error once, in full, and end the command."""
        again = "trying again may help" if isinstance(error, TransientError) else ""
        if self.as_json:
            typer.echo(json.dumps({"error": error.to_json()}, indent=2, ensure_ascii=False))
        else:
            lead = f" ({again}): " if again else ": "
            said = Text.assemble((error.code, "bold red"), lead, self._named(str(error)))
            self._beside.print(said, soft_wrap=True)
        raise typer.Exit(exit_code(error))

    def _named(self, message: str) -> str:
        return naming(message, self._pipeline) if self._pipeline else message

    @contextlib.contextmanager
    def progress(self) -> Iterator[Progress]:
        """Show what is running and for how long; the line disappears when it is done."""
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        hidden = self.as_json or not self._beside.is_terminal
        with Progress(*columns, console=self._beside, transient=True, disable=hidden) as progress:
            yield progress


def at_terminal() -> bool:
    """Return whether input and output are a terminal."""
    return sys.stdin.isatty() and sys.stdout.isatty()


@contextlib.contextmanager
def reporting(pipeline: str | None = None, *, as_json: bool) -> Iterator[Output]:
    """Provide a command with its output, and turn typed errors into a message and an exit code.

    Args:
        pipeline: the pipeline that the command is about, as it was typed.
        as_json: print only one JSON object.
    """
    output = Output(pipeline, as_json=as_json)
    try:
        yield output
    except TidegateError as error:
        output.fail(error)


def _console(*, stderr: bool) -> Console:
    # Cells of tables quote values, in which `[x]` and `:m:` are neither markup nor emoji.
    made = partial(Console, stderr=stderr, highlight=False, markup=False, emoji=False)
    console = made()
    return console if console.is_terminal else made(width=_PLAIN_WIDTH)
