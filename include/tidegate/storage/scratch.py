"""A store for looking only: files that are written stay in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tidegate.storage.stores import Stores

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable


@dataclass(frozen=True)
class Scratch(Stores):
    """Keeps files that are written once in memory, to look at what would happen."""

    written: dict[str, bytes] = field(default_factory=dict, compare=False)

    def read_bytes(self, path: str) -> bytes:
        """Read a file from memory, else from the disk."""
        return self.written[path] if path in self.written else super().read_bytes(path)

    def version(self, path: str) -> Hashable | None:
        """Return the content of a file in memory, else what the disk says."""
        return self.written[path] if path in self.written else super().version(path)

    def exists(self, path: str) -> bool:
        """Return whether it is in memory or on the disk."""
        return path in self.written or super().exists(path)

    def list_files(self, root: str) -> list[str]:
        """List the files of the disk and those in memory."""
        mine = {
            path.removeprefix(f"{root}/") for path in self.written if path.startswith(f"{root}/")
        }
        return sorted({*super().list_files(root), *mine})

    def list_names(self, folder: str) -> list[str]:
        """List the entries of a directory, on the disk and in memory."""
        mine = {
            path.removeprefix(f"{folder}/").partition("/")[0]
            for path in self.written
            if path.startswith(f"{folder}/")
        }
        return sorted({*super().list_names(folder), *mine})

    def write_once(
        self, path: str, content: bytes | Iterable[bytes], scratch: str | None = None
    ) -> bool:
        """Keep the content in memory."""
        del scratch
        if self.exists(path):
            return False
        self.written[path] = content if isinstance(content, bytes) else b"".join(content)
        return True

    def sync(self, path: str) -> None:
        """Do nothing: files in memory are not synced."""
