"""A new object of a store, for pyarrow and other writers: sent in parts while it is written."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Self

from tidegate.errors import FileExistsAlready
from tidegate.model.upload import Upload
from tidegate.storage.s3_client import (
    MISSING,
    TAKEN,
    client_errors,
    code_of,
    refusal,
    refusals_named,
)
from tidegate.storage.s3_threads import threads
from tidegate.storage.write_only import WriteOnly

if TYPE_CHECKING:
    from concurrent.futures import Future

    from tidegate.storage.s3_calls import S3Calls

PART_BYTES = 8 << 20
PARTS = 10_000
"""The most that an object can have (PC-F36)."""
_SAME_SIZE = 1_000
"""After so many parts they become twice as large, so that 10,000 hold 80 GiB and far more."""
_SENT_AT_ONCE = 2
NO_UPLOAD = frozenset({"404", "NoSuchUpload"})
"""What a store says of an upload that was completed or given up, or that expired."""
WRITER = "tidegate-writer"
"""Metadata of an object: a random text, by which its writer knows it where no answer came."""


def part_bytes(number: int) -> int:
    """Return how large a part is, counted from 1."""
    return PART_BYTES << ((number - 1) // _SAME_SIZE)


class _Sent(WriteOnly):
    """A binary object that is being written, in parts if it is large.

    Failure: a process that dies leaves an upload without an object, which `gc` gives up.
    """

    def __init__(self, calls: S3Calls, path: str) -> None:
        self._calls = calls
        self._path = path
        self._writer = os.urandom(8).hex()
        self._waiting = bytearray()
        self._position = 0
        self._upload: str | None = None
        self._parts: list[Future[str]] = []
        self.closed = False

    def write(self, content: bytes) -> int:
        """Take all of the bytes, and return their number."""
        view = memoryview(content).cast("B")
        self._waiting += view
        self._position += len(view)
        while len(self._waiting) >= (size := part_bytes(len(self._parts) + 1)):
            self._send(bytes(self._waiting[:size]))
            del self._waiting[:size]
        return len(view)

    def tell(self) -> int:
        """Return the number of bytes written."""
        return self._position

    def close(self) -> None:
        """Send the rest; closing it again has no effect.

        Raises:
            FileExistsAlready: another writer made an object of this name.
            StoreSilent, StoreDenied, BucketMissing: see `refusals_named`.
        """
        if self.closed:
            return
        self.closed = True
        try:
            self._end(bytes(self._waiting))
        except BaseException:
            self._give_up()
            raise
        finally:
            self._waiting.clear()

    def _end(self, rest: bytes) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *exception: object) -> None:
        """Close it, unless writing it failed."""
        if kind is None:
            self.close()
        else:
            self.give_up()

    def give_up(self) -> None:
        """Let there be no object; nothing happens if the file was closed."""
        if not self.closed:
            self.closed = True
            self._give_up()

    def _all_sent(self, rest: bytes) -> tuple[str, list[str]]:
        """Send what is left; return the upload and the tags of its parts."""
        if rest or not self._parts:
            self._send(rest)
        return str(self._upload), [part.result() for part in self._parts]

    def _send(self, content: bytes) -> None:
        if self._upload is None:
            with refusals_named(self._path):
                self._upload = self._calls.begin_upload(self._path, {WRITER: self._writer})
        # Waiting for earlier ones bounds the memory that one object needs.
        for part in self._parts[-_SENT_AT_ONCE:-1]:
            part.result()
        number = len(self._parts) + 1
        self._parts.append(threads().submit(self._sent, number, content))

    def _sent(self, number: int, content: bytes) -> str:
        with refusals_named(self._path):
            return self._calls.upload_part(self._path, str(self._upload), number, content)

    def _give_up(self) -> None:
        if self._upload is None:
            return
        for part in self._parts:
            part.cancel()
        try:
            self._calls.abort_upload(self._path, self._upload)
        except client_errors():
            # What stays is given up by `gc`, and the first failure is the one to tell.
            return


class NewObject(_Sent):
    """An object that is there once it is closed."""

    def _end(self, rest: bytes) -> None:
        if self._upload is None:
            put_new(self._calls, self._path, rest, self._writer)
            return
        upload, tags = self._all_sent(rest)
        complete_new(self._calls, self._path, upload, tags, self._writer)


class NewUpload(_Sent):
    """An object that is there once somebody completes what was sent of it (PC-F36)."""

    upload: Upload | None = None
    """Known once the file is closed."""

    def _end(self, rest: bytes) -> None:
        upload, tags = self._all_sent(rest)
        self.upload = Upload(self._path, upload, self._writer, tuple(tags))


def put_new(calls: S3Calls, path: str, content: bytes, writer: str) -> None:
    """Write an object unless its name is taken.

    Raises:
        FileExistsAlready: it is, by another writer.
    """
    try:
        calls.put(path, content, IfNoneMatch="*", Metadata={WRITER: writer})
    except client_errors() as refused:
        _check_own(calls, path, writer, refused)


def complete_new(calls: S3Calls, path: str, upload: str, tags: list[str], writer: str) -> None:
    """Complete an upload unless the name of its object is taken; see `put_new`."""
    try:
        calls.complete_upload(path, upload, tags, IfNoneMatch="*")
    except client_errors() as refused:
        _check_own(calls, path, writer, refused)


def _check_own(calls: S3Calls, path: str, writer: str, refused: Exception) -> None:
    """Check whether a request had its effect although no answer or another one came (PC-F37)."""
    try:
        found = writer_of(calls, path)
    except client_errors():
        raise refusal(path, refused) from refused
    if found == writer:
        return
    if found is not None and (code_of(refused) in TAKEN | NO_UPLOAD):
        raise FileExistsAlready(path=path) from refused
    raise refusal(path, refused) from refused


def writer_of(calls: S3Calls, path: str) -> str | None:
    """Return the random text of who wrote an object; empty if it has none, None without object."""
    try:
        return str(calls.head(path).get("Metadata", {}).get(WRITER, ""))
    except client_errors() as refused:
        if code_of(refused) in MISSING:
            return None
        raise
