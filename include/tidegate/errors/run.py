"""What ledger, windows, claims and commits refuse."""

from tidegate.errors.base import TerminalError, TransientError


class PipelineChanged(TerminalError):
    """A key that belongs to a pipeline's identity was changed (design §4)."""

    pipeline: str
    key: str
    expected: str
    found: str
    template = (
        "pipeline '{pipeline}': `{key}` was {expected} and is now {found}; it belongs to the "
        "pipeline's identity. "
        "Change it back, or give the changed pipeline a new name and a new target."
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


class WorkOwned(TerminalError):
    """Another pipeline works in this work directory (design §4, who owns a target)."""

    work: str
    owner: str
    pipeline: str
    template = (
        "{work}: is the work directory of pipeline '{owner}', not of '{pipeline}'. "
        "One work directory has one pipeline: choose another `target.work`."
    )


class WorkUnfit(TerminalError):
    """The target is published from another work directory, which has what is staged for it."""

    pipeline: str
    target: str
    work: str
    fits: str
    template = (
        "pipeline '{pipeline}': {work} is not the work directory of {target}, which is published "
        "from {fits}. Set `target.work` to {fits}."
    )


class OwnerInvalid(TerminalError):
    """The file that says who owns a target or a work directory cannot be understood."""

    path: str
    found: str
    template = (
        "{path}: expected the name of the pipeline that owns this directory (JSON, format 1), "
        "found {found}. Move the file away: the next load of the pipeline writes it again, if "
        "all else fits."
    )


class LedgerLost(TerminalError):
    """The target was published with another ledger than the one in use (design §4)."""

    pipeline: str
    target: str
    expected: str
    template = (
        "pipeline '{pipeline}': {target} was published with ledger {expected}, and the ledger in "
        "use does not know "
        "it. Point TIDEGATE_LEDGER at that ledger, or restore it with `tidegate fsck {pipeline} "
        "--rebuild`."
    )


class WindowOpen(TransientError):
    """Another run holds the pipeline's open window (design §4)."""

    pipeline: str
    sequence: int
    run: str
    renewed: str
    """When the holder gave its last sign of life."""
    outlook: str
    """What becomes of the window, and the command that finishes it if its holder is gone."""
    template = (
        "pipeline '{pipeline}': window {sequence} is worked on by {run}, last renewed {renewed}. "
        "{outlook}"
    )


class LedgerMoved(TransientError):
    """What something was decided on no longer holds: another run came between (design §4)."""

    pipeline: str
    expected: str
    found: str
    template = (
        "pipeline '{pipeline}': expected {expected} in the ledger, found {found}: another run came "
        "between. Nothing was taken; the run is retried."
    )


class NumberPassed(TransientError):
    """Something newer was recorded after this process had reserved its number (design §4)."""

    pipeline: str
    subject: str
    reserved: int
    found: int
    template = (
        "pipeline '{pipeline}': {subject}: expected nothing after number {reserved}, found "
        "{found}: another run came between. Nothing was recorded; the run is retried."
    )


class LedgerBehind(TerminalError):
    """The files know more than the ledger, as after a restored backup (design §4)."""

    pipeline: str
    found: str
    known: str
    template = (
        "pipeline '{pipeline}': found {found}, but the ledger in use knows {known}: it is older "
        "than the files, as after a restored backup. Stop what works on the "
        "pipeline, and bring the ledger up to date with `tidegate fsck {pipeline} --rebuild`."
    )


class ChangesReadWhole(TerminalError):
    """A window of changes would be planned by a configuration that reads the whole source."""

    pipeline: str
    window: int
    template = (
        "pipeline '{pipeline}': window {window} reads what changed, and `source.read.mode: "
        "snapshot` reads the whole source: rows that other windows read would count twice. Nothing "
        "was planned. `tidegate load {pipeline}` reads the whole source in place of all windows "
        "before; to read this one again, set `source.read.mode` back."
    )


class PlannedOtherwise(TerminalError):
    """An open window that has a plan is refused as the configuration is now."""

    pipeline: str
    window: int
    problem: str
    """Why it is refused, as a message of its own."""
    template = (
        "pipeline '{pipeline}': window {window} is open, and was planned with another "
        "configuration; with the present one it is refused: {problem} Set the pipeline file back "
        "to what `tidegate plan {pipeline} --window {window} --json` shows under `config`, and "
        "finish the window with `tidegate load {pipeline}`: the next one is planned as the file "
        "says then."
    )


class WindowNotFound(TerminalError):
    """A replay names a window that was never taken."""

    pipeline: str
    sequence: int
    template = (
        "pipeline '{pipeline}': no window {sequence}. List them with `tidegate instants "
        "{pipeline}`."
    )


class WindowOverlap(TerminalError):
    """A history interval overlaps an earlier history window in part (design §4, case 3)."""

    pipeline: str
    interval: str
    window: str
    template = (
        "pipeline '{pipeline}': the interval {interval} overlaps {window} in part. "
        "Backfill whole intervals as they were taken before."
    )


class FenceLost(TerminalError):
    """A newer attempt or claim took over; this one changes nothing more (design §4)."""

    pipeline: str
    subject: str
    held: int
    found: int
    template = (
        "pipeline '{pipeline}': {subject}: this process holds fence {held}, the ledger has "
        "{found}: "
        "a successor took over. Nothing was changed; let the successor finish."
    )


class ClaimHeld(TransientError):
    """Another run has the right to a partition (AF-3.32)."""

    pipeline: str
    partition: str
    owner: str
    renewed: str
    """When the holder gave its last sign of life."""
    outlook: str
    """What becomes of the claim, and the command that goes on if its holder is gone."""
    template = (
        "pipeline '{pipeline}': {partition} is claimed by {owner}, last renewed {renewed}. "
        "{outlook}"
    )


class PartitionBusy(TransientError):
    """Another process is moving or deleting these files right now (design §4)."""

    partition: str
    holder: str
    template = (
        "{partition}: its files are being moved or deleted by {holder}. Wait for that process; the "
        "run is retried."
    )


class PublicationLapsed(TerminalError):
    """What was checked or approved is no longer what would be committed (PC-C06)."""

    pipeline: str
    partition: str
    change: str
    template = (
        "pipeline '{pipeline}': {partition}: the content changed since it was checked ({change}). "
        "Run `tidegate publish {pipeline} {partition}`, which proposes it anew and checks it "
        "again."
    )


class PartitionNotFound(TerminalError):
    """A command names a partition that the ledger does not know."""

    pipeline: str
    partition: str
    looked: str
    """What else was looked at, as the message goes on; may be empty."""
    known: str
    template = "pipeline '{pipeline}': no partition '{partition}'{looked}; known are {known}."


class NotHeld(TerminalError):
    """A decision was given on a partition that waits for none."""

    pipeline: str
    partition: str
    state: str
    template = (
        "pipeline '{pipeline}': {partition} is {state}; there is nothing to decide. See "
        "`tidegate explain {pipeline} {partition}`."
    )


class NotApproved(TerminalError):
    """A commit was asked for what the gate did not let through, and nobody approved it (PC-C06)."""

    pipeline: str
    partition: str
    outcome: str
    template = (
        "pipeline '{pipeline}': {partition}: nothing was committed: the gate says '{outcome}', and "
        "nobody approved. `tidegate explain {pipeline} {partition}` says why, and how to decide."
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


class NotCommittable(TerminalError):
    """A step was asked to publish a partition that its trigger does not let out (PC-C01)."""

    pipeline: str
    partition: str
    why: str
    template = (
        "pipeline '{pipeline}': {partition} may not be committed yet: {why}. The next publish "
        "after that brings it out; to publish what has come so far, say so with "
        "`tidegate publish {pipeline} {partition} --final -m WHY`."
    )


class StagedFileMissing(TerminalError):
    """A sealed file is neither staged nor published (PC-F24)."""

    path: str
    target: str
    window: int
    template = (
        "{path}: sealed, but found neither there nor at {target}. "
        "Read window {window} again with `tidegate replay PIPELINE {window}`; if that is refused, "
        "or the file was published before, read its partition again with `tidegate rebuild "
        "PIPELINE PARTITION`."
    )


class FileLengthWrong(TerminalError):
    """A staged or published file is not as long as it was when sealed (PC-F17, F21, F23, F26)."""

    path: str
    expected: int
    found: int
    template = (
        "{path}: expected {expected} bytes, found {found}: it was damaged after it was sealed. "
        "Nothing was changed. Remove the file and read its window again with "
        "`tidegate replay PIPELINE WINDOW`; if that is refused, or it was published before, its "
        "partition with `tidegate rebuild PIPELINE PARTITION`."
    )


class FileContentWrong(TerminalError):
    """A file at its target has the length but not the bytes that were sealed (PC-F25)."""

    path: str
    expected: str
    found: str
    template = (
        "{path}: expected SHA-256 {expected}, found {found}. Nothing was changed; find out who "
        "wrote this file."
    )


class PolicyFailed(TransientError):
    """A commit policy did not succeed; the partition stays pending (PC-A05)."""

    pipeline: str
    partition: str
    policy: str
    problem: str
    template = (
        "pipeline '{pipeline}': {partition}: policy '{policy}' failed: {problem}. The next publish "
        "goes on with the commit, by the policies that the pipeline file names then. If this one "
        "cannot succeed, correct it or its parameters, or take it out of `commit.policies`; then "
        "run `tidegate publish {pipeline} {partition}`."
    )


class GateFailed(TerminalError):
    """A critical check failed and the pipeline says to fail (AF-3.10)."""

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
    problem: str
    template = (
        "{path}: cannot be read by the gate: {problem}. Nothing was published. "
        "Remove the file, if it is there, and read its window again with "
        "`tidegate replay PIPELINE WINDOW`; if that is refused, or it was published before, its "
        "partition with `tidegate rebuild PIPELINE PARTITION`."
    )


class PlanMissing(TerminalError):
    """A step asks for a plan that is not in the work directory."""

    path: str
    template = (
        "{path}: no plan there. Plan the window again with `tidegate replay PIPELINE WINDOW`."
    )


class WindowIncomplete(TransientError):
    """Announce found sub-splits without a message."""

    pipeline: str
    sequence: int
    missing: int
    expected: int
    template = (
        "pipeline '{pipeline}': window {sequence}: {missing} of {expected} sub-splits have no "
        "message yet. "
        "The load is retried and reads only those."
    )


class RowsUnaccounted(TerminalError):
    """The contributions of a window have other rows than its tasks kept."""

    pipeline: str
    sequence: int
    kept: int
    contributed: int
    plan: str
    template = (
        "pipeline '{pipeline}': window {sequence}: expected the {kept} rows that were kept in its "
        "contributions, found {contributed}. Nothing was announced. "
        "Remove {plan}, which is damaged, and load again: the window is read anew."
    )


class MarkerInvalid(TerminalError):
    """A marker cannot be read as a list of files (PC-A07)."""

    path: str
    found: str
    template = (
        "{path}: expected a marker of Tidegate (JSON, format 1), found {found}. "
        "Point at a table that Tidegate publishes, or have the partition published again: "
        "`tidegate rebuild PIPELINE PARTITION`, then `tidegate publish PIPELINE PARTITION`."
    )


class CommittedFileMissing(TerminalError):
    """A marker lists a file that is not in its partition."""

    path: str
    template = (
        "{path}: expected, as the marker beside it lists it; not found. `tidegate fsck PIPELINE` "
        "says what helps."
    )


class MarkerMissing(TransientError):
    """A table has data files, and no marker says which of them count (PC-A06)."""

    root: str
    file: str
    template = (
        "{root}: expected markers of Tidegate, found only files such as {file}, which no marker "
        "lists. A commit may be under way: read again when it has ended. A pipeline without the "
        "policy `success-file` writes no markers; read its files by listing."
    )


class ColumnTypesDiffer(TerminalError):
    """Two part files have a column with types that no type holds both of."""

    column: str
    file: str
    type: str
    other_file: str
    other_type: str
    template = (
        "column '{column}': {file} has {type}, and {other_file} has {other_type}; "
        "expected types of which one holds the other's values. "
        "Let `tidegate rebuild PIPELINE PARTITION` read the partition of the older file again as "
        "the source has it now, and publish it."
    )


class PolicyUnknown(TerminalError):
    """A commit policy that the pipeline file names cannot be built."""

    policy: str
    problem: str
    template = (
        "commit policy '{policy}' cannot be used: {problem}. Name 'success-file' or `custom: "
        "module:Class` with a method commit(context) in `commit.policies`, importable where "
        "commits run, or take it out; the next publish goes on with what the file names then, "
        "also where the commit was begun."
    )


class WorkUnknown(TerminalError):
    """There is no work directory from which a ledger could be restored."""

    pipeline: str
    work: str
    template = (
        "pipeline '{pipeline}': {work} is no work directory of it. "
        "Check `target.path` and `target.work`; without that directory there is nothing to "
        "restore from."
    )
