"""The command that lists published partitions again."""

from typing import Annotated

import typer
from rich.table import Table

from tidegate.cli.arguments import AsJson, PipelineName, utc_now
from tidegate.cli.opening import open_pipeline, this_process
from tidegate.cli.output import FAILED, NOTHING, reporting
from tidegate.errors import TidegateError
from tidegate.errors.commands import naming


def relist(
    pipeline: PipelineName,
    partitions: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PARTITION…]", help="Only these; by default all published ones."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List published partitions again in the metastore, as they stand: nothing is published.

    For what was published before `metastore` was among the policies, or after somebody changed the
    table there. Ends with 3 if all were listed as they stand, with 1 if a partition failed.
    """
    with reporting(pipeline, as_json=as_json) as output:
        now, opened = utc_now(), open_pipeline(pipeline)
        opened.check_lists()
        named = [opened.parse_partition(text) for text in partitions or ()]
        chosen = named or [it.partition for it in opened.ledger.partitions.all() if it.revision]
        listed, failed = [], []
        for partition in chosen:
            try:
                changed = opened.list_again(partition, this_process(), now)
            except TidegateError as refused:
                failed.append((partition, naming(str(refused), pipeline, partition)))
            else:
                listed += [(partition, said) for said in changed]
        table = Table("partition", "before")
        for partition, said in listed:
            table.add_row(str(partition), said)
        raw = {
            "listed": [{"partition": str(item), "before": said} for item, said in listed],
            "failed": [{"partition": str(item), "error": said} for item, said in failed],
        }
        told = [f"{item}: {said}" for item, said in failed]
        as_they_stand = len(chosen) - len(failed)
        nothing = f"{as_they_stand} of {len(chosen)} published partitions are listed as they stand."
        output.show(raw, table if listed else nothing, *told)
        raise typer.Exit(FAILED if failed else 0 if listed else NOTHING)
