"""Connections to a metastore that are kept are closed when nobody has them any more."""

from __future__ import annotations

import gc
import socket
import warnings
from typing import Any

from tidegate.metastore import connections


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
