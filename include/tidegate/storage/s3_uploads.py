"""Objects of a store that are sent while rows are written, and are there once a commit says so."""

from __future__ import annotations

import posixpath
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, cast

from tidegate.storage.addresses import address, named
from tidegate.storage.protocol import Unfinished
from tidegate.storage.s3_client import client_errors, code_of, refusals_named
from tidegate.storage.s3_lease import check_leases, under_leases
from tidegate.storage.s3_threads import answers
from tidegate.storage.s3_writing import NO_UPLOAD, NewUpload, complete_new, writer_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidegate.model.upload import Upload
    from tidegate.storage.s3_calls import S3Calls

_ASKED_ONE_BY_ONE = 2
"""The most uploads of a directory that are not worth to list it."""


@dataclass(frozen=True)
class S3Uploads:
    """Uploads in parts that one process sends and another one completes (PC-F36); see `Uploads`.

    Raises: what `refusals_named` says.
    """

    calls: S3Calls

    def begin(self, path: str) -> BinaryIO:
        """Begin an object, whose upload is known once the file is closed."""
        check_leases()
        return cast("BinaryIO", NewUpload(self.calls, path))

    def standing(self, uploads: Iterable[Upload]) -> list[bool]:
        """Return of each upload whether it can still be completed.

        Those of one directory are listed; not every store lists all of them (MinIO does not), so
        that only asking for one itself tells that it is gone.
        """
        asked = [*uploads]
        counted = Counter(posixpath.dirname(item.path) for item in asked)
        many = [folder for folder, number in counted.items() if number > _ASKED_ONE_BY_ONE]
        listed = {(found.path, found.id) for begun in answers(self.begun, many) for found in begun}
        unlisted = [item for item in asked if (item.path, item.id) not in listed]
        stands = dict(zip(unlisted, answers(self._stands, unlisted), strict=True))
        return [stands.get(item, True) for item in asked]

    def begun(self, root: str) -> list[Unfinished]:
        """List the uploads below a root that were begun, and neither completed nor given up."""
        bucket = named(root).bucket
        with refusals_named(root):
            return [
                Unfinished(address(bucket, item["Key"]), item["UploadId"], item["Initiated"])
                for item in self.calls.uploads(root)
            ]

    def _stands(self, upload: Upload) -> bool:
        with refusals_named(upload.path):
            try:
                return [*self.calls.parts(upload.path, upload.id)] == [*upload.tags]
            except client_errors() as refused:
                if code_of(refused) in NO_UPLOAD:
                    return False
                raise

    def made(self, upload: Upload) -> bool:
        """Return whether the object of this name is the one that was sent."""
        with refusals_named(upload.path):
            return writer_of(self.calls, upload.path) == upload.writer

    def complete_all(self, uploads: Iterable[Upload]) -> None:
        """Make the objects.

        Raises:
            FileExistsAlready: another writer made one of this name.
        """
        answers(under_leases(self._complete), uploads)

    def _complete(self, upload: Upload) -> None:
        complete_new(self.calls, upload.path, upload.id, [*upload.tags], upload.writer)
