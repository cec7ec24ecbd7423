"""Connections to a metastore are kept while they can be used, and closed afterwards."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import threading
import time
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from thrift.Thrift import TException
from thrift.transport.TTransport import TTransportException

from tidegate.errors import MetastoreSilent
from tidegate.metastore import connections
from tidegate.metastore.connections import answering_within, ask

if TYPE_CHECKING:
    from collections.abc import Iterator

URI = "thrift://metastore:9083"


@dataclass
class Metastore:
    """A server; a client of it is the number of its connection."""

    open: set[int] = field(default_factory=set)
    made: int = 0

    def connect(self, uri: str) -> tuple[Any, Any]:
        assert uri == URI
        self.made += 1
        self.open.add(self.made)
        return Transport(self, self.made), self.made


@dataclass
class Transport:
    server: Metastore
    number: int

    def close(self) -> None:
        self.server.open.discard(self.number)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Metastore:
    found = Metastore()
    monkeypatch.setattr(connections, "connect", found.connect)
    monkeypatch.setattr(connections, "_threads", threading.local())
    return found


def asked() -> int:
    """Ask, and return the number of the connection."""
    return connections.ask(URI, lambda client: client)  # type: ignore[arg-type,return-value]


@pytest.mark.parametrize(
    ("idle_seconds", "expected"), [(19, 1), (21, 2)], ids=["fresh", "perhaps dropped"]
)
def test_connection_is_used_again_while_it_is_fresh(
    server: Metastore, monkeypatch: pytest.MonkeyPatch, idle_seconds: int, expected: int
) -> None:
    moment = time.monotonic()
    monkeypatch.setattr(connections.time, "monotonic", lambda: moment)
    assert asked() == 1
    monkeypatch.setattr(connections.time, "monotonic", lambda: moment + idle_seconds)

    assert asked() == expected

    assert server.open == {expected}


def test_connection_that_is_used_stays_fresh(
    server: Metastore, monkeypatch: pytest.MonkeyPatch
) -> None:
    moment = time.monotonic()
    for seconds in (0, 15, 30, 45):
        monkeypatch.setattr(connections.time, "monotonic", lambda at=seconds: moment + at)

        assert asked() == 1


def test_fork_connects_anew(server: Metastore) -> None:
    """Two that read from one connection would get each other's answers."""
    assert asked() == 1

    child = os.fork()
    if child == 0:
        try:
            signal.alarm(10)
            os._exit(asked() != 2)
        finally:
            os._exit(1)

    assert os.waitpid(child, 0)[1] == 0
    assert asked() == 1


@pytest.mark.parametrize("is_kept", [True, False], ids=["kept", "new"])
def test_connection_whose_answer_was_cut_off_is_not_used_again(
    server: Metastore, *, is_kept: bool
) -> None:
    """The rest of that answer may still come, and would be taken for another one."""
    if is_kept:
        asked()

    def cut_off(client: object) -> None:
        raise TTransportException(TTransportException.END_OF_FILE, f"in the middle of {client}")

    with pytest.raises(MetastoreSilent):
        connections.ask(URI, cut_off)  # type: ignore[arg-type]

    assert server.open == set()
    assert asked() == server.made


def test_connection_on_which_a_server_refused_is_used_again(server: Metastore) -> None:
    def refused(client: object) -> None:
        msg = "there is no such table"
        raise TException(msg)

    with pytest.raises(TException, match="no such table"):
        connections.ask(URI, refused)  # type: ignore[arg-type]

    assert asked() == 1


def test_connection_of_a_circle_is_closed_before_its_socket_is_collected() -> None:
    """As when the traceback of an error refers to it."""

    class Transport:
        def __init__(self) -> None:
            self.ends = socket.socketpair()

        def close(self) -> None:
            for end in self.ends:
                end.close()

    connection: Any = connections._Connection(Transport(), None)  # type: ignore[arg-type]
    connection.client = [connection, connection.transport]
    del connection

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", ResourceWarning)
        gc.collect()

    assert [str(item.message) for item in said if "unclosed" in str(item.message)] == []


def databases(client: Any) -> Any:
    return client.get_all_databases()


@pytest.mark.parametrize("place", ["no-such-host.invalid:9083", "127.0.0.1:9"])
def test_server_that_cannot_be_reached_is_told_by_the_error_and_not_logged_besides(
    place: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(MetastoreSilent, match=f"thrift://{place}: "):
        ask(f"thrift://{place}", databases)

    assert caplog.records == []


@pytest.fixture
def mute() -> Iterator[str]:
    """A port that accepts connections and says nothing."""
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield f"thrift://127.0.0.1:{server.getsockname()[1]}"


def test_server_that_says_nothing_is_told_with_how_long_was_waited(mute: str) -> None:
    with (
        answering_within(1),
        pytest.raises(MetastoreSilent, match=r"answers nothing, for 1 s;.*may be no metastore"),
    ):
        ask(mute, databases)


def test_questions_of_one_look_wait_no_longer_than_it_may_in_all(mute: str) -> None:
    begun = time.monotonic()
    with answering_within(1):
        for _ in range(4):
            with pytest.raises(MetastoreSilent):
                ask(mute, databases)

    assert time.monotonic() - begun < 3
