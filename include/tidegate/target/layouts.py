"""The layouts of a target: in which directory of its partition a revision has its files.

`in_place`: every revision changes the files of its partition's directory, and its marker is
retracted meanwhile. `revisions`: every revision has a directory of its own, which nothing changes
once its marker stands, so that a reader who was sent there sees all of it, whatever comes later.
"""

from __future__ import annotations

import types
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from tidegate.model.revision_folder import revision_folder, revision_folders

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tidegate.storage import Storage


class Made(Protocol):
    """What names a revision of a partition: a publication, or its entry in the ledger."""

    @property
    def revision(self) -> int:
        """The number of the revision."""
        ...

    @property
    def digest(self) -> str:
        """The digest of its publication."""
        ...


class Layout(Protocol):
    """Where the files of revisions are."""

    @property
    def is_shared(self) -> bool:
        """Whether all revisions of a partition have one directory, so that at most one stands."""
        ...

    def folder(self, root: str, made: Made) -> str:
        """Return the directory of a revision, whose partition has the directory `root`."""
        ...

    def folders(self, storage: Storage, root: str) -> list[str]:
        """Return the directories in which revisions may stand, those of the newest first."""
        ...


@dataclass(frozen=True)
class InPlace:
    """The directory of the partition, for all revisions."""

    is_shared: bool = True

    def folder(self, root: str, made: Made) -> str:
        """See `Layout`."""
        del made
        return root

    def folders(self, storage: Storage, root: str) -> list[str]:
        """See `Layout`."""
        del storage
        return [root]


@dataclass(frozen=True)
class Revisions:
    """A directory for each revision."""

    is_shared: bool = False

    def folder(self, root: str, made: Made) -> str:
        """See `Layout`."""
        return revision_folder(root, made.revision, made.digest)

    def folders(self, storage: Storage, root: str) -> list[str]:
        """See `Layout`."""
        return revision_folders(storage, root)


IN_PLACE = InPlace()
LAYOUTS: Mapping[str, Layout] = types.MappingProxyType(
    {"in_place": IN_PLACE, "revisions": Revisions()}
)
"""By the words of `target.layout`."""
