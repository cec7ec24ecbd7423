"""The command that joins small files of published partitions."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from tidegate.cli import wording
from tidegate.cli.arguments import AsJson, PipelineName, utc_now
from tidegate.cli.opening import open_pipeline, this_process
from tidegate.cli.output import FAILED, NOTHING, reporting
from tidegate.errors import TidegateError
from tidegate.errors.commands import naming

if TYPE_CHECKING:
    from tidegate.config import CompactionConfig


def compact(
    pipeline: PipelineName,
    partitions: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PARTITION…]", help="Only these; by default all published ones."),
    ] = None,
    small_file: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Join files below this size, such as 16MiB."),
    ] = None,
    target_size: Annotated[
        str | None, typer.Option(metavar="SIZE", help="The most that is joined to one file.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Join small files of published partitions: a new revision with the same rows.

    Sizes are those of `target.compaction` unless given. Partitions with rows that wait to be
    published are left out. Ends with 3 if there was nothing to join, with 1 if a partition failed.
    """
    with reporting(pipeline, as_json=as_json) as output:
        now, opened = utc_now(), open_pipeline(pipeline)
        rule = opened.compaction_rule(
            _said(opened.config.target.compaction, small_file, target_size)
        )
        named = [opened.parse_partition(text) for text in partitions or ()]
        chosen = named or [it.partition for it in opened.ledger.partitions.all() if it.revision]
        made, failed, waits = [], [], []
        for partition in chosen:
            try:
                if opened.ledger.partitions.get(partition).pending != "none":
                    waits.append(partition)
                    continue
                done = opened.compact(partition, rule, this_process(), now)
            except TidegateError as refused:
                failed.append((partition, naming(str(refused), pipeline, partition)))
            else:
                made += [done] if done is not None else []
        table = Table("partition", "revision", "rows")
        for item in made:
            table.add_row(str(item.partition), str(item.revision), wording.count(item.rows))
        raw = {
            "compacted": [item.to_json() for item in made],
            "failed": [{"partition": str(item), "error": said} for item, said in failed],
            "waiting": [str(item) for item in waits],
        }
        told = [f"{item}: {said}" for item, said in failed]
        if waits:
            some = wording.listed([str(item) for item in waits])
            told.append(f"Left out, because rows wait to be published first: {some}.")
        output.show(raw, table if made else "There are no small files to join.", *told)
        raise typer.Exit(FAILED if failed else 0 if made else NOTHING)


def _said(
    configured: "CompactionConfig | None", small_file: str | None, target_size: str | None
) -> "CompactionConfig":
    from tidegate.config import CompactionConfig
    from tidegate.config.words import parse_size

    given = {}
    for name, text in (("small_file", small_file), ("target_size", target_size)):
        if text is None:
            continue
        try:
            given[name] = parse_size(text)
        except ValueError as broken:
            hint = f"--{name.replace('_', '-')}"
            raise typer.BadParameter(str(broken), param_hint=hint) from broken
    return (configured or CompactionConfig()).model_copy(update=given)
