"""Errors of proposing, checking, deciding on and committing a partition."""

from tidegate.errors.base import TerminalError, TransientError


class PartitionNotFound(TerminalError):
    """A command names a partition that the ledger does not know."""

    pipeline: str
    partition: str
    looked: str
    """Where else it was looked for, as a part of the message; may be empty."""
    known: str
    template = "pipeline '{pipeline}': no partition '{partition}'{looked}; known are {known}."


class NotCommittable(TerminalError):
    """A step was asked to publish a partition whose trigger does not allow it yet (PC-C01)."""

    pipeline: str
    partition: str
    why: str
    template = (
        "pipeline '{pipeline}': {partition} may not be committed yet: {why}. It is published by "
        "the first publish after that; to publish the rows that have arrived so far, run "
        "`tidegate publish {pipeline} {partition} --final -m WHY`."
    )


class PublicationLapsed(TerminalError):
    """The content has changed since it was checked or approved (PC-C06)."""

    pipeline: str
    partition: str
    change: str
    template = (
        "pipeline '{pipeline}': {partition}: the content changed since it was checked ({change}). "
        "Run `tidegate publish {pipeline} {partition}`, which proposes and checks it again."
    )


class ApprovedFirst(TerminalError):
    """A person asked for a revision, and another one that was approved is not out yet."""

    pipeline: str
    partition: str
    publication: str
    template = (
        "pipeline '{pipeline}': {partition}: publication {publication} was approved and is not "
        "committed yet; what was asked for now can only come after it. Run "
        "`tidegate publish {pipeline} {partition}`, then the same command once more."
    )


class NotHeld(TerminalError):
    """A decision was made on a partition that waits for none."""

    pipeline: str
    partition: str
    state: str
    template = (
        "pipeline '{pipeline}': {partition} is {state}: no decision is asked for. If rows are "
        "pending, `tidegate publish {pipeline} {partition}` checks them, and asks if the checks "
        "fail. See `tidegate explain {pipeline} {partition}`."
    )


class NothingToUndo(TerminalError):
    """An undo was asked for where there is no earlier content (design §4a)."""

    pipeline: str
    partition: str
    problem: str
    template = (
        "pipeline '{pipeline}': {partition}: nothing was undone: {problem}. See "
        "`tidegate explain {pipeline} {partition}` for its revisions."
    )


class UndoImpossible(TerminalError):
    """A file of the content to go back to is gone: retired files are kept for a time only."""

    pipeline: str
    partition: str
    revision: int
    path: str
    template = (
        "pipeline '{pipeline}': {partition}: nothing was undone: {path}, a file of revision "
        "{revision}, was deleted since it was replaced. Read the partition again with "
        "`tidegate rebuild {pipeline} {partition}`."
    )


class NotApproved(TerminalError):
    """A commit was requested of content that failed its gate and that nobody approved (PC-C06)."""

    pipeline: str
    partition: str
    outcome: str
    template = (
        "pipeline '{pipeline}': {partition}: nothing was committed: the gate says '{outcome}', "
        "and nobody approved. Run `tidegate explain {pipeline} {partition}` to see why, and how "
        "to decide."
    )


class DecisionRefused(TerminalError):
    """A decision names a publication that does not wait for one (PC-C06)."""

    pipeline: str
    partition: str
    digest: str
    found: str
    template = (
        "pipeline '{pipeline}': {partition}: nothing was decided on publication {digest}: {found}. "
        "Look again with `tidegate explain {pipeline} {partition}`."
    )


class GateFailed(TerminalError):
    """A critical check failed, and the pipeline file says `fail` (AF-3.10)."""

    pipeline: str
    partition: str
    failures: str
    template = (
        "pipeline '{pipeline}': {partition}: the gate failed: {failures}. Correct the source and "
        "load again."
    )


class SuiteInvalid(TerminalError):
    """An expectation suite cannot be used."""

    suite: str
    problem: str
    template = "{suite}: {problem}. Correct the suite, or `gate.suite` in the pipeline file."


class ContentUnreadable(TerminalError):
    """A file that the gate has to check cannot be read."""

    path: str
    window: str
    """Of the file's rows; WINDOW to those who know the file alone."""
    problem: str
    template = (
        "{path}: cannot be read by the gate: {problem}. Nothing was published. "
        "Remove the file, if it is there, and read its window again with "
        "`tidegate replay PIPELINE {window}`; if that is refused, or it was published before, its "
        "partition with `tidegate rebuild PIPELINE PARTITION`."
    )


class StandingFileUnreadable(TerminalError):
    """A file of the current revision or of its changes cannot be read to make the next one."""

    path: str
    problem: str
    template = (
        "{path}: cannot be read to make the next revision of its partition: {problem}. Nothing "
        "was published. Put it back if there is a copy; else read the partition again with "
        "`tidegate rebuild PIPELINE PARTITION`."
    )


class StagedFileMissing(TerminalError):
    """A sealed file is neither among the staged files nor in the target (PC-F24)."""

    path: str
    target: str
    window: int
    template = (
        "{path}: sealed, but found neither there nor at {target}. "
        "Read window {window} again with `tidegate replay PIPELINE {window}`; if that is refused, "
        "or the file was published before, read its partition again with `tidegate rebuild "
        "PIPELINE PARTITION`."
    )


class UploadGone(TerminalError):
    """What was sent to the store, and the commit was to complete, is not there any more (PC-F36).

    The store may have a rule that gives up uploads, or somebody did.
    """

    path: str
    window: int
    template = (
        "{path}: was sent to the store to be completed by the commit; expected its upload, found "
        "none: the store gave it up. Read window {window} again with `tidegate replay PIPELINE "
        "{window}`; if that is refused, read its partition again with `tidegate rebuild PIPELINE "
        "PARTITION`. If the bucket has a rule that gives up uploads, set "
        "`target.multipart_max_age` below its age."
    )


class UploadUnread(TerminalError):
    """The rows of a file that was only sent, and that the commit completes, are needed before."""

    path: str
    window: int
    template = (
        "{path}: was sent to the store and is completed by the commit, so that nobody can read it "
        "before; expected a staged file, because the pipeline file says more than when it was "
        "loaded, or rows were erased since. Read window {window} again with "
        "`tidegate replay PIPELINE {window}`."
    )


class FileLengthWrong(TerminalError):
    """A file does not have the length that was sealed (PC-F17, F21, F23, F26)."""

    path: str
    window: int
    expected: int
    found: int
    template = (
        "{path}: expected {expected} bytes, found {found}: it was damaged after it was sealed. "
        "Nothing was changed. Remove the file and read its window again with "
        "`tidegate replay PIPELINE {window}`; if that is refused, or it was published before, its "
        "partition with `tidegate rebuild PIPELINE PARTITION`."
    )


class FileContentWrong(TerminalError):
    """A file at its target has the sealed length, but other bytes (PC-F25)."""

    path: str
    expected: str
    found: str
    template = (
        "{path}: expected SHA-256 {expected}, found {found}. Nothing was changed; find out who "
        "wrote this file."
    )


class PolicyUnknown(TerminalError):
    """A commit policy that the pipeline file names cannot be built."""

    policy: str
    problem: str
    template = (
        "commit policy '{policy}' cannot be used: {problem}. Name 'success-file' or `custom: "
        "module:Class` with a method commit(context) in `commit.policies`, importable where "
        "commits run, or remove it; the next publish continues with the policies that the file "
        "names then, even if the commit has begun."
    )


class PolicyFailed(TransientError):
    """A commit policy failed; the partition stays pending (PC-A05)."""

    pipeline: str
    partition: str
    policy: str
    problem: str
    template = (
        "pipeline '{pipeline}': {partition}: policy '{policy}' failed: {problem}. The next "
        "publish continues the commit, with the policies that the pipeline file names then. If "
        "this one cannot succeed, correct it or its parameters, or remove it from "
        "`commit.policies`; then run `tidegate publish {pipeline} {partition}`."
    )


class PolicyRefused(TransientError):
    """A policy refuses a commit before it begins; nothing has changed (PC-A13)."""

    pipeline: str
    partition: str
    policy: str
    problem: str
    template = (
        "pipeline '{pipeline}': {partition}: policy '{policy}' refuses it: {problem}. Nothing was "
        "changed, and the next publish asks again. If this policy cannot agree, correct it or its "
        "parameters, or remove it from `commit.policies`."
    )


class UnitLost(TerminalError):
    """A file of an approved revision is gone that was assembled for it, and more has come since."""

    pipeline: str
    partition: str
    template = (
        "pipeline '{pipeline}': {partition}: a file that was assembled for the approved revision "
        "is gone, and cannot be made again as it was approved, because more has come since. Let "
        "the partition be proposed anew with `tidegate reopen {pipeline} {partition}` and "
        "`tidegate publish {pipeline} {partition}`."
    )


class RowsLost(TerminalError):
    """Files that were joined do not have the rows of those that they were joined from (PC-K05)."""

    partition: str
    expected: int
    found: int
    template = (
        "{partition}: expected {expected} rows in files that were joined, found {found}. Nothing "
        "was published. Check the partition's files with `tidegate fsck PIPELINE`."
    )


class ChangesGone(TerminalError):
    """The changes of a window are gone that an upsert would have to be made of anew."""

    partition: str
    window: int
    path: str
    template = (
        "{partition}: a window before the last one that was merged changed, so that the partition "
        "is made anew from the changes of all windows, and those of window {window} are gone: "
        "{path}. Read the partition as it is now with `tidegate rebuild PIPELINE PARTITION`."
    )


class CountsUnreadable(TransientError):
    """The upstream counts of a pipeline's partitions cannot be read (PC-C03)."""

    place: str
    problem: str
    template = (
        "{place}: the upstream counts cannot be read: {problem}. The partitions that need them "
        "wait, and the next look reads again. Correct `commit.counts` if that cannot succeed."
    )


class SourceBacklog(TerminalError):
    """A pipeline's source was declared closed, and has changes that were not loaded (PC-M09)."""

    pipeline: str
    found: str
    template = (
        "pipeline '{pipeline}': expected a source whose changes are all loaded; found {found}. "
        "Nothing was published. Run `tidegate load {pipeline}`, then "
        "`tidegate publish {pipeline} --final` again."
    )


class ExtractorUnknown(TerminalError):
    """A reader of partition times that the pipeline file names cannot be built (PC-T18)."""

    extractor: str
    problem: str
    template = (
        "partition time '{extractor}' cannot be used: {problem}. Name a `module:Class` with a "
        "method extract(keys, values) in `commit.partition_time.class`, importable where loads and "
        "publishes run."
    )
