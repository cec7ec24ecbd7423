"""Directories of files as a source: an instant is a listing, a window their difference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidegate.config import OWNER_FILE, MarkerOption
from tidegate.source.files.directory_keys import guess_keys, named_directory
from tidegate.source.files.other_formats import guess_format
from tidegate.source.files.source import FilesSource
from tidegate.source.files.walk import list_directory
from tidegate.source.words import first_few

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from tidegate.config import FilesSourceConfig
    from tidegate.source.files.listing import Listing
    from tidegate.source.slicing import Rebuilding
    from tidegate.storage import Storage

__all__ = ["FilesSource", "guessed_options", "lacking_in_deletes", "open_source", "overlooked"]


def open_source(
    config: FilesSourceConfig,
    storage: Storage,
    listings_root: str | None,
    extra_columns: Sequence[str],
    rebuilding: Rebuilding | None,  # noqa: ARG001 (files are only added, so that nothing is passed over)
) -> FilesSource:
    """Make the source of one directory."""
    return FilesSource(config, storage, listings_root, extra_columns)


def lacking_in_deletes(config: FilesSourceConfig, columns: Collection[str]) -> tuple[str, ...]:
    """Return nothing: files tell of no deletes."""
    del config, columns
    return ()


def overlooked(
    config: FilesSourceConfig,
    storage: Storage,
    partitioning: Collection[str],
) -> tuple[str, ...]:
    """Return a note if there is no file, or if directories name columns that are not read."""
    del partitioning
    listing = list_directory(config, storage)
    if not listing.files:
        matches = f" whose path matches `source.path_regex: {config.path_regex}`"
        named = matches if config.path_regex else ""
        waiting = _waiting(config, listing)
        said = f"there is no file{named} in {config.path}, so that nothing is loaded"
        return waiting or (said,)
    if waiting := _waiting(config, listing):
        return waiting
    if config.partition_by:
        return ()
    directory = named_directory(listing)
    if directory is None:
        return ()
    keys = guess_keys(listing).get("partition_by", {})
    said = ", ".join(f"{name}: {kind}" for name, kind in keys.items()) or "KEY: TYPE"
    return (
        f"directories such as `{directory}` name columns that are not read, so they are "
        f"missing in what is published; `source.partition_by: {{{said}}}` reads them",
    )


def _waiting(config: FilesSourceConfig, listing: Listing) -> tuple[str, ...]:
    if not listing.unmarked or config.require_marker is None:
        return ()
    names = sorted(folder or "." for folder in listing.unmarked)
    what = "directory has" if len(names) == 1 else "directories have"
    return (
        f"{len(names)} {what} files but no marker `{config.require_marker.name}`, so that they "
        f"are not read yet: {first_few(names)}",
    )


def guessed_options(config: FilesSourceConfig, storage: Storage) -> Mapping[str, Any]:
    """Return the format of a folder's files, and what makes columns of its directories.

    A folder that a pipeline publishes to is read by its markers.
    """
    by_marker = {}
    if storage.exists(f"{config.path}/{OWNER_FILE}"):
        by_marker = {"require_marker": True}
        config = config.model_copy(update={"require_marker": MarkerOption()})
    listing = list_directory(config, storage)
    return guess_format(listing) | guess_keys(listing) | by_marker
