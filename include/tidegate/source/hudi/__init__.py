"""Hudi tables as a source: timeline, file slices, log files, merge by key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidegate.model.row_kind import CHANGE_TYPE
from tidegate.source.hudi.access import TableAccess
from tidegate.source.hudi.slices.details import CHANGELOG
from tidegate.source.hudi.source import HudiSource
from tidegate.source.hudi.table.columns import COMMIT_TIME, KEY, ORDINAL, PARTIAL, PARTITION

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from tidegate.config import HudiSourceConfig
    from tidegate.source.slicing import Rebuilding
    from tidegate.storage import Storage

__all__ = ["HudiSource", "guessed_options", "lacking_in_deletes", "open_source", "overlooked"]

_OF_DELETES = (CHANGE_TYPE, ORDINAL, PARTIAL, COMMIT_TIME, KEY, PARTITION)
"""Columns that rows of deletes have in every table."""


def open_source(
    config: HudiSourceConfig,
    storage: Storage,  # noqa: ARG001 (a Hudi table keeps its own history)
    listings_root: str | None,  # noqa: ARG001
    extra_columns: Sequence[str],
    rebuilding: Rebuilding | None,  # noqa: ARG001 (no error of the source names partitions)
) -> HudiSource:
    """Make the source of one Hudi table."""
    return HudiSource(config, extra_columns)


def lacking_in_deletes(config: HudiSourceConfig, columns: Collection[str]) -> tuple[str, ...]:
    """Return those of some columns that are NULL in rows of deletes."""
    if not config.read.emits_kinds:
        return ()
    table = TableAccess(config).properties()
    has_images = table.writes_changes and not table.is_merge_on_read
    if config.read.mode == CHANGELOG and has_images:
        return ()
    of_folders = () if table.formats_folders else table.partition_fields
    return tuple(sorted({*columns}.difference(table.key_fields, of_folders, _OF_DELETES)))


def overlooked(
    config: HudiSourceConfig,
    storage: Storage,  # noqa: ARG001 (the table is read where it is mounted)
    partitioning: Collection[str],
) -> tuple[str, ...]:
    """Return a note if rows of deletes will not have the columns that partition the target."""
    missing = lacking_in_deletes(config, partitioning)
    if not missing:
        return ()
    named = ", ".join(f"`{name}`" for name in missing)
    return (
        f"`target.partition_by` uses {named}, which a row with `DELETE` does not have: of a "
        "deleted row only the record key and the partition of the table are known, so that such "
        "rows go to the default partition",
    )


def guessed_options(config: HudiSourceConfig, storage: Storage) -> Mapping[str, Any]:
    """Return the mode whose rows can be published without a merge by key."""
    del config, storage
    return {"read": {"mode": "snapshot"}}
