"""What a look at a folder sees, directory by directory, on a disk as in a store."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Seen(NamedTuple):
    """A name in a directory."""

    name: str
    is_directory: bool
    is_file: bool
    """Neither is true of a device, or of a link that leads to nothing."""
    size: int = 0
    modified: int = 0
    """In nanoseconds since 1970."""
    tag: str = ""
    """See `FileDetails`."""
    is_link: bool = False


class FolderView(Protocol):
    """One folder, for one look; directories are relative to it, and it is itself empty text."""

    def check(self) -> None:
        """Check that there is such a folder.

        Raises:
            FolderNotFound: there is none.
        """
        ...

    def entries(self, folder: str) -> list[Seen]:
        """List a directory by name: which of two links to one place is followed depends on it."""
        ...

    def known(self, marker: str) -> list[str]:
        """Return the markers that may be asked for, as far as they are known already.

        Of a partition with a directory for each revision that is the newest one.
        """
        ...

    def look_again(self, folder: str) -> None:
        """Forget what was seen of a directory, because it changed in the meantime."""
        ...

    def known_place(self, path: str) -> str | None:
        """Return where a link leads, if that is read already; otherwise it counts as read now."""
        ...

    def exists(self, path: str) -> bool:
        """Return whether there is a file or directory, in the folder or above; a whole path."""
        ...

    def list_names(self, folder: str) -> list[str]:
        """List the names in a directory, whose path is a whole one."""
        ...
