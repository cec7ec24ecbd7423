"""A way to a store on which requests fail: throttled, slow, half answered, lost after their effect.

A real HTTP proxy between the client and a real store, so that the client's own retries take part.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from botocore.retries.standard import ExponentialBackoff

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from s3_servers import S3Server

BUSY = (
    b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>SlowDown</Code>'
    b"<Message>Please reduce your request rate.</Message></Error>"
)
EXPIRED = (
    b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>ExpiredToken</Code>'
    b"<Message>The provided token has expired.</Message></Error>"
)
DENIED = (
    b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>AccessDenied</Code>'
    b"<Message>Access Denied</Message></Error>"
)
REGION = (
    b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>AuthorizationHeaderMalformed</Code>'
    b"<Message>The authorization header is malformed; the region is wrong.</Message></Error>"
)
_REFUSALS = {
    "busy": (503, BUSY),
    "expired": (400, EXPIRED),
    "denied": (403, DENIED),
    "region": (400, REGION),
}
_COMES_AGAIN_SECONDS = 0.02
_LEFT_OUT = {"connection", "transfer-encoding", "content-length", "date", "server"}


@dataclass
class Way:
    """What happens to requests on the way; by default nothing."""

    port: int = 0
    seen: list[tuple[str, str]] = field(default_factory=list)
    """Method and path, with its query, of each request that came."""
    ports: set[int] = field(default_factory=set)
    """Those of clients from which requests came: one for each connection."""
    fault: Callable[[str, str, int], str | None] = lambda _method, _path, _number: None
    """Method, path, number from 1 → `busy`, `lost` (done, but not answered), `dropped` (neither),
    `half` (answered to the middle of the body), `expired`, `denied`, `region`, or None."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, method: str) -> int:
        """Give the number of requests of a method."""
        return sum(each == method for each, _ in self.seen)


@contextlib.contextmanager
def way_to(server: S3Server) -> Iterator[Way]:  # noqa: C901 (a handler is a class)
    """Put a proxy before a store; clients come again at once, and not seconds later."""
    way = Way()

    class Passing(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, *_said: Any) -> None:
            """Say nothing."""

        def _pass(self) -> None:
            with way.lock:
                way.seen.append((self.command, self.path))
                way.ports.add(self.client_address[1])
                number = len(way.seen)
            fault = way.fault(self.command, self.path, number)
            body = self._body()
            if fault in _REFUSALS:
                status, text = _REFUSALS[fault]
                self._answer(status, [("Content-Type", "application/xml")], text)
                return
            if fault == "dropped":
                self._hang_up()
                return
            asked = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
            asked.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                asked.putheader(name, value)
            asked.endheaders(body or None)
            answer = asked.getresponse()
            content = answer.read()
            asked.close()
            if fault == "lost":
                self._hang_up()
                return
            kept = [it for it in answer.getheaders() if it[0].lower() not in _LEFT_OUT]
            kept += [it for it in answer.getheaders() if it[0].lower() == "date"]
            length = answer.getheader("Content-Length") if self.command == "HEAD" else None
            self._answer(answer.status, kept, content, length, half=fault == "half")

        def _body(self) -> bytes:
            """Read what was sent, with the frame of its chunks: Arrow does not say its length."""
            if self.headers.get("Transfer-Encoding") != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            read = []
            while True:
                read.append(self.rfile.readline())
                length = int(read[-1].partition(b";")[0], 16)
                read.append(self.rfile.read(length + len(b"\r\n")))
                if not length:
                    return b"".join(read)

        def _answer(
            self,
            status: int,
            headers: list[tuple[str, str]],
            content: bytes,
            length: str | None = None,
            *,
            half: bool = False,
        ) -> None:
            self.send_response_only(status)
            for name, value in headers:
                self.send_header(name, value)
            self.send_header("Content-Length", length or str(len(content)))
            self.end_headers()
            self.wfile.write(content[: len(content) // 2] if half else content)
            if half:
                self._hang_up()

        def _hang_up(self) -> None:
            self.close_connection = True
            with contextlib.suppress(OSError):
                self.wfile.flush()
                self.connection.shutdown(socket.SHUT_RDWR)

        do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _pass  # noqa: N815

    proxy = ThreadingHTTPServer(("127.0.0.1", 0), Passing)
    proxy.daemon_threads = True
    way.port = proxy.server_address[1]
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    try:
        with patch.object(ExponentialBackoff, "delay_amount", lambda *_: _COMES_AGAIN_SECONDS):
            yield way
    finally:
        proxy.shutdown()
        proxy.server_close()
