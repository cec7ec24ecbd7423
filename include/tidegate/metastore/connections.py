"""Connections to Hive metastores, one per thread, kept for calls that follow each other.

A server prepares each new connection for longer than it answers a question.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
import weakref
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from tidegate.errors import MetastoreSilent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hive_metastore.ThriftHiveMetastore import Client

_Answer = TypeVar("_Answer")

_PORT = 9083
_ANSWERS_WITHIN_SECONDS = 60.0
_LEAST_SECONDS = 0.1
_KEPT_SECONDS = 20
"""An older connection may have been dropped on the way, without a word."""

_threads = threading.local()
_until: ContextVar[float | None] = ContextVar("_until", default=None)
"""When a look gives up, by the clock that cannot be set; None if each answer has its full time."""


@contextlib.contextmanager
def answering_within(seconds: float) -> Iterator[None]:
    """Give up after some seconds in all, however many questions are asked in them."""
    token = _until.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _until.reset(token)


def ask(uri: str, question: Callable[[Client], _Answer]) -> _Answer:
    """Ask the first server that answers.

    Args:
        uri: `thrift://host:port`, or several with commas between, tried in turn.
        question: calls that may be repeated: a connection that was kept may turn out to be closed.

    Raises:
        MetastoreSilent: no server answers (Transient).
    """
    from thrift.protocol.TProtocol import TProtocolException
    from thrift.transport.TTransport import TTransportException

    broken = (TTransportException, TProtocolException, OSError)
    kept = _taken(uri)
    if kept is not None:
        with contextlib.suppress(*broken):
            return _asked(uri, kept, question)
    begun = time.monotonic()
    try:
        return _asked(uri, _first(uri), question)
    except broken as silent:
        problem = str(silent)
        if getattr(silent, "type", None) == TTransportException.TIMED_OUT:
            waited = round(time.monotonic() - begun)
            problem = (
                f"what accepts connections there answers nothing, for {waited} s; it is busy, or "
                "may be no metastore"
            )
        raise MetastoreSilent(uri=uri, problem=problem) from silent


class _Connection:
    """A connection of one thread, which is closed with it."""

    def __init__(self, transport: Any, client: Client) -> None:
        self.transport = transport
        self.client = client
        self.process = os.getpid()
        self.used = time.monotonic()
        # Unlike `__del__`, before its socket is collected with it, whatever refers to whom.
        weakref.finalize(self, transport.close)

    @property
    def is_fresh(self) -> bool:
        """Whether it was just used, and by this process: a fork has those of its parent."""
        return self.process == os.getpid() and time.monotonic() - self.used < _KEPT_SECONDS


def _asked(uri: str, connection: _Connection, question: Callable[[Client], _Answer]) -> _Answer:
    """Ask, and keep the connection, unless the answer was cut off."""
    from thrift.protocol.TProtocol import TProtocolException
    from thrift.Thrift import TException
    from thrift.transport.TTransport import TTransportException

    is_whole = False
    try:
        answer = question(connection.client)
        is_whole = True
    except TException as said:
        # One of the errors with which a server answers.
        is_whole = not isinstance(said, (TTransportException, TProtocolException))
        raise
    finally:
        if is_whole:
            connection.used = time.monotonic()
            _kept()[uri] = connection
        else:
            connection.transport.close()
    return answer


def _taken(uri: str) -> _Connection | None:
    """Take this thread's connection, so that one that breaks is not kept."""
    found: _Connection | None = _kept().pop(uri, None)
    return found if found is not None and found.is_fresh else None


def _kept() -> dict[str, _Connection]:
    if not hasattr(_threads, "kept"):
        _threads.kept = {}
    kept: dict[str, _Connection] = _threads.kept
    return kept


def _first(uri: str) -> _Connection:
    """Connect to the first server that accepts it."""
    from thrift.transport.TTransport import TTransportException

    problems = []
    for said in uri.split(","):
        try:
            return _Connection(*connect(said.strip()))
        except (TTransportException, OSError) as silent:
            problems.append(f"{said.strip()}: {silent}")
    raise MetastoreSilent(uri=uri, problem="; ".join(problems))


def connect(uri: str) -> tuple[Any, Client]:
    """Connect to one server; return the transport, which is to be closed, and the client."""
    from hive_metastore.ThriftHiveMetastore import Client
    from thrift.protocol.TBinaryProtocol import TBinaryProtocol
    from thrift.transport.TSocket import TSocket
    from thrift.transport.TTransport import TBufferedTransport

    # It logs with a traceback what the error says that is raised here.
    logging.getLogger(TSocket.__module__).addFilter(_unsaid)
    place = urlsplit(uri)
    socket = TSocket(place.hostname, place.port or _PORT)
    socket.setTimeout(_patience() * 1000)
    transport = TBufferedTransport(socket)
    transport.open()
    return transport, Client(TBinaryProtocol(transport))


def _patience() -> float:
    """Return for how many seconds the next answer is waited for."""
    until = _until.get()
    if until is None:
        return _ANSWERS_WITHIN_SECONDS
    return min(_ANSWERS_WITHIN_SECONDS, max(_LEAST_SECONDS, until - time.monotonic()))


def _unsaid(_record: logging.LogRecord) -> bool:
    return False
