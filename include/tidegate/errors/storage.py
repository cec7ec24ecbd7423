"""What the file system refuses."""

from tidegate.errors.base import TerminalError, TransientError


class FileExistsAlready(TerminalError):
    """A write-once name is taken."""

    path: str
    template = "{path}: exists already. Nothing was overwritten."


class StorageFull(TransientError):
    """No space is left where a file has to be written."""

    path: str
    problem: str
    template = (
        "{path}: cannot be written: {problem}. Free space on that file system; the run is retried."
    )


class StorageDenied(TerminalError):
    """A place may not be written or read."""

    path: str
    problem: str
    template = (
        "{path}: access denied: {problem}. Give the user of this process the right to it, or move "
        "away what stands in its place."
    )


class StorageSilent(TransientError):
    """A file system does not answer now, such as one whose server was started again."""

    path: str
    problem: str
    template = "{path}: no answer: {problem}. Look after that file system; the run is retried."


class WorkElsewhere(TerminalError):
    """The work directory is not on the target's file system: no rename can publish (PC-F03)."""

    work: str
    target: str
    template = (
        "{work}: not on the file system of {target}; publishing renames files. "
        "Choose `target.work` on the same file system, outside the target."
    )


class WorkGone(TerminalError):
    """The work directory is empty, or not there, although the ledger knows windows in it."""

    pipeline: str
    work: str
    template = (
        "pipeline '{pipeline}': {work}: expected the windows that the ledger knows or the table "
        "came from, found none. Nothing was changed. If it lies on a volume that is not mounted, "
        "mount it. Put it and the target back from a copy if they are lost; without one, start a "
        "new pipeline with a new name and a new target."
    )


class WorkBehind(TerminalError):
    """The work directory lacks a window for good, as after a restored backup."""

    pipeline: str
    work: str
    window: int
    template = (
        "pipeline '{pipeline}': {work}: found neither what window {window} brought nor the listing "
        "that it read, but the ledger knows it as announced: the work directory has lost both, as "
        "one that was restored from an old backup. Put a newer copy of it back; without one, start "
        "a new pipeline with a new name and a new target."
    )


class TargetGone(TerminalError):
    """The target is empty, or not there, although its work directory says whose it is."""

    pipeline: str
    target: str
    template = (
        "pipeline '{pipeline}': {target}: expected the published table, found no file. Nothing was "
        "changed. If it lies on a volume that is not mounted, mount it. Put it back from a copy if "
        "it is lost; without one, start a new pipeline with a new name and a new target."
    )


class WorkInsideTarget(TerminalError):
    """The work directory lies below the table root, where readers would see it (PC-F03)."""

    work: str
    target: str
    template = (
        "{work}: lies inside {target}, where readers list files. Choose `target.work` beside the "
        "target."
    )


class PlacesOverlap(TerminalError):
    """Target or work directory and a source lie one inside the other.

    The pipeline would read what it published, window after window, or its files would lie among
    those of a table that somebody else looks after.
    """

    key: str
    place: str
    other: str
    proposal: str
    template = (
        "{place}: `{key}` and {other}, which holds the files of a source or of another table, lie "
        "one inside the other. Set `{key}: {proposal}`; a pipeline that loaded before needs a new "
        "name and a new target, too."
    )


class PathEscapes(TerminalError):
    """A path leaves the directory that it must stay below (PC-P11)."""

    path: str
    root: str
    template = (
        "{path}: expected to lie below {root}. Remove the symbolic link or correct the partition "
        "value."
    )


class EnvironmentIncomplete(TerminalError):
    """Something that has to be installed or configured on this machine is missing."""

    what: str
    remedy: str
    template = "{what} is missing. {remedy}"


class LedgerUnreachable(TransientError):
    """The ledger's database does not answer."""

    ledger: str
    problem: str
    template = (
        "{ledger}: the ledger cannot be opened: {problem}. Check TIDEGATE_LEDGER and the database."
    )


class LedgerDamaged(TerminalError):
    """What stands where the ledger should be is no database, or a broken one."""

    ledger: str
    problem: str
    template = (
        "{ledger}: expected the ledger's database, found one that cannot be read: {problem}. Move "
        "it away, with the files beside it whose names begin the same, and restore each of its "
        "pipelines with `tidegate fsck PIPELINE --rebuild`."
    )


class LedgerNewer(TerminalError):
    """A later version of Tidegate has changed the ledger's tables."""

    ledger: str
    found: str
    newest: str
    template = (
        "{ledger}: expected tables of schema '{newest}' or before, found '{found}'. Use the "
        "version of Tidegate that knows it, or a later one; this one cannot read it."
    )


class StateFileLost(TerminalError):
    """A file in which a pipeline keeps what it did is gone from its work directory."""

    path: str
    remedy: str
    template = (
        "{path}: expected, as Tidegate wrote it into the work directory; not found. Put it back "
        "from a copy, or {remedy}."
    )


class StateFileDamaged(TerminalError):
    """A file in which a pipeline keeps what it did is not as it was written."""

    path: str
    found: str
    remedy: str
    template = (
        "{path}: expected what Tidegate wrote into the work directory, found {found}. Put it back "
        "from a copy, or move it away and {remedy}."
    )


class ExchangeFileLost(TerminalError):
    """Rows that one sub-split wrote for others are gone, or not as they were written."""

    path: str
    expected: int
    found: str
    template = (
        "{path}: expected {expected} bytes that a sub-split spread for others, found {found}. "
        "Run the load again, which reads that part of the source once more where the file is gone "
        "or has another length; otherwise delete the sub-split's file below `messages/` of the "
        "same plan before."
    )


class ExchangeIncomplete(TransientError):
    """A sub-split wants rows that another one has not spread yet."""

    plan: str
    sub_split: str
    template = (
        "{plan}: expected the message of sub-split {sub_split}, found none. The next attempt reads "
        "it first."
    )
