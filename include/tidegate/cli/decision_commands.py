"""Commands that decide on a held partition; a decision names the publication that was seen."""

import getpass
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.cli import wording
from tidegate.cli.arguments import AsJson, Comment, PartitionText, PipelineName, utc_now
from tidegate.cli.explain_view import proposal_facts, verdict_table
from tidegate.cli.opening import open_control
from tidegate.cli.output import NOTHING, Output, at_terminal, reporting
from tidegate.errors import NotHeld
from tidegate.errors.commands import command
from tidegate.model.partition import Partition
from tidegate.model.publication import Approval

if TYPE_CHECKING:
    from tidegate.pipeline import PipelineControl

Digest = Annotated[
    str | None,
    typer.Option(
        "--digest",
        metavar="DIGEST",
        help=(
            "Digest of the publication that you saw, as shown by `tidegate explain`. Required in "
            "scripts; on a terminal, the publication is shown and confirmed."
        ),
    ),
]


def approve(
    pipeline: PipelineName,
    partition: PartitionText,
    digest: Digest = None,
    comment: Comment = "",
    as_json: AsJson = False,
) -> None:
    """Approve a held partition as shown; rows that arrived since wait for the next revision."""
    _decide(pipeline, partition, digest, comment, approved=True, as_json=as_json)


def reject(
    pipeline: PipelineName,
    partition: PartitionText,
    digest: Digest = None,
    comment: Comment = "",
    as_json: AsJson = False,
) -> None:
    """Reject a held partition, with a reason."""
    _decide(pipeline, partition, digest, comment, approved=False, as_json=as_json)


def reopen(pipeline: PipelineName, partition: PartitionText, as_json: AsJson = False) -> None:
    """Let the next publish check a held partition again, for example with a corrected suite.

    What is set aside counts again: late rows that are held, rejected or published elsewhere, and
    what an undo took back.
    """
    with reporting(pipeline, as_json=as_json) as output:
        opened = open_control(pipeline)
        named = opened.parse_partition(partition)
        released = opened.reopen(named, utc_now())
        raw: dict[str, object] = {"partition": str(named), "state": "pending"}
        told = f"{named} is pending again."
        if released:
            rows = wording.plural(sum(item.rows for item in released), "row")
            windows = wording.numbered("window", [str(item.window) for item in released])
            raw["released"] = [item.window for item in released]
            told = f"{named} is pending again; {rows} of {windows} count again."
        output.show(raw, told)
        output.next(command("publish", pipeline, named))


def decision_commands(
    pipeline: str, partition: Partition, digest: str, decided: Approval | None
) -> tuple[str, ...]:
    """Return the commands that decide on the publication of a held partition.

    What was decided is not asked about again, though a decision may be replaced: what was approved
    waits to be published, what was rejected to be checked again. What was not decided may be
    checked again too, because a suite may have been wrong.
    """
    if decided is not None:
        return (command("publish" if decided.approved else "reopen", pipeline, partition),)
    named = (pipeline, partition, "--digest", digest)
    again = command("reopen", pipeline, partition)
    return command("approve", *named), command("reject", *named), again


def _decide(
    pipeline: str, text: str, digest: str | None, comment: str, *, approved: bool, as_json: bool
) -> None:
    with reporting(pipeline, as_json=as_json) as output:
        opened = open_control(pipeline)
        partition = opened.parse_partition(text)
        shown = digest or _asked(opened, partition, output, approved=approved)
        by = getpass.getuser()
        opened.decide(
            partition, publication=shown, approved=approved, by=by, comment=comment, now=utc_now()
        )
        decision = "approved" if approved else "rejected"
        raw = {"partition": str(partition), "decision": decision, "by": by, "digest": shown}
        output.show(raw, f"{partition} is {decision} by {by}, as publication {shown}.")
        held = opened.ledger.partitions.get(partition).pending == "held"
        follow = "reopen" if held and not approved else "publish"
        output.next(command(follow, pipeline, partition))


def _asked(
    opened: "PipelineControl", partition: Partition, output: Output, *, approved: bool
) -> str:
    """Show the publication that waits for a decision, ask for confirmation, and return its digest.

    Raises:
        BadParameter: this is not a terminal.
        NotHeld: nothing waits for a decision.
    """
    name = opened.config.name
    if output.as_json or not at_terminal():
        problem = (
            "required without a terminal: the digest of the publication that you saw, as "
            f"`{command('explain', name, partition)}` shows it"
        )
        raise typer.BadParameter(problem, param_hint="--digest")
    found = opened.explain(partition, utc_now())
    proposed = found.proposed
    if proposed is None or proposed.verdict is None:
        raise NotHeld(pipeline=name, partition=str(partition), state=found.report.name)
    output.show(None, proposal_facts(found), verdict_table(proposed.verdict))
    question = "Approve this as it is shown?" if approved else "Reject this?"
    if not typer.confirm(question):
        output.show(None, "Nothing was decided.")
        raise typer.Exit(NOTHING)
    return proposed.publication.digest
