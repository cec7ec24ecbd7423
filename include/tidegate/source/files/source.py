"""One directory of Parquet files as a source: its listings, the files between two, their rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.source.files.folder import Folder
from tidegate.source.files.kept import KeptListings
from tidegate.source.files.reader import FilesReading
from tidegate.source.files.slicing import ListingSlicing
from tidegate.source.files.timeline import ListingTimeline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidegate.config import FilesSourceConfig
    from tidegate.storage import Storage


class FilesSource:
    """The `Source` of one directory of Parquet files."""

    hints = None
    """None: all that is known of a file stands in its footer."""
    protection = None
    """Nothing to protect: listings are the pipeline's own."""

    def __init__(
        self,
        config: FilesSourceConfig,
        storage: Storage,
        listings_root: str | None,
        extra_columns: Sequence[str] = (),
    ) -> None:
        """Prepare; nothing is listed yet.

        Args:
            config: the pipeline's `source`.
            storage: where listings are kept.
            listings_root: their directory; None keeps them in memory.
            extra_columns: read besides `read.columns`, at the end: what a filter names.
        """
        self._folder = Folder(config, storage, listings_root)
        self.timeline = ListingTimeline(self._folder, extra_columns)
        self.reading = FilesReading(config)
        self.slicing = ListingSlicing(self._folder, self.reading)
        self.kept = KeptListings(self._folder)

    @property
    def name(self) -> str:
        """The directory."""
        return self._folder.root

    def places(self) -> tuple[str, ...]:
        """Name the root."""
        return (self._folder.root,)
