"""Objects that are sent by one process, and that are there once another one completes them."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from s3_servers import moto_server
from tidegate.errors import FileContentWrong, FileExistsAlready
from tidegate.model.publication import StagedFile
from tidegate.storage import Deferred, LocalStorage, Stores, check_sent, waiting_uploads
from tidegate.storage.s3 import S3Storage
from tidegate.storage.s3_calls import S3Calls

if TYPE_CHECKING:
    from collections.abc import Iterator

    from s3_servers import S3Server
    from tidegate.model.upload import Upload

PART = 8 << 20


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with moto_server() as found:
        yield found


@pytest.fixture
def storage(server: S3Server) -> S3Storage:
    return S3Storage(S3Calls(server.options))


@pytest.fixture
def root(server: S3Server) -> str:
    return f"{server.bucket()}/a"


def sent(storage: S3Storage, path: str, content: bytes = b"rows") -> Upload:
    file = storage.uploads(path).begin(path)
    file.write(content)
    file.close()
    assert isinstance(file, Deferred)
    assert file.upload is not None
    return file.upload


def test_object_is_there_once_it_is_completed(storage: S3Storage, root: str) -> None:
    content = bytes(range(256)) * ((PART + 512) // 256)
    upload = sent(storage, f"{root}/large", content)
    assert len(upload.tags) == 2
    assert storage.length(f"{root}/large") is None
    assert storage.uploads(root).standing([upload]) == [True]

    storage.uploads(root).complete_all([upload])

    assert storage.read_bytes(f"{root}/large") == content
    assert storage.uploads(root).standing([upload]) == [False]
    # As after an answer that was lost.
    storage.uploads(root).complete_all([upload])


def test_object_of_another_writer_stays(storage: S3Storage, root: str) -> None:
    one, other = (sent(storage, f"{root}/part", content) for content in (b"one", b"other"))
    storage.uploads(root).complete_all([one])

    with pytest.raises(FileExistsAlready):
        storage.uploads(root).complete_all([other])

    assert storage.read_bytes(f"{root}/part") == b"one"


@pytest.mark.parametrize("lists", [True, False], ids=["listed", "not listed by the store"])
def test_uploads_of_a_directory_are_asked_for_together(
    storage: S3Storage, root: str, monkeypatch: pytest.MonkeyPatch, *, lists: bool
) -> None:
    uploads = [sent(storage, f"{root}/{number}") for number in range(5)]
    storage.give_up(uploads[2].path, uploads[2].id)
    asked: list[str] = []
    real = S3Calls.parts

    def parts(calls: S3Calls, path: str, upload: str) -> Iterator[str]:
        asked.append(path)
        return real(calls, path, upload)

    monkeypatch.setattr(S3Calls, "parts", parts)
    if not lists:
        nothing: Any = lambda _calls, _path: iter(())  # noqa: E731 (a method for a moment)
        monkeypatch.setattr(S3Calls, "uploads", nothing)

    found = storage.uploads(root).standing(uploads)

    assert found == [True, True, False, True, True]
    assert len(asked) == (1 if lists else 5)


def test_upload_with_other_parts_is_not_the_one_that_was_sent(
    storage: S3Storage, root: str
) -> None:
    upload = sent(storage, f"{root}/part")

    assert storage.uploads(root).standing([replace(upload, tags=('"other"',))]) == [False]


def test_file_that_is_given_up_leaves_no_upload(storage: S3Storage, root: str) -> None:
    file = storage.uploads(root).begin(f"{root}/part")
    file.write(b"x" * (PART + 1))
    assert isinstance(file, Deferred)

    file.give_up()
    file.close()

    assert storage.unfinished(root) == []
    assert file.upload is None


def test_disk_has_no_uploads(tmp_path: object) -> None:
    assert LocalStorage().uploads(str(tmp_path)) is None
    assert Stores().uploads(str(tmp_path)) is None
    assert Stores().uploads("s3://lake/a") is not None


def test_upload_stands_for_the_file_that_it_leads_to_and_for_no_other(
    storage: S3Storage, root: str
) -> None:
    upload = sent(storage, f"{root}/part")
    sha256 = hashlib.sha256(b"rows").hexdigest()
    file = StagedFile("part", 4, sha256, 1, 1, "plan", "staged/part", upload=upload)
    elsewhere = f"{root}/dt=1/part"

    assert waiting_uploads(storage, [(file, upload.path)]) == {upload.path}
    assert waiting_uploads(storage, [(file, elsewhere)]) == frozenset()
    storage.uploads(root).complete_all([upload])
    check_sent(storage, file, upload.path)
    storage.write_once(elsewhere, b"none")
    with pytest.raises(FileContentWrong, match="dt=1/part"):
        check_sent(storage, file, elsewhere)


def test_upload_of_which_the_store_knows_nothing_any_more_says_whose_object_is_there(
    storage: S3Storage, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store may look for the upload before it looks at the condition."""
    one, other = (sent(storage, f"{root}/part", content) for content in (b"one", b"other"))
    storage.uploads(root).complete_all([one])

    def complete(*_told: Any, **_options: Any) -> None:
        raise ClientError({"Error": {"Code": "NoSuchUpload"}}, "CompleteMultipartUpload")

    monkeypatch.setattr(S3Calls, "complete_upload", complete)
    with pytest.raises(FileExistsAlready):
        storage.uploads(root).complete_all([other])
    # As after an answer that was lost.
    storage.uploads(root).complete_all([one])
