"""Errors of the file system, the work directory and the ledger's database."""

from tidegate.errors.base import TerminalError, TransientError


class FileExistsAlready(TerminalError):
    """The name of a file that is written once is taken."""

    path: str
    template = "{path}: exists already. Nothing was overwritten."


class StorageFull(TransientError):
    """No space is left where a file has to be written."""

    path: str
    problem: str
    template = (
        "{path}: cannot be written: {problem}. Free space on that file system; the next run tries "
        "again."
    )


class StorageDenied(TerminalError):
    """A place cannot be read or written."""

    path: str
    problem: str
    template = (
        "{path}: access denied: {problem}. Grant the user of this process access to it, mount its "
        "file system for writing, or move away whatever is in its place."
    )


class PlaceUnwritable(TerminalError):
    """No directory can be made where the pipeline file wants one, whatever the rights."""

    key: str
    path: str
    nearest: str
    problem: str
    template = (
        "{path}: nothing can be written in {nearest}: {problem}. Set `{key}` to a place on another "
        "file system."
    )


class StorageSilent(TransientError):
    """A file system does not answer for the moment, as while its server restarts."""

    path: str
    problem: str
    template = "{path}: no answer: {problem}. Check that file system; the next run tries again."


class StoreDenied(StorageDenied):
    """A store refuses a request."""

    template = (
        "{path}: the store refuses it: {problem}. Give the credentials in use the right to list, "
        "read, write and delete there, or use others in `s3`."
    )


class StoreKeyWrong(StoreDenied):
    """A store does not know the key, or the secret is not the one of the key."""

    template = (
        "{path}: the store does not accept the access key or its secret: {problem}. Correct them "
        "where they come from: the variables of `s3.access_key` and `s3.secret_key`, the Airflow "
        "connection of `s3.connection`, or what AWS's own tools read, such as "
        "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and `~/.aws`."
    )


class StoreRegionWrong(StoreDenied):
    """A store expects requests that are signed for another region."""

    template = (
        "{path}: the store refuses the region of the requests, whoever asks: {problem}. Set "
        "`s3.region` to the one that the store has; if it is right, correct the form of the "
        "access key."
    )


class StoreSilent(StorageSilent):
    """A store does not answer for the moment, or asks to come later."""

    template = (
        "{path}: no answer of the store: {problem}. Check the store and the way to it; the run is "
        "retried."
    )


class BucketMissing(TerminalError):
    """A store has no bucket of this name."""

    path: str
    bucket: str
    template = (
        "{path}: expected the bucket '{bucket}', found none in the store. Make it, or correct the "
        "address; if it is in another store, set `s3.endpoint`."
    )


class CredentialsMissing(TerminalError):
    """Nothing says who asks a store."""

    path: str
    problem: str
    template = (
        "{path}: {problem}. Set `s3.connection` to an Airflow connection, `s3.access_key` and "
        "`s3.secret_key` to `${{env:NAME}}`, or what AWS's own tools read, such as AWS_PROFILE."
    )


class CredentialsUnset(CredentialsMissing):
    """Nothing says who asks a store that a first pipeline file is drafted for."""

    template = (
        "{path}: {problem}. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, and "
        "for a store that is not AWS's own AWS_ENDPOINT_URL_S3. The pipeline file may say it "
        "otherwise later, in its section `s3`."
    )


class CredentialsExpired(TransientError):
    """The credentials were valid, and are not any more."""

    path: str
    problem: str
    template = "{path}: {problem}. Renew the credentials; the next run takes those of then."


class StoreOptionWrong(TerminalError):
    """A store cannot be reached as the pipeline file says."""

    problem: str
    template = "`s3`: {problem}. Correct the section, or the files and variables that it refers to."


class WorkElsewhere(TerminalError):
    """The work directory is not on the target's file system: no rename can publish (PC-F03)."""

    work: str
    target: str
    template = (
        "{work}: not on the file system of {target}; publishing renames files. "
        "Choose `target.work` on the same file system, outside the target."
    )


class WorkGone(TerminalError):
    """The work directory is empty or missing, although the ledger knows windows in it."""

    pipeline: str
    work: str
    remedy: str
    template = (
        "pipeline '{pipeline}': {work}: expected the windows that the ledger knows, or that the "
        "table was published from, found none. Nothing was changed. If it lies on a volume that "
        "is not mounted, mount it. If it was moved, write its new path into the pipeline file as "
        "`target.work`. If it is lost, restore it and the target from a copy; without "
        "a copy, {remedy}."
    )


class WorkBehind(TerminalError):
    """The work directory has lost a window for good, as after a restored backup."""

    pipeline: str
    work: str
    window: int
    template = (
        "pipeline '{pipeline}': {work}: found neither the announce of window {window} nor the "
        "listing that it read, but the ledger knows it as announced: the work directory has lost "
        "both, as after a restored backup. Restore it from a newer copy; without one, delete what "
        "was published and begin again with `tidegate reset {pipeline} --drop-target`."
    )


class TargetGone(TerminalError):
    """The target is empty or missing, although its work directory names its owner."""

    pipeline: str
    target: str
    template = (
        "pipeline '{pipeline}': {target}: expected the published table, found no file. Nothing "
        "was changed. If it lies on a volume that is not mounted, mount it. If it was moved, write "
        "its new path into the pipeline file as `target.path`. If it is lost, "
        "restore it from a copy; without a copy, begin again with `tidegate reset {pipeline} "
        "--drop-target`."
    )


class PlacesMoved(TerminalError):
    """Target or work directory were moved, and the ledger names the places that they left."""

    pipeline: str
    target: str
    template = (
        "{target}: target or work directory were moved to where the pipeline file says. The next "
        "load or publish goes on there; run `tidegate publish {pipeline}`."
    )


class WorkInsideTarget(TerminalError):
    """The work directory is below the table root, where readers would see it (PC-F03)."""

    work: str
    target: str
    template = (
        "{work}: is inside {target}, where readers list files. Choose `target.work` beside the "
        "target."
    )


class PlacesOverlap(TerminalError):
    """The target or work directory is inside a source, or the other way round.

    The pipeline would read what it published, window after window, or its files would be among
    those of a table that belongs to somebody else.
    """

    key: str
    place: str
    other: str
    proposal: str
    template = (
        "{place}: `{key}` and {other}, which holds the files of a source or of another table, "
        "must not be inside one another. Set `{key}: {proposal}`; a pipeline that loaded before "
        "needs a new name and a new target, too."
    )


class PathEscapes(TerminalError):
    """A path leaves the directory that it must stay below (PC-P11)."""

    path: str
    root: str
    template = (
        "{path}: expected a path below {root}. Put the directory that the symbolic link leads to "
        "in its place, or correct the partition value."
    )


class EnvironmentIncomplete(TerminalError):
    """A requirement of this machine is not installed or configured."""

    what: str
    remedy: str
    template = "{what} is missing. {remedy}"


class LedgerAddressWrong(TerminalError):
    """The address of the ledger is none, or that of a database that cannot hold it."""

    found: str
    template = (
        "expected `sqlite:////FOLDER/ledger.db` or `postgresql+psycopg://USER@HOST/DATABASE` as "
        "the address of the ledger, found {found}. Set TIDEGATE_LEDGER to one of them."
    )


class LedgerUnreachable(TransientError):
    """The ledger's database does not answer."""

    ledger: str
    problem: str
    template = (
        "{ledger}: the ledger cannot be opened: {problem}. Check TIDEGATE_LEDGER and the database."
    )


class PostgresNotStarted(TransientError):
    """The PostgreSQL of a home does not start."""

    problem: str
    template = "the home's own PostgreSQL cannot be started: {problem}"


class PostgresOther(TerminalError):
    """The files of a home's PostgreSQL were made by another major version."""

    folder: str
    found: str
    expected: str
    template = (
        "{folder}: expected a database of PostgreSQL {expected}, found one of {found}. Use the "
        "version of Tidegate that made it; or move the folder away, and restore each pipeline of "
        "its ledger with `tidegate fsck PIPELINE --rebuild`."
    )


class PostgresLost(TerminalError):
    """The files of the PostgreSQL that has a home's ledger are gone."""

    folder: str
    template = (
        "{folder}/data: expected the files of the home's PostgreSQL, which has its ledger; not "
        "found. Put them back from a copy; or move {folder} away, and restore each pipeline of "
        "the ledger with `tidegate fsck PIPELINE --rebuild`."
    )


class LedgerDamaged(TerminalError):
    """The file at the ledger's place is not a database, or is a broken one."""

    ledger: str
    problem: str
    template = (
        "{ledger}: expected the ledger's database, found one that cannot be read: {problem}. Move "
        "it away, together with the files whose names begin with the same text, and restore each "
        "of its pipelines with `tidegate fsck PIPELINE --rebuild`."
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
    """A file that a pipeline wrote to its work directory is gone."""

    path: str
    remedy: str
    template = (
        "{path}: expected, as Tidegate wrote it to the work directory; not found. Restore it from "
        "a copy, or {remedy}."
    )


class AnnounceOutdated(TerminalError):
    """A work directory has announces of before its ledger began anew."""

    pipeline: str
    path: str
    window: int
    template = (
        "pipeline '{pipeline}': {path}: is the announce of window {window} from before the ledger "
        "began anew, as by `reset --drop-target`: work directory and target were put back from a "
        "copy of that time, and this ledger does not take them back. Nothing was restored. Put "
        "the ledger of that time back as well, or delete what was published and begin again with "
        "`tidegate reset {pipeline} --drop-target`."
    )


class StateFileDamaged(TerminalError):
    """A file that a pipeline wrote to its work directory is not as it was written."""

    path: str
    found: str
    remedy: str
    template = (
        "{path}: expected what Tidegate wrote to the work directory, found {found}. Restore it "
        "from a copy, or move it away and {remedy}."
    )


class ExchangeFileLost(TerminalError):
    """The rows that one sub-split wrote for others are gone, or not as they were written."""

    path: str
    expected: int
    found: str
    template = (
        "{path}: expected {expected} bytes that a sub-split spread for others, found {found}. Run "
        "the load again: it reads that part of the source once more if the file is gone or has "
        "another length. Otherwise first delete the sub-split's file below `messages/` of the "
        "same plan."
    )


class ExchangeIncomplete(TransientError):
    """A sub-split needs rows that another one has not written yet."""

    plan: str
    sub_split: str
    template = (
        "{plan}: expected the message of sub-split {sub_split}, found none. The next attempt reads "
        "it first."
    )
