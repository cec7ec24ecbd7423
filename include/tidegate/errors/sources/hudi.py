"""Errors of Hudi tables: properties, timeline, file slices and log files."""

from tidegate.errors.base import TerminalError, TransientError
from tidegate.errors.sources.every_kind import SourceFileDamaged


class HudiPropertyUnsupported(TerminalError):
    """A table needs something that is not read."""

    source: str
    property: str
    value: str
    expected: str
    template = (
        "{source}: `{property}` in `.hoodie/hoodie.properties`: expected {expected}, found "
        "{value}. Use Hudi's own tools to change or upgrade the table, or write its rows to one "
        "that can be read."
    )


class HudiCommitTimesMissing(TerminalError):
    """A table's rows do not tell which commit wrote them, and the mode reads changes (HUDI-W17)."""

    source: str
    property: str
    value: str
    mode: str
    template = (
        "{source}: `{property}` in `.hoodie/hoodie.properties` is {value}, so that rows do not "
        "have the key and the time of their commit, by which `source.read.mode: {mode}` tells "
        "changes. Use `rebuild_partitions`, which reads the partitions that changed, or "
        "`snapshot`, which reads the whole table."
    )


class HudiPartitionUnreadable(TerminalError):
    """The name of a partition's folder does not tell the values of the partition columns."""

    source: str
    folder: str
    expected: str
    template = (
        "{source}: partition folder '{folder}': expected {expected}. Nothing was taken. "
        "`source.read.mode: rebuild_partitions` has to know the partition even where it lost its "
        "last row; use `snapshot`."
    )


class TimelineFileDamaged(SourceFileDamaged):
    """A file of a timeline cannot be read: half written, or not what its name says."""

    template = (
        "{path}: cannot be read: {problem}. Nothing was taken. If a writer is at work, wait for "
        "it and run again; otherwise let Hudi roll the instant back, or restore the file."
    )


class HudiTimelineMoved(TransientError):
    """A file of the timeline was archived, or rolled back, after the timeline was listed."""

    path: str
    template = (
        "{path}: was on the timeline when it was listed, and is gone: the table archived or rolled "
        "back the instant meanwhile. Run again; the timeline is listed anew."
    )


class HudiInstantUnfinished(TransientError):
    """The file of a done write is empty, as one is whose content is still being written."""

    path: str
    template = (
        "{path}: expected what the write did, found an empty file: its writer may not have "
        "finished it yet. Nothing was taken. Run again; if it stays empty, let Hudi roll the "
        "instant back, or restore the file."
    )


class NoLogFile(SourceFileDamaged):
    """A file with the name of a log does not begin as one."""

    template = (
        "{path}: expected a log file, which begins with the bytes `#HUDI#`, found {problem}. "
        "Restore the file in the source, then run the window again."
    )


class LogBlockUnreadable(SourceFileDamaged):
    """A block of a log file has a length that is right, and content that cannot be read."""

    offset: int
    template = (
        "{path}: the block at byte {offset} cannot be read: {problem}. Restore the file in the "
        "source, then run the window again. If it cannot be restored, let Hudi compact the table "
        "without it, give up the window if it is open with `tidegate abandon PIPELINE`, and run "
        "`tidegate load PIPELINE`."
    )


class HudiLogUnsupported(TerminalError):
    """A block of a log is of a kind that is not read; nothing is wrong with it."""

    path: str
    offset: int
    found: str
    expected: str
    template = (
        "{path}: the block at byte {offset}: expected {expected}, found {found}. Nothing is "
        "damaged. Let the table's writers write such blocks (with a newer Hudi, or another "
        "`hoodie.logfile.data.block.format`), let Hudi compact the table, and load again."
    )


class HudiInstantUnreadable(TerminalError):
    """A done action of a timeline has a time that is none."""

    instant: str
    template = (
        "The instant {instant} of the timeline: expected a time of 14 or 17 digits, beginning with "
        "the year, found none, as where a table was bootstrapped. Use a table without such "
        "instants, to which another job writes the rows."
    )


class HudiSchemaUnsupported(TerminalError):
    """The Avro schema of a table has something that no column can hold."""

    source: str
    problem: str
    template = (
        "{source}: the table's Avro schema cannot be read: {problem}. Use a table without such "
        "columns, to which another job writes the rows."
    )


class HudiInstantGone(TerminalError):
    """The checkpoint is not on the timeline any more: it was rolled back, or restored away."""

    source: str
    instant: str
    remedy: str
    template = (
        "{source}: expected the instant {instant} on the timeline, up to which everything was "
        "read; not found. The table was rolled back or restored to an earlier state, truncated, or "
        "created anew. {remedy}"
    )


class HudiTimelineGone(TransientError):
    """A table has partitions, and its timeline is empty or not there."""

    path: str
    template = (
        "{path}: expected the timeline of the table, because the table has partitions with files; "
        "found no instant. Nothing was taken. Mount or restore this folder as the table's writers "
        "left it; the next load then goes on."
    )


class HudiTableDowngraded(TerminalError):
    """A checkpoint has a time of completion, and the timeline has none any more."""

    source: str
    instant: str
    version: int
    template = (
        "{source}: cannot tell which writes follow {instant}: expected a timeline with times of "
        "completion, as when it was read, found table version {version}, which has none: the table "
        "was downgraded. To publish what it has now, run `tidegate reset PIPELINE`."
    )


class HudiHistoryLost(TerminalError):
    """The checkpoint was archived, and the archive does not go back to it."""

    source: str
    instant: str
    oldest: str
    template = (
        "{source}: cannot tell which commits follow {instant}: expected it in the archive of the "
        "timeline, found {oldest} as the oldest. To publish what the table has now, run `tidegate "
        "reset PIPELINE`, or, if the read mode returns no deletes, set `source.on_cleaned: "
        "snapshot`, which does so by itself; let the table keep its archive for longer than the "
        "pipeline may stand still."
    )


class HollowInstant(TerminalError):
    """A write is pending before others that are done, and the pipeline says `fail`."""

    source: str
    instant: str
    age: str
    template = (
        "{source}: the write of {instant} has been pending for {age}, and would be passed over by "
        "those that were done after it. Let it finish, or let Hudi roll it back, and run again: by "
        "the table's next write, or, if it cleans failed writes lazily, by its cleaner (`CALL "
        "run_clean`). Set `source.on_hollow_instant: block` to load what was done before it."
    )


class HudiFilesCleaned(TerminalError):
    """The files of an earlier state of a table may be gone."""

    source: str
    instant: str
    cleaned: str
    """What is gone, or may be."""
    template = (
        "{source}: the state after {instant} cannot be read any more, because {cleaned}. Give the "
        "window up with `tidegate abandon PIPELINE` if it is open, remove `source.limits` if there "
        "are any, and run `tidegate load PIPELINE`, which reads the table as it is now; let the "
        "table's cleaner keep files for longer than a window takes. `source.on_cleaned: snapshot` "
        "reads what is left of a window of changes, if the read mode returns no deletes."
    )


class HudiFileLost(TerminalError):
    """A file that a done write names, and that nothing took the place of, is not there."""

    path: str
    instant: str
    template = (
        "{path}: expected the file, because the write of {instant} names it, and nothing has taken "
        "its place since; not found. Nothing was taken. Restore the file, and run `tidegate load "
        "PIPELINE`. If it cannot be restored, let Hudi replace its partition by `INSERT "
        "OVERWRITE`, and load again."
    )


class HudiChangesLost(TerminalError):
    """The files that tell what a window changed are gone."""

    source: str
    instant: str
    template = (
        "{source}: cannot tell what was changed or deleted: the files of {instant} are needed for "
        "that, and are gone, or the cleaner of the table may have removed them. Nothing was taken. "
        "Run `tidegate reset PIPELINE` with `source.start: full`, which publishes the rows that "
        "the table has now; let the cleaner keep files for longer than the pipeline may stand "
        "still."
    )


class HudiCommitTimesLost(TerminalError):
    """A table service wrote rows of a window anew, with its own commit time."""

    path: str
    service: str
    template = (
        "{path}: cannot tell which rows a window wrote: expected the commit times of the writes "
        "that brought them, found that of the compaction or clustering {service}, which did not "
        "keep them (`hoodie.clustering.preserve.commit.metadata=false`). Nothing was taken. Run "
        "`tidegate reset PIPELINE` with `source.start: full`, which publishes the rows that the "
        "table has now; let services keep commit times, or set `source.read.mode: "
        "rebuild_partitions` or `snapshot`, which do not need them."
    )


class HudiReplacementUnknown(TerminalError):
    """A write replaced file groups by an operation that is not known."""

    source: str
    instant: str
    operation: str
    template = (
        "{source}: cannot tell what the write of {instant} changed: expected a replacement of "
        "file groups by `CLUSTER`, `INSERT_OVERWRITE`, `INSERT_OVERWRITE_TABLE` or "
        "`DELETE_PARTITION`, found `{operation}`. Nothing was taken. Run `tidegate reset "
        "PIPELINE` with `source.start: full`, which publishes the rows that the table has now, or "
        "set `source.read.mode: rebuild_partitions` or `snapshot`, which read no changes."
    )


class HudiPartialRecords(TerminalError):
    """Records of a window have only some of a row's columns, and are not merged with the row."""

    path: str
    instant: str
    template = (
        "{path}: the write of {instant} stored only some columns of its rows, as `MERGE INTO` may: "
        "expected whole rows, because what was written before is not read. Set "
        "`source.read.mode: complete` or `snapshot`, which complete them; give the window up with "
        "`tidegate abandon PIPELINE`, and run `tidegate load PIPELINE`."
    )
