"""Requests that fail on the way to a store: what they did is recognised, nothing is done twice."""

from __future__ import annotations

import contextlib
import os
import signal
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from s3_faults import Way, way_to
from s3_servers import moto_server
from tidegate.errors import (
    BucketMissing,
    CredentialsExpired,
    CredentialsMissing,
    StorageSilent,
    StoreDenied,
    StoreKeyWrong,
    StoreOptionWrong,
    StoreRegionWrong,
    StoreSilent,
)
from tidegate.storage import S3Options, s3_client
from tidegate.storage.s3 import S3Storage
from tidegate.storage.s3_calls import S3Calls
from tidegate.storage.s3_client import client_of, refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from s3_servers import S3Server

FAULTS = ["busy", "lost", "dropped"]


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with moto_server() as found:
        yield found


@pytest.fixture
def way(server: S3Server) -> Iterator[Way]:
    with way_to(server) as found:
        yield found


@pytest.fixture
def root(server: S3Server) -> str:
    return f"{server.bucket()}/a"


@pytest.fixture
def storage(server: S3Server, way: Way) -> S3Storage:
    options = replace(server.options, endpoint=f"http://127.0.0.1:{way.port}")
    return S3Storage(S3Calls(options))


def first(fault: str, method: str, having: str = "") -> Callable[[str, str, int], str | None]:
    """Let the first request of a kind fail, and no other."""
    met: list[str] = []

    def at(asked: str, path: str, _number: int) -> str | None:
        if asked != method or having not in path or met:
            return None
        met.append(path)
        return fault

    return at


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("size", [5, (8 << 20) + 5])
def test_writer_whose_answer_is_lost_has_written(
    storage: S3Storage, way: Way, root: str, fault: str, size: int
) -> None:
    method, having = ("PUT", "plan") if size < 100 else ("POST", "uploadId")
    way.fault = first(fault, method, having)

    assert storage.write_once(f"{root}/plan", b"x" * size)
    assert not storage.write_once(f"{root}/plan", b"x" * size)

    assert storage.length(f"{root}/plan") == size


@pytest.mark.parametrize("fault", FAULTS)
def test_copy_whose_answer_is_lost_is_made(
    storage: S3Storage, way: Way, root: str, fault: str
) -> None:
    storage.write_once(f"{root}/staged", b"rows")
    way.fault = first(fault, "PUT", "part")

    storage.link_new(f"{root}/staged", f"{root}/part")
    storage.delete(f"{root}/staged")

    assert storage.list_files(root) == ["part"]
    assert storage.read_bytes(f"{root}/part") == b"rows"


@pytest.mark.parametrize("left", range(4))
def test_replacement_that_ends_anywhere_leaves_the_old_object_or_the_new_one(
    storage: S3Storage, way: Way, root: str, left: int
) -> None:
    """Whoever dies sends no further request."""
    storage.write_once(f"{root}/head", b"old")
    storage.write_once(f"{root}/new", b"new")
    way.seen.clear()
    way.fault = lambda _method, _path, number: "dropped" if number > left else None

    with contextlib.nullcontext() if left == 3 else pytest.raises(StoreSilent):
        storage.replace(f"{root}/new", f"{root}/head")

    way.fault = lambda *_: None
    stands = storage.read_bytes(f"{root}/head")
    assert stands == (b"old" if left < 2 else b"new")
    assert storage.exists(f"{root}/new") == (left < 3)


@pytest.mark.parametrize("fault", [*FAULTS, "half"])
def test_what_is_read_is_whole(storage: S3Storage, way: Way, root: str, fault: str) -> None:
    content = bytes(range(256)) * 2_000
    storage.write_once(f"{root}/part", content)
    way.fault = first(fault, "GET", "part")

    with storage.open_input(f"{root}/part") as opened:
        found = opened.read_at(len(content), 0)

    assert found == content


def test_object_that_is_replaced_while_it_is_read_is_gone(storage: S3Storage, root: str) -> None:
    storage.write_once(f"{root}/part", b"1" * (1 << 20))

    with storage.open_input(f"{root}/part") as opened:
        assert opened.read_at(100_000, 0) == b"1" * 100_000
        storage.calls.put(f"{root}/part", b"2" * (1 << 20))
        with pytest.raises(FileNotFoundError):
            opened.read_at(100_000, 200_000)


def test_small_reads_at_the_end_are_one_request(storage: S3Storage, way: Way, root: str) -> None:
    storage.write_once(f"{root}/part", b"1" * (1 << 20))
    before = way.count("GET")

    with storage.open_input(f"{root}/part") as opened:
        for at in (8, 1_000, 60_000):
            assert len(opened.read_at(8, opened.size() - at)) == 8

    assert way.count("GET") == before + 1


def test_fork_asks_by_connections_of_its_own(storage: S3Storage, way: Way, root: str) -> None:
    """Two that read from one connection would get each other's answers."""
    storage.write_once(f"{root}/plan", b"rows")
    of_parent = set(way.ports)
    way.ports.clear()

    child = os.fork()
    if child == 0:
        try:
            signal.alarm(20)
            os._exit(storage.read_bytes(f"{root}/plan") != b"rows")
        finally:
            os._exit(1)

    assert os.waitpid(child, 0)[1] == 0
    assert way.ports
    assert way.ports.isdisjoint(of_parent)
    assert storage.read_bytes(f"{root}/plan") == b"rows"


def test_upload_that_is_not_finished_leaves_no_object(storage: S3Storage, root: str) -> None:
    def write() -> None:
        with storage.open_new(f"{root}/part") as file:
            file.write(b"x" * (9 << 20))
            message = "no more"
            raise RuntimeError(message)

    with pytest.raises(RuntimeError, match="no more"):
        write()

    assert storage.list_files(root) == []
    assert storage.unfinished(root) == []


def test_upload_of_a_process_that_died_is_listed_and_given_up(
    storage: S3Storage, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3_client, "_ATTEMPTS", 1)
    file = storage.open_new(f"{root}/part")
    file.write(b"x" * (9 << 20))

    ((path, upload, _),) = storage.unfinished(root)
    assert path == f"{root}/part"
    storage.give_up(path, "another")
    assert storage.unfinished(root) != []
    storage.give_up(path, upload)
    storage.give_up(path, upload)

    assert storage.unfinished(root) == []
    with pytest.raises(StoreSilent):
        file.close()
    assert storage.list_files(root) == []


def test_store_that_is_away_is_silent(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3_client, "_ATTEMPTS", 1)
    away = replace(server.options, endpoint="http://127.0.0.1:9", profile=None)

    with pytest.raises(StorageSilent) as refused:
        S3Storage(S3Calls(away)).length("s3://lake/a")

    assert isinstance(refused.value, StoreSilent)


def test_bucket_that_is_not_there_is_named(storage: S3Storage) -> None:
    for ask in (
        lambda: storage.write_once("s3://no-such-bucket/a/b", b""),
        lambda: storage.list_files("s3://no-such-bucket/a"),
        lambda: storage.check_writable("target.path", "s3://no-such-bucket/a"),
    ):
        with pytest.raises(BucketMissing, match="no-such-bucket"):
            ask()


@pytest.mark.parametrize(
    ("code", "status", "expected"),
    [
        ("AccessDenied", 403, StoreDenied),
        ("InvalidAccessKeyId", 403, StoreKeyWrong),
        ("SignatureDoesNotMatch", 403, StoreKeyWrong),
        ("PermanentRedirect", 301, StoreRegionWrong),
        ("400", 400, StoreRegionWrong),
        ("ExpiredToken", 400, CredentialsExpired),
        ("SlowDown", 503, StoreSilent),
        ("RequestTimeout", 400, StoreSilent),
        ("Whatever", 500, StoreSilent),
        ("Whatever", 429, StoreSilent),
        ("NoSuchBucket", 404, BucketMissing),
    ],
)
def test_words_of_a_store_become_errors(code: str, status: int, expected: type[Exception]) -> None:
    from botocore.exceptions import ClientError

    said = {"Error": {"Code": code, "Message": "m"}, "ResponseMetadata": {"HTTPStatusCode": status}}

    found = refusal("s3://lake/a", ClientError(said, "PutObject"))

    assert type(found) is expected
    assert "s3://lake/a" in str(found)


@pytest.mark.parametrize(("code", "expected"), [("SlowDown", StoreSilent), ("Locked", StoreDenied)])
def test_object_that_is_not_deleted_with_others_is_named(
    storage: S3Storage, monkeypatch: pytest.MonkeyPatch, code: str, expected: type[Exception]
) -> None:
    left = [{"Key": "a/b", "Code": code, "Message": "m"}]
    monkeypatch.setattr(S3Calls, "delete_many", lambda _self, _paths: left)

    with pytest.raises(expected, match="s3://lake/a/b"):
        storage.delete_all(["s3://lake/a/a", "s3://lake/a/b"])


def test_options_tell_no_secret() -> None:
    options = S3Options("http://a", "r", None, "the-key", "the-secret", "the-token", "conn")

    assert "the-" not in repr(options)
    assert "the-" not in repr(S3Storage(S3Calls(options)))


def test_credentials_that_nothing_tells_are_missing(
    server: S3Server, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    empty = tmp_path_factory.mktemp("home")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(empty))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    s3_client._client.cache_clear()

    with pytest.raises(CredentialsMissing, match="connection"):
        S3Storage(S3Calls(S3Options(server.endpoint, "us-east-1"))).length("s3://lake/a")
    with pytest.raises(StoreOptionWrong, match="nobody"):
        client_of(S3Options(server.endpoint, "us-east-1", profile="nobody"))
