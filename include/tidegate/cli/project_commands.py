"""Commands that help to set up a project: check, init, schema."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from tidegate.cli.arguments import AsJson, complete_name, utc_now
from tidegate.cli.output import FAILED, reporting
from tidegate.errors.commands import command

if TYPE_CHECKING:
    from tidegate.cli.checks import Line

_SIGNS = {"ok": Text("✓", "green"), "problem": Text("✗", "bold red"), "note": Text("·", "yellow")}


def check(
    pipeline: Annotated[
        str | None,
        typer.Argument(
            metavar="[PIPELINE]",
            help="Check only this one; by default all pipeline files.",
            autocompletion=complete_name,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check every requirement, with one line each, and a remedy where it is not met."""
    from tidegate.cli.checks import machine_lines
    from tidegate.cli.pipeline_checks import pipeline_lines

    with reporting(as_json=as_json) as output:
        now = utc_now()
        lines = list(machine_lines())
        for file in _files_to_check(pipeline):
            lines += pipeline_lines(file, now)
        output.show({"lines": [line.to_json() for line in lines]}, check_table(lines))
        raise typer.Exit(FAILED if any(line.outcome == "problem" for line in lines) else 0)


def check_table(lines: "list[Line]") -> Table:
    """Return a table of checks, with findings and remedies."""
    table = Table.grid(padding=(0, 1))
    for line in lines:
        found = Text(line.found)
        if line.remedy:
            found.append(f"\n{line.remedy}", style="bold")
        table.add_row(_SIGNS[line.outcome], Text(line.subject), found)
    return table


def init(
    table: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="TABLE",
            help="Iceberg: `catalog.namespace.table`, a table directory or a metadata file. "
            "Hudi: the table's directory. Plain files: their root directory.",
        ),
    ],
    name: Annotated[str | None, typer.Option(help="Name of the pipeline.")] = None,
    target: Annotated[str | None, typer.Option(help="Where to publish.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="File to write; by default in the folder of pipeline files.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a commented pipeline file for a table, and guess the event time column."""
    from tidegate.cli.first_file import draft_pipeline
    from tidegate.cli.known_name import check_name
    from tidegate.config import pipelines_folder

    with reporting(as_json=as_json) as output:
        draft = draft_pipeline(table, utc_now(), name=name, target=target)
        check_name(draft)
        file = out or pipelines_folder() / f"{draft.name}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            with file.open("x", encoding="utf-8") as opened:
                opened.write(draft.text)
        except FileExistsError as taken:
            problem = f"{file} exists already; nothing was overwritten"
            raise typer.BadParameter(problem, param_hint="--out") from taken
        raw = {
            "file": str(file),
            "name": draft.name,
            "event_time": draft.event_time,
            "target": draft.target,
        }
        guess = f"; event time: {draft.event_time}" if draft.event_time else ""
        output.show(raw, f"Wrote {file}{guess}; it publishes to {draft.target}.")
        output.next(command("check", file), command("plan", "--dry-run", file))


def _files_to_check(pipeline: str | None) -> tuple[Path, ...]:
    from tidegate.config import claimants, find_pipeline, pipeline_files

    if pipeline is None:
        return pipeline_files()
    return claimants(pipeline) or (find_pipeline(pipeline),)


def schema() -> None:
    """Print the JSON Schema of pipeline files, for completion and checks in editors."""
    from tidegate.config import json_schema

    with reporting(as_json=True) as output:
        output.show(json_schema())
