"""Find files of a table that Tidegate publishes with a directory for each revision.

A listing names a file as if it were in the directory of its partition, because the same file is in
the directory of every revision that has it: a window that was read before reads it from whichever
of them stands.
"""

from __future__ import annotations

import os

from tidegate.model.revision_folder import REVISIONS, revision_of


def revision_folders(folder: str) -> list[str]:
    """Return the directories of the revisions of a partition, those of the newest first."""
    place = f"{folder}/{REVISIONS}"
    try:
        with os.scandir(place) as entries:
            found = [f"{place}/{entry.name}" for entry in entries]
    except (FileNotFoundError, NotADirectoryError):
        return []
    numbered = [(number, path) for path in found if (number := revision_of(path)) is not None]
    return [path for _, path in sorted(numbered, reverse=True)]


def place_of(path: str) -> str:
    """Return where a listed file is now; the path itself if it is nowhere."""
    if os.path.lexists(path):
        return path
    folder, _, name = path.rpartition("/")
    places = (f"{revision}/{name}" for revision in revision_folders(folder))
    return next(filter(os.path.lexists, places), path)
