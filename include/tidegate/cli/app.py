"""The command `tidegate`: its sub-commands and the options that they share."""

from typing import Annotated

import typer

import tidegate
from tidegate.cli import (
    compact_command,
    decision_commands,
    demo_commands,
    diff_commands,
    erase_commands,
    load_commands,
    look_commands,
    project_commands,
    publish_commands,
    relist_command,
    reset_commands,
    undo_commands,
    upkeep_commands,
    window_commands,
)
from tidegate.cli.logs import log_to_stderr

_SECTIONS = {
    "Run a pipeline": (
        load_commands.load,
        publish_commands.publish,
        load_commands.plan,
        load_commands.replay,
        load_commands.rebuild,
        load_commands.refresh,
        window_commands.abandon,
        window_commands.release,
    ),
    "See where it stands": (
        look_commands.status,
        look_commands.explain,
        look_commands.instants,
        look_commands.changes,
        diff_commands.diff,
    ),
    "Decide on what is held": (
        decision_commands.approve,
        decision_commands.reject,
        decision_commands.reopen,
        undo_commands.undo,
    ),
    "Set up": (
        project_commands.check,
        project_commands.init,
        project_commands.schema,
    ),
    "Look after what stands": (
        upkeep_commands.fsck,
        upkeep_commands.gc,
        compact_command.compact,
        relist_command.relist,
        erase_commands.erase,
        reset_commands.reset,
        reset_commands.retire,
    ),
    "See it at work": (demo_commands.demo, demo_commands.ui),
}

app = typer.Typer(
    help=(
        "Read the changes of a lake table, and publish partitions when they are complete and "
        "good. Exit codes: 0 done, 1 failed, 2 bad usage or configuration, 3 nothing to do or "
        "not committable."
    ),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"tidegate {tidegate.__version__}")
        raise typer.Exit


@app.callback()
def common(
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Log every step on stderr.")
    ] = False,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Set up logging for all commands."""
    del version
    log_to_stderr(verbose=verbose)


for _section, _commands in _SECTIONS.items():
    for _command in _commands:
        app.command(rich_help_panel=_section)(_command)
