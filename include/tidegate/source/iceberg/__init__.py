"""Iceberg tables as a source: pinned metadata, lineage, manifests, columns by field id."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidegate.source.iceberg.source import IcebergSource

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from tidegate.config import IcebergSourceConfig
    from tidegate.source.slicing import Rebuilding
    from tidegate.storage import Storage

__all__ = ["IcebergSource", "guessed_options", "lacking_in_deletes", "open_source", "overlooked"]


def open_source(
    config: IcebergSourceConfig,
    storage: Storage,  # noqa: ARG001 (an Iceberg table keeps its own history)
    listings_root: str | None,  # noqa: ARG001
    extra_columns: Sequence[str],
    rebuilding: Rebuilding | None,
) -> IcebergSource:
    """Make the source of one Iceberg table."""
    return IcebergSource(config, extra_columns, rebuilding)


def lacking_in_deletes(config: IcebergSourceConfig, columns: Collection[str]) -> tuple[str, ...]:
    """Return nothing: rows of deletes are whole."""
    del config, columns
    return ()


def overlooked(
    config: IcebergSourceConfig,
    storage: Storage,
    partitioning: Collection[str],
) -> tuple[str, ...]:
    """Return nothing: the table's metadata has all of its columns."""
    del config, storage, partitioning
    return ()


def guessed_options(config: IcebergSourceConfig, storage: Storage) -> Mapping[str, Any]:
    """Return nothing: the name of a table is enough."""
    del config, storage
    return {}
