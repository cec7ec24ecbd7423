"""All places that Tidegate reaches: each path goes to the store that its address names."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO, Self

from tidegate.errors import SourceFileGone
from tidegate.storage.addresses import is_object
from tidegate.storage.local import LocalStorage
from tidegate.storage.refusals import refusal
from tidegate.storage.s3 import S3Storage
from tidegate.storage.s3_calls import S3Calls
from tidegate.storage.s3_client import S3Options

if TYPE_CHECKING:
    import contextlib
    from collections.abc import Hashable, Iterable, Iterator, Mapping
    from datetime import datetime

    import pyarrow as pa

    from tidegate.config import S3Config
    from tidegate.storage.details import FileDetails
    from tidegate.storage.protocol import Storage, Unfinished, Uploads

_CHUNK = 8 << 20


@dataclass(frozen=True)
class Stores:
    """Mounted file systems, and a store with objects."""

    local: LocalStorage = field(default_factory=LocalStorage)
    objects: S3Storage = field(default_factory=S3Storage)

    @classmethod
    def of(cls, said: S3Config) -> Self:
        """Reach the store that a pipeline file describes."""
        return cls(objects=S3Storage(S3Calls(S3Options.of(said))))

    def _of(self, path: str) -> Storage:
        return self.objects if is_object(path) else self.local

    def _divided(self, paths: Iterable[str]) -> Iterator[tuple[Storage, list[str]]]:
        """Divide paths among those that have them."""
        places: dict[bool, list[str]] = {}
        for path in paths:
            places.setdefault(is_object(path), []).append(path)
        for names in places.values():
            yield self._of(names[0]), names

    def read_bytes(self, path: str) -> bytes:
        """See `Storage`."""
        return self._of(path).read_bytes(path)

    def open_input(self, path: str) -> pa.NativeFile:
        """See `Storage`."""
        return self._of(path).open_input(path)

    def open_with_details(self, path: str) -> tuple[pa.NativeFile, FileDetails]:
        """See `Storage`."""
        return self._of(path).open_with_details(path)

    def exists(self, path: str) -> bool:
        """See `Storage`."""
        return self._of(path).exists(path)

    def is_directory(self, path: str) -> bool:
        """Return whether there is a directory; one of objects has an object below it."""
        if is_object(path):
            return bool(self.objects.list_names(path))
        return self.local.is_directory(path)

    def length(self, path: str) -> int | None:
        """See `Storage`."""
        return self._of(path).length(path)

    def lengths(self, paths: Iterable[str]) -> Mapping[str, int | None]:
        """See `Storage`."""
        found: dict[str, int | None] = {}
        for storage, names in self._divided(paths):
            found.update(storage.lengths(names))
        return found

    def modified(self, path: str) -> datetime | None:
        """See `Storage`."""
        return self._of(path).modified(path)

    def version(self, path: str) -> Hashable | None:
        """See `Storage`."""
        return self._of(path).version(path)

    def sha256(self, path: str) -> str:
        """See `Storage`."""
        return self._of(path).sha256(path)

    def list_files(self, root: str) -> list[str]:
        """See `Storage`."""
        return self._of(root).list_files(root)

    def details(self, path: str) -> FileDetails | None:
        """See `Storage`."""
        return self._of(path).details(path)

    def list_details(self, root: str) -> list[FileDetails]:
        """See `Storage`."""
        return self._of(root).list_details(root)

    def real_path(self, path: str) -> str:
        """See `Storage`."""
        return self._of(path).real_path(path)

    def list_names(self, folder: str) -> list[str]:
        """See `Storage`."""
        return self._of(folder).list_names(folder)

    def write_once(
        self, path: str, content: bytes | Iterable[bytes], scratch: str | None = None
    ) -> bool:
        """See `Storage`."""
        return self._of(path).write_once(path, content, scratch)

    def check_writable(self, key: str, path: str) -> None:
        """See `Storage`."""
        self._of(path).check_writable(key, path)

    def open_new(self, path: str) -> BinaryIO:
        """See `Storage`."""
        return self._of(path).open_new(path)

    def copy_new(self, source: str, target: str) -> None:
        """See `Storage`; between a disk and a store, the bytes pass through this process."""
        if is_object(source) == is_object(target):
            self._of(source).copy_new(source, target)
            return
        try:
            with self.open_input(source) as read, self.open_new(target) as written:
                shutil.copyfileobj(read, written, _CHUNK)
        except FileNotFoundError as gone:
            raise SourceFileGone(path=source) from gone
        except OSError as refused:
            raise refusal(source, refused) from refused

    def link_new(self, source: str, target: str) -> None:
        """See `Storage`."""
        self._of(source).link_new(source, target)

    def link_all(self, pairs: Iterable[tuple[str, str]]) -> None:
        """See `Storage`; all of them are in one store."""
        linked = [*pairs]
        if linked:
            self._of(linked[0][0]).link_all(linked)

    def replace(self, source: str, target: str) -> None:
        """See `Storage`."""
        self._of(source).replace(source, target)

    def delete(self, path: str) -> None:
        """See `Storage`."""
        self._of(path).delete(path)

    def delete_all(self, paths: Iterable[str]) -> None:
        """See `Storage`."""
        for storage, names in self._divided(paths):
            storage.delete_all(names)

    def delete_tree(self, path: str) -> None:
        """See `Storage`."""
        self._of(path).delete_tree(path)

    def uploads(self, path: str) -> Uploads | None:
        """See `Storage`."""
        return self._of(path).uploads(path)

    def unfinished(self, root: str) -> list[Unfinished]:
        """See `Storage`."""
        return self._of(root).unfinished(root)

    def give_up(self, path: str, upload: str) -> None:
        """See `Storage`."""
        self._of(path).give_up(path, upload)

    def make_dirs(self, path: str, *, synced: bool = True) -> None:
        """See `Storage`."""
        self._of(path).make_dirs(path, synced=synced)

    def sync(self, path: str) -> None:
        """See `Storage`."""
        self._of(path).sync(path)

    def sync_all(self, root: str, names: Iterable[str]) -> None:
        """See `Storage`."""
        self._of(root).sync_all(root, names)

    def lock(self, path: str, holder: str) -> contextlib.AbstractContextManager[None]:
        """See `Storage`."""
        return self._of(path).lock(path, holder)
