"""The tests' own promise: nothing leaves the machine."""

from __future__ import annotations

import socket

import pytest


def test_connect_to_localhost_is_allowed() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        assert client.getpeername() == server.getsockname()


@pytest.mark.parametrize("host", ["192.0.2.1", "example.org"], ids=["address", "name"])
def test_connect_elsewhere_is_refused(host: str) -> None:
    with socket.socket() as client, pytest.raises(OSError, match="localhost only"):
        client.connect((host, 80))
