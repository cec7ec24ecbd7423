"""One directory of files as a source: listings, files and rows."""

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
    """The `Source` of one directory of files."""

    hints = None
    """None: everything known about a file is in its footer."""
    protection = None
    """None: listings belong to the pipeline, and need no protection."""

    def __init__(
        self,
        config: FilesSourceConfig,
        storage: Storage,
        listings_root: str | None,
        extra_columns: Sequence[str] = (),
    ) -> None:
        """Prepare, without listing anything yet.

        Args:
            config: the pipeline's `source`.
            storage: of the files, and where listings are kept.
            listings_root: their directory; None keeps them in memory.
            extra_columns: columns that a filter needs besides `read.columns`, read at the end.
        """
        self._folder = Folder(config, storage, listings_root)
        self.timeline = ListingTimeline(self._folder, extra_columns)
        self.reading = FilesReading(config, self._folder.files)
        self.slicing = ListingSlicing(self._folder, self.reading)
        self.kept = KeptListings(self._folder, self.slicing)

    @property
    def name(self) -> str:
        """The directory."""
        return self._folder.root

    def places(self) -> tuple[str, ...]:
        """Return the root."""
        return (self._folder.root,)
