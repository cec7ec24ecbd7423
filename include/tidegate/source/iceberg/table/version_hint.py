"""Find the newest metadata file of a table directory that no catalog knows (ICE-2.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyiceberg.io import FileIO

_SUFFIXES = (".metadata.json", ".gz.metadata.json")


def is_metadata_file(location: str) -> bool:
    """Return whether a location names one metadata file, not a table directory."""
    return location.endswith(_SUFFIXES)


def newest_metadata(files: FileIO, directory: str) -> str:
    """Read a directory's `version-hint.text`, and look for newer versions.

    Raises:
        FileNotFoundError: there is no hint, or no metadata file of its version.
        ValueError: the hint is no text.
    """
    root = f"{directory.rstrip('/')}/metadata"
    with files.new_input(f"{root}/version-hint.text").open() as stream:
        hint = stream.read().decode("utf-8").strip()
    if is_metadata_file(hint):
        return f"{root}/{hint}"
    if not hint.isdecimal():
        return _existing(files, root, hint) or f"{root}/{hint}.metadata.json"
    version = int(hint)
    found = _existing(files, root, f"v{version}")
    # Writers write the metadata file first and the hint second, and may die in between.
    while later := _existing(files, root, f"v{version + 1}"):
        version, found = version + 1, later
    if found is None:
        msg = f"{root}: the version hint says {version}, and there is no such metadata file"
        raise FileNotFoundError(msg)
    return found


def _existing(files: FileIO, root: str, name: str) -> str | None:
    candidates = (f"{root}/{name}{suffix}" for suffix in _SUFFIXES)
    return next((place for place in candidates if files.new_input(place).exists()), None)
