"""Errors of Hudi tables: properties, timeline, file slices and log files."""

from tidegate.errors.base import TerminalError
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
    template = (
        "{source}: expected the instant {instant} on the timeline, up to which everything was "
        "read; not found. The table was rolled back or restored to an earlier state, or created "
        "anew. To publish what it has now, run `tidegate reset PIPELINE`."
    )


class HudiHistoryLost(TerminalError):
    """The checkpoint was archived, and the archive does not go back to it."""

    source: str
    instant: str
    oldest: str
    template = (
        "{source}: cannot tell which commits follow {instant}: expected it in the archive of the "
        "timeline, found {oldest} as the oldest. To publish what the table has now, run `tidegate "
        "reset PIPELINE`; let the table keep its archive for longer than the pipeline may stand "
        "still."
    )


class HollowInstant(TerminalError):
    """A write is pending before others that are done, and the pipeline says `fail`."""

    source: str
    instant: str
    template = (
        "{source}: the write of {instant} is still pending, and would be passed over by everything "
        "after it. Let it finish, or let Hudi roll it back, and run again; or set "
        "`source.on_hollow_instant: block`, which loads what was done before it."
    )


class HudiFilesCleaned(TerminalError):
    """The files of an earlier state of a table may be gone."""

    source: str
    instant: str
    retained: str
    template = (
        "{source}: the state after {instant} cannot be read any more, because the cleaner of the "
        "table keeps files since {retained} only. Give the window up with `tidegate abandon "
        "PIPELINE` if it is open, remove `source.limits` if there are any, and run `tidegate load "
        "PIPELINE`, which reads the table as it is now; let the cleaner keep files for longer than "
        "a window takes."
    )


class HudiChangesLost(TerminalError):
    """The files that tell what a window changed were cleaned."""

    source: str
    instant: str
    retained: str
    template = (
        "{source}: cannot tell what was changed or deleted: the files of {instant} are needed for "
        "that, and the cleaner of the table keeps files since {retained} only. "
        "Nothing was taken. To begin anew with the rows that the table has now, run, with "
        "`source.start: full`, `tidegate reset PIPELINE`; let the cleaner keep files for longer "
        "than the pipeline may stand still."
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
