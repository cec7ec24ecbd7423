"""Iceberg tables as a source: pinned metadata, lineage, manifests, columns by field id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.source.iceberg.source import IcebergSource

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.config import SourceConfig
    from tidegate.source.protocol import Rebuilding
    from tidegate.storage import Storage

__all__ = ["IcebergSource", "open_source"]


def open_source(
    config: SourceConfig,
    storage: Storage,  # noqa: ARG001 (an Iceberg table keeps its own history)
    listings_root: str | None,  # noqa: ARG001
    extra_columns: Sequence[str],
    rebuilding: Rebuilding,
) -> IcebergSource:
    """Make the source of one Iceberg table."""
    return IcebergSource(config, extra_columns, rebuilding)
