"""A store that speaks the protocol of S3: the verbs of a file system, by its requests.

Paths are addresses, `s3://bucket/key`. There are no directories, and what was written survives.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, cast

from tidegate.errors import FileExistsAlready, SourceFileGone
from tidegate.storage.addresses import address, named
from tidegate.storage.s3_client import (
    MISSING,
    client_errors,
    code_of,
    refusal,
    refusal_by,
    refusals_named,
)
from tidegate.storage.s3_files import S3Files
from tidegate.storage.s3_lease import S3Lease, check_leases, under_leases
from tidegate.storage.s3_threads import answers
from tidegate.storage.s3_uploads import S3Uploads
from tidegate.storage.s3_writing import (
    NO_UPLOAD,
    PARTS,
    WRITER,
    NewObject,
    complete_new,
    writer_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tidegate.storage.protocol import Unfinished

_COPIED_WHOLE = 5 << 30
"""The largest object that one request copies."""
_COPIED_PART = 512 << 20


@dataclass(frozen=True)
class S3Storage(S3Files):
    """A store with objects instead of files.

    Failure: every object appears whole or not at all. A request whose answer is lost is asked
    again; what it did the first time is recognised.
    """

    def write_once(
        self, path: str, content: bytes | Iterable[bytes], scratch: str | None = None
    ) -> bool:
        """Write an object unless its name is taken: the first writer wins.

        Returns:
            False if the name was taken; nothing was changed then.
        """
        del scratch
        check_leases()
        try:
            with NewObject(self.calls, path) as file:
                for block in (content,) if isinstance(content, bytes) else content:
                    file.write(block)
        except FileExistsAlready:
            return False
        return True

    def check_writable(self, key: str, path: str) -> None:
        """Check that there is a bucket that these credentials reach; nothing is written.

        It is listed, as loads do: an answer to HEAD would have no text, and 404 may be that of a
        store that knows no such user, 400 that of one in another region.

        Raises:
            BucketMissing, StoreDenied: there is none, or it is somebody else's.
        """
        del key
        with refusals_named(path):
            self.calls.first(path)

    def open_new(self, path: str) -> BinaryIO:
        """Open a new object for writing; it is there once it is closed."""
        check_leases()
        return cast("BinaryIO", NewObject(self.calls, path))

    def copy_new(self, source: str, target: str) -> None:
        """Copy an object to a new one, inside the store.

        Raises:
            SourceFileGone: there is no object to copy.
            FileExistsAlready: the name is taken.
        """
        check_leases()
        with refusals_named(target):
            # Not every store knows the condition for copies.
            if writer_of(self.calls, target) is not None:
                raise FileExistsAlready(path=target)
        self._copy(source, target)

    def _copy(self, source: str, target: str) -> None:
        try:
            self.calls.copy(source, target)
        except client_errors() as refused:
            if code_of(refused) in MISSING:
                raise SourceFileGone(path=source) from refused
            size = self.length(source)
            if size is None or size <= _COPIED_WHOLE:
                raise refusal(target, refused) from refused
            self._copy_parts(source, target, size)

    def _copy_parts(self, source: str, target: str, size: int) -> None:
        writer = os.urandom(8).hex()
        step = max(_COPIED_PART, -(-size // PARTS))
        with refusals_named(target):
            upload = self.calls.begin_upload(target, {WRITER: writer})
            spans = [range(at, min(at + step, size)) for at in range(0, size, step)]
            tags = [
                self.calls.copy_part(source, target, upload, number, span)
                for number, span in enumerate(spans, start=1)
            ]
        complete_new(self.calls, target, upload, tags, writer)

    def link_new(self, source: str, target: str) -> None:
        """Give an object a second name, by a copy: the old name is deleted afterwards (PC-F38)."""
        self.copy_new(source, target)

    def link_all(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Give several objects a second name each, side by side; see `Storage`."""
        answers(under_leases(lambda pair: self._copy(*pair)), pairs)

    def replace(self, source: str, target: str) -> None:
        """Put an object in the place of another one; the name always has one of them.

        Raises:
            SourceFileGone: there is no new object; the old one stays.
        """
        check_leases()
        if self._head(source) is None:
            raise SourceFileGone(path=source)
        with refusals_named(target):
            self.calls.copy(source, target)
            self.calls.delete(source)

    def delete(self, path: str) -> None:
        """Remove an object; nothing happens if there is none."""
        check_leases()
        with refusals_named(path):
            self.calls.delete(path)

    def delete_all(self, paths: Iterable[str]) -> None:
        """Remove several objects.

        Raises:
            StoreDenied, StoreSilent: the store does not remove one of them.
        """
        check_leases()
        buckets: dict[str, list[str]] = {}
        for path in paths:
            buckets.setdefault(named(path).bucket, []).append(path)
        for bucket, names in buckets.items():
            with refusals_named(names[0]):
                for refused in self.calls.delete_many(names):
                    path = address(bucket, str(refused.get("Key")))
                    raise refusal_by(path, str(refused.get("Code")), str(refused.get("Message")))

    def delete_tree(self, path: str) -> None:
        """Remove every object below an address."""
        self.delete_all(f"{path}/{name}" for name in self.list_files(path))

    def uploads(self, path: str) -> S3Uploads:
        """Return how objects are made that appear later."""
        del path
        return S3Uploads(self.calls)

    def unfinished(self, root: str) -> list[Unfinished]:
        """See `S3Uploads.begun`."""
        return S3Uploads(self.calls).begun(root)

    def give_up(self, path: str, upload: str) -> None:
        """Give up an upload, unless it is done; its store then frees the parts."""
        check_leases()
        with refusals_named(path):
            try:
                self.calls.abort_upload(path, upload)
            except client_errors() as refused:
                if code_of(refused) not in NO_UPLOAD:
                    raise

    def make_dirs(self, path: str, *, synced: bool = True) -> None:
        """Do nothing: there are no directories."""

    def sync(self, path: str) -> None:
        """Do nothing: what a store has answered survives."""

    def sync_all(self, root: str, names: Iterable[str]) -> None:
        """Do nothing; see `sync`."""

    @contextlib.contextmanager
    def lock(self, path: str, holder: str) -> Iterator[None]:
        """Hold an exclusive lock, which expires when its process is gone; see `S3Lease`.

        Raises:
            PartitionBusy: another process holds it, or this one was late to renew it (Transient).
        """
        with S3Lease(self.calls, path, holder).held():
            yield
