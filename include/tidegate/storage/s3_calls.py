"""Requests to an S3 store, in one place, so that a test can stop the process around each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tidegate.storage.addresses import named
from tidegate.storage.s3_client import S3Options, client_of, code_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_DELETED_AT_ONCE = 1000
_TIMES = 3
_WAIT = 0.1
"""Seconds."""


@dataclass(frozen=True)
class S3Calls:
    """Each request that changes a store, and those that read one; addresses are `s3://…`."""

    options: S3Options = field(default_factory=S3Options)

    @property
    def _client(self) -> Any:
        return client_of(self.options)

    def head(self, path: str) -> dict[str, Any]:
        """Return what the store knows of an object."""
        from botocore.exceptions import ClientError

        try:
            found: dict[str, Any] = self._client.head_object(**_name(path))
        except ClientError as refused:
            if code_of(refused) != "400":
                raise
            # Such an answer has no text. One that has it also tells the client the region that the
            # store wants, and the client uses it from then on.
            self.first(path)
            found = self._client.head_object(**_name(path))
        return found

    def get(self, path: str, **options: Any) -> dict[str, Any]:
        """Begin to read an object, or a range of it."""
        found: dict[str, Any] = self._client.get_object(**_name(path), **options)
        return found

    def content(self, path: str, **options: Any) -> tuple[bytes, dict[str, Any]]:
        """Read an object, or a range of it, and return what came with it.

        The client asks again for what is not answered, but not for what breaks off half way.
        """
        from botocore.exceptions import HTTPClientError
        from tenacity import (
            Retrying,
            retry_if_exception_type,
            stop_after_attempt,
            wait_random_exponential,
        )

        again: Retrying = Retrying(
            retry=retry_if_exception_type(HTTPClientError),
            stop=stop_after_attempt(_TIMES),
            wait=wait_random_exponential(multiplier=_WAIT, max=1),
            reraise=True,
        )
        return again(self._content, path, **options)

    def _content(self, path: str, **options: Any) -> tuple[bytes, dict[str, Any]]:
        answer = self.get(path, **options)
        return bytes(answer["Body"].read()), answer

    def first(self, path: str) -> str | None:
        """Return the first key that begins with that of an address; None if none does."""
        bucket, key = named(path)
        found = self._client.list_objects_v2(Bucket=bucket, Prefix=key, MaxKeys=1)
        return next((str(item["Key"]) for item in found.get("Contents", [])), None)

    def pages(self, path: str, *, deep: bool) -> Iterator[dict[str, Any]]:
        """List the objects below an address, and unless it is `deep`, the names below it."""
        bucket, key = named(path)
        asked: dict[str, Any] = {"Bucket": bucket, "Prefix": f"{key}/" if key else ""}
        if not deep:
            asked["Delimiter"] = "/"
        yield from self._client.get_paginator("list_objects_v2").paginate(**asked)

    def put(self, path: str, content: bytes, **options: Any) -> dict[str, Any]:
        """Write a whole object."""
        done: dict[str, Any] = self._client.put_object(**_name(path), Body=content, **options)
        return done

    def copy(self, source: str, target: str, **options: Any) -> dict[str, Any]:
        """Copy an object inside the store."""
        done: dict[str, Any] = self._client.copy_object(
            **_name(target), CopySource=_name(source), **options
        )
        return done

    def delete(self, path: str, **options: Any) -> None:
        """Remove an object."""
        self._client.delete_object(**_name(path), **options)

    def delete_many(self, paths: Sequence[str]) -> list[dict[str, Any]]:
        """Remove objects of one bucket; return those that the store would not remove."""
        refused: list[dict[str, Any]] = []
        for start in range(0, len(paths), _DELETED_AT_ONCE):
            some = [named(path) for path in paths[start : start + _DELETED_AT_ONCE]]
            objects = {"Objects": [{"Key": item.key} for item in some], "Quiet": True}
            done = self._client.delete_objects(Bucket=some[0].bucket, Delete=objects)
            refused += done.get("Errors", [])
        return refused

    def begin_upload(self, path: str, metadata: Mapping[str, str]) -> str:
        """Begin an upload in parts; return its id."""
        begun = self._client.create_multipart_upload(**_name(path), Metadata=dict(metadata))
        return str(begun["UploadId"])

    def upload_part(self, path: str, upload: str, number: int, content: bytes) -> str:
        """Send a part, counted from 1; return its tag."""
        sent = self._client.upload_part(
            **_name(path), UploadId=upload, PartNumber=number, Body=content
        )
        return str(sent["ETag"])

    def copy_part(self, source: str, path: str, upload: str, number: int, span: range) -> str:
        """Make a part of a range of another object; return its tag."""
        sent = self._client.upload_part_copy(
            **_name(path),
            UploadId=upload,
            PartNumber=number,
            CopySource=_name(source),
            CopySourceRange=f"bytes={span.start}-{span.stop - 1}",
        )
        return str(sent["CopyPartResult"]["ETag"])

    def complete_upload(
        self, path: str, upload: str, tags: Sequence[str], **options: Any
    ) -> dict[str, Any]:
        """Put the parts together: the object is there."""
        parts = [{"PartNumber": at, "ETag": tag} for at, tag in enumerate(tags, start=1)]
        done: dict[str, Any] = self._client.complete_multipart_upload(
            **_name(path), UploadId=upload, MultipartUpload={"Parts": parts}, **options
        )
        return done

    def abort_upload(self, path: str, upload: str) -> None:
        """Give up an upload."""
        self._client.abort_multipart_upload(**_name(path), UploadId=upload)

    def parts(self, path: str, upload: str) -> Iterator[str]:
        """List the tags of the parts that were sent of an upload, in their order."""
        pages = self._client.get_paginator("list_parts")
        for page in pages.paginate(**_name(path), UploadId=upload):
            for part in page.get("Parts", []):
                yield str(part["ETag"])

    def uploads(self, path: str) -> Iterator[dict[str, Any]]:
        """List the uploads below an address that were begun and neither completed nor given up."""
        bucket, key = named(path)
        pages = self._client.get_paginator("list_multipart_uploads")
        for page in pages.paginate(Bucket=bucket, Prefix=f"{key}/" if key else ""):
            yield from page.get("Uploads", [])


def _name(path: str) -> dict[str, str]:
    bucket, key = named(path)
    return {"Bucket": bucket, "Key": key}
