"""A lock in a store: one holder, whatever the clocks say and whoever slept."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from s3_faults import way_to
from s3_servers import moto_server
from tidegate.errors import PartitionBusy
from tidegate.storage import s3_lease
from tidegate.storage.s3 import S3Storage
from tidegate.storage.s3_calls import S3Calls
from tidegate.storage.s3_lease import S3Lease

if TYPE_CHECKING:
    from collections.abc import Iterator

    from s3_servers import S3Server


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with moto_server() as found:
        yield found


@pytest.fixture
def calls(server: S3Server) -> S3Calls:
    return S3Calls(server.options)


@pytest.fixture
def path(server: S3Server) -> str:
    return f"{server.bucket()}/locks/dt=1.lock"


def dead(calls: S3Calls, path: str, name: str = "dead") -> S3Lease:
    """Give a lease whose process stopped right after it took it."""
    lease = S3Lease(calls, path, name)
    lease._take()
    return lease


def test_lock_of_a_dead_process_is_respected_until_it_expires(
    calls: S3Calls, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = S3Storage(calls)
    dead(calls, path)

    with pytest.raises(PartitionBusy, match="dead"), storage.lock(path, "successor"):
        pass
    monkeypatch.setattr(s3_lease, "LEASE_SECONDS", -60.0)
    with storage.lock(path, "successor"):
        pass


def test_process_that_slept_changes_nothing_after_its_successor_came(
    calls: S3Calls, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage, root = S3Storage(calls), path.rpartition("/locks/")[0]
    storage.write_once(f"{root}/_SUCCESS", b"of the successor")
    sent = storage.uploads(root).begin(f"{root}/d")
    sent.write(b"rows")
    sent.close()
    pairs = [(f"{root}/_SUCCESS", f"{root}/{name}") for name in "bc"]
    moment = s3_lease.time.monotonic()

    with storage.lock(path, "sleeper"):
        monkeypatch.setattr(s3_lease.time, "monotonic", lambda: moment + 31)
        for change in (
            lambda: storage.delete(f"{root}/_SUCCESS"),
            lambda: storage.delete_all([f"{root}/_SUCCESS"]),
            lambda: storage.link_new(f"{root}/_SUCCESS", f"{root}/b"),
            lambda: storage.link_all(pairs[:1]),
            lambda: storage.link_all(pairs),
            lambda: storage.write_once(f"{root}/c", b""),
            lambda: storage.open_new(f"{root}/c"),
            lambda: storage.replace(f"{root}/_SUCCESS", f"{root}/b"),
            lambda: storage.uploads(root).begin(f"{root}/c"),
            lambda: storage.uploads(root).complete_all([sent.upload]),
            lambda: storage.give_up(sent.upload.path, sent.upload.id),
        ):
            with pytest.raises(PartitionBusy, match="successor"):
                change()

    assert sorted(storage.list_files(root)) == ["_SUCCESS", "locks/dt=1.lock"]
    assert [each.id for each in storage.unfinished(root)] == [sent.upload.id]


@pytest.mark.parametrize("fault", ["lost", "dropped"])
def test_lock_whose_answer_was_lost_is_held(server: S3Server, path: str, fault: str) -> None:
    with way_to(server) as way:
        options = replace(server.options, endpoint=f"http://127.0.0.1:{way.port}")
        way.fault = lambda method, _path, _number: (
            fault if method == "PUT" and way.count("PUT") == 1 else None
        )

        with (
            S3Storage(S3Calls(options)).lock(path, "holder"),
            pytest.raises(PartitionBusy, match="holder"),
        ):
            S3Lease(S3Calls(server.options), path, "other")._take()

    assert way.count("PUT") == 2
    with S3Storage(S3Calls(server.options)).lock(path, "other"):
        pass


def test_lease_counts_from_before_the_request_however_late_its_answer_comes(
    server: S3Server, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others count from when the store wrote it, which may be long before it answers."""
    clock = [round(s3_lease.time.monotonic())]
    monkeypatch.setattr(s3_lease.time, "monotonic", lambda: clock[0])

    class Slow(S3Calls):
        def put(self, path: str, content: bytes, **options: Any) -> dict[str, Any]:
            done = super().put(path, content, **options)
            clock[0] += 20
            return done

    lease = S3Lease(Slow(server.options), path, "holder")
    for take in (lease._take, lease._renew):
        take()
        clock[0] += 10
        lease.check()
        clock[0] += 1
        with pytest.raises(PartitionBusy, match="successor"):
            lease.check()


def test_renewal_keeps_the_lock_and_a_lost_one_is_noticed(
    calls: S3Calls, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = dead(calls, path, "first")
    seen_as_expired = calls.head(path)["ETag"]

    assert first._renew()
    assert calls.head(path)["ETag"] != seen_as_expired
    monkeypatch.setattr(s3_lease, "LEASE_SECONDS", -60.0)
    second = dead(calls, path, "second")
    assert not first._renew()
    assert second._renew()
    calls.delete(path)
    assert not second._renew()


def test_of_two_that_find_it_expired_one_takes_it(
    calls: S3Calls, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead(calls, path)
    monkeypatch.setattr(s3_lease, "LEASE_SECONDS", -60.0)
    rival = S3Lease(calls, path, "rival")
    read = S3Lease._read

    def overtaken(lease: S3Lease) -> object:
        found = read(lease)
        if lease.holder == "late":
            rival._take()
        return found

    monkeypatch.setattr(S3Lease, "_read", overtaken)

    with pytest.raises(PartitionBusy):
        S3Lease(calls, path, "late")._take()
    assert read(rival)[0].startswith("rival")
