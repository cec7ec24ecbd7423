"""Errors about the owner of a target or a work directory, and about its ledger."""

import shlex

from tidegate.errors.base import TerminalError, TransientError


class PipelineChanged(TerminalError):
    """A key that belongs to a pipeline's identity was changed (design §4)."""

    pipeline: str
    key: str
    expected: str
    found: str
    template = (
        "pipeline '{pipeline}': `{key}` was {expected} and is now {found}; it belongs to the "
        "pipeline's identity. Change it back (a target that was moved is followed once nothing is "
        "left of it in its old place), or give the changed pipeline a new name and a new "
        "target. `tidegate reset {pipeline} --drop-target` deletes what was published instead, and "
        "begins again as the file says now."
    )


class TargetOwned(TerminalError):
    """Another pipeline publishes into this target (design §4, who owns a target)."""

    target: str
    owner: str
    pipeline: str
    template = (
        "{target}: belongs to pipeline '{owner}', not to '{pipeline}'. "
        "One target has one pipeline: choose another `target.path`; if '{pipeline}' was called "
        "'{owner}' before, set `name` back."
    )


class TargetAround(TargetOwned):
    """A target has a directory of another pipeline in it, whose files would be among its own."""

    below: str
    template = (
        "{target}: has {below} in it, which belongs to pipeline '{owner}', not to '{pipeline}'. "
        "Its files would be listed as those of '{pipeline}': choose another `target.path`, beside "
        "it and not around it."
    )


class LateRootUnfit(TerminalError):
    """Late rows cannot be published below the root that the pipeline file names (PC-L04)."""

    pipeline: str
    path: str
    problem: str
    template = (
        "pipeline '{pipeline}': `commit.late_data.side.path`: late rows cannot be published in "
        "{path}: {problem}. Choose another directory, beside the target, for late rows of this "
        "pipeline alone."
    )


class TargetShared(TerminalError):
    """Two pipeline files name one target or work directory, and neither pipeline owns it yet."""

    key: str
    place: str
    pipeline: str
    file: str
    other: str
    template = (
        "{place}: the pipeline '{pipeline}' has {other} as its `{key}`, see {file}. The first of "
        "both that is loaded would own it, and every load of the other one would be refused. Set "
        "another `{key}` in one of the files, beside the other and not inside it."
    )


class TargetRegistered(TerminalError):
    """A ledger to be restored has another pipeline registered for the target (design §4)."""

    pipeline: str
    target: str
    owner: str
    template = (
        "pipeline '{pipeline}': {target} belongs to it, and the ledger in use has it registered "
        "for '{owner}', which published there before: it is older than the files, as after a "
        "restored backup. Nothing was restored. Restore '{owner}' first, with `tidegate fsck "
        "{owner} --rebuild`, then this one with `tidegate fsck {pipeline} --rebuild`."
    )


class WorkOwned(TerminalError):
    """Another pipeline works in this work directory (design §4, who owns a target)."""

    work: str
    owner: str
    pipeline: str
    template = (
        "{work}: is the work directory of pipeline '{owner}', not of '{pipeline}'. "
        "One work directory has one pipeline: choose another `target.work`."
    )


class PlaceOwned(TerminalError):
    """A target or a work directory is inside a directory of another pipeline (design §4)."""

    pipeline: str
    key: str
    place: str
    folder: str
    what: str
    owner: str
    template = (
        "{place}: is in {folder}, the {what} of pipeline '{owner}', not of '{pipeline}'. What is "
        "published would be mixed with what is staged. Choose another `{key}`, outside of it, and "
        "move {place} there if it is in use already."
    )


class WorkUnfit(TerminalError):
    """The target is published from another work directory, which has the files staged for it."""

    pipeline: str
    target: str
    work: str
    fits: str
    template = (
        "pipeline '{pipeline}': {work} is not the work directory of {target}, which is published "
        "from {fits}. Set `target.work` to {fits}."
    )


class OwnerInvalid(TerminalError):
    """The file that names the owner of a target or a work directory cannot be read."""

    path: str
    found: str
    template = (
        "{path}: expected the name of the pipeline that owns this directory (JSON, format 1), "
        "found {found}. Move the file away: the next load of the pipeline writes it again if "
        "everything else matches."
    )


class LedgerLost(TerminalError):
    """A target or its work directory belongs to another ledger than the one in use (design §4)."""

    pipeline: str
    place: str
    expected: str
    template = (
        "pipeline '{pipeline}': {place} was published with ledger {expected}, and the ledger in "
        "use does not know it. Point TIDEGATE_LEDGER at that ledger, or restore it with `tidegate "
        "fsck {pipeline} --rebuild`."
    )


class LedgerCopied(TerminalError):
    """The ledger in use is a copy of the one that a table belongs to (design §4)."""

    pipeline: str
    target: str
    work: str
    original: str
    ledger: str
    template = (
        "pipeline '{pipeline}': {target} and {work} belong to the ledger {original}, which is "
        "still there; the ledger in use, {ledger}, is a copy of it. Nothing was changed. To work "
        "on this table, use the ledger {original}. To have a pipeline of its own beside it, give "
        "it another `name`, and a `target.path` and a `target.work` where nothing is yet. If the "
        "ledger in use is the one to go on with, move {original} away first."
    )


class OwnersDiffer(TerminalError):
    """A target and its work directory belong to one pipeline in two ledgers (design §4)."""

    pipeline: str
    target_file: str
    target_ledger: str
    work_file: str
    work_ledger: str
    stranger: str
    """The file that does not name the ledger in use; the target's if neither does."""
    template = (
        "pipeline '{pipeline}': {target_file} names ledger {target_ledger}, and {work_file} names "
        "ledger {work_ledger}: one of the two directories was put back from a copy of before the "
        "pipeline began anew. Nothing was changed. Put target, work directory and ledger back from "
        "one copy. Otherwise move {stranger} away, whose ledger is not the one in use, and "
        "begin again with `tidegate reset {pipeline} --drop-target`: it deletes what was published "
        "and staged, and the next load reads the source from `source.start`."
    )


class LedgerBehind(TerminalError):
    """The files know more than the ledger, as after a restored backup (design §4)."""

    pipeline: str
    found: str
    known: str
    template = (
        "pipeline '{pipeline}': found {found}, but the ledger in use knows {known}: it is older "
        "than the files, as after a restored backup. Stop all processes of the pipeline, and "
        "bring the ledger up to date with `tidegate fsck {pipeline} --rebuild`."
    )


class WorkUnknown(TerminalError):
    """There is no work directory from which a ledger could be restored."""

    pipeline: str
    work: str
    template = (
        "pipeline '{pipeline}': {work} is not its work directory. Check `target.path` and "
        "`target.work`; without that directory there is nothing to restore from."
    )


class ResetUnfinished(TerminalError):
    """A reset began to delete what a pipeline published, and did not end."""

    pipeline: str
    path: str
    template = (
        "pipeline '{pipeline}': {path}: a reset began to delete what it published, and is still at "
        "it or was killed. Nothing was changed. If it is not running any more, finish it with "
        "`tidegate reset {pipeline} --drop-target`."
    )


class RetireUnfinished(TransientError):
    """A retirement began, and is not yet recorded in the target."""

    pipeline: str
    path: str
    template = (
        "pipeline '{pipeline}': {path}: a retirement began, and is still at it or was killed. "
        "Nothing more was changed. If it is not running any more, finish it with "
        "`tidegate retire {pipeline}`."
    )


class PipelineRetired(TerminalError):
    """A pipeline was ended for good, and its file is still there."""

    pipeline: str
    target: str
    by: str
    at: str
    template = (
        "pipeline '{pipeline}': {by} retired it at {at}, and what it published in "
        "{target} stays. If that was killed half way, `tidegate retire {pipeline}` finishes it. "
        "Otherwise remove its pipeline file, or give it a new name: it may publish to the same "
        "target."
    )


class PartitionStands(TerminalError):
    """A pipeline that was retired published a partition, whose rows its successor does not know."""

    pipeline: str
    partition: str
    owner: str
    folder: str
    template = (
        "pipeline '{pipeline}': {partition} was published by '{owner}', which was retired: its "
        "files in {folder} would stand beside new ones. Nothing was changed. Move them away to "
        "have the partition published by '{pipeline}' alone."
    )

    @property
    def way_out(self) -> str:
        """The command that moves the files away."""
        if not self.folder.startswith("s3://"):
            return shlex.join(["mv", self.folder, "ELSEWHERE"])
        # Without the slash, names that only begin like this one would be moved, too.
        place = f"s3://ELSEWHERE/{self.partition}/"
        return shlex.join(["aws", "s3", "mv", "--recursive", f"{self.folder}/", place])


class CommitUnfinished(TerminalError):
    """A pipeline cannot be ended, nor a partition listed again, in the middle of a commit."""

    pipeline: str
    partition: str
    template = (
        "pipeline '{pipeline}': a commit of {partition} has begun and not ended. Nothing was "
        "changed. Finish it with `tidegate publish {pipeline} {partition}`, then go on."
    )
