"""Hudi tables as a source: timeline, file slices, log files, merge by key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidegate.source.hudi.source import HudiSource

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tidegate.config import HudiSourceConfig
    from tidegate.source.slicing import Rebuilding
    from tidegate.storage import Storage

__all__ = ["HudiSource", "guessed_options", "open_source", "overlooked"]


def open_source(
    config: HudiSourceConfig,
    storage: Storage,  # noqa: ARG001 (a Hudi table keeps its own history)
    listings_root: str | None,  # noqa: ARG001
    extra_columns: Sequence[str],
    rebuilding: Rebuilding,  # noqa: ARG001 (no error of the source names partitions)
) -> HudiSource:
    """Make the source of one Hudi table."""
    return HudiSource(config, extra_columns)


def overlooked(config: HudiSourceConfig) -> tuple[str, ...]:
    """Return nothing: the table's properties say what it is."""
    del config
    return ()


def guessed_options(config: HudiSourceConfig) -> Mapping[str, Any]:
    """Return the mode whose rows can be published without a merge by key."""
    del config
    return {"read": {"mode": "snapshot"}}
