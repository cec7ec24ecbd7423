"""The command that takes a partition back to the content before its current revision."""

import getpass
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tidegate.cli import wording
from tidegate.cli.airflow_events import AirflowConsumers
from tidegate.cli.arguments import AsJson, Comment, PartitionText, PipelineName, Yes, utc_now
from tidegate.cli.opening import open_pipeline, this_process
from tidegate.cli.output import reporting
from tidegate.errors.commands import command
from tidegate.model.publication import Approval

if TYPE_CHECKING:
    from tidegate.model.publication import Publication


def undo(
    pipeline: PipelineName,
    partition: PartitionText,
    comment: Comment = "",
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Publish the content from before a partition's current revision, as a new revision.

    What came since is set aside until `tidegate reopen`. Undoing again goes back one more.
    """
    with reporting(pipeline, as_json=as_json) as output:
        now = utc_now()
        opened = open_pipeline(pipeline)
        named = opened.parse_partition(partition)
        following = opened.undone(named)
        output.confirm("Undo it?", *_doing(following), yes=yes)
        owner, said = this_process(), Approval(True, getpass.getuser(), now, comment)
        consumers = AirflowConsumers(opened, owner)
        done = opened.undo(named, following.base_revision, said, owner, now)
        consumers.tell(named)
        aside = _windows(following)
        raw = {
            **done.to_json(),
            "partition": str(named),
            "undid": following.base_revision,
            "restores": following.undone.restores if following.undone else None,
            "set_aside": [int(window) for window in aside],
            "by": said.by,
        }
        text = (
            f"{named}: revision {done.revision} with {wording.plural(done.rows, 'row')} is "
            f"published; {_aside_text(aside)}."
        )
        output.show(raw, text, *consumers.said)
        again = [command("reopen", pipeline, named)] if aside else []
        output.next(command("explain", pipeline, named), *again)


def _doing(following: "Publication") -> Iterator[str]:
    restores = following.undone.restores if following.undone is not None else 0
    before = following.rows + sum(item.rows for item in following.removes)
    before -= sum(item.rows for item in following.adds)
    aside = _aside_text(_windows(following))
    yield (
        f"{following.partition}: revision {following.base_revision} has "
        f"{wording.plural(before, 'row')}. Revision {following.revision} will have the "
        f"{wording.plural(following.rows, 'row')} of revision {restores}; {aside}."
    )


def _windows(following: "Publication") -> list[str]:
    return sorted(following.undone.set_aside, key=int) if following.undone is not None else []


def _aside_text(windows: list[str]) -> str:
    """Return what is set aside, and until when."""
    if not windows:
        return "no window is set aside"
    by = wording.numbered("window", windows)
    return f"the rows of {by} are set aside until `tidegate reopen`"
