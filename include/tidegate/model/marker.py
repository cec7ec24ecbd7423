"""What a marker says of the files of its partition (PC-A07, PC-R09). Opens nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from tidegate.errors import MarkerInvalid

if TYPE_CHECKING:
    from collections.abc import Mapping

MARKER_FORMAT = 1
_SAYS = {"pipeline", "partition", "revision", "files"}


class MarkedFile(NamedTuple):
    """A file as a marker lists it."""

    length: int
    """Bytes."""
    made_of: tuple[str, ...] = ()
    """Names of the files that were joined to it, and whose rows are all that it has (PC-K02)."""


def read_marker(path: str, content: bytes) -> dict[str, Any]:
    """Return the content of a marker.

    Raises:
        MarkerInvalid: it is empty or was not written by Tidegate.
    """
    try:
        raw = json.loads(content)
    except ValueError as broken:
        raise MarkerInvalid(path=path, found="no JSON" if content else "an empty file") from broken
    if not isinstance(raw, dict) or raw.get("format") != MARKER_FORMAT or not raw.keys() >= _SAYS:
        raise MarkerInvalid(path=path, found="another format")
    return raw


def marked_files(path: str, content: bytes) -> Mapping[str, MarkedFile] | None:
    """Return the files that a marker lists, by name.

    Returns:
        None for the marker of another engine, which lists none: all files count.

    Raises:
        MarkerInvalid: it is one of Tidegate, but damaged or of another version.
    """
    if not content.lstrip().startswith(b"{"):
        return None
    try:
        raw = json.loads(content)
    except ValueError:
        raw = None
    # Other engines write JSON as well: Paimon, and the committers of Hadoop for S3.
    if raw is not None and not raw.keys() >= {"pipeline", "files"}:
        return None
    return {
        file["name"]: MarkedFile(file["length"], tuple(file.get("made_of", ())))
        for file in read_marker(path, content)["files"]
    }
