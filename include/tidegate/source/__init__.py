"""The sources of changes: one module per kind, opened by the kind's name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, cast

from tidegate.errors import SourceLibraryFailed
from tidegate.importing import import_at_rest
from tidegate.source.slicing import unnamed_rebuild

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from tidegate.config import SourceConfig
    from tidegate.source.protocol import Source
    from tidegate.source.slicing import Rebuilding
    from tidegate.storage import Storage

KINDS: Mapping[str, str] = {
    "iceberg": "tidegate.source.iceberg",
    "hudi": "tidegate.source.hudi",
    "files": "tidegate.source.files",
}
"""Kind → module with the functions of `SourceKind`; imported only when used."""


class SourceKind(Protocol):
    """The functions that the module of a kind has; each receives the kind's own options."""

    def open_source(
        self,
        config: Any,
        storage: Storage,
        listings_root: str | None,
        extra_columns: Sequence[str],
        rebuilding: Rebuilding | None,
    ) -> Source:
        """Make the source, without reading anything yet."""

    def overlooked(
        self, config: Any, storage: Storage, partitioning: Collection[str]
    ) -> tuple[str, ...]:
        """Look at the source for what is missing by mistake (PC-O90), see `overlooked`."""

    def lacking_in_deletes(self, config: Any, columns: Collection[str]) -> tuple[str, ...]:
        """Look for columns without values in rows of deletes, see `lacking_in_deletes`."""

    def guessed_options(self, config: Any, storage: Storage) -> Mapping[str, Any]:
        """Look at the source for options that a first pipeline file should have."""


def open_source(
    config: SourceConfig,
    storage: Storage,
    listings_root: str | None = None,
    extra_columns: Sequence[str] = (),
    rebuilding: Rebuilding | None = unnamed_rebuild,
) -> Source:
    """Make the source that a pipeline file describes, without reading anything yet.

    All functions here raise `SourceLibraryFailed`, if the library of the kind does not start.

    Args:
        config: the pipeline's `source`.
        storage: where listings are kept, and of plain files.
        listings_root: directory for the listings of plain files; None keeps them in memory.
        extra_columns: columns that a filter needs besides `read.columns`, appended to the schema.
        rebuilding: returns the command that reads a time range again, for messages; None: no
            pipeline reads, so that there is nothing to read again.
    """
    return _kind(config).open_source(config, storage, listings_root, extra_columns, rebuilding)


def overlooked(
    config: SourceConfig, storage: Storage, partitioning: Collection[str] = ()
) -> tuple[str, ...]:
    """Look at a source for files, options and values that are missing by mistake (PC-O90).

    Args:
        config: the pipeline's `source`.
        storage: of plain files.
        partitioning: the columns that partition the target.
    """
    return _kind(config).overlooked(config, storage, partitioning)


def lacking_in_deletes(config: SourceConfig, columns: Collection[str]) -> tuple[str, ...]:
    """Return those of some columns that are NULL in rows of deletes, whatever the row had."""
    return _kind(config).lacking_in_deletes(config, columns)


def guessed_options(config: SourceConfig, storage: Storage) -> Mapping[str, Any]:
    """Look at a source for further keys that a first pipeline file should have."""
    return _kind(config).guessed_options(config, storage)


def _kind(config: SourceConfig) -> SourceKind:
    try:
        return cast("SourceKind", import_at_rest(KINDS[config.kind]))
    except ImportError:
        raise
    # Libraries read files as they are imported, and raise what their parsers raise.
    except Exception as failed:
        problem = " ".join(str(failed).split())
        raise SourceLibraryFailed(kind=config.kind, problem=problem) from failed
