"""What a directory of plain files refuses: files that changed, vanished, or are met twice."""

from tidegate.errors.base import TerminalError
from tidegate.errors.sources.every_kind import SourceFileDamaged, SourceFileGone


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
        "{path}: expected, as it was listed; not found. Restore it as it was, its modification "
        "time too, and run again. If the source deleted it, set `source.on_changed_file: ignore` "
        "and load with `tidegate load PIPELINE`, which takes the folder as it stands. Read the "
        "partitions of its rows without it afterwards with `tidegate rebuild PIPELINE PARTITION`. "
        "If the load stops at the same file, its window was planned before: start a new pipeline "
        "with a new name and a new target."
    )


class ListedFileChanged(SourceFileDamaged):
    """A file of a folder was written since it was listed; nothing says that it is damaged."""

    template = (
        "{path}: expected, as it was listed, {problem}. Restore it as it was, its modification "
        "time too, and run again. If the source wrote it anew, set `source.on_changed_file: "
        "ignore` and load with `tidegate load PIPELINE`, which takes the folder as it stands. Read "
        "the partitions of its rows afterwards, of those that it had and of those that it has now, "
        "with `tidegate rebuild PIPELINE PARTITION`. If the load stops at the same file, its "
        "window was planned before: start a new pipeline with a new name and a new target."
    )


class FileCameBack(TerminalError):
    """A file was gone when the directory was last taken in, and stands again (PC-R07)."""

    source: str
    path: str
    template = (
        "{source}: {path} was gone at the checkpoint and stands again: to read whole what stood "
        "at the checkpoint would leave its rows out. Run `tidegate load PIPELINE` first, then "
        "the command again."
    )


class SourceRewritten(TerminalError):
    """A file that was already taken in changed or vanished (design §2, PC-R07)."""

    source: str
    path: str
    expected: str
    found: str
    template = (
        "{source}: {path} was taken in as {expected}, found {found}. "
        "Restore it as it was, its modification time too, and run again; or set "
        "`source.on_changed_file: ignore` and load with `tidegate load PIPELINE`: what the file "
        "brought stays, and is not read again when the file comes back. Rebuild the partitions of "
        "its rows afterwards, of those that it had and of those that it has now, with `tidegate "
        "rebuild PIPELINE PARTITION`, to publish what stands in it now."
    )


class SourceEmptied(TerminalError):
    """A directory that is read whole has no file any more (PC-R07)."""

    source: str
    files: int
    template = (
        "{source}: had {files} files when it was last read, and has none now: a volume that is not "
        "mounted looks like this. Mount it and run again. If the source deleted its files, set "
        "`source.on_changed_file: ignore` and load with `tidegate load PIPELINE`, which leaves the "
        "target without rows."
    )
