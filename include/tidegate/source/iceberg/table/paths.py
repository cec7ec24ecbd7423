"""Open the table's files, with other prefixes if it was moved (ICE-4.17). Compares no paths."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow.fs import LocalFileSystem
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO
from pyiceberg.typedef import EMPTY_DICT, Properties

from tidegate.errors import SourceFileDamaged, SourceFileGone, SourceUnreachable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyiceberg.io import FileIO, InputFile

REWRITE_PROPERTY = "tidegate.location-rewrite"
"""FileIO property that carries the map of prefixes as JSON."""
REWRITING_IO = "tidegate.source.iceberg.table.paths.RewritingFileIO"


def rewrite(location: str, prefixes: Mapping[str, str]) -> str:
    """Replace the longest matching prefix; a prefix ends at a path component."""
    for prefix in sorted(prefixes, key=len, reverse=True):
        start = prefix.rstrip("/")
        if location == start or location.startswith(f"{start}/"):
            return prefixes[prefix].rstrip("/") + location[len(start) :]
    return location


class RewritingFileIO(PyArrowFileIO):
    """pyiceberg's Arrow FileIO that opens rewritten locations; metadata keeps its own spelling."""

    def __init__(self, properties: Properties = EMPTY_DICT) -> None:
        super().__init__(properties)
        self._prefixes: dict[str, str] = json.loads(properties.get(REWRITE_PROPERTY, "{}"))

    def new_input(self, location: str) -> PyArrowFile:
        """Open the current location of a file."""
        rewritten = rewrite(location, self._prefixes)
        if rewritten == location:
            rewritten = rewrite(_local(location), self._prefixes)
        return super().new_input(_local(rewritten))


def local_places(locations: Iterable[str | None], prefixes: Mapping[str, str]) -> tuple[str, ...]:
    """Return the paths of those locations that are on a mounted file system."""
    found = (_local(rewrite(_local(item), prefixes)) for item in locations if item)
    return tuple(place.rstrip("/") for place in found if place.startswith("/"))


def _local(location: str) -> str:
    # pyiceberg parses `file:` URIs and loses what follows "#" or "?" in a name; plain paths it
    # leaves alone.
    if location.startswith("file:"):
        path = location.removeprefix("file:")
        return "/" + path.lstrip("/")
    return location


def mounted_path(files: FileIO, location: str) -> str | None:
    """Return the path of a file on a mounted file system; None if it is not on one."""
    return _mounted(files.new_input(location))


def _mounted(found: InputFile) -> str | None:
    if isinstance(found, PyArrowFile) and isinstance(found._filesystem, LocalFileSystem):
        return str(found._path)
    return None


def open_location(files: FileIO, location: str, source: str) -> pa.NativeFile:
    """Open a file of the table for reading.

    Args:
        files: where the table's files are.
        location: as the metadata spells it.
        source: the table, for errors.

    Raises:
        SourceFileGone: there is no such file.
        SourceFileDamaged: it cannot be read.
        SourceUnreachable: the store did not answer.
    """
    try:
        found = files.new_input(location)
        path = _mounted(found)
        if path is not None:
            # Only such a file has a descriptor, and decoding with a pushed filter needs one.
            return pa.OSFile(path)
        stream = found.open()
        return stream if isinstance(stream, pa.NativeFile) else pa.PythonFile(stream, mode="r")
    except FileNotFoundError as gone:
        raise SourceFileGone(path=location) from gone
    except PermissionError as refused:
        raise SourceFileDamaged(path=location, problem=str(refused)) from refused
    except OSError as silent:
        raise SourceUnreachable(source=source, problem=f"{location}: {silent}") from silent
