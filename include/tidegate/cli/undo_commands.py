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
        draft = opened.undone(named)
        output.confirm("Undo it?", *_doing(draft), yes=yes)
        owner, said = this_process(), Approval(True, getpass.getuser(), now, comment)
        consumers = AirflowConsumers(opened, owner)
        done = opened.undo(named, draft.base_revision, said, owner, now)
        consumers.tell(named)
        aside = _windows(draft)
        raw = {
            **done.to_json(),
            "partition": str(named),
            "undid": draft.base_revision,
            "restores": draft.undone.restores if draft.undone else None,
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


def _doing(draft: "Publication") -> Iterator[str]:
    restores = draft.undone.restores if draft.undone is not None else 0
    before = draft.rows + sum(item.rows for item in draft.removes)
    before -= sum(item.rows for item in draft.adds)
    aside = _aside_text(_windows(draft))
    yield (
        f"{draft.partition}: revision {draft.base_revision} has "
        f"{wording.plural(before, 'row')}. Revision {draft.revision} will have the "
        f"{wording.plural(draft.rows, 'row')} of revision {restores}; {aside}."
    )


def _windows(draft: "Publication") -> list[str]:
    return sorted(draft.undone.set_aside, key=int) if draft.undone is not None else []


def _aside_text(windows: list[str]) -> str:
    """Return what is set aside, and until when."""
    if not windows:
        return "no window is set aside"
    by = wording.numbered("window", windows)
    return f"the rows of {by} are set aside until `tidegate reopen`"
