"""Errors of a directory of plain files: files that changed, vanished, or were found twice."""

from tidegate.errors.base import TerminalError
from tidegate.errors.sources.every_kind import (
    SourceChanged,
    SourceFileDamaged,
    SourceFileGone,
    SourceNotFound,
)


class FolderNotFound(SourceNotFound):
    """The root directory of a source is not there: a wrong path, or a volume that is away."""

    template = (
        "{source}: {problem}. If a volume is not mounted, mount it and run again; otherwise "
        "correct `source.path` in the pipeline file."
    )


class FolderOfTable(TerminalError):
    """Files of a folder belong to a table, which alone knows which of them count (PC-R01)."""

    source: str
    tables: str
    """Each folder with the kind of its table."""
    remedy: str
    template = (
        "{source}: expected files of which every row counts; found {tables}: files there may be "
        "older versions of others, or lack what was deleted. Nothing was taken. {remedy}"
    )


class ObjectNamedAsFolder(TerminalError):
    """An object in a store has bytes, and the name of a directory: it may be a file (PC-R01)."""

    source: str
    path: str
    size: int
    template = (
        "{source}: expected no bytes in what is named as a directory; '{path}' ends with a slash "
        "and has {size} bytes. Give the object another name if its rows count, delete it, or set "
        "`source.on_bad_path: skip`."
    )


class SourceReadTwice(TerminalError):
    """A link in a directory leads to files that are read there already, or for ever on (PC-R01)."""

    source: str
    path: str
    place: str
    template = (
        "{source}: {path} is a link to {place}, of which files are read already. Remove the link, "
        "or set `source.on_bad_path: skip`."
    )


class ListedFileGone(SourceFileGone):
    """A file of a folder is not there any more that a listing names."""

    template = (
        "{path}: expected, as it was listed; not found. Restore it and run again. If the source "
        "deleted it and a window that is open needs it, give the window up with `tidegate abandon "
        "PIPELINE`: `tidegate load PIPELINE` then takes the folder as it stands. Otherwise read "
        "the partitions of its rows without it with `tidegate rebuild PIPELINE PARTITION`."
    )


class ListedFileChanged(SourceFileDamaged):
    """A file of a folder was written after it was listed; it need not be damaged."""

    template = (
        "{path}: expected, as it was listed, {problem}. Restore it and run again. If the source "
        "rewrote it and a window that is open needs it as it was, give the window up with "
        "`tidegate abandon PIPELINE`: `tidegate load PIPELINE` then takes the folder as it stands. "
        "Otherwise run `tidegate rebuild PIPELINE PARTITION` for the partitions of its rows: a "
        "rebuild that leaves some out says which."
    )


class FileOfOtherFormat(SourceFileDamaged):
    """A file of a folder has another format than the one that is read (PC-R01)."""

    format: str
    template = (
        "{path}: expected a file of `source.format: {format}`, found {problem}. Set "
        "`source.format` to the format of the files, or `source.path_regex` to an expression that "
        "only the paths of {format} files match."
    )


class FileOfOtherColumns(TerminalError):
    """A file of a folder has none of the columns of the others, so that all of them are NULL."""

    path: str
    known: str
    found: str
    template = (
        "{path}: expected one of the columns of the files before it, {known}; found only {found}. "
        "Nothing of the file is published. Correct it in the source, or take it out of the source, "
        "and run `tidegate load PIPELINE`. If the files before it are the wrong ones, take them "
        "out and begin anew with `tidegate reset PIPELINE --drop-target`, which deletes what was "
        "published, and `tidegate load PIPELINE`."
    )


class MarkedFileWrong(TerminalError):
    """A file of a partition is not as its standing marker lists it (PC-R09)."""

    path: str
    marker: str
    expected: str
    found: str
    template = (
        "{path}: expected {expected}, as the marker {marker} lists it, found {found}. Restore the "
        "file, or let the pipeline that published it publish the partition again; then run again."
    )


class RevisionsUnmarked(TerminalError):
    """A directory has one for each revision of a published table, and no marker is required."""

    source: str
    folder: str
    template = (
        "{source}: expected files, found the revisions of a table that Tidegate publishes in "
        "{folder}, of which only markers tell the one that counts. Set `source.require_marker: "
        "true`, or name the table's marker with `require_marker: {{name: …}}`."
    )


class FileCameBack(TerminalError):
    """A file was gone when the directory was last taken in, and is back (PC-R07)."""

    source: str
    path: str
    template = (
        "{source}: {path} was gone at the checkpoint and is back: reading the whole directory as "
        "of the checkpoint would leave out its rows. Run `tidegate load PIPELINE` first, then the "
        "command again."
    )


class SourceRewritten(SourceChanged):
    """Files that were already taken in changed or vanished (design §2, PC-R07)."""

    source: str
    path: str
    expected: str
    """The first of them, as it was taken in."""
    found: str
    """The same one now, then some of the others."""
    remedy: str
    template = (
        "{source}: {path} was taken in as {expected}, found {found}. To publish the source as "
        "it is now, run {remedy}. Afterwards `tidegate load PIPELINE` goes on. To let the rows "
        "stay that were read from changed files, set `source.on_changed_file: ignore` and run "
        "`tidegate load PIPELINE`. If they changed by mistake, restore them and run again."
    )


class MarkedFilesReplaced(SourceChanged):
    """What a marker lists has rows that were taken in, among rows that were not (PC-R09)."""

    source: str
    path: str
    """The first of the files that have such rows."""
    files: str
    """All of them, or some."""
    replaced: str
    """Files that were taken in, whose rows these have or may have."""
    remedy: str
    rows_may_stay = False
    template = (
        "{source}: markers list {files}, with rows of files that were taken in, or in their place "
        "({replaced}): they were joined, merged, written anew or taken back, and neither reading "
        "nor leaving out {path} would take each row once. To publish the source as it is now, run "
        "{remedy}. Afterwards `tidegate load PIPELINE` goes on."
    )


class SourceEmptied(TerminalError):
    """A directory has no files any more, and is to be read as a whole (PC-R07)."""

    source: str
    files: int
    template = (
        "{source}: had {files} files when it was last read, and has none now, as if a volume were "
        "not mounted. Mount it and run again. If the source deleted its files, set "
        "`source.on_changed_file: ignore` and run again: what is read whole is left without rows."
    )
