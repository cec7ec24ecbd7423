"""Where changes come from: one module per kind of source, opened by the kind's name."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from tidegate.source.protocol import unnamed_rebuild

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.config import SourceConfig
    from tidegate.source.protocol import Rebuilding, Source
    from tidegate.storage import Storage

_KINDS = {
    "iceberg": "tidegate.source.iceberg",
    "files": "tidegate.source.files",
}
"""Kind → module with an `open_source` like the one below; only the one used is loaded."""


def open_source(
    config: SourceConfig,
    storage: Storage,
    listings_root: str | None = None,
    extra_columns: Sequence[str] = (),
    rebuilding: Rebuilding = unnamed_rebuild,
) -> Source:
    """Make the source that a pipeline file describes; nothing is read yet.

    Args:
        config: the pipeline's `source`.
        storage: where listings are kept.
        listings_root: directory for the listings of plain files; None keeps them in memory.
        extra_columns: columns to read besides `read.columns`, appended to the schema; what a filter
            names.
        rebuilding: writes the command that reads a stretch of time again, for messages.
    """
    source: Source = import_module(_KINDS[config.kind]).open_source(
        config, storage, listings_root, extra_columns, rebuilding
    )
    return source
