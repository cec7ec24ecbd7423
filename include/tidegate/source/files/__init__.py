"""Directories of Parquet files as a source: an instant is a listing, a window their difference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.source.files.source import FilesSource

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.config import SourceConfig
    from tidegate.source.protocol import Rebuilding
    from tidegate.storage import Storage

__all__ = ["FilesSource", "open_source"]


def open_source(
    config: SourceConfig,
    storage: Storage,
    listings_root: str | None,
    extra_columns: Sequence[str],
    rebuilding: Rebuilding,  # noqa: ARG001 (files are only added, so that nothing is passed over)
) -> FilesSource:
    """Make the source of one directory."""
    return FilesSource(config, storage, listings_root, extra_columns)
